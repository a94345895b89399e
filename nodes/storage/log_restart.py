"""An empty log that starts where a snapshot ends, in the place of a log that the snapshot replaces.

The snapshot is durable before, and recovery does the same again where a crash comes in between: it
finds a snapshot that the log does not reach, or does not agree with. So the durable-length mark,
which would take the lost records for corruption, must go down first. Must never be used where no
snapshot stands for the records.

Source: Kafka's ``KafkaRaftLog.truncateToLatestSnapshot``.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.storage.durable_mark import LogPosition, open_mark
from splitbrain.nodes.storage.epoch_checkpoint import write_epochs
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.layout import DURABLE_LENGTH, EPOCH_CHECKPOINT, segment_name
from splitbrain.nodes.storage.segment import Segment

#: Where the mark says nothing of any record.
NOTHING: Final = LogPosition(0, 0)


def lower_mark(filesystem: FileSystem, log: Path) -> None:
    """Let the mark of a log that is not open say nothing, durably.

    Raises:
        CorruptStorageError: it cannot be read.
        OSError: the disk refused.
    """
    mark = open_mark(filesystem, log / DURABLE_LENGTH)
    try:
        mark.write(NOTHING, 0)
        mark.sync()
    finally:
        mark.close()


def begin_anew(filesystem: FileSystem, log: Path, old: Iterable[Path], offset: Offset) -> Segment:
    """Make an empty segment that starts at ``offset`` and remove the old ones, durably.

    ``old`` in the order of the log. The mark says nothing by now, and keeps to be written. Raises
    OSError: the disk refused.
    """
    path = log / segment_name(offset)
    file = filesystem.open(path, create=True)
    file.truncate(0)
    file.sync()
    filesystem.sync_folder(log)
    for obsolete in reversed(tuple(old)):
        if obsolete != path:
            filesystem.remove(obsolete)
    write_epochs(filesystem, log / EPOCH_CHECKPOINT, ())
    filesystem.sync_folder(log)
    return Segment(offset, file)
