"""Metadata records in the form that all systems share: what clients asked for is named.

A topic's record stands for its creation, with the number of partition records that follow it at
once, and the record that removes it for its deletion. All others are told as what they are. A
record names a topic by its id, so a log that has lost its beginning needs the snapshot that took
its place. Must never guess a name.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from splitbrain.nodes.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.metadata.snapshot import decode_image
from splitbrain.nodes.storage.disk import ReadOnlyDiskFileSystem
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.reading import LoggedRecord
from splitbrain.nodes.storage.snapshots import list_snapshots, read_snapshot


class Content(NamedTuple):
    """What a record says: kind, key and value as in ``contracts.committed.CommittedRecord``."""

    f: str | None
    key: str | None
    value: Any


#: Raft's own records.
CONTROL = Content(None, None, None)


def contents(records: Iterable[LoggedRecord], names: Mapping[str, str]) -> list[Content]:
    """What each record says, in their order.

    Args:
        records: of a log, in order.
        names: topic ids to the names of topics that were there before.

    Raises:
        RecordError: a record is none of the metadata.
    """
    known = dict(names)
    told: list[Content] = []
    #: The creation that is being told, and its topic.
    place, topic_id = -1, ""
    for record in records:
        said = None if record.is_control else decode_record(record.value or b"")
        if place >= 0 and isinstance(said, PartitionRecord) and said.topic_id == topic_id:
            created = told[place]
            told[place] = Content(created.f, created.key, created.value + 1)
        elif not isinstance(said, ConfigRecord):
            place = -1
        if isinstance(said, TopicRecord):
            known[said.topic_id] = said.name
            place, topic_id = len(told), said.topic_id
            told.append(Content("create", said.name, 0))
        else:
            told.append(_content(said, known))
    return told


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


def _content(said: MetadataRecord | None, known: Mapping[str, str]) -> Content:
    if said is None:
        return CONTROL
    if isinstance(said, RemoveTopicRecord) and said.topic_id in known:
        return Content("delete", known[said.topic_id], None)
    return Content(None, None, type(said).__name__)
