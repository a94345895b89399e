"""The course of a fault in a simulated world: the same acts as on real runtimes, through a reach.

The twin of ``harness.acting`` in virtual time. An act that holds is done once and undone once per
fault, whatever the course repeats; the reach counts over all faults. Must never choose what is hit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from contracts.arms import FileChanged
from contracts.errors import CapabilityError
from contracts.fault import ActualFault, Link
from contracts.names import NodeName
from contracts.simulation import Timer
from harness.simulation.fault_reach import Reach
from nemesis import acts
from nemesis.acts import Act, Held, Place, at, places
from nemesis.courses import Course, Step
from runtimes.file_changes import change_file

#: So many times as long as usual takes a job of a stalled disk: minutes at least.
_STALLED_FACTOR: Final = 100_000
#: What fails on a file system that has gone read-only.
_CALLS_THAT_WRITE: Final = ("write", "sync", "rename")
#: What an act says that it did; None: the nodes' states tell.
_Said = str | None


class Doing:
    """One fault's course in a world, from its first step to its heal."""

    def __init__(self, reach: Reach, course: Course, actual: ActualFault) -> None:
        self._reach = reach
        self._course = course
        self._actual = actual
        self._pending: list[Timer] = []
        self._changed: dict[NodeName, FileChanged] = {}
        #: What this fault holds, and by which act.
        self._mine: dict[tuple[Held, Place], Act] = {}
        done = (*course.heal, *(act for step in course.steps for act in step.acts))
        self._ends_or_freezes = any(isinstance(act, _ON_PROCESSES) for act in done)
        self._cuts = any(isinstance(act, acts.Cut) for act in done)
        #: Whether a killed node whose start is refused is started once more at once. It helps
        #: nobody, and worlds stay what they were while this is so.
        self._starts_twice = not any(
            isinstance(act, acts.Terminate) or acts.forgets(act) for act in done
        )
        #: What was done at first, in words and figures.
        self.evidence = ""

    def begin(self) -> None:
        """Do what is to be done at once; the rest comes at its time."""
        said: list[str] = []
        for step in self._course.steps:
            if step.after_us:
                action = partial(self._take, step)
                self._pending.append(self._reach.world.after(step.after_us, action))
            else:
                said += self._do(step.acts)
        if self._ends_or_freezes and not any(
            isinstance(act, acts.Terminate) for act in self._course.steps[0].acts
        ):
            said.insert(0, self._states())
        self.evidence = "; ".join(said or [self._states()])

    def heal(self) -> str:
        """Undo it, whichever steps were done; how that went, in words and figures."""
        for timer in self._pending:
            timer.cancel()
        links = self._actual.links if self._cuts else ()
        waiting = self._reach.network.waiting_count(links) if links else 0
        said = self._do(self._course.heal)
        if links:
            said.insert(0, f"{len(links)} links open; {waiting} messages had waited")
        if self._ends_or_freezes or not said:
            said.append(self._states())
        return "; ".join(said)

    def _take(self, step: Step) -> None:
        """Do a later step, which says nothing."""
        self._do(step.acts)

    def _states(self) -> str:
        """Say what the nodes hit are doing now."""
        return ", ".join(f"{node} {self._state(node)}" for node in self._actual.nodes)

    def _state(self, node: NodeName) -> str:
        cluster = self._reach.cluster
        if not cluster.is_up(node):
            return "exited"
        return "paused" if cluster.is_paused(node) else "runs"

    def _do(self, wanted: tuple[Act, ...]) -> list[str]:
        """Do acts in order, as far as they change what this fault holds; what they say."""
        said: list[_Said] = []
        for act in wanted:
            if act.holds is not None:
                said.append(self._hold(act, act.holds))
            elif act.releases is not None:
                said += self._release(act, act.releases)
            elif isinstance(act, acts.ChangeFile):
                said.append(self._change(act))
            elif isinstance(act, acts.PutBack):
                said.append(self._put_back(act))
            else:
                said.append(_known(_DOING, type(act), act)(self._reach, act))
        return [words for words in said if words]

    def _change(self, act: acts.ChangeFile) -> _Said:
        for node in act.nodes:
            changed = change_file(self._reach.disk(node).files, act.change)
            if changed is not None:
                self._changed[node] = changed
                if changed.kind == "flip":
                    self._reach.forgot[node] = "rotten"
        return self._changes(act.nodes)

    def _put_back(self, act: acts.PutBack) -> _Said:
        """Of nodes that have ended alone: the others took the change in and went on."""
        cluster = self._reach.cluster
        gone = [node for node in act.nodes if node in self._changed and not cluster.is_up(node)]
        for node in gone:
            back = self._changed[node].undoing()
            changed = change_file(self._reach.disk(node).files, back)
            if changed is not None:
                self._changed[node] = changed
        return self._changes(gone) if gone else None

    def _changes(self, nodes: Sequence[NodeName]) -> str:
        return "; ".join(
            f"{node}: {self._changed[node].sentence() if node in self._changed else 'no file fits'}"
            for node in nodes
        )

    def _hold(self, act: Act, held: Held) -> _Said:
        new = [place for place in places(act) if (held, place) not in self._mine]
        if not new:
            return None
        for place in new:
            self._mine[held, place] = act
        return _known(_HOLDING, type(act), act)(self._reach, at(act, new))

    def _release(self, act: Act, held: Held) -> list[_Said]:
        release = _known(_RELEASING, held, act)
        #: By the act that took hold of them: two links may be late by different times.
        by: dict[Act, list[Place]] = {}
        for place in places(act):
            holding = self._mine.pop((held, place), None)
            if holding is not None:
                by.setdefault(holding, []).append(place)
        said = [release(self._reach, at(act, mine), holding) for holding, mine in by.items()]
        if isinstance(act, acts.Start):
            # One that ended by itself, and that nothing holds down.
            mine = [node for held_down in by.values() for node in held_down]
            alone = [node for node in act.nodes if self._starts_twice or node not in mine]
            said += [_revive(self._reach, node) for node in alone]
        return said


