"""Figures of the last night as Prometheus reads them, for a textfile collector or a Pushgateway.

``docs/ci/grafana-dashboard.json`` shows them; a test holds the two together.
"""

import datetime as dt
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from splitbrain.harness.campaign.gate.record import GateRecord
from splitbrain.harness.campaign.nightly.record import NightlyRecord
from splitbrain.harness.campaign.suite.ledger import VERDICTS
from splitbrain.harness.campaign.suite.tally import NightTally
from splitbrain.harness.folder.atomic_file import write_atomically

#: Name of the file in the folder of a suite's nights; that of the last night replaces it.
METRICS: Final = "metrics.prom"
_THRESHOLD_STATES: Final = ("met", "violated", "unknown", "not-compared")


def write_metrics(
    path: Path, record: NightlyRecord, tally: NightTally, gate: GateRecord | None
) -> None:
    """Replace the file; ``gate`` is None where it did not answer. OSError: the disk refuses."""
    write_atomically(path, metrics_text(record, tally, gate))


def metrics_text(record: NightlyRecord, tally: NightTally, gate: GateRecord | None) -> bytes:
    """Return the file of a night that is over."""
    gauges = _Gauges(tally.began.suite)
    gauges.set("night_exit_code", "Exit code of the night.", record.exit_code or 0)
    gauges.set("night_void", "1 where a planted bug went unseen.", int(record.is_void))
    if record.ended is not None:
        ended = dt.datetime.fromisoformat(record.ended).timestamp()
        gauges.set("night_ended_timestamp_seconds", "End of the night.", ended)
    for verdict in VERDICTS:
        runs = sum(run.verdict == verdict and run.expect == "valid" for run in tally.runs)
        gauges.set("night_runs", "Runs but those with planted bugs.", runs, verdict=verdict)
    for step, done in record.steps.items():
        gauges.set("night_step_seconds", "Time of a step.", done.took_s, step=step)
        gauges.set("night_step_exit_code", "Exit code of a step.", done.exit_code, step=step)
    if gate is not None:
        _add_gate(gauges, gate)
    return generate_latest(gauges.registry)


def _add_gate(gauges: "_Gauges", gate: GateRecord) -> None:
    for state in ("new", "known", "quarantined", "not-compared"):
        count = sum(
            state
            == (
                "quarantined"
                if failure.is_spared
                else {True: "new", False: "known", None: "not-compared"}[failure.new]
            )
            for failure in gate.failures
        )
        gauges.set("night_failures", "Different failures, by fingerprint.", count, state=state)
    for threshold in gate.thresholds:
        for state in _THRESHOLD_STATES:
            text, is_so = threshold.threshold, int(threshold.state == state)
            help_text = "1 where the threshold has this state."
            gauges.set("threshold", help_text, is_so, threshold=text, state=state)
    for subject, measured in gate.figures.items():
        if measured.value is not None:
            gauges.set("figure", "A figure of the gate.", measured.value, figure=subject)


class _Gauges:
    """Gauges by name, each with the suite and labels of its own."""

    def __init__(self, suite: str) -> None:
        self.registry = CollectorRegistry()
        self._suite = suite
        self._gauges: dict[str, Gauge] = {}

    def set(self, name: str, help_text: str, value: float, **labels: str) -> None:
        """Set one value of ``splitbrain_<name>``."""
        if name not in self._gauges:
            names = ("suite", *labels)
            gauge = Gauge(f"splitbrain_{name}", help_text, names, registry=self.registry)
            self._gauges[name] = gauge
        self._gauges[name].labels(suite=self._suite, **labels).set(value)
