"""Faults of disks in the simulated world.

A node that meets a failing disk ends by itself, as it should; the heal of the fault starts it
again. Where a disk forgets what it had flushed (``wipe``, ``rot-log``) the driver asks first
whether the cluster can bear it, and so for rot in what tells rot from a torn tail
(``rot-checkpoint``, ``rot-mark``); ``rot-identity`` is as good as a lost disk. ``roll-back`` is a
lie that nobody can bear, and so is ``rot-state``: the file of the vote is Kafka's, and has no
checksum. Source: design, section 9.
"""

from collections.abc import Callable
from typing import Final

from contracts.names import NodeName
from contracts.simulation import SimulatedDisk
from harness.simulation.fault_blow import Act, Blow, Struck, named, spread
from nemesis.targets import FOLLOWER, LEADER, random_target

#: A slow disk takes 2 to 1,023 times as long.
_SLOW_DOUBLINGS: Final = 9
_SLOW_FACTOR: Final = 2
#: Room that a full disk still has, at most.
_SPARE_BYTES: Final = 4_096


def _healing_disk(blow: Blow, undo: Callable[[SimulatedDisk], str]) -> Callable[[], str]:
    """Undo a fault of the disks and start the nodes that ended at it."""

    def heal() -> str:
        words: list[str] = []
        for node in blow.nodes:
            said = undo(blow.reach.disk(node))
            why = None if blow.reach.cluster.is_up(node) else blow.reach.cluster.ended(node)
            blow.reach.revive(node)
            words.append(
                f"{node}: {said}" + ("" if why is None else f"; it had ended: {why}; started again")
            )
        return "; ".join(words)

    return heal


def _slow_disk(blow: Blow) -> Struck:
    factor = blow.chosen("factor", spread(blow.draws, _SLOW_FACTOR, _SLOW_DOUBLINGS))
    evidence = "; ".join(f"{node}: {blow.reach.slow_disk(node, factor)}" for node in blow.nodes)

    def heal() -> str:
        for node in blow.nodes:
            blow.reach.hasten_disk(node, factor)
        return f"the disk of {named(blow.nodes)} is as fast as before"

    return Struck(evidence, heal)


def _fsync_fails(blow: Blow) -> Struck:
    count = blow.chosen("count", 1)
    evidence = "; ".join(f"{node}: {blow.reach.disk(node).fail_sync(count)}" for node in blow.nodes)
    return Struck(evidence, _healing_disk(blow, lambda disk: disk.fail_sync(0)))


def _disk_full(blow: Blow) -> Struck:
    spare = blow.chosen("spare_bytes", blow.draws.below(_SPARE_BYTES))
    evidence = "; ".join(f"{node}: {blow.reach.disk(node).fill(spare)}" for node in blow.nodes)
    return Struck(evidence, _healing_disk(blow, lambda disk: disk.fill(-1)))


def _read_errors(blow: Blow) -> Struck:
    evidence = "; ".join(
        f"{node}: {blow.reach.disk(node).fail_reads(on=True)}" for node in blow.nodes
    )
    return Struck(evidence, _healing_disk(blow, lambda disk: disk.fail_reads(on=False)))


def _calls_fail(action: str) -> Callable[[Blow], Struck]:
    """Let the next call of one kind fail, or all of them until the fault is healed.

    By draw the node is restarted into it: what a start does happens seldom otherwise.
    """

    def strike(blow: Blow) -> Struck:
        count = None if blow.chosen("lasting", blow.draws.below(2)) else blow.chosen("count", 1)
        is_restart = bool(blow.chosen("restart", blow.draws.below(2)))
        evidence = "; ".join(
            f"{node}: {blow.reach.disk(node).fail_calls(action, count)}" for node in blow.nodes
        )
        if is_restart:
            for node in blow.nodes:
                blow.reach.end(node)
                # In a turn of its own: the one under way may be the node's, and ends with it.
                blow.reach.world.after(0, lambda node=node: blow.reach.revive(node))
            evidence += "; restarted"
        return Struck(evidence, _healing_disk(blow, lambda disk: disk.fail_calls(action, 0)))

    return strike


def _rot(what: str, *, restarts: bool = False) -> Callable[[Blow], Struck]:
    """Flip bits under a running node or, by draw, while it is down: then its start meets them.

    ``restarts``: only while it is down, for what a running node may be about to rely on.
    """

    def strike(blow: Blow) -> Struck:
        is_restart = bool(blow.chosen("restart", blow.draws.below(4))) or restarts
        words: list[str] = []
        for node in blow.nodes:
            if is_restart:
                blow.reach.kill(node)
            rotten = blow.reach.disk(node).rot(blow.draws.below(1 << 31), what)
            words.append(f"{node}: {rotten or 'nothing flushed that could rot'}")
            if rotten is not None:
                blow.reach.forgot[node] = "rotten"

        def heal() -> str:
            # Rot does not heal; what was stopped for it runs again, or refuses to.
            for node in blow.nodes:
                if is_restart:
                    blow.reach.start(node)
            return f"{named(blow.nodes)} left with its rot"

        return Struck("; ".join(words), heal)

    return strike


def _wipe(blow: Blow) -> Struck:
    words: list[str] = []
    for node in blow.nodes:
        blow.reach.kill(node)
        words.append(f"{node}: {blow.reach.disk(node).wipe()}")
        blow.reach.forgot[node] = "wiped"

    def heal() -> str:
        for node in blow.nodes:
            blow.reach.start(node)
        return f"{named(blow.nodes)} started without a past"

    return Struck("; ".join(words), heal)


def _roll_back(blow: Blow) -> Struck:
    """Note what the disk holds, and put it back to that when healed."""
    for node in blow.nodes:
        blow.reach.disk(node).remember()

    def roll_back(node: NodeName) -> str:
        blow.reach.kill(node)
        rolled = blow.reach.disk(node).roll_back()
        blow.reach.start(node)
        return f"{node}: {rolled or 'there was nothing to put back'}"

    return Struck(
        f"the disk of {named(blow.nodes)} will be put back to what it holds now",
        lambda: "; ".join(roll_back(node) for node in blow.nodes),
    )


_ONE = (LEADER, FOLLOWER, random_target(1))

DISK_ACTS: Final = (
    Act("slow-disk", _slow_disk, needs_up=False, targets=_ONE),
    Act("fsync-fails", _fsync_fails, targets=_ONE, is_exclusive=True),
    Act("disk-full", _disk_full, targets=_ONE, is_exclusive=True),
    Act("read-errors", _read_errors, targets=_ONE, is_exclusive=True),
    Act("write-fails", _calls_fail("write"), targets=_ONE, is_exclusive=True),
    Act("rename-fails", _calls_fail("rename"), targets=_ONE, is_exclusive=True),
    Act("rot-log", _rot("log"), rule="forgets", needs_up=False, targets=_ONE),
    # The entry of an epoch comes before its first batch, which may be flushed and not yet marked.
    Act(
        "rot-checkpoint",
        _rot("checkpoint", restarts=True),
        rule="forgets",
        needs_up=False,
        targets=_ONE,
    ),
    Act(
        "rot-mark",
        _rot("mark"),
        rule="forgets",
        needs_up=False,
        needs_sound=True,
        targets=_ONE,
    ),
    Act("rot-identity", _rot("identity"), rule="forgets", needs_up=False, targets=_ONE),
    Act("rot-state", _rot("state"), rule="lies", needs_up=False, targets=_ONE),
    Act("wipe", _wipe, rule="forgets", needs_up=False, targets=_ONE),
    Act("roll-back", _roll_back, rule="lies", targets=_ONE),
)
