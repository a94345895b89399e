"""Carries out one act of the nemesis on a real runtime, and reads the runtime's records of it.

The one place that knows which method of a runtime or of its arms does what.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from splitbrain.contracts.arms import FileChanged, MemberArm, PowerLoss
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Runtime
from splitbrain.harness.console.stop import patiently
from splitbrain.nemesis import acts
from splitbrain.nemesis.acts import Act

_Answer = TypeVar("_Answer")

#: A node that has just ended may still be on its way out.
_START_PATIENCE_S: Final = 10.0
_START_INTERVAL_S: Final = 0.5
#: Members that have to elect first, or that came back just now, change nothing meanwhile.
_MEMBER_PATIENCE_S: Final = 6.0
#: Acts on a process that must be there.
_ON_PROCESSES: Final = (
    *(acts.Pause, acts.Resume, acts.Throttle, acts.Unthrottle, acts.Kill, acts.Terminate),
    *(acts.LimitMemory, acts.UnlimitMemory, acts.Warp, acts.Unwarp),
)
#: More than this is not read for the sake of a name.
_READ_BYTES_MAX: Final = 16 << 20
#: With less no program comes so far as to need it.
_MEMORY_MIB_MIN: Final = 8
_MIB: Final = 1 << 20


class Wiped(msgspec.Struct, frozen=True):
    """Findings of a wipe."""

    node: NodeName
    found: str


class Changed(msgspec.Struct, frozen=True):
    """Outcome of a change to a node's file."""

    node: NodeName
    #: None: no file fits.
    change: FileChanged | None


#: Report of a runtime on an act, beyond that it was done.
Record = PowerLoss | Changed | Wiped
#: Of the system's adapter: given a file and its bytes up to the change, the record that follows.
RecordAt = Callable[[str, bytes], str | None]


class Performed(msgspec.Struct, frozen=True):
    """An act that was done."""

    records: tuple[Record, ...] = ()
    #: In words; empty: nothing that cannot be seen from outside.
    said: str = ""


def perform(
    runtime: Runtime, act: Act, records: Sequence[Record] = (), members: MemberArm | None = None
) -> Performed:
    """Do it; ``records`` are of the same fault's acts before, for those that undo one.

    Raises:
        HarnessError: the environment failed.
        CapabilityError: the runtime, or the system, cannot do it.
    """
    if isinstance(act, acts.PutBack):
        return _put_back(runtime, act, records)
    if isinstance(act, acts.RemoveMember | acts.ReplaceMember) and members is not None:
        return _change_members(runtime, members, act)
    do = _ACTS.get(type(act))
    if do is None:
        raise CapabilityError(
            act.sentence(),
            f"runtime {runtime.name}",
            "no machine can do that",
            "Choose another fault, or --runtime simulated.",
        )
    done = do(runtime, act)
    return Performed() if done is None else done


def perform_where_it_can_be(
    runtime: Runtime, act: Act, records: Sequence[Record] = (), members: MemberArm | None = None
) -> Performed:
    """Perform it on the nodes that are there: with one that has ended nothing can be done."""
    try:
        return perform(runtime, act, records, members)
    except HarnessError:
        if not isinstance(act, _ON_PROCESSES):
            raise
        gone = [node for node in act.nodes if runtime.status(node) == "exited"]
        if not gone:
            raise
    there = [node for node in act.nodes if node not in gone]
    done = perform(runtime, acts.at(act, there), records) if there else Performed()
    said = f"{', '.join(gone)} had ended by itself"
    return Performed(done.records, "; ".join(filter(None, (done.said, said))))


def canaries_tell(node: NodeName, records: Sequence[Record]) -> bool:
    """Whether the node's synced canary outlived its last power cut, and the unsynced one did not.

    Both were written right before the cut. The unsynced one alone would be gone also where the
    whole disk was, and the synced one alone would be there also where nothing was cut.
    """
    losses = [loss for loss in records if isinstance(loss, PowerLoss) and loss.node == node]
    return bool(losses) and losses[-1].synced_is_there and not losses[-1].unsynced_is_there


