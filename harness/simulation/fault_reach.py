"""What faults do to a simulated world, where several may be in force at once.

Offers the acts of ``contracts.runtime.Runtime`` that the fault kinds of ``nemesis`` call, over a
simulated cluster and network, and those that only a simulation has. Faults overlap here, so each
act is counted: a node that two faults hold down comes back when both are healed, and the worst of
two clogs is in force.

A fault that strikes in the midst of a node's own step ends that step by ``NodeCrashed``. It is held
back here until the fault is on record, and then let pass (``take_crash``). Must never decide what
is hit.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from contracts.fault import Link
from contracts.names import NodeName
from contracts.scenario import NodeCrashed
from contracts.simulation import SimulatedDisk
from simulation.world.world import SimulatedWorld

#: Wiped: came back without a past. Rotten: has one that it must refuse.
Forgot = Literal["wiped", "rotten"]


class Worst:
    """The largest of the values that faults ask for now, by what they ask it for."""

    def __init__(self, healed: int) -> None:
        """``healed`` is the value while nobody asks for one."""
        self._healed = healed
        self._asked: dict[Any, list[int]] = {}

    def take(self, key: Any, value: int) -> int:
        """One more fault asks; the value in force now."""
        asked = self._asked.setdefault(key, [])
        asked.append(value)
        return max(asked)

    def release(self, key: Any, value: int) -> int:
        """A fault that asked for ``value`` is healed; the value in force now."""
        asked = self._asked[key]
        asked.remove(value)
        return max(asked, default=self._healed)


class Reach:
    """One world, as faults see it."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.cluster = world.cluster
        self.network = world.network
        #: Of the fault that is being injected: its integer, for what a crash keeps.
        self.draw = 0
        self._down: dict[NodeName, int] = {}
        self._paused: dict[NodeName, int] = {}
        self._clogs = Worst(0)
        self._slowness = Worst(1)
        self._crash: NodeCrashed | None = None
        #: Nodes that no heal starts: their disk's past is gone, and they must not have had it.
        self.out_of_service: dict[NodeName, None] = {}
        #: Nodes whose disk no longer holds what they had promised: why.
        self.forgot: dict[NodeName, Forgot] = {}

    def take_crash(self) -> NodeCrashed | None:
        """The node's step that the last fault ended, if it did; once."""
        crash, self._crash = self._crash, None
        return crash

    # What the kinds of nemesis call.

    def kill(self, node: NodeName) -> None:
        """Hold a node down, from now on if it is up."""
        self._down[node] = self._down.get(node, 0) + 1
        self.end(node)

    def start(self, node: NodeName) -> None:
        """Give up one hold; the last one lets the node come back."""
        self._down[node] = max(0, self._down.get(node, 0) - 1)
        self.revive(node)

    def terminate(self, node: NodeName) -> None:
        """Hold a node down that is asked to end; it does so later, if at all."""
        self._down[node] = self._down.get(node, 0) + 1
        self.cluster.terminate(node, self.draw)

    def pause(self, node: NodeName) -> None:
        """Hold a node frozen."""
        self._paused[node] = self._paused.get(node, 0) + 1
        self.cluster.pause(node)

    def resume(self, node: NodeName) -> None:
        """Give up one hold; the last one lets the node go on."""
        self._paused[node] = max(0, self._paused.get(node, 0) - 1)
        if self._paused[node] == 0:
            self.cluster.resume(node)

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> str:
        """Hold nodes down that lose what they had not synced."""
        for node in nodes:
            self._down[node] = self._down.get(node, 0) + 1
        try:
            # Those that are down too: a killed process left its page cache to the machine.
            return self.cluster.power_off(nodes, draw)
        except NodeCrashed as crash:
            self._crash = crash
            return str(crash) or "power lost in the midst of a step"

    def cut(self, links: Iterable[Link]) -> None:
        """Stall everything on these links."""
        self.network.cut(tuple(links))

    def restore(self, links: Iterable[Link]) -> None:
        """Take one cut away."""
        self.network.restore(tuple(links))

    # What only a simulation has.

    def end(self, node: NodeName) -> None:
        """End a node's process without holding it down."""
        try:
            self.cluster.kill(node, self.draw)
        except NodeCrashed as crash:
            self._crash = crash

    def revive(self, node: NodeName) -> None:
        """Start a node that is down and that nothing holds down."""
        if (
            not self._down.get(node)
            and node not in self.out_of_service
            and not self.cluster.is_up(node)
        ):
            self.cluster.start(node)

    def disk(self, node: NodeName) -> SimulatedDisk:
        """A node's disk."""
        return self.cluster.disk(node)

    def clog(self, links: Sequence[Link], delay_us: int) -> None:
        """Slow links down."""
        for link in links:
            self.network.clog((link,), self._clogs.take(link, delay_us))

    def unclog(self, links: Sequence[Link], delay_us: int) -> None:
        """Undo one clog of this delay."""
        for link in links:
            self.network.clog((link,), self._clogs.release(link, delay_us))

    def slow_disk(self, node: NodeName, factor: int) -> str:
        """Slow a disk down."""
        return self.disk(node).slow_down(self._slowness.take(node, factor))

    def hasten_disk(self, node: NodeName, factor: int) -> None:
        """Undo one slowness of this factor."""
        self.disk(node).slow_down(self._slowness.release(node, factor))
