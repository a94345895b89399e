"""Faults that wait until something has happened at a node.

One watcher per kind of happening, so that a world in which nobody waits for it pays nothing. A
fault that strikes there may end the very step in which it was called: every fault that waited for
the same happening is told before ``NodeCrashed`` is let pass.
"""

from collections.abc import Callable

from contracts.names import NodeName
from contracts.scenario import Moment, NodeCrashed, SimulatedFault
from runtimes.simulated.world import SimulatedWorld

#: Told which fault's moment has come, and at which node.
Strike = Callable[[SimulatedFault, NodeName], None]


class _Waiting:
    __slots__ = ("fault", "left")

    def __init__(self, fault: SimulatedFault) -> None:
        self.fault = fault
        #: How many happenings that fit must still come, the one that strikes included.
        self.left = max(1, fault.when.count)


class Triggers:
    """The waiting faults of one world."""

    def __init__(self, world: SimulatedWorld, strike: Strike) -> None:
        self._world = world
        self._strike = strike
        self._waiting: dict[str, list[_Waiting]] = {}

    def wait(self, fault: SimulatedFault, happening: str) -> None:
        """Strike when what the fault's moment says has happened."""
        waiting = self._waiting.get(happening)
        if waiting is None:
            waiting = self._waiting[happening] = []
            self._world.watch(happening, self._happened)
        waiting.append(_Waiting(fault))

    def end(self) -> tuple[SimulatedFault, ...]:
        """Nothing strikes any more; the faults that never did."""
        left = tuple(one.fault for waiting in self._waiting.values() for one in waiting)
        for waiting in self._waiting.values():
            waiting.clear()
        return left

    def _fits(self, when: Moment, node: NodeName) -> bool:
        """Whether a happening at this node, now, counts for the moment."""
        now, cluster = self._world.now, self._world.cluster
        return (
            (when.node is None or when.node == node)
            and (when.from_us is None or now >= when.from_us)
            and (when.until_us is None or now <= when.until_us)
            and (when.epoch is None or cluster.epoch(node) == when.epoch)
            and (not when.at_leader or cluster.leader().leader == node)
        )

    def _happened(self, node: NodeName, name: str) -> None:
        waiting = self._waiting[name]
        if not waiting:
            return
        due: list[SimulatedFault] = []
        for one in waiting:
            if self._fits(one.fault.when, node):
                one.left -= 1
                if one.left == 0:
                    due.append(one.fault)
        if not due:
            return
        waiting[:] = [one for one in waiting if one.left]
        crash: NodeCrashed | None = None
        for fault in due:
            delay_us = fault.when.delay_us
            if delay_us:
                self._world.after(delay_us, lambda fault=fault: self._strike(fault, node))
                continue
            try:
                self._strike(fault, node)
            except NodeCrashed as crashed:
                crash = crashed
        if crash is not None:
            raise crash