def file_reads(runtime: Runtime, changed: Changed) -> bool:
    """Whether a re-read of the node's file sees what it was changed to.

    Raises:
        HarnessError: it cannot be read.
    """
    change = changed.change
    if change is None:
        return False
    wanted = bytes.fromhex(change.after)
    there = runtime.disks.read(changed.node, change.file, change.offset, max(1, len(wanted)))
    return there[: len(wanted)] == wanted if wanted else not there


def records_hit(runtime: Runtime, record_at: RecordAt, records: Sequence[Record]) -> list[str]:
    """Return a clause for each changed file whose record of the system's own can be named.

    Where a byte lies says little to who knows the system's log; its adapter can tell which record
    that was, from the bytes before it, which no change touches. One that cannot be named is left
    out: no fault fails for it.
    """
    named: list[str] = []
    for record in records:
        if not isinstance(record, Changed) or record.change is None:
            continue
        file, offset = record.change.file, record.change.offset
        if offset > _READ_BYTES_MAX:
            continue
        try:
            before = runtime.disks.read(record.node, file, 0, offset) if offset else b""
        except HarnessError:
            continue
        hit = record_at(file, before)
        if hit is not None:
            named.append(f"{record.node}: that is {hit}")
    return named


def _shape(runtime: Runtime, act: acts.ShapeLinks) -> Performed:
    return Performed(said=f"by {runtime.links.shape(act.links, act.shape)}")


def _kill(runtime: Runtime, act: acts.Kill) -> None:
    """Several are frozen first: else those that still live elect, and acknowledge, meanwhile."""
    if len(act.nodes) > 1:
        for node in act.nodes:
            # One that ends by itself just now is dead anyhow; an engine that is gone tells below.
            with contextlib.suppress(HarnessError):
                if runtime.status(node) == "running":
                    runtime.pause(node)
    for node in act.nodes:
        runtime.kill(node)


def _power_off(runtime: Runtime, act: acts.PowerOff) -> Performed:
    losses = tuple(runtime.disks.power_off(act.nodes, act.draw))
    return Performed(losses, "; ".join(f"{loss.node}: {loss.lost}" for loss in losses if loss.lost))


def _terminate(runtime: Runtime, act: acts.Terminate) -> Performed:
    late = [
        f"{node} did not end within {act.patience_s:g} s"
        for node in act.nodes
        if runtime.processes.terminate(node, act.patience_s) is None
    ]
    return Performed(said="; ".join(late))


def _start(runtime: Runtime, act: acts.Start) -> None:
    for node in act.nodes:
        start = partial(runtime.start, node)
        patiently(start, _START_PATIENCE_S, _START_INTERVAL_S, HarnessError)


