"""Invariants of disks: promises outlive the process, healed disks are equal, snapshots true.

Must never ask more of a disk that a fault has harmed than its formats can detect.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from collections.abc import Sequence
from typing import Any

from splitbrain.nodes.quorum.effects import CutLogStart, ReplaceLog
from splitbrain.nodes.quorum.events import SnapshotFrozen, SnapshotWritten
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT, QUORUM_STATE, SEGMENT_SUFFIX
from splitbrain.nodes.wire.errors import WireError
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.invariants import Invariant
from splitbrain.simulation.kraft.mirrored_log import Entry, MirroredLog, segments_of
from splitbrain.simulation.kraft.wording import state_in_words


class PromisedIsKept(Invariant):
    """A life begins with everything that the node ever said to be on this disk.

    Records that it fetched behind or counted as a leader, unless it truncated them; its epoch and
    its vote. Where flushed bytes have rotted it begins with all of them too, or not at all; what
    lies above the durable mark cannot be told from a torn tail, and may be gone then.
    """

    id = "INV-15"
    needs_promise = False

    def started(self, machine: Machine) -> None:
        if machine.disk_past.was_restored or machine.disk_past.rotted_while_booting:
            return
        self._check_log(machine)
        self._check_state(machine)

    def _check_log(self, machine: Machine) -> None:
        log, node_id = machine.log, machine.host.node_id
        assert log is not None
        end = machine.host.node.replica.log_end_offset
        if end != len(log.entries):
            raise self.violated(
                f"n{node_id} begins with a log that ends at {end}, its disk keeps"
                f" {len(log.entries)} records",
                machine,
            )
        rotted = machine.disk_past.has_rotted(SEGMENT_SUFFIX, EPOCH_CHECKPOINT)
        promised = machine.promised_below_mark if rotted else machine.promised
        if _is_replaced(log, machine.left):
            # As a truncation is: what the snapshot does not stand for must not be committed.
            self._check_dropped(machine, promised)
            promised = min(promised, end)
            machine.promised = min(machine.promised, end)
        first = log.first_offset
        if log.entries[first:promised] != machine.left[first:promised]:
            kept = next(
                offset
                for offset in range(first, promised)
                if offset >= end or log.entries[offset] != machine.left[offset]
            )
            raise self.violated(
                f"n{node_id} begins without what it had at {kept}, and had said to have on disk up"
                f" to {promised}",
                machine,
            )

    def _check_dropped(self, machine: Machine, promised: int) -> None:
        committed, left = self.ghost.committed, machine.left
        end = machine.host.node.replica.log_end_offset
        for offset in range(end, min(promised, len(left), len(committed))):
            if left[offset] == committed[offset]:
                raise self.violated(
                    f"n{machine.host.node_id} begins with a snapshot that ends at {end}, and"
                    f" without the committed record that it had at {offset}",
                    machine,
                )

    def _check_state(self, machine: Machine) -> None:
        if machine.disk_past.has_rotted(QUORUM_STATE):
            return
        said, state = machine.said, machine.quorum_state()
        if (
            state is None
            or state.epoch < said.epoch
            or (state.epoch == said.epoch and said.voted_id not in (None, state.voted_id))
        ):
            raise self.violated(
                f"n{machine.host.node_id} begins with {state_in_words(state)} on disk, and had"
                f" spoken with {state_in_words(said)}",
                machine,
            )


def _is_replaced(log: MirroredLog, left: Sequence[Entry]) -> bool:
    """Whether the log is empty behind a snapshot that the one before it did not go on from.

    The recovery has done it by now: only what the last life left tells such a log from one that
    has lost what it had.
    """
    newest = log.snapshot_id
    if newest is None or not log.first_offset == len(log.entries) == newest.end_offset:
        return False
    end = newest.end_offset
    return len(left) < end or left[end - 1].epoch != newest.epoch


class EqualBytes(Invariant):
    """Healed logs are equal byte for byte as far as all of them know what is committed.

    And have it on their disks: what the others hold durably a leader may commit before it has
    flushed it itself.
    """

    id = "INV-19"

    def finished(self) -> None:
        machines = [self.ghost.machines[node_id] for node_id in self.ghost.healed]
        logs = [
            (machine, _CommittedBytes(machine))
            for machine in machines
            if machine.log is not None and not machine.disk_past.has_rotted(SEGMENT_SUFFIX)
        ]
        if not logs:
            return
        # The one that knows most is compared with all others: no byte known to two is left out.
        most, longest = max(logs, key=lambda log: (log[1].is_whole, log[1].end))
        for machine, log in logs:
            first = max(log.first, longest.first)
            mine, other = log.from_offset(first), longest.from_offset(first)
            both = min(len(mine), len(other))
            if mine[:both] != other[:both]:
                position = next(index for index in range(both) if mine[index] != other[index])
                behind = f" behind offset {first}" if first else ""
                raise self.violated(
                    f"the logs of {machine.host.name} and {most.host.name} differ at byte"
                    f" {position}{behind}",
                    machine,
                )


class _CommittedBytes:
    """The bytes of a log as far as its node knows what is committed, from where it begins."""

    def __init__(self, machine: Machine) -> None:
        assert machine.log is not None
        self._log = machine.log
        self.end = max(machine.high_watermark, 0)
        #: Offset of the first record that is left.
        self.first = self._log.first_batch_offset
        segments = segments_of(machine.host.disk, self._log.folder)
        content = b"".join(bytes_ for base, _, bytes_ in segments if base >= self.first)
        self._content = content[: self._log.position_of(self.end)]
        #: Whether all of that is on the disk.
        self.is_whole = len(self._content) == self._log.position_of(self.end)

    def from_offset(self, offset: int) -> bytes:
        """Those from the batch at this offset on."""
        return self._content[self._log.position_of(offset) :]


class SnapshotsTellTheLog(Invariant):
    """A snapshot that a node relies on is durable, and equal to the committed records below it.

    Equal to what the ledger makes of them, whatever node wrote or sent it; so a log that begins
    above 0 has lost nothing. The node that wrote it is never asked.
    """

    id = "INV-28"
    before_effects = (CutLogStart, ReplaceLog)
    events = (SnapshotWritten, SnapshotFrozen)

    def took(self, machine: Machine, event: Any) -> None:
        if getattr(event, "problem", None) is None:
            self._check(machine, event.snapshot_id, "")

    def before(self, machine: Machine, effect: CutLogStart | ReplaceLog) -> None:
        if isinstance(effect, ReplaceLog):
            self._check(machine, effect.snapshot_id, "replaces its log by ")
            return
        # Records cut off the log are in a newer one, or in this one.
        newest = machine.host.node.replica.newest_snapshot
        assert newest is not None
        self._check(machine, newest, "cuts its log below ")

    def started(self, machine: Machine) -> None:
        newest = machine.host.node.replica.newest_snapshot
        if newest is not None and not machine.disk_past.rotted_while_booting:
            self._check(machine, newest, "begins with ")

    def _check(self, machine: Machine, snapshot_id: SnapshotId, what: str) -> None:
        name = f"n{machine.host.node_id} {what}the snapshot that ends at {snapshot_id.end_offset}"
        try:
            host, snapshots = machine.host, self.ghost.codec.snapshots
            state = snapshots.state_in(host.disk, host.folder, snapshot_id)
        except WireError as error:
            raise self.violated(f"{name}, which is not durable: {error}", machine) from error
        ghost, end = self.ghost, snapshot_id.end_offset
        if end > len(ghost.committed) or ghost.committed[end - 1].epoch != snapshot_id.epoch:
            raise self.violated(
                f"{name} in epoch {snapshot_id.epoch}, where no record of it is committed", machine
            )
        differs = ghost.ledger.difference(state, end)
        if differs is not None:
            raise self.violated(f"{name}, which has {differs}, and the log says otherwise", machine)
