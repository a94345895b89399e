"""Owner of a data folder: Kafka's ``meta.properties``, and the voter set in a file of ours.

Formatting fixes both; starting checks them. A folder of another cluster or node is refused, and so
is a missing one: a node that came up on an empty folder would have forgotten its votes. Wiping a
folder means a new directory id, by which the voter set no longer counts the node.

Kafka's file has no checksum, so ours carries one over both: a bit that rots in a directory id makes
another voter set, or another voter, and must not pass for one. Version 1 of ours had none.

Source: Kafka's MetaProperties (version 1) and ControlRecordType; KIP-858 (directory ids), KIP-853
(voters).
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import crc32c
import msgspec

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.storage.directory_ids import from_kafka_text, to_kafka_text
from splitbrain.nodes.storage.durable_mark import DurableMark, LogPosition, write_new_mark
from splitbrain.nodes.storage.epoch_checkpoint import write_epochs
from splitbrain.nodes.storage.errors import (
    AlreadyFormattedError,
    CorruptStorageError,
    DynamicVotersError,
    ForeignStorageError,
    NotFormattedError,
)
from splitbrain.nodes.storage.filesystem import FileSystem, replace_file
from splitbrain.nodes.storage.layout import (
    DURABLE_LENGTH,
    EPOCH_CHECKPOINT,
    LOCK,
    META_PROPERTIES,
    QUORUM_STATE,
    VOTERS,
    log_folder,
    segment_base_offset,
    segment_name,
)
from splitbrain.nodes.storage.recovery import LogScan, scan_log
from splitbrain.nodes.storage.segment import decoded_batches
from splitbrain.nodes.storage.snapshots import read_snapshot
from splitbrain.nodes.wire.batches import RecordBatch
from splitbrain.nodes.wire.control import VOTERS_TYPE, control_type

_VERSION: Final = "1"
#: Of the voter set's file; the first without a checksum, and the present one.
_VOTERS_VERSION_BARE: Final = 1
_VOTERS_VERSION: Final = 2
#: Of a log of which nothing was flushed.
_NO_MARK: Final = DurableMark(sequence=0, position=LogPosition(0, 0), end_offset=0)


class StorageIdentity(msgspec.Struct, frozen=True):
    """Identity that formatting wrote once and for all."""

    cluster_id: str
    node_id: NodeId
    #: Of this folder; new whenever a folder is formatted.
    directory_id: DirectoryId
    #: Empty for a node that finds its voters elsewhere.
    voters: tuple[Voter, ...]


class _StoredVoter(msgspec.Struct, frozen=True, rename="camel"):
    node_id: int
    directory_id: str
    host: str
    port: int


class _StoredVoters(msgspec.Struct, frozen=True, rename="camel"):
    version: int
    voters: list[_StoredVoter]
    #: Of what both files say; version 1 has none.
    checksum: int | None = None


def format_storage(filesystem: FileSystem, folder: Path, identity: StorageIdentity) -> None:
    """Make a data folder for a node that has never lived: identity, empty log, no vote.

    ``meta.properties`` comes last: a folder with one is wholly formatted, whenever a crash came.

    Raises:
        AlreadyFormattedError: the folder is formatted.
        ValueError: an id cannot be written down.
        OSError: the disk refused.
    """
    if filesystem.exists(folder / META_PROPERTIES) or _holds_log(filesystem, folder):
        raise AlreadyFormattedError(folder)
    properties = _properties_text(identity)
    voters = _voters_text(identity)
    log = log_folder(folder)
    filesystem.make_folder(log)
    segment = filesystem.open(log / segment_name(0), create=True)
    segment.truncate(0)
    segment.sync()
    segment.close()
    write_epochs(filesystem, log / EPOCH_CHECKPOINT, ())
    write_new_mark(filesystem, log / DURABLE_LENGTH, _NO_MARK)
    filesystem.sync_folder(log)
    replace_file(filesystem, folder / VOTERS, voters)
    replace_file(filesystem, folder / META_PROPERTIES, properties)
    filesystem.sync_folder(folder.parent)


def adopt_storage(
    filesystem: FileSystem,
    folder: Path,
    voters: tuple[Voter, ...],
    *,
    cluster_id: str | None = None,
    node_id: NodeId | None = None,
) -> StorageIdentity:
    """Make the data folder of a stopped controller of Kafka one of a node of ours.

    Facts kept elsewhere by Kafka are added: the voters, and a durable-length mark vouching for
    nothing, since nobody knows what was flushed. The voters come last: a folder with them is
    wholly adopted, whenever a crash came. Kafka itself passes over what was added. A folder that is
    refused is left as it was, but for its lock file and, once its log was looked at, the mark.

    ``voters``: whom the node shall take for its quorum; ``cluster_id`` and ``node_id``: whose the
    folder must be, None for anybody's.

    Raises:
        AlreadyFormattedError: it is one already.
        NotFormattedError: it is nobody's, or has no log.
        ForeignStorageError: it belongs to another cluster or node, or the voters name another
            folder of this node.
        StorageInUseError: its controller runs.
        DynamicVotersError: its log names the voters.
        CorruptStorageError: a file of it cannot be read.
        OSError: the disk refused.
    """
    properties = _properties_of(filesystem, folder, cluster_id, node_id)
    if filesystem.exists(folder / VOTERS):
        raise AlreadyFormattedError(folder)
    identity = _identity(properties, folder / META_PROPERTIES, voters)
    _check_own_voter(identity, folder / META_PROPERTIES)
    log = log_folder(folder)
    if not filesystem.exists(log):
        raise NotFormattedError(folder, f"has no {log.name}")
    lock = filesystem.lock(folder / LOCK)
    try:
        write_new_mark(filesystem, log / DURABLE_LENGTH, _NO_MARK)
        filesystem.sync_folder(log)
        with closing(scan_log(filesystem, folder)) as scan:
            if _names_voters(_batches(filesystem, folder, scan)):
                raise DynamicVotersError(folder)
        replace_file(filesystem, folder / VOTERS, _voters_text(identity))
    finally:
        lock.release()
    return identity


def load_identity(
    filesystem: FileSystem,
    folder: Path,
    *,
    cluster_id: str | None = None,
    node_id: NodeId | None = None,
) -> StorageIdentity:
    """Read a folder's identity and hold it against the one that is wanted (None: any).

    Raises:
        NotFormattedError: the folder is missing, empty or half formatted.
        ForeignStorageError: it belongs to another cluster or node.
        CorruptStorageError: a file of it cannot be read.
    """
    path = folder / META_PROPERTIES
    properties = _properties_of(filesystem, folder, cluster_id, node_id)
    stored = _read_voters(filesystem, folder / VOTERS)
    voters = tuple(_voter_of(voter) for voter in stored.voters)
    identity = _identity(properties, path, voters)
    try:
        is_whole = stored.version == _VOTERS_VERSION_BARE or stored.checksum == _checksum(identity)
    except ValueError as error:
        raise CorruptStorageError(path, str(error)) from error
    if not is_whole:
        problem = f"its checksum does not fit what it and {META_PROPERTIES} say"
        raise CorruptStorageError(folder / VOTERS, problem)
    return identity


def _properties_of(
    filesystem: FileSystem, folder: Path, cluster_id: str | None, node_id: NodeId | None
) -> dict[str, str]:
    """Read Kafka's file, of this cluster and node (None: of any)."""
    path = folder / META_PROPERTIES
    if not filesystem.exists(folder):
        raise NotFormattedError(folder, "does not exist")
    if not filesystem.exists(path):
        raise NotFormattedError(folder, f"has no {META_PROPERTIES}")
    properties = _read_properties(filesystem, path)
    found_cluster = properties["cluster.id"]
    found_node = properties["node.id"]
    if cluster_id is not None and found_cluster != cluster_id:
        raise ForeignStorageError(path, "cluster", found_cluster, cluster_id)
    if node_id is not None and found_node != str(node_id):
        raise ForeignStorageError(path, "node", found_node, str(node_id))
    return properties


