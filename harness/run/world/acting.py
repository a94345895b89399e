"""Does acts of faults to a simulated world, as ``harness.run.acting`` does on machines.

To cut a link, set a clock or slow a disk twice is to do it once. A fault that strikes in the midst
of a node's own step ends that step by ``NodeCrashed``: that is held back until the fault is on
record, and then let pass (``take_crash``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from splitbrain.contracts.arms import FileChanged
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NodeCrashed
from splitbrain.contracts.words import counted
from splitbrain.nemesis import acts
from splitbrain.nemesis.acts import Act, Held
from splitbrain.nemesis.holds import Holds
from splitbrain.runtimes.file_changes import change_file
from splitbrain.simulation.world.world import SimulatedWorld

#: So many times as long as usual takes a job of a stalled disk: minutes at least.
_STALLED_FACTOR: Final = 100_000
#: Operations that fail on a file system that has gone read-only.
_CALLS_THAT_WRITE: Final = ("write", "sync", "rename")
#: Wiped: came back without a past. Rotten: has one that it must refuse.
Forgot = Literal["wiped", "rotten"]
#: Report of an act; None: the nodes' states tell.
_Said = str | None


class Arms:
    """One world, as faults reach it."""

    def __init__(self, world: SimulatedWorld, holds: Holds) -> None:
        """``holds``: what all faults hold."""
        self.world = world
        self.cluster = world.cluster
        self.network = world.network
        #: Integer of the fault that acts, for what a crash keeps, and what it changed of files.
        self.draw = 0
        self.changed: dict[NodeName, FileChanged] = {}
        self._holds = holds
        #: Asked to end, and not seen gone.
        self._ending: set[NodeName] = set()
        self._slow: dict[NodeName, dict[Held, int]] = {}
        #: How far each wall clock is off, in microseconds.
        self._ahead: dict[NodeName, int] = {}
        self._crash: NodeCrashed | None = None
        #: Nodes that no heal starts: their disk's past is gone, and they must not have had it.
        self.out_of_service: dict[NodeName, None] = {}
        #: Nodes whose disk no longer holds what they had promised: why.
        self.forgot: dict[NodeName, Forgot] = {}

    def perform(self, act: Act, draw: int, changed: dict[NodeName, FileChanged]) -> _Said:
        """Do an act as far as the other faults leave it; ``changed`` is kept up to date.

        Raises:
            CapabilityError: no world can do that.
        """
        self.draw, self.changed = draw, changed
        do = _DOING.get(type(act))
        if do is None:
            raise CapabilityError(
                act.sentence(),
                "runtime simulated",
                "no simulated world can do that",
                "Choose another fault, or another --runtime.",
            )
        return do(self, act)

    def take_crash(self) -> NodeCrashed | None:
        """Return the node's step that the last acts ended, if they did; once."""
        crash, self._crash = self._crash, None
        return crash

    def end(self, node: NodeName) -> None:
        """End a node's process."""
        try:
            self.cluster.kill(node, self.draw)
        except NodeCrashed as crash:
            self._crash = crash

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> str:
        """End nodes that lose what they had not synced.

        Those that are down too: a killed process left its page cache to the machine.
        """
        try:
            return self.cluster.power_off(nodes, draw)
        except NodeCrashed as crash:
            self._crash = crash
            return str(crash) or "power lost in the midst of a step"

    def terminate(self, node: NodeName) -> None:
        """Ask a node to end; it does so later, if at all."""
        self._ending.add(node)
        self.cluster.terminate(node, self.draw)

    def start(self, node: NodeName) -> _Said:
        """Start a node; one that was asked to end and has not done so is killed before."""
        said: _Said = None
        if node in self._ending:
            self._ending.discard(node)
            said = f"{node} had ended"
            if self.cluster.is_up(node):
                self.end(node)
                said = f"{node} had not ended yet and was killed"
        elif not self.cluster.is_up(node) and (why := self.cluster.ended(node)) is not None:
            said = f"{node} had ended: {why}; started again"
        if node not in self.out_of_service:
            self.cluster.start(node)
        return said

    def revive(self, node: NodeName) -> None:
        """Start a node that has ended, unless a fault holds it down."""
        if not self._holds.is_down(node):
            self.start(node)

    def slow_down(self, node: NodeName, held: Held, factor: int) -> str:
        """Have jobs of a disk take so many times as long, or what else asks for more; 1 heals."""
        factors = self._slow.setdefault(node, {})
        factors[held] = factor
        return self.cluster.disk(node).slow_down(max(factors.values()))

    def set_clock(self, node: NodeName, ahead_us: int) -> None:
        """Set a wall clock so far ahead of the right time."""
        self.cluster.jump_clock(node, ahead_us - self._ahead.get(node, 0))
        self._ahead[node] = ahead_us