def _known(table: Mapping[Any, Any], key: Any, act: Act) -> Callable[..., _Said]:
    """How an act is done here.

    Raises:
        CapabilityError: it cannot be.
    """
    do = table.get(key)
    if do is None:
        raise CapabilityError(
            act.sentence(),
            "runtime simulated",
            "no simulated world can do that",
            "Choose another fault, or another --runtime.",
        )
    return do


def _each(do: Callable[[Reach, Any, NodeName], _Said]) -> Callable[[Reach, Any], _Said]:
    """An act that is done to one node after the other."""

    def all_of_them(reach: Reach, act: Any) -> _Said:
        return _joined(f"{node}: {words}" if (words := do(reach, act, node)) else None
                       for node in act.nodes)  # fmt: skip

    return all_of_them


def _undone(do: Callable[[Reach, Any, NodeName], _Said]) -> Callable[[Reach, Any, Any], _Said]:
    """The same, given the act by which the nodes were held."""
    return lambda reach, act, by: _each(do)(reach, at(by, act.nodes))


def _joined(said: Iterable[_Said]) -> _Said:
    return "; ".join(words for words in said if words) or None


def _revive(reach: Reach, node: NodeName) -> _Said:
    """Start a node that has ended by itself, and that nothing holds down."""
    why = None if reach.cluster.is_up(node) else reach.cluster.ended(node)
    reach.revive(node)
    return None if why is None else f"{node} had ended: {why}; started again"


def _start(reach: Reach, act: acts.Start, by: Act) -> _Said:
    """Start nodes again; what was asked to end and has not done so is killed before."""
    said: list[str] = []
    for node in act.nodes:
        if isinstance(by, acts.Terminate):
            if reach.cluster.is_up(node):
                reach.end(node)
                said.append(f"{node} had not ended yet and was killed")
            else:
                said.append(f"{node} had ended")
        reach.start(node)
    return _joined(said)


def _terminate(reach: Reach, act: acts.Terminate) -> _Said:
    for node in act.nodes:
        reach.terminate(node)
    return f"{', '.join(act.nodes)} asked to end"


def _restart(reach: Reach, act: acts.Restart) -> _Said:
    for node in act.nodes:
        reach.end(node)
        # In a turn of its own: the one under way may be the node's, and ends with it.
        reach.world.after(0, lambda node=node: reach.revive(node))
    return "restarted"


def _cut(reach: Reach, act: acts.Cut) -> _Said:
    reach.cut(act.links)
    return f"{len(act.links)} links cut"


def _shape(reach: Reach, act: acts.ShapeLinks) -> _Said:
    delay_us = act.shape.delay_us
    reach.clog(act.links, delay_us)
    return f"{_named(act.links)} slower by {words_of_time(delay_us)}"


def _unshape(reach: Reach, act: acts.UnshapeLinks, by: acts.ShapeLinks) -> _Said:
    reach.unclog(act.links, by.shape.delay_us)
    return f"{_named(act.links)} as fast as before"


def _reset(reach: Reach, act: acts.ResetLinks) -> _Said:
    reach.network.answer_with_resets(act.links)
    return f"{len(act.links)} links answer with resets"


def _unreset(reach: Reach, act: acts.UnresetLinks, _by: Act) -> _Said:
    count = reach.network.answer_no_more(act.links)
    return f"{len(act.links)} links answer no more; {count} messages of this world met a reset"


def _named(links: tuple[Link, ...]) -> str:
    if len(links) == 1:
        return f"{links[0].source} to {links[0].destination}"
    return f"{len(links)} links"


