"""Copies of what logs held below their starts, for the dumps that checkers read.

As an operator makes them who saves segments before a snapshot lets them go: from the durable bytes
of a machine's own disk. A record that it never had, because a leader sent it a snapshot, stands in
another's log or copies: a snapshot names its last record, and two logs that have the same epoch at
the same offset have the same records below. That the snapshot tells what they make is INV-28's.

Must never take what the oracle knows to be committed, nor bytes of a file that has rotted: below a
log's start nothing tells a wrong epoch from a right one.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.layout import log_folder
from splitbrain.nodes.storage.reading import LoggedRecord, records_in
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.disk_past import DiskPast
from splitbrain.simulation.kraft.mirrored_log import segments_of


class Copies:
    """Those of one machine's disk, from offset 0 on without a gap."""

    def __init__(self, disk: MemoryFileSystem, folder: Path, past: DiskPast) -> None:
        """None yet, of the log in this data folder; ``past`` is the disk's."""
        self._disk = disk
        self._folder = log_folder(folder)
        self._past = past
        self._records: list[LoggedRecord] = []

    def take(self, snapshot_id: SnapshotId, others: Iterable["Copies"] = ()) -> None:
        """Copy what the snapshot stands for, where this or another machine's log goes on from it.

        Of others it is taken at once: their logs lose it too, and then no one of them has all.
        """
        records = all_below(snapshot_id, (self, *others))
        if records is not None and len(records) > len(self._records):
            self._records = list(records)

    def forget(self) -> None:
        """Note that the disk was wiped."""
        self._records.clear()

    def below(self, snapshot_id: SnapshotId) -> Sequence[LoggedRecord] | None:
        """All that the snapshot stands for, from copies and log; None if they lack any of it."""
        end = snapshot_id.end_offset
        records = self._records[:end]
        if len(records) < end:
            records += self._in_log(len(records), end)
        is_whole = len(records) == end and (not end or records[-1].epoch == snapshot_id.epoch)
        return records if is_whole else None

    def _in_log(self, first: int, end: int) -> Iterable[LoggedRecord]:
        expected = first
        segments = segments_of(self._disk, self._folder)
        for place, (base_offset, path, content) in enumerate(segments):
            following = segments[place + 1][0] if place + 1 < len(segments) else end
            if following <= first:
                continue
            if base_offset >= end or self._past.has_rotted(path.name):
                return
            for record in records_in(content, first):
                if record.offset != expected or record.offset >= end:
                    return
                yield record
                expected += 1


def all_below(snapshot_id: SnapshotId, sources: Iterable[Copies]) -> Sequence[LoggedRecord] | None:
    """Return the snapshot's records, from the first of the sources that has all of them."""
    for copies in sources:
        records = copies.below(snapshot_id)
        if records is not None:
            return records
    return None
