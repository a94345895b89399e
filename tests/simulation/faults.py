"""Faults of the simulated world: by the clock, and by what a node has just done.

Faults that wait for an effect (a vote sent, a leader elected, a commit, a truncation) find what
the clock alone misses: the moments that matter last microseconds. Everything ends with ``heal``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.quorum.effects import (
    AdvanceHighWatermark,
    Effect,
    PersistQuorumState,
    ReportState,
    SendAnswer,
    TruncateLog,
)
from nodes.quorum.messages import VoteAnswer

if TYPE_CHECKING:
    from tests.simulation.host import Host
    from tests.simulation.world import World

STREAM = "faults"


class Faults:
    """Injects until ``heal``; nothing after it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_over = False
        swarm = world.swarm
        self._weighted = [
            (self._crash_one, swarm.crash_weight),
            (self._crash_all, swarm.power_weight),
            (self._isolate_one, swarm.isolate_weight),
            (self._cut_one_way, swarm.one_way_weight),
            (self._cut_in_halves, swarm.halves_weight),
            (self._pause_one, swarm.pause_weight),
        ]

    def begin(self) -> None:
        if self._world.swarm.fault_interval_us and any(weight for _, weight in self._weighted):
            self._schedule()

    def heal(self) -> None:
        """Every node up and running, every link whole; no fault from here on."""
        self._is_over = True
        self._world.network.calm_down()
        for host in self._world.hosts.values():
            host.resume()
            if not host.is_up:
                host.start()

    def triggered(self, host: Host, effect: Effect) -> None:
        """Maybe answers an effect with a fault at its node."""
        if self._is_over:
            return
        chance = self._chance_of(effect)
        if not self._world.chance(STREAM, chance):
            return
        draw = self._world.stream(STREAM).random()
        if draw < 0.3:
            self.crash(host)
        elif draw < 0.6:
            # A little later: what it has just sent is on its way, what it wrote maybe not synced.
            delay = self._world.between(STREAM, 0, self._world.swarm.disk_us_max)
            self._world.after(delay, lambda: self.crash(host))
        elif draw < 0.85:
            self.isolate(host)
        else:
            self.pause(host)

    def crash(self, host: Host) -> None:
        """Down, and up again after a while."""
        if self._is_over or not host.is_up:
            return
        host.crash()
        self._world.after(self._while(), lambda: None if host.is_up else host.start())

    def isolate(self, host: Host) -> None:
        """Cuts a node from every other one."""
        if self._is_over:
            return
        self._world.note(f"n{host.node_id} isolated")
        for other in self._world.hosts:
            if other != host.node_id:
                self._world.network.cut(host.node_id, other)
                self._world.network.cut(other, host.node_id)
        self._end_cuts_later()

    def pause(self, host: Host) -> None:
        """Stops a node without killing it."""
        if self._is_over or not host.is_up or host.is_paused:
            return
        self._world.note(f"n{host.node_id} paused")
        host.pause()
        self._world.after(self._while(), host.resume)

    def _chance_of(self, effect: Effect) -> float:
        swarm = self._world.swarm
        match effect:
            case PersistQuorumState():
                return swarm.on_persist
            case ReportState(kind="role", role="leader"):
                return swarm.on_lead
            case AdvanceHighWatermark():
                return swarm.on_commit
            case TruncateLog():
                return swarm.on_truncate
            case SendAnswer(answer=VoteAnswer(granted=True)):
                return swarm.on_vote
            case _:
                return 0.0

    def _schedule(self) -> None:
        interval = self._world.swarm.fault_interval_us
        self._world.after(self._world.between(STREAM, interval // 4, interval * 2), self._inject)

    def _inject(self) -> None:
        if self._is_over:
            return
        total = sum(weight for _, weight in self._weighted)
        mark = self._world.stream(STREAM).random() * total
        for action, weight in self._weighted:
            mark -= weight
            if mark < 0 and weight:
                action()
                break
        self._schedule()

    def _target(self) -> Host:
        """The leader half of the time, else any node."""
        leader = self._world.leader()
        if leader is not None and self._world.chance(STREAM, 0.5):
            return leader
        return self._world.pick(STREAM, list(self._world.hosts.values()))

    def _crash_one(self) -> None:
        self.crash(self._target())

    def _crash_all(self) -> None:
        for host in self._world.hosts.values():
            self.crash(host)

    def _isolate_one(self) -> None:
        self.isolate(self._target())

    def _cut_one_way(self) -> None:
        source = self._target()
        target = self._world.pick(STREAM, list(self._world.hosts.values()))
        self._world.network.cut(source.node_id, target.node_id)
        self._end_cuts_later()

    def _cut_in_halves(self) -> None:
        sides = {number: self._world.chance(STREAM, 0.5) for number in self._world.hosts}
        for source, side in sides.items():
            for target, other_side in sides.items():
                if side != other_side:
                    self._world.network.cut(source, target)
        self._end_cuts_later()

    def _pause_one(self) -> None:
        self.pause(self._target())

    def _end_cuts_later(self) -> None:
        self._world.after(self._while(), self._world.network.heal)

    def _while(self) -> int:
        return self._world.between(STREAM, 1_000, self._world.swarm.down_us_max)
