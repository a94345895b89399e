"""Metadata at every committed offset: a second, independent replay of the image.

Fed record by record, so an image of the ledger may stand in the midst of a batch: nobody is shown
that one. Shares the records' format and the image's rules with the nodes; a rule that both have
wrong is the referee's to find, and that of the invariants which look at one image alone. Must never
apply what is not committed.
"""

from typing import Final

from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.metadata.records import (
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.quorum.errors import UnreadableRecordError
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.batches import Record, RecordBatch
from splitbrain.simulation.kraft.ledger import Versions, encoded

#: Nobody is told of the epoch of a single record: an image is compared by what it says.
_NO_EPOCH: Final = Epoch(0)


class MetadataLedger:
    """Fed with every committed record in order."""

    def __init__(self) -> None:
        self._machine = MetadataMachine()
        self._decoded: dict[bytes, MetadataRecord] = {}
        #: As of each offset: after all below it.
        self._images = [MetadataImage()]
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
    def image(self) -> MetadataImage:
        """After all that is committed."""
        return self._images[-1]

    def image_at(self, end_offset: int) -> MetadataImage:
        """After all below ``end_offset``."""
        return self._images[min(end_offset, len(self._images) - 1)]

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
        last = self._images[-1]
        self._images += [last] * (offset + 1 - len(self._images))
        record = Record(Offset(offset), 0, None, payload)
        batch = RecordBatch(Offset(offset), _NO_EPOCH, 0, 0, (record,))
        try:
            self._machine.apply_batch(batch, _nobody)
        except UnreadableRecordError as error:
            self.problem = str(error)
            return
        self._images.append(self._machine.image)
        self._note(self.decode(payload))
        self._settle(offset)

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
            known = self.image_at(offset).topics.by_id.get(record.topic_id)
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
        topic = self.image_at(end_offset).topics.named(name)
        return None if topic is None else len(topic.partitions)

    def was(self, name: str, first: int, *, present: bool) -> bool:
        """Whether there was, or was not, a topic of this name at ``first`` or at any time since."""
        is_present = self.partition_count(name, first) is not None
        versions = self._topics.get(name)
        since = [] if versions is None else versions.values[versions.count_below(first) :]
        return present in (is_present, *(value != encoded(None) for value in since))

    def difference(self, state: StateMachine, end_offset: int) -> str | None:
        """Return the difference of a state from the records below ``end_offset``, in words."""
        assert isinstance(state, MetadataMachine)
        theirs = {repr(record): record for record in image_records(state.image)}
        ours = {repr(record): record for record in image_records(self.image_at(end_offset))}
        for text in [*ours, *theirs]:
            if (text in ours) != (text in theirs):
                record = ours.get(text) or theirs[text]
                return f"a {type(record).__name__.removesuffix('Record')}"
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
        if self._machine.transaction_opened_at is not None:
            return
        for name in self._touched:
            versions = self._topics.setdefault(name, Versions())
            value = encoded(self.partition_count(name, offset + 1))
            if value != (versions.values[-1] if versions.values else encoded(None)):
                versions.add(offset, value)
        self._touched.clear()


def _nobody(_offset: int, _epoch: int, _result: None) -> None:
    """Nobody is told."""
