"""Formats or adopts the data folder that a node's configuration names, on the machine's disk.

The steps and their order are in ``server.start.formatting`` and ``nodes.storage.identity``; this
says with what.
"""

import secrets
import threading
from pathlib import Path

from splitbrain.nodes.quorum.identifiers import DirectoryId, NodeId
from splitbrain.nodes.server.machine.configuration import ConfigurationError, NodeConfiguration
from splitbrain.nodes.server.start.formatting import format_node, holds_node
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.durable_lengths import CountingFileSystem, DurableLengths
from splitbrain.nodes.storage.errors import AlreadyFormattedError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, adopt_storage


def open_filesystem(configuration: NodeConfiguration) -> tuple[FileSystem, DurableLengths | None]:
    """Return the file system for the data folder, and the table of durable lengths, if one is kept.

    The caller closes the table when the last file is closed. Raises OSError.
    """
    if configuration.durable_length_file is None:
        return DiskFileSystem(), None
    # The loop appends while the disk's thread syncs.
    lengths = DurableLengths(
        Path(configuration.durable_length_file), Path(configuration.data_folder), threading.Lock()
    )
    return CountingFileSystem(lengths), lengths


def format_data_folder(configuration: NodeConfiguration) -> DirectoryId:
    """Format the configured data folder; the directory id that it was given.

    It is the configured one for a node that has never lived, a fresh one else.

    Raises:
        AlreadyFormattedError: it is formatted.
        OSError: it cannot be written.
    """
    filesystem, lengths = open_filesystem(configuration)
    try:
        return format_node(
            filesystem,
            Path(configuration.data_folder),
            StorageIdentity(
                cluster_id=configuration.cluster_id,
                node_id=NodeId(configuration.node_id),
                directory_id=DirectoryId(configuration.directory_id),
                voters=configuration.voters,
            ),
            has_lived=has_lived(configuration),
            token_hex=secrets.token_hex,
        )
    finally:
        if lengths is not None:
            lengths.close()


def format_data_folder_if_empty(configuration: NodeConfiguration) -> DirectoryId | None:
    """Format the folder if it holds nothing of a node; the directory id, else None."""
    # Looked at before the table of durable lengths is touched.
    if holds_node(DiskFileSystem(), Path(configuration.data_folder)):
        return None
    try:
        return format_data_folder(configuration)
    except AlreadyFormattedError:  # no identity, but a log or a vote
        return None


def adopt_data_folder(configuration: NodeConfiguration) -> DirectoryId:
    """Make the configured data folder, of a stopped controller of Kafka, ours; its directory id.

    Raises:
        ConfigurationError: the node is not to be a controller.
        StorageError: the folder cannot be adopted.
        OSError: it cannot be read or written.
    """
    if configuration.state_machine != "metadata" or configuration.is_broker:
        raise ConfigurationError(
            f"node {configuration.node_id} is no controller, and only a controller lives on in a "
            'folder of Kafka\'s; give it the state machine "metadata" and name it among the voters.'
        )
    filesystem, lengths = open_filesystem(configuration)
    try:
        return adopt_storage(
            filesystem,
            Path(configuration.data_folder),
            configuration.voters,
            cluster_id=configuration.cluster_id,
            node_id=NodeId(configuration.node_id),
        ).directory_id
    finally:
        if lengths is not None:
            lengths.close()


def has_lived(configuration: NodeConfiguration) -> bool:
    """Whether an earlier life of this node has left state events."""
    if configuration.state_event_file is None:
        return False
    path = Path(configuration.state_event_file)
    return path.exists() and path.stat().st_size > 0
