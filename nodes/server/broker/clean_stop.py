"""The epoch of a broker whose life ended as it should, kept for its next life.

The controller may rely on it for what a crash would have lost, so it must never outlive the life
that wrote it: it is taken away, durably, before the next life begins to say anything.

Source: KIP-966; Kafka's clean shutdown file, whose name and content these are.
"""

from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.storage.filesystem import FileSystem, replace_file

CLEAN_STOP_FILE: Final = ".kafka_cleanshutdown"
#: Of a life before that ended otherwise, or never was.
NO_EPOCH: Final = -1
_VERSION: Final = 0


class _Stored(msgspec.Struct, frozen=True, rename="camel"):
    version: int
    broker_epoch: int


class CleanStop:
    """The file in one data folder."""

    def __init__(self, filesystem: FileSystem, folder: Path) -> None:
        """Nothing is read yet."""
        self._filesystem = filesystem
        self._folder = folder
        self._path = folder / CLEAN_STOP_FILE

    def take(self) -> int:
        """Return the epoch of the life before, -1 if it did not end cleanly; it is there no more.

        Raises OSError: the file cannot be read or taken away.
        """
        if not self._filesystem.exists(self._path):
            return NO_EPOCH
        content = self._filesystem.read(self._path)
        self._filesystem.remove(self._path)
        self._filesystem.sync_folder(self._folder)
        try:
            return msgspec.json.decode(content, type=_Stored).broker_epoch
        except (ValueError, RecursionError):
            return NO_EPOCH

    def write(self, broker_epoch: int) -> None:
        """Note that the life ends cleanly. Blocks on the disk; raises OSError."""
        content = msgspec.json.encode(_Stored(_VERSION, broker_epoch))
        replace_file(self._filesystem, self._path, content)
