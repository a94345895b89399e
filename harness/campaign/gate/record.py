"""The gate's answer as one record: its JSON, and the source of every other output.

A gate JSON is also a baseline: it holds the figures and fingerprints that a later gate compares
with. A field may be added, none may change its meaning without a new schema number.
"""

import datetime as dt

import msgspec

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.contracts.figure import Measured
from splitbrain.harness.campaign.gate.evaluation import Judged, State, Verdict
from splitbrain.harness.campaign.gate.failures import Failure
from splitbrain.harness.campaign.gate.gated_run import GatedRun, Outcome
from splitbrain.harness.campaign.gate.gated_sweep import GatedSweep, sweep_sentence
from splitbrain.harness.campaign.gate.policy import Quarantine

GATE_SCHEMA = 1
KIND = "splitbrain-gate"
#: Runs named for each failure; their full number stands beside.
CASES_MAX = 20


class FailureCase(msgspec.Struct, frozen=True):
    """One run in which a failure was met."""

    run: str
    seed: int | None
    sentence: str
    reproduce: str
    run_folder: str | None


class FailureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One failure."""

    fingerprint: str
    checker: str
    kind: str
    shape: str
    #: Name of the anomaly; empty in records of earlier versions.
    name: str = ""
    #: Null without a baseline.
    new: bool | None
    runs: int
    cases: tuple[FailureCase, ...]
    quarantined_until: dt.date | None = None
    quarantine_reason: str | None = None
    quarantine_expired: bool = False

    @property
    def is_spared(self) -> bool:
        """Return whether a quarantine in force covers it."""
        return self.quarantined_until is not None and not self.quarantine_expired


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    run: str
    system: str
    version: str
    workload: str
    runtime: str
    seed: int | None
    outcome: Outcome
    canary: bool
    canary_missed: bool
    flaky: bool
    sentence: str
    reproduce: str
    run_folder: str | None


class SweepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One sweep."""

    sweep: str
    system: str
    #: As on the command line; null where it cannot be read.
    seeds: str | None
    sentence: str


class GateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the gate's JSON."""

    schema: int = GATE_SCHEMA
    kind: str = KIND
    #: UTC, ISO 8601.
    at: str
    tool_version: str
    tool_commit: str | None
    policy: str
    policy_digest: str
    tier: str
    sources: tuple[str, ...]
    baseline: str | None
    verdict: Verdict
    exit_code: int
    sentence: str
    thresholds: tuple[Judged, ...]
    #: Subject to its value and samples: those of the thresholds, and all of verdicts.
    figures: dict[str, Measured]
    failures: tuple[FailureRecord, ...]
    resolved: tuple[str, ...]
    idle_quarantines: tuple[Quarantine, ...]
    runs: tuple[RunRecord, ...]
    #: Missing in records of earlier versions.
    sweeps: tuple[SweepRecord, ...] = ()
    #: Problems around the answer, and its gaps; one sentence each.
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def of_state(self, state: State) -> tuple[Judged, ...]:
        """Return thresholds with this outcome."""
        return tuple(threshold for threshold in self.thresholds if threshold.state == state)


def failure_record(failure: Failure) -> FailureRecord:
    """Return one failure for the record."""
    fingerprint, quarantine = failure.fingerprint, failure.quarantine
    named = [(case.run, headline_of(case.result)) for case in failure.cases[:CASES_MAX]]
    return FailureRecord(
        fingerprint=failure.text,
        checker=fingerprint.checker,
        kind=fingerprint.kind,
        name=fingerprint.name,
        shape=fingerprint.shape,
        new=failure.is_new,
        runs=len(failure.cases),
        cases=tuple(
            FailureCase(run.name, run.seed, reason, run.reproduce, run.folder_text)
            for run, reason in named
        ),
        quarantined_until=quarantine.until if quarantine else None,
        quarantine_reason=quarantine.reason if quarantine else None,
        quarantine_expired=failure.is_expired,
    )


def run_record(run: GatedRun, *, is_flaky: bool) -> RunRecord:
    """Return one run for the record."""
    return RunRecord(
        run=run.name,
        system=run.system,
        version=run.version,
        workload=run.workload,
        runtime=run.runtime,
        seed=run.seed,
        outcome=run.outcome,
        canary=run.is_canary,
        canary_missed=run.canary_missed,
        flaky=is_flaky,
        sentence=run.sentence,
        reproduce=run.reproduce,
        run_folder=run.folder_text,
    )


def sweep_record(sweep: GatedSweep) -> SweepRecord:
    """Return one sweep for the record."""
    return SweepRecord(
        sweep=sweep.name,
        system=sweep.system,
        seeds=None if sweep.sweep is None else sweep.sweep.seeds,
        sentence=sweep_sentence(sweep),
    )


def encode_record(record: GateRecord) -> bytes:
    """Encode the record as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def decode_record(content: bytes) -> GateRecord:
    """Read a record back; raise ValueError if it is none, or of a schema not known here."""
    record = msgspec.json.decode(content, type=GateRecord)
    if record.kind != KIND:
        raise ValueError("it is no gate's record")
    if record.schema != GATE_SCHEMA:
        message = f"it has schema {record.schema}, and this version reads {GATE_SCHEMA}"
        raise ValueError(message)
    return record
