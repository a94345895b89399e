"""Metadata at every committed offset, as the oracle's own model tells it.

Fed record by record, so it may stand in the midst of a batch: nobody is shown that. Must never
apply what is not committed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.errors import RecordError
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.metadata.records import (
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.kraft.ledger import Versions, encoded
from splitbrain.simulation.kraft.metadata.model import ImpossibleRecordError, MetadataModel
from splitbrain.simulation.kraft.metadata.state import Metadata, differing, key_of, read
from splitbrain.simulation.kraft.mirrored_log import Entry


class Batch(NamedTuple):
    """A committed batch: its records, and the metadata before and after it."""

    base_offset: int
    epoch: int
    records: Sequence[MetadataRecord]
    before: Metadata
    after: Metadata


class MetadataLedger:
    """Fed with every committed record in order."""

    def __init__(self) -> None:
        self._model = MetadataModel()
        self._decoded: dict[bytes, MetadataRecord] = {}
        #: By base offset.
        self._batches: dict[int, Batch] = {}
        #: As of each offset: after all below it.
        self._states = [Metadata()]
        #: By name: how many partitions a topic has, None for no topic.
        self._topics: dict[str, Versions] = {}
        #: By id, those that are gone among them.
        self._names: dict[str, str] = {}
        #: Topics of which records speak that may not count yet.
        self._touched: dict[str, None] = {}
        #: Why the committed records make no metadata; None: they do.
        self.problem: str | None = None
        #: Operation ids are not in these records.
        self.operations: dict[str, int] = {}
        self.operation_at: dict[int, str] = {}

    @property
    def metadata(self) -> Metadata:
        """After all that is committed."""
        return self._states[-1]

    def at(self, end_offset: int) -> Metadata:
        """After all below ``end_offset``."""
        return self._states[min(end_offset, len(self._states) - 1)]

    def decode(self, payload: bytes) -> MetadataRecord:
        """Return the record of a payload, decoded once for all who look; raises RecordError."""
        record = self._decoded.get(payload)
        if record is None:
            record = self._decoded[payload] = decode_record(payload)
        return record

    @staticmethod
    def make_machine() -> MetadataMachine:
        """Return a machine without a state, as nodes have it."""
        return MetadataMachine()

    def apply(self, offset: int, payload: bytes) -> None:
        """Take a committed record; raft's own are left out."""
        if self.problem is not None:
            return
        self._states += [self._states[-1]] * (offset + 1 - len(self._states))
        try:
            record = self.decode(payload)
            self._model.take(record)
        except (RecordError, ImpossibleRecordError) as error:
            self.problem = f"at {offset} {error}"
            return
        self._states.append(self._model.metadata)
        self._note(record)
        self._settle(offset)

    def batch(self, entries: Sequence[Entry], base_offset: int) -> Batch:
        """Return the committed batch of these entries, read once for all who look."""
        batch = self._batches.get(base_offset)
        if batch is None:
            payloads = [entry.payload for entry in entries if entry.payload is not None]
            batch = self._batches[base_offset] = Batch(
                base_offset,
                entries[0].epoch,
                tuple(map(self.decode, payloads)),
                self.at(base_offset),
                self.at(base_offset + len(entries)),
            )
        return batch

    def known_keys(self) -> list[str]:
        """All topics that ever were, in a fixed order."""
        return list(self._topics)

    def changed_at(self, key: str, end_offset: int) -> int:
        """One past the last offset below ``end_offset`` at which the topic changed; 0: never."""
        versions = self._topics.get(key)
        count = 0 if versions is None else versions.count_below(end_offset)
        return versions.offsets[count - 1] + 1 if versions is not None and count else 0

    def is_of(self, request: ClientRequest, offset: int, payload: bytes) -> bool:
        """Whether the committed record at this offset is the one that the request asks for."""
        record = self.decode(payload)
        if isinstance(record, TopicRecord):
            return request.kind == "create-topic" and record.name == request.key
        if isinstance(record, RemoveTopicRecord):
            known = self.at(offset).topics.get(record.topic_id)
            return (
                request.kind == "delete-topic" and known is not None and known.name == request.key
            )
        return False

    def needs_no_offset(self, request: ClientRequest, answer: ClientAnswer) -> bool:
        """Whether the answer may come without an offset: a controller tells brokers of none."""
        return request.kind in ("create-topic", "delete-topic")

    def answer(self, request: ClientRequest, offset: int) -> bytes | None:
        """Encoded answer that a request must get which is answered with this offset."""
        match request.kind:
            case "describe-topic":
                return encoded(self.partition_count(request.key, offset))
            case "create-topic" | "delete-topic":
                return encoded(True)
            case _:
                return None

    def partition_count(self, name: str, end_offset: int) -> int | None:
        """Of a topic after all below ``end_offset``; None: there is none of that name."""
        metadata = self.at(end_offset)
        topic = metadata.named(name)
        return None if topic is None else metadata.partition_count(topic.topic_id)

    def was(self, name: str, first: int, *, present: bool) -> bool:
        """Whether there was, or was not, a topic of this name at ``first`` or at any time since."""
        is_present = self.partition_count(name, first) is not None
        versions = self._topics.get(name)
        since = [] if versions is None else versions.values[versions.count_below(first) :]
        return present in (is_present, *(value != encoded(None) for value in since))

    def difference(self, state: StateMachine, end_offset: int) -> str | None:
        """Return the difference of a state from the records below ``end_offset``, in words."""
        assert isinstance(state, MetadataMachine)
        if self.problem is not None:
            return None
        metadata = self.at(end_offset)
        records = list(image_records(state.image))
        if read(records) == metadata:
            return None
        ours = metadata.told()
        theirs = {key_of(record): record for record in records}
        for key in [*ours, *theirs]:
            mine, other = ours.get(key), theirs.get(key)
            if mine == other:
                continue
            if mine is None or other is None:
                name = metadata.name_of(mine or other)
                return f"no {name}" if other is None else f"{name}, which is not there"
            return f"{metadata.name_of(mine)} with {differing(other, mine)}"
        return None

    def _note(self, record: MetadataRecord) -> None:
        """Of which topic it is."""
        match record:
            case TopicRecord(name, topic_id):
                self._names[topic_id] = name
            case PartitionRecord() | RemoveTopicRecord():
                pass
            case _:
                return
        name = self._names.get(record.topic_id)
        if name is not None:
            self._touched[name] = None

    def _settle(self, offset: int) -> None:
        """Note what the topics are now that records spoke of; within a transaction they wait."""
        if self._model.is_open:
            return
        for name in self._touched:
            versions = self._topics.setdefault(name, Versions())
            value = encoded(self.partition_count(name, offset + 1))
            if value != (versions.values[-1] if versions.values else encoded(None)):
                versions.add(offset, value)
        self._touched.clear()