_Do = Callable[[Arms, Any], _Said]


def _each(do: Callable[[Arms, Any, NodeName], _Said]) -> _Do:
    def all_of_them(arms: Arms, act: Any) -> _Said:
        reports = ((node, do(arms, act, node)) for node in act.nodes)
        return _joined(f"{node}: {report}" if report else None for node, report in reports)

    return all_of_them


def _joined(said: Iterable[_Said]) -> _Said:
    return "; ".join(filter(None, said)) or None


def _cut(arms: Arms, act: acts.Cut) -> _Said:
    arms.network.cut(act.links)
    return f"{counted(len(act.links), 'link')} cut"


def _restore(arms: Arms, act: acts.Restore) -> _Said:
    waiting = arms.network.waiting_count(act.links)
    arms.network.restore(act.links)
    return f"{counted(len(act.links), 'link')} open; {counted(waiting, 'message')} had waited"


def _shape(arms: Arms, act: acts.ShapeLinks) -> _Said:
    delay_us = act.shape.delay_us
    arms.network.clog(act.links, delay_us)
    return f"{_named(act.links)} slower by {words_of_time(delay_us)}"


def _unshape(arms: Arms, act: acts.UnshapeLinks) -> _Said:
    arms.network.clog(act.links, 0)
    return f"{_named(act.links)} as fast as before"


def _reset(arms: Arms, act: acts.ResetLinks) -> _Said:
    arms.network.answer_with_resets(act.links)
    return f"{len(act.links)} links answer with resets"


def _unreset(arms: Arms, act: acts.UnresetLinks) -> _Said:
    count = arms.network.answer_no_more(act.links)
    return f"{len(act.links)} links answer no more; {count} messages of this world met a reset"


def _named(links: tuple[Link, ...]) -> str:
    if len(links) == 1:
        return f"{links[0].source} to {links[0].destination}"
    return f"{len(links)} links"


def _terminate(arms: Arms, act: acts.Terminate) -> _Said:
    for node in act.nodes:
        arms.terminate(node)
    return f"{', '.join(act.nodes)} asked to end"


def _start(arms: Arms, act: acts.Start) -> _Said:
    return _joined([arms.start(node) for node in act.nodes])


def _restart(arms: Arms, act: acts.Restart) -> _Said:
    for node in act.nodes:
        arms.end(node)
        # In a turn of its own: the one under way may be the node's, and ends with it.
        arms.world.after(0, lambda node=node: arms.revive(node))
    return "restarted"


def _warp(arms: Arms, act: acts.Warp) -> _Said:
    ahead_us = act.warp.offset_us
    for node in act.nodes:
        arms.set_clock(node, ahead_us)
    return f"the clock of {', '.join(act.nodes)} jumped by {words_of_time(ahead_us)}"


def _unwarp(arms: Arms, act: acts.Unwarp) -> _Said:
    for node in act.nodes:
        arms.set_clock(node, 0)
    return "the clock is right again"


def _fail(arms: Arms, _act: acts.Fail, node: NodeName) -> _Said:
    disk = arms.cluster.disk(node)
    return ", ".join(disk.fail_calls(call, None) for call in _CALLS_THAT_WRITE)


def _mend(arms: Arms, _act: acts.Repair | acts.MendCalls, node: NodeName) -> _Said:
    return arms.cluster.disk(node).mend()


