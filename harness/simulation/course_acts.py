"""Courses of the nemesis in a simulated world: the same acts as on real runtimes, through a reach.

The twin of ``harness.acting`` in virtual time. An act that holds is done once and undone once per
fault, whatever the course repeats; the reach counts over all faults. Must never choose what is hit.
"""

from collections.abc import Callable
from typing import Any, Final

from contracts.errors import CapabilityError
from contracts.fault import US_PER_MS
from contracts.simulation import Timer
from harness.simulation.fault_blow import Blow, Struck
from harness.simulation.fault_reach import Reach
from nemesis import acts
from nemesis.acts import Act, Held, at, places
from nemesis.fault_kind import FaultKind

#: Kinds of plans that no simulated world can carry out, and why.
NOT_SIMULATED: Final = {
    "loss": "its connections, like TCP, lose nothing but time",
    "reorder": "its connections, like TCP, keep the order",
    "duplicate": "its connections, like TCP, deliver once",
    "rate": "its messages take time and no room on a link",
    "black-hole": "its messages are not cut into packets",
    "cpu": "its nodes take no processor time",
    "memory": "its nodes share the memory of one process",
    "truncate": "its disks lose bytes by crashes alone",
    "clock-drift": "how fast its clocks go is settled before it starts",
}


def strike_course(kind: FaultKind) -> Callable[[Blow], Struck]:
    """The act of a kind whose course is made of acts that a reach offers."""

    def strike(blow: Blow) -> Struck:
        reach, world = blow.reach, blow.reach.world
        course = kind.course_of(
            blow.actual, blow.duration_us // US_PER_MS, tuple(reach.cluster.nodes)
        )
        doing = _Doing(reach)
        pending: list[Timer] = []
        for step in course.steps:
            if not step.after_ms:
                doing.all_of(step.acts)
                continue
            delay_us = step.after_ms * US_PER_MS
            pending.append(world.after(delay_us, lambda step=step: doing.all_of(step.acts)))
        links = blow.links

        def heal() -> str:
            for timer in pending:
                timer.cancel()
            waiting = reach.network.waiting_count(links) if links else 0
            doing.all_of(course.heal)
            words = f"{len(links)} links open; {waiting} messages had waited" if links else ""
            states = "" if links and not kind.ends_processes else states_of(blow)
            return "; ".join(filter(None, (words, states)))

        done = f"{len(links)} links cut" if links else states_of(blow)
        return Struck("; ".join([done, *doing.said]), heal)

    return strike


def states_of(blow: Blow) -> str:
    """What the nodes hit are doing now."""
    cluster = blow.reach.cluster
    return ", ".join(
        f"{node} "
        + ("exited" if not cluster.is_up(node) else "paused" if cluster.is_paused(node) else "runs")
        for node in blow.nodes
    )


class _Doing:
    """The acts of one fault."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        #: What this fault holds, and by which act.
        self._mine: dict[tuple[Held, Any], Act] = {}
        self.said: list[str] = []

    def all_of(self, wanted: tuple[Act, ...]) -> None:
        """Do them in order, as far as they change what this fault holds."""
        for act in wanted:
            if act.holds is not None:
                self._hold(act, act.holds)
            elif act.releases is not None:
                self._release(act, act.releases)
            else:
                raise _cannot(act)

    def _hold(self, act: Act, held: Held) -> None:
        new = [place for place in places(act) if (held, place) not in self._mine]
        if not new:
            return
        for place in new:
            self._mine[held, place] = act
        do = _HOLDING.get(type(act))
        if do is None:
            raise _cannot(act)
        said = do(self._reach, at(act, new))
        if said is not None:
            self.said.append(said)

    def _release(self, act: Act, held: Held) -> None:
        mine = [place for place in places(act) if (held, place) in self._mine]
        by = [self._mine.pop((held, place)) for place in mine]
        do = _RELEASING.get(held)
        if do is None:
            raise _cannot(act)
        if mine:
            do(self._reach, at(act, mine), by[0])
        if isinstance(act, acts.Start):
            for node in act.nodes:
                # One that ended by itself, and that nothing holds down.
                self._reach.revive(node)


def _cannot(act: Act) -> CapabilityError:
    return CapabilityError(
        act.sentence(),
        "runtime simulated",
        "no simulated world can do that",
        "Choose another fault, or another --runtime.",
    )


def _each_node(name: str) -> Callable[[Reach, Any], None]:
    def all_of_them(reach: Reach, act: Any) -> None:
        for node in act.nodes:
            getattr(reach, name)(node)

    return all_of_them


def _start(reach: Reach, act: Any, by: Act) -> None:
    """Start nodes again; what was asked to end and has not done so is killed before."""
    for node in act.nodes:
        if isinstance(by, acts.Terminate) and reach.cluster.is_up(node):
            reach.end(node)
        reach.start(node)


def _warp(reach: Reach, act: Any, sign: int = 1) -> None:
    for node in act.nodes:
        reach.cluster.jump_clock(node, sign * act.warp.offset_ms * US_PER_MS)


_HOLDING: Final[dict[type[Act], Callable[[Reach, Any], str | None]]] = {
    acts.Cut: lambda reach, act: reach.cut(act.links),
    acts.Kill: _each_node("kill"),
    acts.Terminate: _each_node("terminate"),
    acts.PowerOff: lambda reach, act: reach.power_off(act.nodes, act.draw),
    acts.Pause: _each_node("pause"),
    acts.Warp: _warp,
}

#: Given also the act by which it was held.
_RELEASING: Final[dict[Held, Callable[[Reach, Any, Any], None]]] = {
    "cut": lambda reach, act, _by: reach.restore(act.links),
    "down": _start,
    "paused": lambda reach, act, _by: _each_node("resume")(reach, act),
    "clock": lambda reach, act, by: _warp(reach, at(by, act.nodes), -1),
}
