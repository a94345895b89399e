"""Fault kinds of disks that only an exact world has: single calls that fail, bits that rot.

A node ends by itself at a failing disk, as it should; the heal starts it again. The cluster must
survive lost flushed records (``rot-log``) and rot in the files that tell rot from a torn tail
(``rot-checkpoint``, ``rot-mark``); ``rot-identity`` equals a lost disk. No cluster can survive
``roll-back`` or ``rot-state``: the vote's file has a form without a checksum. Courses expect
nothing: the world knows its own faults. Source: design, section 9.
"""

from collections.abc import Callable
from typing import Any, Final

from splitbrain.contracts.draws import how, spread
from splitbrain.contracts.fault import FaultTraits
from splitbrain.nemesis.acts import (
    Act,
    DiskCall,
    FailCalls,
    HastenDisk,
    Keep,
    Kill,
    MendCalls,
    Restart,
    RollBack,
    Rot,
    Rotten,
    SlowDisk,
    Start,
)
from splitbrain.nemesis.fault_kind import CORRUPT, FAILED, LATER, Course, FaultKind, Setting, Step
from splitbrain.nemesis.fault_options import (
    CallOptions,
    NoOptions,
    RotOptions,
    SlowDiskOptions,
    SyncOptions,
)
from splitbrain.nemesis.targets import ALL, HALVES

PAGE: Final = "exact-disks"
#: Range of a slow disk's factor: 2 to 1,023.
_SLOW_FACTOR: Final = 2
_SLOW_DOUBLINGS: Final = 9
#: One rot in so many hits a running node.
_RUNNING_ONE_IN: Final = 4
_ROT_LIMIT: Final = 1 << 31
#: A node may end by itself at a failed call.
_MEETS: Final = FaultTraits("perhaps", FAILED)


def _slow(setting: Setting, options: SlowDiskOptions) -> Course:
    drawn = spread(how(setting.draw), _SLOW_FACTOR, _SLOW_DOUBLINGS)
    factor = drawn if options.factor is None else options.factor
    return Course(steps=(Step((SlowDisk(setting.hit, factor),)),), heal=(HastenDisk(setting.hit),))


def _failing(setting: Setting, call: DiskCall, count: int | None, *more: Act) -> Course:
    """Let calls fail; the heal starts a node that ended at one."""
    hit = setting.hit
    return Course(
        steps=(Step((FailCalls(hit, call, count), *more)),),
        heal=(MendCalls(hit), Start(hit)),
    )


def _syncs_fail(setting: Setting, options: SyncOptions) -> Course:
    return _failing(setting, "sync", options.count)


def _reads_fail(setting: Setting, _options: NoOptions) -> Course:
    return _failing(setting, "read", None)


def _calls_fail(call: DiskCall) -> Callable[[Setting, CallOptions], Course]:
    """Let the next calls of one kind fail, or all of them until the heal."""

    def course(setting: Setting, options: CallOptions) -> Course:
        draws = how(setting.draw)
        lasting, restart = draws.below(2), draws.below(2)
        if options.lasting is not None:
            lasting = options.lasting
        if options.restart is not None:
            restart = options.restart
        more = (Restart(setting.hit),) if restart else ()
        return _failing(setting, call, None if lasting else options.count, *more)

    return course


def _rot(what: Rotten, *, restarts: bool = False) -> Callable[[Setting, RotOptions], Course]:
    """Flip bits under a running node or, by draw, while it is down.

    Rot does not heal: the heal only starts a stopped node, which may refuse. ``restarts``: only
    while down, for files that a running node may be about to rely on.
    """

    def course(setting: Setting, options: RotOptions) -> Course:
        hit, draws = setting.hit, how(setting.draw)
        drawn = draws.below(_RUNNING_ONE_IN)
        is_restart = restarts or bool(drawn if options.restart is None else options.restart)
        rot = Rot(hit, what, draws.below(_ROT_LIMIT))
        return Course(
            steps=(Step((Kill(hit), rot) if is_restart else (rot,)),),
            heal=(Start(hit),) if is_restart else (),
        )

    return course


def _roll_back(setting: Setting, _options: NoOptions) -> Course:
    """Keep the disk's content now; the heal puts it back."""
    hit = setting.hit
    return Course(steps=(Step((Keep(hit),)),), heal=(Kill(hit), RollBack(hit), Start(hit)))


def _failing_kind(name: str, summary: str, **fields: Any) -> FaultKind:
    usual: dict[str, Any] = {"traits": FaultTraits(reasons=FAILED), "exclusive": "disk"}
    return _kind(name, summary, **(usual | fields))


def _kind(name: str, summary: str, **fields: Any) -> FaultKind:
    usual: dict[str, Any] = {
        "page": PAGE,
        "needs": frozenset({"exact-disk"}),
        "refused_targets": frozenset({ALL, HALVES}),
    }
    return FaultKind(name=name, summary=summary, **(usual | fields))


def _kind_of_rot(name: str, summary: str, what: Rotten, **fields: Any) -> FaultKind:
    usual: dict[str, Any] = {
        "course": _rot(what),
        "options": RotOptions,
        "rule": "forgets",
        "needs_up": False,
        "traits": FaultTraits("perhaps", CORRUPT, stays=True),
    }
    return _kind(name, summary, needs=frozenset({"exact-disk", "kill"}), **(usual | fields))