def _check_own_voter(identity: StorageIdentity, path: Path) -> None:
    """Whether the voters that name a folder of this node name this one."""
    found = identity.directory_id
    for voter in identity.voters:
        if voter.node_id == identity.node_id and voter.directory_id not in (NO_DIRECTORY, found):
            wanted = to_kafka_text(voter.directory_id)
            raise ForeignStorageError(path, "directory", to_kafka_text(found), wanted)


def _identity(properties: dict[str, str], path: Path, voters: tuple[Voter, ...]) -> StorageIdentity:
    try:
        return StorageIdentity(
            cluster_id=properties["cluster.id"],
            node_id=NodeId(int(properties["node.id"])),
            directory_id=from_kafka_text(properties["directory.id"]),
            voters=voters,
        )
    except ValueError as error:
        raise CorruptStorageError(path, str(error)) from error


def _names_voters(batches: Iterator[RecordBatch]) -> bool:
    """Whether a log says itself who its voters are, as Kafka's does from ``kraft.version`` 1 on.

    Nodes of ours have static voters and pass such records over: on such a log two of them could
    take two sets of voters for the quorum's.
    """
    return any(
        control_type(record) == VOTERS_TYPE
        for batch in batches
        if batch.is_control
        for record in batch.records
    )


def _batches(filesystem: FileSystem, folder: Path, scan: LogScan) -> Iterator[RecordBatch]:
    for segment in scan.segments:
        yield from decoded_batches(segment)
    for snapshot_id in scan.snapshots:
        yield from read_snapshot(filesystem, folder, snapshot_id)