def _limit_memory(runtime: Runtime, act: acts.LimitMemory) -> Performed:
    said: list[str] = []
    for node in act.nodes:
        sample = runtime.sample(node)
        used = 0 if sample is None else sample.memory_bytes
        limit_mib = act.limit_mib
        if limit_mib is None:
            limit_mib = max(_MEMORY_MIB_MIN, used * 3 // 4 // _MIB)
        runtime.processes.limit_memory(node, limit_mib)
        said.append(f"{node} may have {limit_mib} MiB and used {used / _MIB:.1f}")
    return Performed(said="; ".join(said))


def _change(runtime: Runtime, act: acts.ChangeFile) -> Performed:
    changes = tuple(Changed(node, runtime.disks.change(node, act.change)) for node in act.nodes)
    return Performed(changes, _changes_in_words(changes))


def _put_back(runtime: Runtime, act: acts.PutBack, records: Sequence[Record]) -> Performed:
    """Of nodes that have ended alone: the others took the change in and went on."""
    changed = {was.node: was.change for was in records if isinstance(was, Changed) and was.change}
    changes = tuple(
        Changed(node, runtime.disks.change(node, changed[node].undoing()))
        for node in act.nodes
        if node in changed and runtime.status(node) == "exited"
    )
    return Performed(said=_changes_in_words(changes))


def _changes_in_words(changes: Iterable[Changed]) -> str:
    return "; ".join(
        f"{changed.node}: {changed.change.sentence() if changed.change else 'no file fits'}"
        for changed in changes
    )


def _change_members(
    runtime: Runtime, members: MemberArm, act: acts.RemoveMember | acts.ReplaceMember
) -> Performed:
    """A refusal is the system's to give: the fault does not bite then, or is not healed."""
    said: list[str] = []
    for node in act.nodes:
        try:
            if isinstance(act, acts.RemoveMember):
                _insist(partial(members.remove, node))
            elif not _insist(partial(_is_known_member, members, node)):
                runtime.kill(node)
                said.append(f"{node}: {runtime.disks.wipe(node)}")
                _insist(partial(members.add, node))
        except HarnessError as error:
            said.append(f"{node}: {error.problem}")
    return Performed(said="; ".join(said))


def _insist(change: Callable[[], _Answer]) -> _Answer:
    return patiently(change, _MEMBER_PATIENCE_S, _START_INTERVAL_S, HarnessError)


def _is_known_member(members: MemberArm, node: NodeName) -> bool:
    """Must never take one of which nobody tells for removed: its disk would be emptied."""
    is_there = members.is_member(node)
    if is_there is None:
        raise HarnessError(
            "replace a member", node, "nobody tells whether it is one", "Look at the nodes' output"
        )
    return is_there


def _wipe(runtime: Runtime, act: acts.Wipe) -> Performed:
    wiped = tuple(Wiped(node, runtime.disks.wipe(node)) for node in act.nodes)
    return Performed(wiped, "; ".join(f"{wipe.node}: {wipe.found}" for wipe in wiped))


def _worded(nodes: Iterable[NodeName], do: Callable[[NodeName], str]) -> Performed:
    return Performed(said="; ".join(f"{node}: {do(node)}" for node in nodes))


def _each(do: Callable[[Runtime, Any, NodeName], None]) -> Callable[[Runtime, Any], None]:
    def all_of_them(runtime: Runtime, act: Any) -> None:
        for node in act.nodes:
            do(runtime, act, node)

    return all_of_them


_ACTS: Final[dict[type[Act], Callable[[Runtime, Any], Performed | None]]] = {
    acts.Cut: lambda runtime, act: runtime.cut(act.links),
    acts.Restore: lambda runtime, act: runtime.restore(act.links),
    acts.ShapeLinks: _shape,
    acts.UnshapeLinks: lambda runtime, act: runtime.links.unshape(act.links),
    acts.ResetLinks: lambda runtime, act: runtime.links.reset(act.links),
    acts.UnresetLinks: lambda runtime, act: runtime.links.unreset(act.links),
    acts.Kill: _kill,
    acts.Start: _start,
    acts.Terminate: _terminate,
    acts.PowerOff: _power_off,
    acts.Pause: _each(lambda runtime, _act, node: runtime.pause(node)),
    acts.Resume: _each(lambda runtime, _act, node: runtime.resume(node)),
    acts.Throttle: _each(
        lambda runtime, act, node: runtime.processes.throttle(node, act.cpu_share)
    ),
    acts.Unthrottle: _each(lambda runtime, _act, node: runtime.processes.unthrottle(node)),
    acts.LimitMemory: _limit_memory,
    acts.UnlimitMemory: _each(lambda runtime, _act, node: runtime.processes.unlimit_memory(node)),
    acts.Fill: lambda runtime, act: _worded(act.nodes, runtime.disks.fill),
    acts.Drain: _each(lambda runtime, _act, node: runtime.disks.drain(node)),
    acts.Stall: _each(lambda runtime, _act, node: runtime.disks.stall(node)),
    acts.Unstall: _each(lambda runtime, _act, node: runtime.disks.unstall(node)),
    acts.Fail: lambda runtime, act: _worded(act.nodes, runtime.disks.fail),
    acts.Repair: _each(lambda runtime, _act, node: runtime.disks.repair(node)),
    acts.Keep: _each(lambda runtime, _act, node: runtime.disks.keep(node)),
    acts.ChangeFile: _change,
    acts.Wipe: _wipe,
    acts.Warp: _each(lambda runtime, act, node: runtime.clocks.warp(node, act.warp)),
    acts.Unwarp: _each(lambda runtime, _act, node: runtime.clocks.unwarp(node)),
}