KINDS: Final = (
    _kind(
        "slow-disk", "Has each job of the target's disk take many times as long.",
        course=_slow, options=SlowDiskOptions, needs_up=False,
        reveals=(
            "Each flush is late, so all that must wait for one is out of order with all that does "
            "not: an answer that leaves too early shows."
        ),
        picture=(
            "n1 (leader)   write 4 ====== flush ======\n"
            "answer        here it would be too early  | here it may leave"
        ),
    ),
    _failing_kind(
        "fsync-fails", "Lets the next syncs fail, which forget what they should have written.",
        course=_syncs_fail, options=SyncOptions,
        reveals=(
            "A sync that failed has forgotten what it should have written, and the next one "
            "succeeds. A node that tries again and goes on has lost records that it counts as "
            "flushed."
        ),
        picture=(
            "write a | fsync -> error (the kernel drops a) | fsync -> ok | power cut\n"
            "                                                  a is not on the disk"
        ),
    ),
    _failing_kind(
        "read-errors", "Lets every read of the target's log fail.", course=_reads_fail,
        reveals="A node that cannot read its log must end, not answer with what it could read.",
        picture=(
            "log   | 1 | 2 | 3 |\n"
            'read        EIO            "the log ends after 1" would be a lie'
        ),
    ),
    _failing_kind(
        "write-fails", "Lets the next write fail, or all of them.",
        course=_calls_fail("write"), options=CallOptions, traits=_MEETS,
        reveals=(
            "A write that failed may be on the disk in part. What follows it in the file must not "
            "be taken for good."
        ),
        picture=(
            "log   | record 1 | rec          the write failed half-way\n"
            "      | record 1 | rec|record 3|     what follows cannot be read"
        ),
    ),
    _failing_kind(
        "rename-fails", "Lets the next rename fail, or all of them.",
        course=_calls_fail("rename"), options=CallOptions, traits=_MEETS,
        reveals=(
            "Files are replaced by a rename. If it fails, the old content is still in force, "
            "whatever the node believes that it has written."
        ),
        picture=(
            "write   state.tmp: epoch 6\n"
            "rename  state.tmp -> state   EIO\n"
            "disk    state: epoch 5       memory: epoch 6"
        ),
    ),
    _kind_of_rot(
        "rot-log", "Flips bits of flushed records.", "log",
        reveals=(
            "Flushed records rot. The node must notice by the checksum, and must not take that "
            "for a torn tail, which may be cut off."
        ),
        picture=(
            "flushed   | record 1 | record 2 | record 3 |\n"
            "rotten    | record 1 | re#ord 2 | record 3 |\n"
            "          no torn tail: 2 and 3 may be committed, they are not cut off"
        ),
    ),
    # An epoch's entry precedes its first batch, which may be flushed but not yet marked.
    _kind_of_rot(
        "rot-checkpoint", "Flips bits of the file that tells where epochs begin.", "checkpoint",
        course=_rot("checkpoint", restarts=True),
        reveals=(
            "Where epochs begin is what logs are compared by. A wrong one makes a follower "
            "truncate at the wrong place."
        ),
        picture=(
            "truth   epoch 4 begins at 20, epoch 5 at 31\n"
            "rotten  epoch 4 begins at 20, epoch 5 at 23\n"
            '        "where does epoch 4 end?" 23: eight records too many are cut'
        ),
    ),
    _kind_of_rot(
        "rot-mark", "Flips bits of the file that tells how much was flushed.", "mark",
        hides_rot=True,
        reveals=(
            "The mark says how far the log was flushed, and so whether an invalid end is a torn "
            "tail or rot. A wrong one confuses the two."
        ),
        picture=(
            "log      | 1 | 2 | 3 | 4 | #\n"
            "flushed  truth: up to 4     # is a torn tail, cut off\n"
            "         rotten: up to 5    # would be rot: the node must not start"
        ),
    ),
    _kind_of_rot(
        "rot-identity", "Flips bits of the file that tells whose disk it is.", "identity",
        reveals="A node that does not know whose disk it has could vote in another one's name.",
        picture=(
            "disk of n2   says: node 3\n"
            "n2           votes as n3: one machine, two votes"
        ),
    ),
    _kind_of_rot(
        "rot-state", "Flips bits of the file that holds epoch and vote.", "state", rule="lies",
        reveals=(
            "Epoch and vote have no checksum in their form. A node that reads a wrong one may "
            "vote twice in an epoch; no format can detect it."
        ),
        picture=(
            "written  epoch 6, voted for n1\n"
            "read     epoch 6, voted for nobody      votes for n3, too"
        ),
    ),
    _kind(
        "roll-back", "Puts the whole disk of the target back to what it held at the injection.",
        course=_roll_back, needs=frozenset({"exact-disk", "file-change", "kill"}), rule="lies",
        traits=LATER,
        reveals=(
            "The whole disk is older than what its node has promised, as after a snapshot of a "
            "virtual machine was restored. Raft does not survive it; what is left is to see what "
            "breaks."
        ),
        picture=(
            "10 s  whole disk: log up to 40, epoch 4\n"
            "20 s  log up to 90, epoch 6; 90 is committed with its copy\n"
            "20 s  put back: log up to 40, epoch 4, and nothing says so"
        ),
    ),
)  # fmt: skip
