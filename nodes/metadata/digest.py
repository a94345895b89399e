"""One number for an image's whole content, cheap to ask for after each change.

Images share the topics that did not change between them, so what a topic adds is computed once for
each of its states. Must never depend on how the image came about.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

from splitbrain.nodes.metadata.content import (
    records_after_topics,
    records_before_topics,
    topic_records,
    topics_in_order,
)
from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import encode_record

_DIGEST_BYTES: Final = 16


class ImageDigests:
    """Digests of one image after the other."""

    def __init__(self) -> None:
        #: By topic id, of the last image: the topic, and what it adds.
        self._topics: dict[str, tuple[TopicImage, bytes]] = {}

    def of(self, image: MetadataImage) -> str:
        """32 hex digits that are equal for images of equal content, wherever they are held.

        One pass over the records of what changed since the last image, and one over the topics.
        """
        content = hashlib.blake2b(_digest(records_before_topics(image)), digest_size=_DIGEST_BYTES)
        topics: dict[str, tuple[TopicImage, bytes]] = {}
        for topic in topics_in_order(image):
            known = self._topics.get(topic.topic_id)
            if known is None or known[0] is not topic:
                known = topic, _digest(topic_records(topic))
            topics[topic.topic_id] = known
            content.update(known[1])
        self._topics = topics
        content.update(_digest(records_after_topics(image)))
        return content.hexdigest()


def _digest(records: Iterable[MetadataRecord]) -> bytes:
    content = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for record in records:
        content.update(encode_record(record))
    return content.digest()
