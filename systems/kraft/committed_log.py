"""The log of one node in its data folder: its committed part in neutral form, its records' places.

Raft keeps no high watermark on disk, so what is committed must be known from elsewhere. The rule:
a node's log is committed up to the highest offset that *this node itself* ever said to be so, in
its state events (``high-watermark``, and ``commit`` while it led) or in its status when the cluster
had converged. That is sound, because a committed offset stays committed, through restarts too, and
because a node says so of its own log only; and it is as far as one may go: beyond it a node that
lagged may hold records that a later leader would cut off. Where a log ends before what its node
once called committed, the dump ends with the log: that is a finding, not an error. A log
that has lost its beginning to a snapshot is dumped from where it begins.
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec

from splitbrain.contracts.committed import CommittedLog, CommittedRecord, Standing
from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.nodes.metadata.errors import MetadataError
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.metadata.snapshot import decode_image
from splitbrain.nodes.registers.commands import UnknownCommandError, command_fields, decode_command
from splitbrain.nodes.server.machine.configuration import ConfigurationError, read_configuration
from splitbrain.nodes.storage.disk import ReadOnlyDiskFileSystem
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.layout import LOG_FOLDER, segment_base_offset
from splitbrain.nodes.storage.reading import LoggedRecord, log_start, read_committed
from splitbrain.nodes.storage.snapshots import list_snapshots, read_snapshot
from splitbrain.nodes.wire.batches import HEADER_BYTES, peek_batch
from splitbrain.systems.kraft.deployment import CONFIGURATION_FILE, CONFIGURATION_FOLDER
from splitbrain.systems.kraft.state_machines import node_name

#: Records whose digests are kept, each of some hundred bytes.
_RECORDS_KEPT_MAX: Final = 16_384
_COMMITTING_KINDS = frozenset({"high-watermark", "commit"})


def committed_log(
    node: NodeName, data_folder: Path, state_events: Path | None, converged_end: int
) -> CommittedLog:
    """Read a stopped node's data folder, as collected.

    ``converged_end`` is its high watermark when the cluster had converged, -1 if it never had.

    Raises:
        HarnessError: the folder is unreadable, or nothing says what was committed.
    """
    end = max(converged_end, committed_end(state_events))
    if end < 0:
        raise HarnessError(
            "dump the committed log",
            f"{node}: {data_folder}",
            "neither state events nor a converged status say what was committed",
            "The node may never have reached a quorum; look at its output.",
        )
    try:
        start = min(log_start(data_folder).end_offset, end)
        logged = list(read_committed(data_folder, end))
        if is_metadata(data_folder):
            records = neutral_metadata(logged, names_before(data_folder, start))
        else:
            records = tuple(map(neutral, logged))
    except (StorageError, OSError, UnknownCommandError, MetadataError) as error:
        raise HarnessError(
            "dump the committed log",
            f"{node}: {data_folder}",
            str(error),
            "Keep the folder: it shows what the node did to its disk.",
        ) from error
    last = records[-1].offset + 1 if records else start
    return CommittedLog(node=node, start_offset=start, end_offset=last, records=records)


def committed_end(state_events: Path | None) -> int:
    """Highest offset that the node called committed, in any of its lives; -1 if it never did.

    Lines that a kill left torn are passed over.
    """
    if state_events is None or not state_events.exists():
        return -1
    decoder = msgspec.json.Decoder(StateEvent)
    end = -1
    try:
        with state_events.open("rb") as file:
            for line in file:
                try:
                    event = decoder.decode(line)
                except UNREADABLE:
                    continue
                if event.kind in _COMMITTING_KINDS and event.offset is not None:
                    end = max(end, event.offset)
    except OSError as error:
        raise HarnessError(
            "read state events", str(state_events), str(error.strerror), "Look at the run folder."
        ) from error
    return end


def neutral(record: LoggedRecord) -> CommittedRecord:
    """One record in the form that all systems share; UnknownCommandError: it holds no command.

    The digest covers the whole record, the leader's time stamp included: nodes replicate bytes.
    """
    kind: str | None = None
    key: str | None = None
    value: Any = None
    if not record.is_control:
        kind, key, value = command_fields(decode_command(record.value or b""))
    return _neutral(record, kind, key, value)


def neutral_metadata(
    logged: Sequence[LoggedRecord], names: Mapping[str, str]
) -> tuple[CommittedRecord, ...]:
    """Metadata records in the form that all systems share: what clients asked for is named.

    A topic's record stands for its creation, with the number of partition records that follow it at
    once, and the record that removes it for its deletion. One that takes a broker into service, or
    out, tells that (``Standing``), and all others what they are. A
    record names a topic by its id, so a log that has lost its beginning needs the snapshot that
    took its place, with the names of topics that were there before. Must never guess a name.
    """
    found = contents(logged, names)
    return tuple(_neutral(record, *content) for record, content in zip(logged, found, strict=True))


def is_metadata(data_folder: Path) -> bool:
    """Whether the node whose data these are had metadata above its log, by its configuration."""
    path = data_folder.parent / CONFIGURATION_FOLDER / CONFIGURATION_FILE
    if not path.exists():
        return False
    try:
        return read_configuration(path).state_machine == "metadata"
    except ConfigurationError as error:
        raise HarnessError(
            "dump the committed log", str(path), str(error), "Keep the run folder as it was made."
        ) from error


def _neutral(
    record: LoggedRecord, kind: str | None, key: str | None, value: Any
) -> CommittedRecord:
    digest = _digest(record.epoch, record.timestamp_ms, record.is_control, record.key, record.value)
    return CommittedRecord(record.offset, record.epoch, kind, key, value, digest)


# All nodes have the same records.
@lru_cache(_RECORDS_KEPT_MAX)
def _digest(*fields: int | bytes | None) -> str:
    return hashlib.blake2b(msgspec.msgpack.encode(fields), digest_size=16).hexdigest()


class Content(NamedTuple):
    """Content of a record, as in ``contracts.committed.CommittedRecord``."""

    f: str | None
    key: str | None
    value: Any


#: Raft's own records.
CONTROL = Content(None, None, None)


def contents(records: Iterable[LoggedRecord], names: Mapping[str, str]) -> list[Content]:
    """Return the content of each record, in order; ``names`` are of topics that were there before.

    Raises:
        RecordError: a record is none of the metadata.
    """
    topic_names = dict(names)
    found: list[Content] = []
    #: The creation that is being told, and its topic.
    place, topic_id = -1, ""
    for record in records:
        decoded = None if record.is_control else decode_record(record.value or b"")
        if place >= 0 and isinstance(decoded, PartitionRecord) and decoded.topic_id == topic_id:
            created = found[place]
            found[place] = Content(created.f, created.key, created.value + 1)
        elif not isinstance(decoded, ConfigRecord):
            place = -1
        if isinstance(decoded, TopicRecord):
            topic_names[decoded.topic_id] = decoded.name
            place, topic_id = len(found), decoded.topic_id
            found.append(Content("create", decoded.name, 0))
        else:
            found.append(_content(decoded, topic_names))
    return found


def names_before(
    data_folder: Path, start_offset: int, filesystem: FileSystem | None = None
) -> dict[str, str]:
    """Topic ids to names as of where a log begins, from its snapshots.

    Raises:
        StorageError: the snapshot is not intact.
        MetadataError: what it holds cannot be read.
    """
    if not start_offset:
        return {}
    filesystem = filesystem or ReadOnlyDiskFileSystem()
    names: dict[str, str] = {}
    for snapshot_id in list_snapshots(filesystem, data_folder):
        batches = read_snapshot(filesystem, data_folder, snapshot_id)
        topics = decode_image(snapshot_id, batches).topics
        names |= {topic_id: topic.name for topic_id, topic in topics.by_id.items()}
    return names


def _content(decoded: MetadataRecord | None, topic_names: Mapping[str, str]) -> Content:
    if decoded is None:
        return CONTROL
    if isinstance(decoded, RemoveTopicRecord) and decoded.topic_id in topic_names:
        return Content("delete", topic_names[decoded.topic_id], None)
    serves = _serves(decoded)
    name = type(decoded).__name__
    if serves is None:
        return Content(None, None, name)
    standing = Standing(name, node_name(serves[0]), serves=serves[1])
    return Content(None, None, msgspec.to_builtins(standing))


def _serves(decoded: MetadataRecord) -> tuple[int, bool] | None:
    """Return a broker and whether it serves by this record; None: the record does not say."""
    match decoded:
        case RegisterBrokerRecord():
            return decoded.broker_id, not decoded.fenced
        case BrokerRegistrationChangeRecord() if decoded.fenced:
            return decoded.broker_id, decoded.fenced < 0
        case UnregisterBrokerRecord():
            return decoded.broker_id, False
        case FenceBrokerRecord() | UnfenceBrokerRecord():
            return decoded.id, isinstance(decoded, UnfenceBrokerRecord)
        case _:
            return None


def record_at(file: str, before: bytes) -> str | None:
    """Return the record that the byte after ``before`` belongs to; None where the file is no log.

    Told from the bytes before it alone: what is behind may be damaged, cut off or older.
    """
    path = PurePosixPath(file)
    offset = segment_base_offset(path.name)
    if path.parent.name != LOG_FOLDER or offset is None:
        return None
    position = 0
    while position + HEADER_BYTES <= len(before):
        try:
            _, last_offset, size_bytes = peek_batch(before, position)
        except struct.error:
            break
        if position + size_bytes > len(before):
            return _named(offset, int(last_offset))
        offset = int(last_offset) + 1
        position += size_bytes
    return _named(offset, None)


def _named(first: int, last: int | None) -> str:
    if last is None:
        return f"the record at offset {first} of the log, or its batch's header"
    if last == first:
        return f"the record at offset {first} of the log"
    return f"one of the records at offsets {first} to {last} of the log"
