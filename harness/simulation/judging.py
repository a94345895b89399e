"""What the checkers of outcomes say of a simulated run, in this process and within milliseconds.

The same checkers as for runs in containers; only their budget counts questions instead of seconds,
so that a verdict never depends on how busy the machine is. A checker that crashes, or that gives
up, is ``unknown`` and never ``valid``. Must never look at the invariants: they have spoken already.
Source: design, section 9.
"""

from collections.abc import Sequence

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.registry import STATE_EVENTS, can_judge, checker_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.scenario import LoadOptions
from splitbrain.harness.simulation.outcome import JudgedOutcome, SimulationOutcome
from splitbrain.history.pairing import pair
from splitbrain.workloads.workload import workload

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


def checkers_of(load: LoadOptions) -> tuple[str, ...]:
    """Names of the checkers that judge this load.

    Raises:
        UsageError: there is no such workload or option.
    """
    options = dict(load.workload_options)
    return workload(load.workload, seed=0, slots=1, readers=frozenset(), options=options).checkers


def asked_checkers(outcome: SimulationOutcome) -> tuple[str, ...]:
    """The checkers that can say something of this outcome."""
    left_out = checkers_not_asked(outcome)
    return tuple(name for name in checkers_of(outcome.scenario.load) if name not in left_out)


def checkers_not_asked(outcome: SimulationOutcome) -> dict[str, str]:
    """The others, each with the reason: a clause.

    Logs of nodes that were never wholly healed prove nothing of what was committed; a world that
    leaves some of them dead is not undecided for that. There the invariants watch every commit.
    Where a disk lied undetectably, Raft promises nothing, and a loss is no finding.
    """
    names = checkers_of(outcome.scenario.load)
    if outcome.lie is not None:
        return dict.fromkeys(names, "a disk lied undetectably, where Raft promises nothing")
    if has_converged(outcome):
        return {}
    reason = "not all nodes were healed and came to agree in this world"
    return {name: reason for name in names if not can_judge(name, {STATE_EVENTS})}


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
        converged=has_converged(outcome),
    )


def has_converged(outcome: SimulationOutcome) -> bool:
    """Whether every node was healed and all were seen to hold the same."""
    reached = any(phase.phase == "converged" for phase in outcome.phases)
    return reached and outcome.unlike is None and outcome.scenario.recovery.scope == "all"


def undecided(judged: JudgedOutcome) -> dict[str, str]:
    """The checkers that could not say anything, each with its reason."""
    return {
        check.checker: check.reason for check in judged.checks if check.verdict is Verdict.UNKNOWN
    }


def sentence_of(judged: JudgedOutcome) -> str | None:
    """What was found, in one sentence; None where nothing was."""
    violation = judged.outcome.violation
    if violation is not None:
        where = "" if violation.node is None else f"{violation.node}, "
        return (
            f"{violation.problem.rstrip('.')} ({where}{violation.time_us / 1000:,.1f} ms into the "
            f"run, step {violation.step:,})."
        )
    return next((check.reason for check in judged.checks if check.verdict is Verdict.INVALID), None)


def _check(name: str, evidence: Evidence, polls_max: int) -> CheckResult:
    try:
        return checker_named(name)(evidence, CountedBudget(polls_max))
    # Whatever a checker raises, the others have their say.
    except Exception as error:  # noqa: BLE001
        return _undecided((name,), error)[0]


def _undecided(names: Sequence[str], error: Exception) -> tuple[CheckResult, ...]:
    reason = f"The checker crashed: {type(error).__name__}: {error}."
    return tuple(CheckResult(name, Verdict.UNKNOWN, reason) for name in names)