def _rot(arms: Arms, act: acts.Rot, node: NodeName) -> _Said:
    rotten = arms.cluster.disk(node).rot(act.draw, act.what)
    if rotten is not None:
        arms.forgot[node] = "rotten"
    return rotten or "nothing flushed that could rot"


def _wipe(arms: Arms, _act: acts.Wipe, node: NodeName) -> _Said:
    arms.forgot[node] = "wiped"
    return arms.cluster.disk(node).wipe()


def _keep(arms: Arms, _act: acts.Keep, node: NodeName) -> _Said:
    arms.cluster.disk(node).remember()
    return "its disk is kept as it is now"


def _roll_back(arms: Arms, _act: acts.RollBack, node: NodeName) -> _Said:
    return arms.cluster.disk(node).roll_back() or "there was nothing to put back"


def _change(arms: Arms, act: acts.ChangeFile, node: NodeName) -> _Said:
    changed = change_file(arms.cluster.disk(node).files, act.change)
    if changed is None:
        return "no file fits"
    arms.changed[node] = changed
    if changed.kind == "flip":
        arms.forgot[node] = "rotten"
    return changed.sentence()


def _put_back(arms: Arms, _act: acts.PutBack, node: NodeName) -> _Said:
    """Of a node that has ended alone: another one took the change in and went on."""
    before = arms.changed.get(node)
    if before is None or arms.cluster.is_up(node):
        return None
    changed = change_file(arms.cluster.disk(node).files, before.undoing())
    if changed is not None:
        arms.changed[node] = changed
    return arms.changed[node].sentence()


def _disconnect(arms: Arms, act: acts.Disconnect) -> _Said:
    count = sum(arms.network.reset(node) for node in act.nodes)
    return f"{count} connections reset"


def words_of_time(time_us: int) -> str:
    """Microseconds in milliseconds, as everywhere in texts."""
    return f"{time_us / 1_000:,.3f} ms"


_DOING: Final[Mapping[type[Act], _Do]] = {
    acts.Cut: _cut,
    acts.Restore: _restore,
    acts.ShapeLinks: _shape,
    acts.UnshapeLinks: _unshape,
    acts.ResetLinks: _reset,
    acts.UnresetLinks: _unreset,
    acts.Kill: _each(lambda arms, _act, node: arms.end(node)),
    acts.Start: _start,
    acts.Terminate: _terminate,
    acts.PowerOff: lambda arms, act: arms.power_off(act.nodes, act.draw),
    acts.Restart: _restart,
    acts.Pause: _each(lambda arms, _act, node: arms.cluster.pause(node)),
    acts.Resume: _each(lambda arms, _act, node: arms.cluster.resume(node)),
    acts.Fill: _each(lambda arms, act, node: arms.cluster.disk(node).fill(act.spare_bytes)),
    acts.Drain: _each(lambda arms, _act, node: arms.cluster.disk(node).fill(-1)),
    acts.Stall: _each(lambda arms, _act, node: arms.slow_down(node, "stalled", _STALLED_FACTOR)),
    acts.Unstall: _each(lambda arms, _act, node: arms.slow_down(node, "stalled", 1)),
    acts.SlowDisk: _each(lambda arms, act, node: arms.slow_down(node, "slow", act.factor)),
    acts.HastenDisk: _each(lambda arms, _act, node: arms.slow_down(node, "slow", 1)),
    acts.Fail: _each(_fail),
    acts.Repair: _each(_mend),
    acts.FailCalls: _each(
        lambda arms, act, node: arms.cluster.disk(node).fail_calls(act.call, act.count)
    ),
    acts.MendCalls: _each(_mend),
    acts.Warp: _warp,
    acts.Unwarp: _unwarp,
    acts.Keep: _each(_keep),
    acts.ChangeFile: _each(_change),
    acts.PutBack: _each(_put_back),
    acts.Rot: _each(_rot),
    acts.RollBack: _each(_roll_back),
    acts.Wipe: _each(_wipe),
    acts.Disconnect: _disconnect,
}
