"""When a fault strikes, and what: its moment awaited, its symbolic target settled. Sans-I/O.

Never strikes where the moment or the target does not come.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.fault import ActualFault, Fault, Microseconds
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.awaiting import sentence
from splitbrain.nemesis.effects import AskTold, AskView, AwaitHappening, Doing, Present, Told, Wait
from splitbrain.nemesis.fault_kind import FaultKind
from splitbrain.nemesis.targets import ClusterView

_US_PER_S: Final = 1_000_000


class Patience(msgspec.Struct, frozen=True):
    """How long the nemesis waits for what, in microseconds."""

    #: From one look at what is waited for to the next.
    look_again_us: Microseconds = 50_000
    #: For the probe of a cut link; a cut that is to be seen lasts at least as long.
    probe_us: Microseconds = 500_000
    #: For a target to exist; then the fault is not applicable.
    target_us: Microseconds = 5_000_000
    bitten_us: Microseconds = 3_000_000
    #: For the others to hold what a node is about to forget, an election included.
    held_us: Microseconds = 3_000_000
    #: For what a node must start for, and read its files.
    started_us: Microseconds = 15_000_000
    healed_us: Microseconds = 15_000_000
    #: For clients to be served again after a heal, and for the nodes' own traffic.
    resumed_us: Microseconds = 15_000_000
    leader_query_us: Microseconds = 1_000_000


class Moment(msgspec.Struct, frozen=True):
    """Result of the wait for a fault's moment."""

    has_come: bool
    #: Where what was waited for has happened; None where nothing was.
    there: NodeName | None = None
    #: Why it will not come; None where it has, or where the run ends.
    reason: str | None = None


class Aim:
    """The leaders that one run's faults have seen."""

    def __init__(self, voters: Sequence[NodeName], observers: Sequence[NodeName] = ()) -> None:
        self._voters, self._observers = tuple(voters), tuple(observers)
        self._leader: NodeName | None = None
        self._last_leader: NodeName | None = None

    def view(self, leader: NodeName | None, ends: Mapping[NodeName, int]) -> ClusterView:
        """The cluster as it was looked at now; looks are told in their order.

        Args:
            leader: who leads; None where nobody is known to.
            ends: end offset of each node's log, as far as known.
        """
        if self._leader is not None and leader != self._leader:
            self._last_leader = self._leader
        self._leader = leader
        return ClusterView(
            nodes=self._voters,
            leader=leader,
            last_leader=self._last_leader,
            ends=ends,
            observers=self._observers,
        )


def await_moment(
    fault: Fault, at_us: Microseconds, load_end_us: Microseconds, present: Present
) -> Doing[Moment]:
    """Wait for what a fault waits for, counted from now on.

    Args:
        fault: whose time has come.
        at_us: when it came.
        load_end_us: when clients stop working.
        present: the machine's.
    """
    when = fault.when
    if when is None or present.now_us >= load_end_us:
        return Moment(True)
    told: Told | None = yield AskTold()
    if told is None:
        return Moment(False, reason="the nodes tell nothing to wait for")
    end_us = load_end_us
    if when.timeout_us is not None:
        end_us = min(load_end_us, at_us + when.timeout_us)
    there = yield AwaitHappening(when, end_us)
    if present.is_ending:
        return Moment(False)
    if there is None:
        by = f"within {(end_us - at_us) / _US_PER_S:g} s"
        if end_us == load_end_us:
            by = "before the load was over"
        return Moment(False, reason=f"{sentence(when)} did not happen {by}")
    yield Wait(present.now_us + when.delay_us)
    return Moment(False) if present.is_ending else Moment(True, there)


def settle(
    kind: FaultKind,
    fault: Fault,
    there: NodeName | None,
    load_end_us: Microseconds,
    patience: Patience,
    present: Present,
) -> Doing[ActualFault | str | None]:
    """Settle what the fault means now, waiting a while for its target to exist.

    Where it is not to strike: why, or None where the run ends.
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
