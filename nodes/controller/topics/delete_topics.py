"""DeleteTopics: by name or by id, each topic for itself.

A real controller shuffles the answers, so that their order tells nothing of topics that the asker
may not see; ours knows no such askers and answers in the order of the request.

Source: a real controller's API layer; KIP-516 (ids).
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from splitbrain.nodes.controller.basis.batch_limit import RecordBatch
from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View, bad_request
from splitbrain.nodes.metadata.image import TopicImage, TopicsImage
from splitbrain.nodes.metadata.records import RemoveTopicRecord
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.topics import (
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicToDelete,
)


class _Named(msgspec.Struct, frozen=True):
    """Well-formed entries of a request: how often each name and each id."""

    names: Counter[str]
    ids: Counter[str]


def delete_topics(view: View, request: DeleteTopicsRequest, _version: int) -> Decision:
    """Decide about DeleteTopics."""
    items = (
        *(TopicToDelete(name=name, topic_id=NO_UUID) for name in request.topic_names),
        *request.topics,
    )
    named = _Named(
        Counter(item.name for item in items if item.name is not None and item.topic_id == NO_UUID),
        Counter(item.topic_id for item in items if item.name is None and item.topic_id != NO_UUID),
    )
    batch = RecordBatch(view)
    answers: list[DeletedTopic] = []
    for item in _once(items, named):
        try:
            topic = _found(view.image.topics, item, named)
            if topic is None:
                continue
            batch.add([RemoveTopicRecord(topic.topic_id)])
            answers.append(_answer(topic.name, topic.topic_id))
        except _RefusedTopic as refused:
            answers.append(_answer(refused.name, refused.topic_id, refused))
        except Refusal as refusal:
            answers.append(_answer(item.name, item.topic_id, refusal))
    answer = DeleteTopicsResponse(throttle_time_ms=0, responses=tuple(answers))
    return Decision(answer, tuple(batch.records))


class _RefusedTopic(Refusal):
    """A refusal that tells both the topic's name and its id."""

    def __init__(self, topic: TopicImage, problem: str) -> None:
        self.name = topic.name
        self.topic_id = topic.topic_id
        super().__init__(ApiError.INVALID_REQUEST, problem)


def _once(items: tuple[TopicToDelete, ...], named: _Named) -> Iterator[TopicToDelete]:
    """Return well-formed entries once even if named twice; all others as they are."""
    seen: set[TopicToDelete] = set()
    for item in items:
        if item.name in named.names or item.topic_id in named.ids:
            if item in seen:
                continue
            seen.add(item)
        yield item


def _found(topics: TopicsImage, item: TopicToDelete, named: _Named) -> TopicImage | None:
    """Return the topic to delete; None if it is answered for where its name is named.

    Raises Refusal: it is not deleted.
    """
    if item.name is None:
        return _found_by_id(topics, item.topic_id, named)
    if item.topic_id != NO_UUID:
        raise bad_request("You may not specify both topic name and topic id.")
    if named.names[item.name] > 1:
        raise bad_request("Duplicate topic name.")
    topic = topics.named(item.name)
    if topic is None:
        raise Refusal(
            ApiError.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    if topic.topic_id in named.ids:
        raise _RefusedTopic(
            topic, "The provided topic name maps to an ID that was already supplied."
        )
    return topic


def _found_by_id(topics: TopicsImage, topic_id: str, named: _Named) -> TopicImage | None:
    if topic_id == NO_UUID:
        raise bad_request("Neither topic name nor id were specified.")
    if named.ids[topic_id] > 1:
        raise bad_request("Duplicate topic id.")
    topic = topics.by_id.get(topic_id)
    if topic is None:
        raise Refusal(ApiError.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return None if named.names[topic.name] == 1 else topic


def _answer(name: str | None, topic_id: str, refusal: Refusal | None = None) -> DeletedTopic:
    return DeletedTopic(
        name=name,
        topic_id=topic_id,
        error_code=ApiError.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
    )
