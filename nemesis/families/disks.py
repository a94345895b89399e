"""Fault kinds of power and disks.

Only ``power`` shows a missing fsync: after a kill the kernel still writes its page cache. A stopped
node reads its changed file when it starts, and must refuse a detectable change, with the reason.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

from splitbrain.contracts.arms import DiskState, FileChange
from splitbrain.contracts.fault import US_PER_MS, FaultTraits, Milliseconds
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.acts import (
    Act,
    ChangeFile,
    Drain,
    Fail,
    Fill,
    Keep,
    Kill,
    PowerOff,
    PutBack,
    Repair,
    Stall,
    Start,
    Unstall,
    Wipe,
)
from splitbrain.nemesis.expectations import CanariesTell, DataGone, DiskIs, FileReads, NodeTookBack
from splitbrain.nemesis.families.processes import (
    answering,
    exited,
    running,
    until_healed,
    until_started,
)
from splitbrain.nemesis.fault_kind import (
    CORRUPT,
    FAILED,
    UNTIL_STARTED,
    Course,
    FaultKind,
    Setting,
    Step,
)
from splitbrain.nemesis.fault_options import FileOptions, FullDiskOptions, NoOptions, RestoreOptions
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, random_target

_FILES_PAGE: Final = "file-change"
#: Divisor of the fault's time: the longest wait between a file's change and its node's start.
_MET_PART: Final = 3
_MET_MS_MAX: Final = 1000
_CHANGED: Final = FaultTraits("at-once", CORRUPT, stays=True)


def _power(setting: Setting, _options: NoOptions) -> Course:
    hit = setting.hit
    seen = (*exited(hit), *(CanariesTell(node) for node in hit))
    return until_started(hit, Step((PowerOff(hit, setting.draw),), seen=seen))


def _until_writable(
    hit: tuple[NodeName, ...], act: Act, states: tuple[DiskState, ...], *undo: Act
) -> Course:
    """Return a course of bad disks; the heal starts nodes that ended by themselves."""
    return until_healed(
        hit,
        Step((act,), seen=tuple(DiskIs(node, states) for node in hit)),
        heal=(*undo, Start(hit)),
        healed=tuple(DiskIs(node, ("writable",)) for node in hit),
    )


def _full(setting: Setting, options: FullDiskOptions) -> Course:
    hit = setting.hit
    return _until_writable(hit, Fill(hit, options.spare_bytes), ("full",), Drain(hit))


def _stall(setting: Setting, _options: NoOptions) -> Course:
    hit = setting.hit
    return _until_writable(hit, Stall(hit), ("stalled",), Unstall(hit))


def _error(setting: Setting, _options: NoOptions) -> Course:
    """Repair while the node is down: it must never go on with a disk that has failed."""
    hit = setting.hit
    return _until_writable(hit, Fail(hit), ("read-only", "failing"), Kill(hit), Repair(hit))


def _until_put_back(
    hit: tuple[NodeName, ...], changed: tuple[Step, ...], met_ms: Milliseconds
) -> Course:
    """Return a course of changed files, which their nodes read on a start during the fault."""
    took_back = tuple(NodeTookBack(node) for node in hit)
    return Course(
        steps=(
            *changed,
            Step((Start(hit),), met_ms * US_PER_MS, seen=took_back, awaits_start=True),
        ),
        # Only a node that has refused its file gets it back, and the refusal may take a while.
        settled=took_back,
        heal=(PutBack(hit), Start(hit)),
        healed=running(hit),
        resumed=answering(hit),
    )


def _changed(kind: Literal["flip", "truncate"]) -> Callable[[Setting, FileOptions], Course]:
    """Kill, change and start: the node reads its files again during the fault."""

    def course(setting: Setting, options: FileOptions) -> Course:
        hit = setting.hit
        change = FileChange(
            kind=kind,
            file=options.file,
            draw=setting.draw,
            offset=None if options.offset < 0 else options.offset,
            length=options.length,
        )
        acts: tuple[Act, ...] = (Kill(hit), Keep(hit), ChangeFile(hit, change))
        met_ms = max(1, min(_MET_MS_MAX, setting.duration_ms // _MET_PART))
        seen = (*exited(hit), *(FileReads(node) for node in hit))
        return _until_put_back(hit, (Step(acts, seen=seen),), met_ms)

    return course


def _put_back(setting: Setting, options: RestoreOptions) -> Course:
    """Keep the data now and put the file back later, losing the writes in between.

    A node whose other files show the loss refuses; the heal returns its newer file.
    """
    hit = setting.hit
    change = FileChange(kind="restore", file=options.file, draw=setting.draw)
    half_ms = max(1, setting.duration_ms // 2)
    met_ms = half_ms + max(1, min(_MET_MS_MAX, half_ms // _MET_PART))
    seen = (*exited(hit), *(FileReads(node) for node in hit))
    changed = Step((Kill(hit), ChangeFile(hit, change)), half_ms * US_PER_MS, seen=seen)
    return _until_put_back(hit, (Step((Keep(hit),)), changed), met_ms)


def _wipe(setting: Setting, _options: NoOptions) -> Course:
    hit = setting.hit
    seen = (*exited(hit), *(DataGone(node) for node in hit))
    return until_started(hit, Step((Kill(hit), Wipe(hit)), seen=seen))


def _kind(name: str, summary: str, **fields: Any) -> FaultKind:
    usual: dict[str, Any] = {
        "page": name,
        "other_targets": (FOLLOWER, random_target(1)),
        "refused_targets": frozenset({HALVES}),
        "exclusive": "disk",
    }
    return FaultKind(name=name, summary=summary, **(usual | fields))


KINDS: Final = (
    _kind(
        "power", "Cuts the target's power: what was not flushed is gone.",
        needs=frozenset({"power"}), course=_power, traits=UNTIL_STARTED, exclusive=None,
        other_targets=(FOLLOWER, random_target(1), ALL),
        reveals=(
            "An acknowledged write must be on the disks of a majority, not in the kernel's "
            "memory. A missing or a too late fsync shows here, and only here."
        ),
        picture=(
            "client --- write 4 ---> n1   written to the file, not synced\n"
            "client <--- ok -------- n1\n"
            "                        power is cut: the file ends before write 4"
        ),
    ),
    _kind(
        "full-disk", "Leaves the target's disk no room.",
        needs=frozenset({"full-disk"}), course=_full, options=FullDiskOptions,
        exact_options=frozenset({"spare_bytes"}),
        traits=FaultTraits(reasons=("disk full", "disk is full", "no space", "enospc")),
        reveals=(
            "A write that fails in its middle leaves half a record. Whoever goes on as if it were "
            "whole, or acknowledges it, loses it."
        ),
        picture=(
            "log   | record 1 | record 2 | rec      no room for the rest\n"
            "      must be taken for nothing, and the next one not put behind it"
        ),
    ),
    _kind(
        "disk-stall", "Lets no write on the target's disk come to an end.",
        needs=frozenset({"disk-stall"}), course=_stall,
        reveals=(
            "A node whose disk hangs still answers heartbeats. A leader that cannot write "
            "anything must give way."
        ),
        picture=(
            "n1 (leader)   heartbeats go on ------------------------------>\n"
            "n1, disk      write 4 ..................................... no end"
        ),
    ),
    _kind(
        "disk-error", "Makes the target's file system report an error and go read-only.",
        needs=frozenset({"disk-error", "kill"}), course=_error,
        traits=FaultTraits("later", (*FAILED, "read-only", "erofs")),
        reveals=(
            "After a failed fsync the kernel may have dropped the pages, and a second one "
            "succeeds without them. A node must not go on as if nothing was."
        ),
        picture=(
            "n1   write 4 | fsync: EIO     the kernel drops the pages\n"
            "n1           | fsync: done    and write 4 is nowhere"
        ),
    ),
    _kind(
        "flip", "Flips bits in a file of the stopped target, which then starts.",
        page=_FILES_PAGE, needs=frozenset({"file-change", "kill"}), course=_changed("flip"),
        options=FileOptions, traits=_CHANGED, rule="forgets", needs_up=False,
        reveals=(
            "Bits rot. Whoever does not compare checksums hands out a wrong value; whoever takes "
            "rot for a torn tail cuts off what was committed."
        ),
        picture=(
            "stopped   | 4 1 7 9 2 |\n"
            "flipped   | 4 1 3 9 2 |     the checksum says so; who does not ask, serves 3"
        ),
    ),
    _kind(
        "truncate", "Cuts off the end of a file of the stopped target, which then starts.",
        page=_FILES_PAGE, needs=frozenset({"file-change", "truncate", "kill"}),
        course=_changed("truncate"), options=FileOptions, traits=_CHANGED, rule="forgets",
        needs_up=False,
        reveals=(
            "A file that ends too early looks like a torn write. It may have held records that "
            "this node had said to have."
        ),
        picture=(
            "stopped   | record 1 | record 2 | record 3 |\n"
            "cut       | record 1 | reco       n1 had said that it holds all three"
        ),
    ),
    _kind(
        "restore", "Puts a file of the stopped target back to an older state.",
        page=_FILES_PAGE, needs=frozenset({"file-change", "kill"}), course=_put_back,
        options=RestoreOptions, traits=FaultTraits("later", CORRUPT), rule="lies",
        reveals=(
            "A backup that is put back makes a node forget what it promised, its votes among "
            "that, and nothing on the disk says so."
        ),
        picture=(
            "10 s  copy of the file: epoch 4, no vote\n"
            "20 s  n2 votes for n1 in epoch 5, stops; the copy is put back\n"
            "21 s  n2 starts in epoch 4 and may vote for n3 in epoch 5"
        ),
    ),
    _kind(
        "wipe", "Empties the data folder of the stopped target, which comes back without a past.",
        needs=frozenset({"wipe", "kill"}), course=_wipe, traits=UNTIL_STARTED, rule="forgets",
        needs_up=False,
        reveals=(
            "A voter without a past must not vote as if it had one: with its help a node can be "
            "elected that lacks committed records."
        ),
        picture=(
            "n1   a b c      down            c is committed: it is on n1 and n2\n"
            'n2   a b c      wiped, empty    grants n3 its vote: "your log is not behind"\n'
            "n3   a b        is elected      leads without c"
        ),
    ),
)  # fmt: skip
