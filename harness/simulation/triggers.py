"""Faults that wait until something has happened at a node.

A fault may be the sequel of another one: it begins to wait when that one has struck, maybe only at
the nodes that were hit, or only at others. So the second blow falls in the midst of what the first
one has begun. A sequel whose first part the scenario does not hold waits like any other fault.

One watcher per kind of happening, so that a world in which nobody waits for it pays nothing. A
fault that strikes there may end the very step in which it was called: every fault that waited for
the same happening is told before ``NodeCrashed`` is let pass.
"""

from collections.abc import Callable, Sequence

from contracts.fault import Awaited, Fault
from contracts.names import NodeName
from contracts.scenario import NodeCrashed
from nemesis.awaiting import ANYWHERE, AT_LEADER
from nemesis.fault_options import AFTER, PLACE, SAME
from simulation.world.world import SimulatedWorld

#: Told which fault's moment has come, and at which node.
Strike = Callable[[Fault, NodeName], None]


class _Waiting:
    __slots__ = ("_hit", "_place", "fault", "left", "when")

    def __init__(self, fault: Fault, when: Awaited, hit: Sequence[NodeName] = ()) -> None:
        """``hit``: the nodes that the fault before a sequel has hit."""
        self.fault = fault
        self.when = when
        self._hit = hit
        self._place = fault.options.get(PLACE) if hit else None
        #: How many happenings that fit must still come, the one that strikes included.
        self.left = max(1, when.count)

    def fits(self, node: NodeName) -> bool:
        """Whether a happening at this node counts."""
        if self.when.node not in (ANYWHERE, AT_LEADER, node):
            return False
        return self._place is None or (node in self._hit) == (self._place == SAME)


class Triggers:
    """The waiting faults of one world."""

    def __init__(self, world: SimulatedWorld, strike: Strike) -> None:
        self._world = world
        self._strike = strike
        self._waiting: dict[str, list[_Waiting]] = {}
        self._present = frozenset(fault.index for fault in world.scenario.faults)
        #: Sequels whose first part has not struck, by its index.
        self._sequels: dict[int, list[Fault]] = {}

    def wait(self, fault: Fault, when: Awaited) -> None:
        """Strike when what the fault waits for has happened."""
        first = fault.options.get(AFTER)
        if first in self._present:
            self._sequels.setdefault(int(first), []).append(fault)
        else:
            self._await(_Waiting(fault, when))

    def struck(self, index: int, hit: Sequence[NodeName]) -> None:
        """A fault has struck these nodes: its sequels begin to wait."""
        for sequel in self._sequels.pop(index, ()):
            assert sequel.when is not None
            self._await(_Waiting(sequel, sequel.when, hit))

    def _await(self, one: _Waiting) -> None:
        happening = one.when.on
        waiting = self._waiting.get(happening)
        if waiting is None:
            waiting = self._waiting[happening] = []
            self._world.watch(happening, self._happened)
        waiting.append(one)

    def end(self) -> tuple[Fault, ...]:
        """Nothing strikes any more; the faults that never did."""
        left = [one.fault for waiting in self._waiting.values() for one in waiting]
        left += [sequel for sequels in self._sequels.values() for sequel in sequels]
        for waiting in self._waiting.values():
            waiting.clear()
        self._sequels.clear()
        return tuple(left)

    def _fits(self, one: _Waiting, node: NodeName) -> bool:
        """Whether a happening now, at this node as it is now, counts for the fault."""
        when, cluster = one.when, self._world.cluster
        waited_us = self._world.now - one.fault.at_us
        return (
            waited_us >= 0
            and (when.timeout_us is None or waited_us <= when.timeout_us)
            and (when.epoch is None or cluster.epoch(node) == when.epoch)
            and (when.node != AT_LEADER or cluster.leader().leader == node)
        )

    def _happened(self, node: NodeName, name: str) -> None:
        waiting = self._waiting[name]
        if not waiting:
            return
        due: list[_Waiting] = []
        for one in waiting:
            if one.fits(node) and self._fits(one, node):
                one.left -= 1
                if one.left == 0:
                    due.append(one)
        if not due:
            return
        waiting[:] = [one for one in waiting if one.left]
        crash: NodeCrashed | None = None
        for one in due:
            fault, delay_us = one.fault, one.when.delay_us
            if delay_us:
                self._world.after(delay_us, lambda fault=fault: self._strike(fault, node))
                continue
            try:
                self._strike(fault, node)
            except NodeCrashed as crashed:
                crash = crashed
        if crash is not None:
            raise crash
