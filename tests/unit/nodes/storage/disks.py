"""A disk in memory with the data folder of a node on it."""

from pathlib import Path

from splitbrain.nodes.storage.errors import StorageInUseError
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import SEGMENT_BYTES, LogStore
from splitbrain.simulation.disk.file_system import MemoryFileSystem


class Disk(MemoryFileSystem):
    """A disk whose data folder is formatted."""

    def __init__(self, identity: StorageIdentity) -> None:
        super().__init__(in_use=StorageInUseError)
        self.folder = Path("/node/data")
        format_storage(self, self.folder, identity)

    def open_log(self, segment_bytes: int = SEGMENT_BYTES) -> LogStore:
        return LogStore.open(self, self.folder, segment_bytes=segment_bytes)[0]

    def reopened_end(self) -> int:
        """Recover the log and close it again; where it ends."""
        log = self.open_log()
        assert log._flusher.flushed.end_offset == log.end_offset
        log.close()
        return log.end_offset

    def overwrite(self, path: Path, content: bytes) -> None:
        """Give a file this content; not durable yet."""
        file = self.open(path, create=True)
        file.truncate(0)
        file.write_at(0, content)
