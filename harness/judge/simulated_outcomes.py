"""Verdicts of the checkers of outcomes on a simulated run, in this process and within milliseconds.

The same checkers as for runs in containers; only their budget counts questions instead of seconds,
so that a verdict never depends on how busy the machine is. A checker that crashes, or that gives
up, is ``unknown`` and never ``valid``. Must never look at the invariants: they have spoken already.

After a violated invariant the world ends: nothing is healed, comes to agree or is read back. What
the checkers miss in a run that was cut so is no doing of the system. Source: design, section 9.
"""

from collections.abc import Iterable, Sequence

import msgspec

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.names import STATE_EVENTS, can_judge
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.fault import US_PER_MS
from splitbrain.contracts.scenario import Violation
from splitbrain.harness.folder.plan_checkers import checkers_not_asked, checkers_of
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.history.pairing import pair

#: How often a checker may ask whether it should stop, and how much more often for each event; one
#: that drowns in open operations is given up within seconds.
_POLLS_MAX = 300_000
_POLLS_PER_EVENT = 100


class CountedBudget:
    """A budget that ends after so many questions; the same on every machine."""

    def __init__(self, polls_max: int) -> None:
        self._polls_max = polls_max
        self._polls = 0

    def exhausted(self) -> str | None:
        """The reason to stop now, or None to go on."""
        self._polls += 1
        if self._polls > self._polls_max:
            return f"budget of {self._polls_max:,} steps used up"
        return None


def judged(outcome: SimulationOutcome, *, polls_max: int | None = None) -> JudgedOutcome:
    """The outcome with what the checkers of its workload say.

    Args:
        outcome: of one scenario.
        polls_max: the budget of each checker; by default it grows with the history.
    """
    if polls_max is None:
        polls_max = _POLLS_MAX + _POLLS_PER_EVENT * len(outcome.events)
    names = asked_checkers(outcome)
    try:
        evidence = evidence_of(outcome)
    # A history that cannot be paired is a defect of the simulation, and nothing is known then.
    except Exception as error:  # noqa: BLE001
        return JudgedOutcome(outcome=outcome, checks=_undecided(names, error))
    checks = tuple(_check(name, evidence, polls_max) for name in names)
    return JudgedOutcome(outcome=outcome, checks=checks)


def asked_checkers(outcome: SimulationOutcome) -> tuple[str, ...]:
    """The checkers that can say something of this outcome."""
    left_out = checkers_not_asked(outcome)
    return tuple(name for name in checkers_of(outcome.scenario.load) if name not in left_out)


def evidence_of(outcome: SimulationOutcome) -> Evidence:
    """What the checkers may look at; the same as is read from the run's folder.

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
    # Whatever a checker raises, the others have their say.
    except Exception as error:  # noqa: BLE001
        return _undecided((name,), error)[0]


def _undecided(names: Sequence[str], error: Exception) -> tuple[CheckResult, ...]:
    reason = f"The checker crashed: {type(error).__name__}: {error}."
    return tuple(CheckResult(name, Verdict.UNKNOWN, reason) for name in names)


def how_the_world_ended(violation: Violation) -> str:
    """Where the run was cut, and what that means for all other checkers; one sentence."""
    return (
        f"The world ended {violation.time_us / US_PER_MS:,.3f} ms into the run, in step "
        f"{violation.step:,}, where {violation.invariant} was violated: nothing was healed or read "
        "back after that, and all other checkers judged the run as cut there."
    )


def with_reasons_of_a_cut_run(
    checks: Iterable[CheckResult], violation: Violation
) -> list[CheckResult]:
    """The results; what could not be decided blames the cut instead of what never came."""
    return [
        check if check.verdict is not Verdict.UNKNOWN else _excused(check, violation)
        for check in checks
    ]


def _excused(check: CheckResult, violation: Violation) -> CheckResult:
    reason = f"Not decided: the world ended where {violation.invariant} was violated"
    if not can_judge(check.checker, {STATE_EVENTS}):
        told = f"{reason}, before its nodes could agree."
    else:
        told = f"{reason} ({check.reason.rstrip('.')})."
    return msgspec.structs.replace(check, reason=told)
