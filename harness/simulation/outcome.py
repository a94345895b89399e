"""What a simulated run leaves behind: the same evidence as a run in containers, and its trace."""

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.fault import ActualFault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import Scenario, Violation
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.phases import Phase
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
    #: What each fault that struck became.
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


class JudgedOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome with what the checkers of outcomes say of it."""

    outcome: SimulationOutcome
    checks: tuple[CheckResult, ...]

    @property
    def failed_by(self) -> tuple[str, ...]:
        """What found something: the invariant's id, the names of checkers; empty: nothing did."""
        violation = self.outcome.violation
        found = [] if violation is None else [violation.invariant]
        found += [check.checker for check in self.checks if check.verdict is Verdict.INVALID]
        return tuple(found)
