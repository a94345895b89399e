"""Recovery of a restarted node's log, and how much of it may be cut off.

``scan_log`` reads and judges. The durable-length mark divides the log: an
invalid batch below it was flushed once, so it is corruption, and the node refuses to start; above
it is a torn tail, and the log ends at the first invalid batch, also when valid ones follow, because
sectors reach the disk in any order. Invalid is also what the checksum cannot see: a gap in the
offsets, an epoch that falls, an epoch that is not what the leader-epoch checkpoint says.
Entries of the checkpoint past the log's end are dropped: it is written before the batches are.

A log may start above 0: where the oldest snapshot that can be used ends. Batches of its first
segment that lie below are held to each other, for the checkpoint is cut with the log, and the last
of them to the snapshot that it was cut at. A log that does not reach its newest snapshot, or has
another epoch where that ends, is one that the snapshot was about to replace: ``repair_log`` does
it. Without such a snapshot it is corrupt.

``repair_log`` then cuts the tail and makes all that stays durable. It writes the kept bytes above
the mark again first: if an fsync failed in an earlier life, the kernel may believe pages clean
that never reached the disk, and a bare fsync would confirm them.

Nothing below the mark is ever cut. Rot in the last flush group, which the mark may not know of yet,
cannot be told from a torn tail.
"""

from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.leader_epochs import starts_from
from splitbrain.nodes.quorum.persistent import EpochStart, SnapshotId
from splitbrain.nodes.storage.durable_mark import DurableMark, LogPosition, read_mark
from splitbrain.nodes.storage.epoch_checkpoint import read_epochs, write_epochs
from splitbrain.nodes.storage.errors import CorruptStorageError, NotFormattedError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.layout import (
    DURABLE_LENGTH,
    EPOCH_CHECKPOINT,
    log_folder,
    segment_base_offset,
)
from splitbrain.nodes.storage.log_restart import begin_anew, lower_mark
from splitbrain.nodes.storage.log_scanner import Damage, LogScanner
from splitbrain.nodes.storage.segment import Segment
from splitbrain.nodes.storage.snapshots import (
    Load,
    check_whole,
    find_snapshots,
    list_snapshots,
    remove_snapshots,
)

_REWRITE_BYTES: Final = 1024 * 1024


class LogScan(msgspec.Struct, frozen=True):
    """Content of the files."""

    #: Open, in order, with every intact batch noted; damaged ones end before the damage.
    segments: tuple[Segment, ...]
    #: Files that lie behind the damage, in order.
    lost: tuple[Path, ...]
    start_offset: Offset
    end_offset: Offset
    #: As derived from the intact batches from the start on.
    epochs: tuple[EpochStart, ...]
    #: As in the checkpoint.
    checkpoint: tuple[EpochStart, ...]
    mark: DurableMark
    #: None: every byte is intact. Else a torn tail (what lies below the mark is raised).
    damage: Damage | None
    #: Those that can be used, oldest first.
    snapshots: tuple[SnapshotId, ...]
    #: One sentence for each newer snapshot that cannot be.
    problems: tuple[str, ...]
    #: The newest snapshot, where it must take the place of the whole log.
    replaced_by: SnapshotId | None

    @property
    def start_epoch(self) -> Epoch:
        """Epoch of the record before the start; NO_EPOCH where there is none."""
        return self.snapshots[0].epoch if self.snapshots and self.start_offset > 0 else NO_EPOCH

    def close(self) -> None:
        """Close all files."""
        for segment in self.segments:
            segment.close()


def scan_log(
    filesystem: FileSystem, folder: Path, *, foreign: bool = False, load: Load = check_whole
) -> LogScan:
    """Read the whole log of a data folder and judge it; changes nothing.

    ``foreign``: the folder may be Kafka's own, without a durable-length mark. ``load`` as for
    ``find_snapshots``.

    Raises:
        NotFormattedError: there is no log folder.
        CorruptStorageError: what was flushed is not intact.
        OSError: the disk refused.
    """
    log = log_folder(folder)
    if not filesystem.exists(log):
        raise NotFormattedError(folder, f"has no {log.name}")
    mark = DurableMark(0, LogPosition(0, 0), 0)
    if not foreign or filesystem.exists(log / DURABLE_LENGTH):
        mark = read_mark(filesystem, log / DURABLE_LENGTH)
    checkpoint = read_epochs(filesystem, log / EPOCH_CHECKPOINT)
    names = _segment_names(filesystem, log)
    if not names:
        raise CorruptStorageError(log, "it has no segment file")
    base = Offset(names[0][0])
    found = find_snapshots(filesystem, folder, load)
    newest = found.newest
    if base > 0 and not foreign and (newest is None or newest.end_offset < base):
        problem = (
            f"its first segment starts at {base}, and no snapshot that can be used ends there or"
            " later"
        )
        raise CorruptStorageError(log, problem, offset=base)
    known = list_snapshots(filesystem, folder)
    # The checkpoint was cut where the log was: below its first entry nothing can be told.
    floor = max(base, checkpoint[0].start_offset if checkpoint else 0)
    usable = [each for each in known if newest and floor <= each.end_offset and each <= newest]
    snapshots = tuple(usable or ([newest] if newest else []))
    start = snapshots[0].end_offset if snapshots else base
    # Where the log was cut at the newest snapshot, it agreed with it then.
    is_cut = checkpoint and snapshots and checkpoint[0].start_offset == snapshots[-1].end_offset
    cut_at = snapshots[-1] if is_cut else None
    scanner = LogScanner(filesystem, starts_from(checkpoint, start), base, start, cut_at)
    lost: list[Path] = []
    try:
        for base_offset, path in names:
            if scanner.damage is not None or not scanner.scan_segment(Offset(base_offset), path):
                lost.append(path)
        _hold_to_mark(scanner, mark)
        replaced_by = newest if newest and not scanner.agrees_with(newest) else None
    except BaseException:
        scanner.close()
        raise
    return LogScan(
        segments=tuple(scanner.segments),
        lost=tuple(lost),
        start_offset=start,
        end_offset=scanner.end_offset,
        epochs=tuple(scanner.epochs),
        checkpoint=checkpoint,
        mark=mark,
        damage=scanner.damage,
        snapshots=snapshots,
        problems=found.problems,
        replaced_by=replaced_by,
    )


