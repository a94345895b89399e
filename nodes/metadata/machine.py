"""The metadata as the state machine above the log: committed batches in, one image after the other.

Must never show an image in which a part of a metadata transaction is, nor change one that was
shown.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import is_
from typing import Final

import msgspec

from splitbrain.nodes.metadata.content import (
    image_records,
    records_after_topics,
    records_before_topics,
    topic_records,
    topics_in_order,
)
from splitbrain.nodes.metadata.delta import MetadataDelta, image_after
from splitbrain.nodes.metadata.errors import MetadataError
from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import decode_record, encode_record
from splitbrain.nodes.metadata.transactions import Provenance, TransactionBuffer, read_batch
from splitbrain.nodes.quorum.errors import UnreadableRecordError
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Offset
from splitbrain.nodes.wire.batches import RecordBatch

_DIGEST_BYTES: Final = 16
#: Equal records have equal bytes in it, and it takes a tenth of the time of Kafka's form.
_ENCODER: Final = msgspec.msgpack.Encoder()


class MetadataMachine:
    """The image as of one offset, and what of an open transaction follows it."""

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._buffer = TransactionBuffer()
        self._digests = ImageDigests()
        #: Of the image as it is; None until somebody asks.
        self._digest: str | None = None

    @property
    def image(self) -> MetadataImage:
        """Everything that counts by now."""
        return self._image

    @property
    def end_offset(self) -> int:
        """One past the last applied offset."""
        return self._buffer.end_offset

    @property
    def transaction_opened_at(self) -> Offset | None:
        """Where the open transaction begins; None while none is open."""
        return self._buffer.opened_at

    def apply_batch(self, batch: RecordBatch, listener: Callable[[int, int, None], None]) -> None:
        """Apply a committed batch; raises UnreadableRecordError.

        ``listener`` is told once, of its last record.
        """
        try:
            for settled in self._buffer.add(read_batch(batch)):
                self._image = image_after(self._image, settled)
        except MetadataError as error:
            raise UnreadableRecordError(
                f"the batch at offset {batch.base_offset}: {error}"
            ) from error
        self._digest = None
        listener(batch.last_offset, batch.epoch, None)

    def freeze(self) -> Callable[[], Iterator[bytes]] | None:
        """Return the image's records, to be told later; None within a transaction or a batch."""
        image = self._image
        has_all = image.provenance.end_offset == self.end_offset and image.provenance.ends_batch
        if self._buffer.opened_at is not None or not has_all:
            return None
        return lambda: map(encode_record, image_records(image))

    def begin_loading(self) -> "LoadingImage":
        """Begin to take the image that a snapshot tells."""
        return LoadingImage(self._adopt)

    def digest(self) -> str:
        """32 hex digits that are equal for equal images."""
        if self._digest is None:
            self._digest = self._digests.of(self._image)
        return self._digest

    def _adopt(self, image: MetadataImage, end_offset: Offset) -> None:
        """Go on from here."""
        self._image = image
        self._buffer = TransactionBuffer(end_offset)
        self._digest = None


class LoadingImage:
    """An image on its way from a snapshot."""

    def __init__(self, adopt: Callable[[MetadataImage, Offset], None]) -> None:
        self._adopt = adopt
        self._delta = MetadataDelta(MetadataImage())

    def add(self, value: bytes) -> None:
        """Take the next record of the snapshot; raises UnreadableRecordError."""
        try:
            self._delta.replay(decode_record(value))
        except MetadataError as error:
            raise UnreadableRecordError(f"a snapshot's record: {error}") from error

    def install(self, end_offset: int) -> None:
        """Let the machine's image be this one, up to the offset; raises UnreadableRecordError."""
        # Whose epoch the last record was matters to the log, which knows, and not to the image.
        provenance = Provenance(Offset(end_offset - 1), NO_EPOCH)
        try:
            image = self._delta.apply(provenance)
        except MetadataError as error:
            raise UnreadableRecordError(f"a snapshot: {error}") from error
        self._adopt(image, Offset(end_offset))


class ImageDigests:
    """Digests of one image after the other, whatever way each came about.

    Images share the topics that did not change between them, so what a topic adds is computed once
    for each of its states.
    """

    def __init__(self) -> None:
        #: By topic id, of the last image: the topic, and what it adds.
        self._topics: dict[str, tuple[TopicImage, bytes]] = {}
        #: The same of all that comes before the topics, and after them.
        self._before: tuple[tuple[object, ...], bytes] = ((), b"")
        self._after: tuple[tuple[object, ...], bytes] = ((), b"")

    def of(self, image: MetadataImage) -> str:
        """32 hex digits that are equal for images of equal content, wherever they are held.

        One pass over the records of what changed since the last image, and one over the topics.
        """
        held = image.features, image.brokers, image.controllers
        if not _are_same(self._before[0], held):
            self._before = held, _digest(records_before_topics(image))
        content = hashlib.blake2b(self._before[1], digest_size=_DIGEST_BYTES)
        topics: dict[str, tuple[TopicImage, bytes]] = {}
        for topic in topics_in_order(image):
            known = self._topics.get(topic.topic_id)
            if known is None or known[0] is not topic:
                known = topic, _digest(topic_records(topic))
            topics[topic.topic_id] = known
            content.update(known[1])
        self._topics = topics
        held = (
            *(image.configs, image.quotas, image.next_producer_id, image.acls, image.scram),
            image.delegation_tokens,
        )
        if not _are_same(self._after[0], held):
            self._after = held, _digest(records_after_topics(image))
        content.update(self._after[1])
        return content.hexdigest()


def _are_same(ones: Sequence[object], others: Sequence[object]) -> bool:
    return len(ones) == len(others) and all(map(is_, ones, others))


def _digest(records: Iterable[MetadataRecord]) -> bytes:
    content = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for record in records:
        content.update(_ENCODER.encode((type(record).__name__, record)))
    return content.digest()
