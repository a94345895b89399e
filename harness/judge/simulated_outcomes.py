"""Verdicts of the checkers of outcomes on a simulated run, in this process, within milliseconds.

Their budget counts questions instead of seconds, so that a verdict never depends on the machine's
load. A checker that crashes or gives up is ``unknown``, never ``valid``. The invariants are judged
apart: a violated one ends the world, nothing is healed, converges or is read back, and evidence
missing for that reason is not held against the system. Source: design, section 9.
"""

from collections.abc import Iterable, Sequence

import msgspec

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.names import STATE_EVENTS, can_judge
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.fault import US_PER_MS
from splitbrain.contracts.scenario import Violation
from splitbrain.harness.folder.plan_checkers import checkers_not_asked, checkers_of
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.harness.folder.simulation_record import SimulationRecord, invariants_result
from splitbrain.harness.judge.circumstances import Circumstances, with_circumstances
from splitbrain.history.pairing import pair
from splitbrain.history.seed_records import Found

#: Polls of a checker's budget, in all and for each event: a checker that drowns in open operations
#: is given up within seconds.
_POLLS_MAX = 300_000
_POLLS_PER_EVENT = 100


class CountedBudget:
    """A budget that ends after so many polls; the same on every machine."""

    def __init__(self, polls_max: int) -> None:
        self._polls_max = polls_max
        self._polls = 0

    def exhausted(self) -> str | None:
        """Return the reason to stop now, or None to go on."""
        self._polls += 1
        if self._polls > self._polls_max:
            return f"budget of {self._polls_max:,} steps used up"
        return None


def judged(outcome: SimulationOutcome, *, polls_max: int | None = None) -> JudgedOutcome:
    """Judge an outcome by its workload's checkers; their budget grows with the history."""
    if polls_max is None:
        polls_max = _POLLS_MAX + _POLLS_PER_EVENT * len(outcome.events)
    left_out = checkers_not_asked(outcome)
    names = [name for name in checkers_of(outcome.scenario.load) if name not in left_out]
    try:
        evidence = evidence_of(outcome)
    # A history that cannot be paired is a defect of the simulation.
    except Exception as error:  # noqa: BLE001
        return JudgedOutcome(outcome=outcome, checks=_undecided(names, error))
    checks = tuple(_check(name, evidence, polls_max) for name in names)
    return JudgedOutcome(outcome=outcome, checks=_joined(checks, evidence))


def _joined(checks: tuple[CheckResult, ...], evidence: Evidence) -> tuple[CheckResult, ...]:
    """Join violations with their circumstances, as the judgement of the run's folder does."""
    if all(check.verdict is not Verdict.INVALID for check in checks):
        return checks
    operations = evidence.operations
    ends = [operation.start if operation.end is None else operation.end for operation in operations]
    end_time = max([*ends, *(fault.time for fault in evidence.faults)], default=0)
    circumstances = Circumstances(
        [*evidence.state_events], evidence.state_events, evidence.faults, end_time
    )
    return tuple(with_circumstances(checks, operations, circumstances))


def found_by(outcome: JudgedOutcome) -> tuple[Found, ...]:
    """Return what invariants and checkers found, as the judgement of the run's folder tells it."""
    results = [check for check in outcome.checks if check.verdict is Verdict.INVALID]
    if outcome.outcome.violation is not None:
        record = msgspec.convert(outcome.outcome, SimulationRecord, from_attributes=True)
        results.insert(0, invariants_result(record))
    return tuple(map(_found, results))


def _found(result: CheckResult) -> Found:
    """Return a result with the one violation that gives it its fingerprint."""
    whole = fingerprint_of(result)
    assert whole is not None, "an invalid result always has a fingerprint"
    telling = next(
        (
            violation
            for violation in result.violations
            if fingerprint_of(msgspec.structs.replace(result, violations=(violation,))) == whole
        ),
        None,
    )
    return Found(
        checker=result.checker,
        reason=headline_of(result),
        fingerprint=whole.text,
        violation=telling,
    )


def evidence_of(outcome: SimulationOutcome) -> Evidence:
    """Return the evidence for the checkers; the same as is read from the run's folder.

    Raises:
        PairingError: the history breaks its own rules.
    """
    return Evidence(
        operations=tuple(pair(outcome.events)),
        state_events={
            str(node): tuple(events) for node, events in outcome.state_events.items() if events
        },
        committed_logs={str(node): log for node, log in outcome.committed_logs.items()},
        voters=outcome.scenario.nodes,
        faults=outcome.faults,
        converged=outcome.has_converged,
    )


def _check(name: str, evidence: Evidence, polls_max: int) -> CheckResult:
    try:
        return checker_named(name)(evidence, CountedBudget(polls_max))
    except Exception as error:  # noqa: BLE001
        return _undecided((name,), error)[0]


def _undecided(names: Sequence[str], error: Exception) -> tuple[CheckResult, ...]:
    reason = f"The checker crashed: {type(error).__name__}: {error}."
    return tuple(CheckResult(name, Verdict.UNKNOWN, reason) for name in names)


def how_the_world_ended(violation: Violation) -> str:
    """Return one sentence on where the run was cut and how that affects all other checkers."""
    return (
        f"The world ended {violation.time_us / US_PER_MS:,.3f} ms into the run, in step "
        f"{violation.step:,}, where {violation.invariant} was violated: nothing was healed or read "
        "back after that, and all other checkers judged the run as cut there."
    )


def with_reasons_of_a_cut_run(
    checks: Iterable[CheckResult], violation: Violation
) -> list[CheckResult]:
    """Replace the reasons of undecided checkers by the cut, which caused them."""
    return [
        _excused(check, violation) if check.verdict is Verdict.UNKNOWN else check
        for check in checks
    ]


def _excused(check: CheckResult, violation: Violation) -> CheckResult:
    end = f"Not decided: the world ended where {violation.invariant} was violated"
    why = f" ({check.reason.rstrip('.')})"
    if not can_judge(check.checker, {STATE_EVENTS}):
        why = ", before its nodes could agree"
    return msgspec.structs.replace(check, reason=f"{end}{why}.")
