"""The file system that a node's configuration asks for: the machine's, with or without a table."""

import threading
from pathlib import Path

from splitbrain.nodes.server.machine.configuration import NodeConfiguration
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.durable_lengths import CountingFileSystem, DurableLengths
from splitbrain.nodes.storage.filesystem import FileSystem


def open_filesystem(configuration: NodeConfiguration) -> tuple[FileSystem, DurableLengths | None]:
    """Return the file system for the data folder, and the table of durable lengths, if one is kept.

    The caller closes the table when the last file is closed.

    Raises:
        OSError: the table cannot be opened.
    """
    if configuration.durable_length_file is None:
        return DiskFileSystem(), None
    # The loop appends while the disk's thread syncs.
    lengths = DurableLengths(
        Path(configuration.durable_length_file), Path(configuration.data_folder), threading.Lock()
    )
    return CountingFileSystem(lengths), lengths
