"""Formats a node's data folder, once, and says when it may be done unasked.

A voter that forgets what it flushed is what Raft does not survive. So a node that has lived before
(its state events say so) and finds its folder empty is formatted with a fresh directory id: it
comes back as an observer that the voter set does not count. Must never touch a folder that holds
anything of a node that lived; what a crash in the midst of formatting left behind is nothing.
"""

import secrets
from pathlib import Path

from nodes.quorum.identifiers import DirectoryId, NodeId
from nodes.server.configuration import NodeConfiguration
from nodes.server.filesystems import open_filesystem
from nodes.storage.errors import AlreadyFormattedError
from nodes.storage.identity import StorageIdentity, format_storage
from nodes.storage.layout import LOG_FOLDER, META_PROPERTIES, VOTERS

#: What a fresh file system has in its root, and an empty folder may have.
_HARMLESS_NAMES = frozenset({"lost+found"})
#: What formatting makes before ``meta.properties``, which makes a folder a node's.
_UNFINISHED_NAMES = frozenset({LOG_FOLDER, VOTERS, f"{VOTERS}.tmp", f"{META_PROPERTIES}.tmp"})


def format_node(configuration: NodeConfiguration) -> DirectoryId:
    """Format the configured data folder; the directory id that it was given.

    It is the configured one for a node that has never lived, a fresh one else.

    Raises:
        AlreadyFormattedError: it is formatted.
        OSError: it cannot be written.
    """
    folder = Path(configuration.data_folder)
    folder.mkdir(parents=True, exist_ok=True)
    directory_id = DirectoryId(configuration.directory_id)
    if has_lived(configuration):
        directory_id = DirectoryId(secrets.token_hex(16))
    filesystem, lengths = open_filesystem(configuration)
    try:
        format_storage(
            filesystem,
            folder,
            StorageIdentity(
                cluster_id=configuration.cluster_id,
                node_id=NodeId(configuration.node_id),
                directory_id=directory_id,
                voters=configuration.voters,
            ),
        )
    finally:
        if lengths is not None:
            lengths.close()
    return directory_id


def format_if_empty(configuration: NodeConfiguration) -> DirectoryId | None:
    """Format the data folder if it holds nothing of a node; the directory id given, else None.

    Raises:
        OSError: it cannot be read or written.
    """
    folder = Path(configuration.data_folder)
    names = {path.name for path in folder.iterdir()} if folder.exists() else set[str]()
    if names - _HARMLESS_NAMES - _UNFINISHED_NAMES:
        return None
    try:
        return format_node(configuration)
    except AlreadyFormattedError:  # no identity, but a log or a vote
        return None


def has_lived(configuration: NodeConfiguration) -> bool:
    """Whether an earlier life of this node has left state events."""
    if configuration.state_event_file is None:
        return False
    path = Path(configuration.state_event_file)
    return path.exists() and path.stat().st_size > 0