def repair_log(filesystem: FileSystem, folder: Path, scan: LogScan) -> LogScan:
    """Cut the torn tail off and make what stays durable, checkpoint included; not the mark.

    Also ends what a crash interrupted: the replacement of the log by a snapshot, the removal of
    what lies below its start. Returns the scan as it would be now. Raises OSError: the disk
    refused.
    """
    log = log_folder(folder)
    if scan.replaced_by is not None:
        return _replace(filesystem, folder, scan, scan.replaced_by)
    # Newest first: whatever a crash leaves has its gap, if any, at the torn place.
    for path in reversed(scan.lost):
        filesystem.remove(path)
    for name in filesystem.list(log):
        if name.endswith(".tmp"):
            filesystem.remove(log / name)
    for segment in scan.segments:
        if segment.base_offset < scan.mark.position.segment:
            continue
        start = 0
        if segment.base_offset == scan.mark.position.segment:
            start = scan.mark.position.byte
        if segment.file.size() > segment.size_bytes:
            segment.file.truncate(segment.size_bytes)
        _rewrite(segment, start)
        segment.file.sync()
    filesystem.sync_folder(log)
    if scan.epochs != scan.checkpoint:
        write_epochs(filesystem, log / EPOCH_CHECKPOINT, scan.epochs)
    return _without_beginning(filesystem, folder, scan)


def _without_beginning(filesystem: FileSystem, folder: Path, scan: LogScan) -> LogScan:
    """Remove what a crash has left below the log's start."""
    if scan.snapshots:
        remove_snapshots(filesystem, folder, scan.snapshots[0])
    below = [each for each in scan.segments[:-1] if each.end_offset <= scan.start_offset]
    for segment in below:
        segment.close()
        filesystem.remove(segment.path)
    if below:
        filesystem.sync_folder(log_folder(folder))
    return msgspec.structs.replace(scan, segments=scan.segments[len(below) :])


def _replace(
    filesystem: FileSystem, folder: Path, scan: LogScan, snapshot_id: SnapshotId
) -> LogScan:
    log = log_folder(folder)
    lower_mark(filesystem, log)
    scan.close()
    old = [*(segment.path for segment in scan.segments), *scan.lost]
    segment = begin_anew(filesystem, log, old, snapshot_id.end_offset)
    remove_snapshots(filesystem, folder, snapshot_id)
    return msgspec.structs.replace(
        scan,
        segments=(segment,),
        lost=(),
        start_offset=snapshot_id.end_offset,
        end_offset=snapshot_id.end_offset,
        epochs=(),
        checkpoint=(),
        damage=None,
        snapshots=(snapshot_id,),
        replaced_by=None,
    )


def _segment_names(filesystem: FileSystem, log: Path) -> list[tuple[int, Path]]:
    return sorted(
        (base_offset, log / name)
        for name in filesystem.list(log)
        if (base_offset := segment_base_offset(name)) is not None
    )


def _hold_to_mark(scanner: LogScanner, mark: DurableMark) -> None:
    """Raise CorruptStorageError if the log falls short of what was flushed."""
    damage = scanner.damage
    end = scanner.end_position
    if end >= mark.position and scanner.end_offset >= mark.end_offset:
        return
    if damage is not None:
        raise CorruptStorageError(
            damage.path,
            f"{damage.problem}, although everything below offset {mark.end_offset} was flushed",
            offset=damage.offset,
            position=damage.position,
        )
    raise CorruptStorageError(
        scanner.last_path,
        f"the log ends here, although everything below offset {mark.end_offset} was flushed",
        offset=scanner.end_offset,
        position=end.byte,
    )


def _rewrite(segment: Segment, start: int) -> None:
    position = start
    while position < segment.size_bytes:
        size_bytes = min(_REWRITE_BYTES, segment.size_bytes - position)
        segment.file.write_at(position, segment.file.read_at(position, size_bytes))
        position += size_bytes
