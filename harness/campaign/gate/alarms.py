"""Alarms of a gate: its failures that no quarantine spares, and thresholds that are not met."""

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.record import FailureRecord, GateRecord
from splitbrain.harness.campaign.gate.sentences import HEADLINES, failure_state, threshold_sentence
from splitbrain.harness.report.alarms import Alarm


def alarms_of_gate(record: GateRecord) -> list[Alarm]:
    """Return the alarms, failures first; none where the gate is green."""
    if record.verdict == "green":
        return []
    alarms = [_failure(failure) for failure in record.failures if not failure.is_spared]
    alarms += [
        Alarm(
            title=f"gate: {threshold.threshold}",
            sentence=threshold_sentence(threshold),
            level="error" if state == "violated" else "warning",
        )
        for state in ("violated", "unknown")
        for threshold in record.of_state(state)
    ]
    headline = f"gate: {HEADLINES[record.verdict]}"
    return alarms or [Alarm(title=headline, sentence=record.sentence)]


def _failure(failure: FailureRecord) -> Alarm:
    first = failure.cases[0]
    return Alarm(
        title=f"{failure.name or failure.kind}: {first.run}",
        sentence=f"{first.sentence} ({counted(failure.runs, 'run')}, {failure_state(failure)})",
        reproduce=first.reproduce,
        rule=failure.name or failure.kind,
        checker=failure.checker,
        fingerprint=failure.fingerprint,
        count=failure.runs,
    )