def _holds_log(filesystem: FileSystem, folder: Path) -> bool:
    """Whether a node has lived here; what a crash while formatting leaves does not count."""
    log = log_folder(folder)
    if not filesystem.exists(log):
        return False
    if filesystem.exists(log / QUORUM_STATE):
        return True
    segments = (name for name in filesystem.list(log) if segment_base_offset(name) is not None)
    return any(filesystem.read(log / name) for name in segments)


def _properties_text(identity: StorageIdentity) -> bytes:
    cluster_id = identity.cluster_id
    if not cluster_id or not cluster_id.isascii() or any(c in " \t\r\n\\=:#!" for c in cluster_id):
        raise ValueError(f"cluster id {cluster_id!r} must be ASCII letters, digits, - and _")
    lines = (
        f"cluster.id={cluster_id}",
        f"directory.id={to_kafka_text(identity.directory_id)}",
        f"node.id={identity.node_id}",
        f"version={_VERSION}",
    )
    return ("\n".join(lines) + "\n").encode()


def _read_properties(filesystem: FileSystem, path: Path) -> dict[str, str]:
    properties: dict[str, str] = {}
    for line in filesystem.read(path).decode("latin-1").splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            name, _, value = stripped.partition("=")
            properties[name.strip()] = value.strip()
    if properties.get("version") != _VERSION:
        raise CorruptStorageError(
            path, f"its version is {properties.get('version')}, this build reads {_VERSION}"
        )
    for name in ("cluster.id", "node.id", "directory.id"):
        if not properties.get(name):
            raise CorruptStorageError(path, f"it has no {name}")
    return properties


def _voters_text(identity: StorageIdentity) -> bytes:
    fields = {
        "version": _VOTERS_VERSION,
        "checksum": _checksum(identity),
        "voters": _stored_voters(identity),
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def _stored_voters(identity: StorageIdentity) -> list[_StoredVoter]:
    return [
        _StoredVoter(
            node_id=voter.node_id,
            directory_id=to_kafka_text(voter.directory_id),
            host=voter.host,
            port=voter.port,
        )
        for voter in identity.voters
    ]


def _checksum(identity: StorageIdentity) -> int:
    """Of what both files say, not of how they say it."""
    content = _properties_text(identity) + msgspec.json.encode(_stored_voters(identity))
    return crc32c.crc32c(content)


def _read_voters(filesystem: FileSystem, path: Path) -> _StoredVoters:
    try:
        stored = msgspec.json.decode(filesystem.read(path), type=_StoredVoters)
        if stored.version not in (_VOTERS_VERSION_BARE, _VOTERS_VERSION):
            raise ValueError(f"its version is {stored.version}, this build reads {_VOTERS_VERSION}")
        for voter in stored.voters:
            _voter_of(voter)
    except FileNotFoundError as error:
        raise CorruptStorageError(path, "the file is missing") from error
    except (ValueError, RecursionError) as error:
        raise CorruptStorageError(path, str(error)) from error
    return stored


def _voter_of(stored: _StoredVoter) -> Voter:
    return Voter(
        node_id=NodeId(stored.node_id),
        directory_id=from_kafka_text(stored.directory_id),
        host=stored.host,
        port=stored.port,
    )
