"""Moment and target of a fault: awaits the one, resolves the other. Sans-I/O.

A fault never strikes without its moment and target.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.fault import RECOVERED, ActualFault, Fault, Microseconds
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.awaiting import sentence
from splitbrain.nemesis.effects import (
    AskReports,
    AskView,
    AwaitHappening,
    AwaitRecovery,
    Doing,
    Present,
    Reports,
    Wait,
)
from splitbrain.nemesis.fault_kind import FaultKind
from splitbrain.nemesis.targets import ClusterView

_US_PER_S: Final = 1_000_000


class Patience(msgspec.Struct, frozen=True):
    """Time limits of the nemesis's waits, in microseconds."""

    #: Interval between looks.
    look_again_us: Microseconds = 50_000
    #: For the probe of a cut link; a cut to be seen lasts at least as long.
    probe_us: Microseconds = 500_000
    #: For a target to exist; then the fault is not applicable.
    target_us: Microseconds = 5_000_000
    bitten_us: Microseconds = 3_000_000
    #: For the others to hold the records a node is about to forget, an election included.
    held_us: Microseconds = 3_000_000
    #: For a node to start and read its files.
    started_us: Microseconds = 15_000_000
    healed_us: Microseconds = 15_000_000
    #: For service to clients and traffic between nodes after a heal.
    resumed_us: Microseconds = 15_000_000
    leader_query_us: Microseconds = 1_000_000


class Moment(msgspec.Struct, frozen=True):
    """Result of the wait for a fault's moment."""

    has_come: bool
    #: Node of the awaited happening; None for a fault that awaits none.
    there: NodeName | None = None
    #: Why it will not come; None when it has, or when the run ends.
    reason: str | None = None


class Aim:
    """Memory of the leaders that one run's faults have seen."""

    def __init__(self, voters: Sequence[NodeName], observers: Sequence[NodeName] = ()) -> None:
        self._voters, self._observers = tuple(voters), tuple(observers)
        self._leader: NodeName | None = None
        self._last_leader: NodeName | None = None

    def view(
        self,
        leader: NodeName | None,
        ends: Mapping[NodeName, int],
        controller: NodeName | None = None,
    ) -> ClusterView:
        """Return the cluster as seen now; call in the order of the looks."""
        if self._leader is not None and leader != self._leader:
            self._last_leader = self._leader
        self._leader = leader
        return ClusterView(
            nodes=self._voters,
            leader=leader,
            last_leader=self._last_leader,
            controller=controller,
            ends=ends,
            observers=self._observers,
        )


def await_moment(
    fault: Fault, at_us: Microseconds, load_end_us: Microseconds, present: Present
) -> Doing[Moment]:
    """Wait for the happening that a fault awaits, counted from now on.

    ``at_us``: when it became due; ``load_end_us``: when clients stop working.
    """
    when = fault.when
    if when is None or present.now_us >= load_end_us:
        return Moment(True)
    end_us = load_end_us
    if when.timeout_us is not None:
        end_us = min(load_end_us, at_us + when.timeout_us)
    there: NodeName | None = None
    missing: str | None
    if when.on == RECOVERED:
        missing = yield AwaitRecovery(end_us)
    else:
        reports: Reports | None = yield AskReports()
        if reports is None:
            return Moment(False, reason="the nodes tell nothing to wait for")
        there = yield AwaitHappening(when, end_us)
        missing = "" if there is None else None
    if present.is_ending:
        return Moment(False)
    if missing is not None:
        by = f"within {(end_us - at_us) / _US_PER_S:g} s"
        if end_us == load_end_us:
            by = "before the load was over"
        reason = f"{sentence(when)} did not happen {by}"
        return Moment(False, reason=f"{reason}: {missing}" if missing else reason)
    yield Wait(min(load_end_us, present.now_us + when.delay_us))
    return Moment(False) if present.is_ending else Moment(True, there)


def settle(
    kind: FaultKind,
    fault: Fault,
    there: NodeName | None,
    load_end_us: Microseconds,
    patience: Patience,
    present: Present,
) -> Doing[ActualFault | str | None]:
    """Resolve the fault now, waiting a while for its target to exist.

    Return a reason instead when it must not strike, or None when the run ends.
    """
    actual: ActualFault | None = None
    if present.now_us < load_end_us:
        until_us = present.now_us + patience.target_us
        while True:
            view: ClusterView = yield AskView()
            actual = kind.actual(fault, msgspec.structs.replace(view, there=there))
            if actual is not None or present.is_ending or present.now_us >= until_us:
                break
            yield Wait(present.now_us + patience.look_again_us)
        if actual is None and present.is_ending:
            return None
    if present.now_us >= load_end_us:
        return "the load was over"
    return actual or f"no {fault.target} for {patience.target_us / _US_PER_S:g} s"
