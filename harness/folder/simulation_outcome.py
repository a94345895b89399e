"""Outcome of a simulated run: the same evidence as of a run in containers, and its trace."""

import msgspec

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.fault import ActualFault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import Scenario, Violation
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.course import Phase
from splitbrain.history.records import Event


class SimulationOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, run."""

    scenario: Scenario
    #: First invariant that did not hold (liveness included); the run ended there.
    violation: Violation | None
    #: Of everything that happened, 32 hex digits.
    trace_hash: str
    #: Actions of the world, and its clock at the end.
    steps: int
    virtual_us: int
    #: The clients' history; times in nanoseconds of virtual time.
    events: tuple[Event, ...]
    faults: tuple[FaultEvent, ...]
    #: Outcomes of the faults that struck.
    struck: tuple[ActualFault, ...]
    state_events: dict[NodeName, tuple[StateEvent, ...]]
    committed_logs: dict[NodeName, CommittedLog]
    #: Why the nodes did not agree in the end, None if they did or were not asked.
    unlike: str | None
    #: The first fault by which a disk told its node what no format can detect; None: none did.
    lie: str | None = None
    #: Counts of what happened, by name.
    figures: dict[str, int]
    #: The course of the run, for its folder.
    phases: tuple[Phase, ...] = ()
    #: Records of ``history.timeline_records``; empty unless the story was kept.
    story: tuple[object, ...] = ()

    @property
    def has_converged(self) -> bool:
        """Whether every node was healed and all were seen to hold the same."""
        reached = any(phase.phase == "converged" for phase in self.phases)
        return reached and self.unlike is None and self.scenario.recovery.scope == "all"


class JudgedOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome with what the checkers of outcomes say of it."""

    outcome: SimulationOutcome
    checks: tuple[CheckResult, ...]

    @property
    def failed_by(self) -> tuple[str, ...]:
        """Return the finders: an invariant's id, or names of checkers; empty: none."""
        violation = self.outcome.violation
        found = [] if violation is None else [violation.invariant]
        found += [check.checker for check in self.checks if check.verdict is Verdict.INVALID]
        return tuple(found)

    @property
    def undecided(self) -> dict[str, str]:
        """The checkers that could not say anything, each with its reason."""
        return {
            check.checker: check.reason for check in self.checks if check.verdict is Verdict.UNKNOWN
        }

    @property
    def sentence(self) -> str | None:
        """The first finding in its sentences; None where there is none."""
        violation = self.outcome.violation
        if violation is not None:
            where = "" if violation.node is None else f"{violation.node}, "
            return (
                f"{violation.problem.rstrip('.')} ({where}{violation.time_us / 1000:,.1f} ms into "
                f"the run, step {violation.step:,})."
            )
        found = (headline_of(check) for check in self.checks if check.verdict is Verdict.INVALID)
        return next(found, None)
