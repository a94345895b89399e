"""What must hold of snapshots: each is whole and durable when its node relies on it, and true.

True is what the ledger makes of the committed records below its end, whatever node wrote or sent
it; so a log that begins above 0 has lost nothing. Must never ask the node that wrote it.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from typing import Any

from splitbrain.nodes.quorum.effects import CutLogStart, ReplaceLog
from splitbrain.nodes.quorum.events import SnapshotFrozen, SnapshotWritten
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.errors import WireError
from splitbrain.simulation.kraft.disk_snapshots import state_in
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.invariants import Invariant


class SnapshotsTellTheLog(Invariant):
    """A snapshot that a node relies on is durable, and equal to the committed records below it."""

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
        # What the log loses is in a newer one, or in this one.
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
            state = state_in(
                machine.host.disk,
                machine.host.folder,
                snapshot_id,
                self.ghost.ledger.make_machine,
            )
        except WireError as error:
            raise self.violated(f"{name}, which is not durable: {error}", machine) from error
        ghost, end = self.ghost, snapshot_id.end_offset
        if end > len(ghost.committed) or ghost.committed[end - 1].epoch != snapshot_id.epoch:
            raise self.violated(
                f"{name} in epoch {snapshot_id.epoch}, where no record of it is committed", machine
            )
        differs = ghost.ledger.difference(state, end)
        if differs is not None:
            raise self.violated(f"{name}, which tells of {differs} what the log does not", machine)