def _warp(reach: Reach, act: acts.Warp) -> _Said:
    delta_us = act.warp.offset_us
    for node in act.nodes:
        reach.cluster.jump_clock(node, delta_us)
    return f"the clock of {', '.join(act.nodes)} jumped by {words_of_time(delta_us)}"


def _unwarp(reach: Reach, act: acts.Unwarp, by: acts.Warp) -> _Said:
    for node in act.nodes:
        reach.cluster.jump_clock(node, -by.warp.offset_us)
    return "the clock is right again"


def _fail_calls(reach: Reach, act: acts.FailCalls, node: NodeName) -> _Said:
    disk = reach.disk(node)
    match act.call:
        case "sync":
            return disk.fail_sync(act.count or 1)
        case "read":
            return disk.fail_reads(on=True)
        case _:
            return disk.fail_calls(act.call, act.count)


def _fail(reach: Reach, _act: acts.Fail, node: NodeName) -> _Said:
    disk = reach.disk(node)
    return ", ".join(disk.fail_calls(call, None) for call in _CALLS_THAT_WRITE)


def _mend(reach: Reach, by: acts.Fail | acts.FailCalls, node: NodeName) -> _Said:
    disk = reach.disk(node)
    if isinstance(by, acts.Fail):
        return disk.fail_calls(_CALLS_THAT_WRITE[0], 0)
    match by.call:
        case "sync":
            return disk.fail_sync(0)
        case "read":
            return disk.fail_reads(on=False)
        case _:
            return disk.fail_calls(by.call, 0)


def _rot(reach: Reach, act: acts.Rot, node: NodeName) -> _Said:
    rotten = reach.disk(node).rot(act.draw, act.what)
    if rotten is not None:
        reach.forgot[node] = "rotten"
    return rotten or "nothing flushed that could rot"


def _wipe(reach: Reach, _act: acts.Wipe, node: NodeName) -> _Said:
    reach.forgot[node] = "wiped"
    return reach.disk(node).wipe()


def _keep(reach: Reach, _act: acts.Keep, node: NodeName) -> _Said:
    reach.disk(node).remember()
    return "its disk is kept as it is now"


def _roll_back(reach: Reach, _act: acts.RollBack, node: NodeName) -> _Said:
    return reach.disk(node).roll_back() or "there was nothing to put back"


def _disconnect(reach: Reach, act: acts.Disconnect) -> _Said:
    count = sum(reach.network.reset(node) for node in act.nodes)
    return f"{count} connections reset"


def words_of_time(time_us: int) -> str:
    """Microseconds in milliseconds, as everywhere in texts."""
    return f"{time_us / 1_000:,.3f} ms"


#: Acts after which the nodes' states tell what was done.
_ON_PROCESSES: Final = (acts.Kill, acts.Terminate, acts.PowerOff, acts.Pause)

_HOLDING: Final[Mapping[type[Act], Callable[[Reach, Any], _Said]]] = {
    acts.Cut: _cut,
    acts.ShapeLinks: _shape,
    acts.ResetLinks: _reset,
    acts.Kill: _each(lambda reach, _act, node: reach.kill(node)),
    acts.Terminate: _terminate,
    acts.PowerOff: lambda reach, act: reach.power_off(act.nodes, act.draw),
    acts.Pause: _each(lambda reach, _act, node: reach.pause(node)),
    acts.Fill: _each(lambda reach, act, node: reach.disk(node).fill(act.spare_bytes)),
    acts.Stall: _each(lambda reach, _act, node: reach.slow_disk(node, _STALLED_FACTOR)),
    acts.SlowDisk: _each(lambda reach, act, node: reach.slow_disk(node, act.factor)),
    acts.Fail: _each(_fail),
    acts.FailCalls: _each(_fail_calls),
    acts.Warp: _warp,
}

#: Given also the act by which it was held.
_RELEASING: Final[Mapping[Held, Callable[[Reach, Any, Any], _Said]]] = {
    "cut": lambda reach, act, _by: reach.restore(act.links),
    "shape": _unshape,
    "reset": _unreset,
    "down": _start,
    "paused": _undone(lambda reach, _by, node: reach.resume(node)),
    "full": _undone(lambda reach, _by, node: reach.disk(node).fill(-1)),
    "stalled": _undone(lambda reach, _by, node: reach.hasten_disk(node, _STALLED_FACTOR)),
    "slow": _undone(lambda reach, by, node: reach.hasten_disk(node, by.factor)),
    "failing": _undone(_mend),
    "clock": _unwarp,
}

_DOING: Final[Mapping[type[Act], Callable[[Reach, Any], _Said]]] = {
    acts.Keep: _each(_keep),
    acts.Rot: _each(_rot),
    acts.RollBack: _each(_roll_back),
    acts.Wipe: _each(_wipe),
    acts.Restart: _restart,
    acts.Disconnect: _disconnect,
}
