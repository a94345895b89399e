"""Answers of a broker by itself, apart from Metadata, and those it denies while fenced."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.broker.forwarding import FORWARDED
from splitbrain.nodes.broker.serving import ANSWERED, answer, offered_versions
from splitbrain.nodes.wire.api_versions import served_versions
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader, VersionRange
from splitbrain.nodes.wire.calls import TABLES
from splitbrain.nodes.wire.controller_apis import CONTROLLER_VERSIONS
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListedTopic,
    MetadataRequest,
    PartitionCursor,
    TopicToDescribe,
    TopicWanted,
)
from splitbrain.nodes.wire.messages import decode_answer, encode_api_versions
from tests.unit.nodes.broker.answered_images import (
    ask,
    asking,
    carried,
    image,
)
from tests.unit.nodes.wire.declared_messages import messages

VERSIONS = [
    (key, version)
    for key in sorted(ANSWERED)
    for version in range(TABLES[key].versions.lowest, TABLES[key].versions.highest + 1)
]
EVERY_METADATA = range(14)


def codes(topics: tuple[ListedTopic, ...]) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in topics}


# --- DescribeCluster ---


def test_a_cluster_is_its_living_brokers_and_fenced_ones_where_wanted() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False)
    for version in range(3):
        answered: DescribeClusterResponse = ask(ApiKey.DESCRIBE_CLUSTER, request, version)
        assert [each.broker_id for each in answered.brokers] == [1, 2]
        assert (answered.cluster_id, answered.error_code) == ("c", ApiError.NONE)
        assert answered.cluster_authorized_operations == -(1 << 31)
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=True, include_fenced_brokers=True
    )
    answered = ask(ApiKey.DESCRIBE_CLUSTER, request, 2)
    assert [(each.broker_id, each.is_fenced) for each in answered.brokers] == [
        (1, False),
        (2, False),
        (4, True),
    ]
    assert answered.cluster_authorized_operations == 0b1111110100000


def test_a_broker_that_the_client_cannot_reach_is_not_named_as_controller() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False)
    drawn = {
        ask(ApiKey.DESCRIBE_CLUSTER, request, 1, asking(draw=each)).controller_id
        for each in range(50)
    }
    assert drawn == {1, 2, -1}


@pytest.mark.parametrize(
    ("version", "endpoint_type", "code"),
    [
        (1, 2, ApiError.MISMATCHED_ENDPOINT_TYPE),
        (2, 2, ApiError.MISMATCHED_ENDPOINT_TYPE),
        (1, 0, ApiError.UNSUPPORTED_ENDPOINT_TYPE),
        (1, 3, ApiError.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_controllers_are_not_told_by_a_broker(
    version: int, endpoint_type: int, code: ApiError
) -> None:
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=endpoint_type
    )
    answered = ask(ApiKey.DESCRIBE_CLUSTER, request, version)
    assert (answered.error_code, answered.brokers) == (code, ())
    whole = answer(asking(), ApiKey.DESCRIBE_CLUSTER, request, 0, is_fenced=False)
    assert isinstance(whole, DescribeClusterResponse)
    assert whole.error_code == ApiError.INVALID_REQUEST


# --- DescribeTopicPartitions ---


def described(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    at = (
        None if cursor is None else PartitionCursor(topic_name=cursor[0], partition_index=cursor[1])
    )
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicToDescribe(name=name) for name in names),
        response_partition_limit=limit,
        cursor=at,
    )
    return ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request, 0)


def test_partitions_are_described_without_errors_of_their_own() -> None:
    answered = described("t", "leaderless", "unknown", "a/b")
    assert [(each.name, each.error_code) for each in answered.topics] == [
        ("a/b", ApiError.INVALID_TOPIC_EXCEPTION),
        ("leaderless", ApiError.NONE),
        ("t", ApiError.NONE),
        ("unknown", ApiError.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    (leaderless,) = answered.topics[1].partitions
    assert (leaderless.leader_id, leaderless.error_code) == (-1, ApiError.NONE)
    (found,) = answered.topics[2].partitions
    assert (found.leader_id, found.leader_epoch, found.replica_nodes) == (1, 7, (1, 2))
    assert (found.eligible_leader_replicas, found.last_known_elr) == ((), ())
    assert {each.topic_authorized_operations for each in answered.topics} == {0b110111111000}
    assert answered.next_cursor is None


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 100, 0, -3])
@pytest.mark.parametrize("names", [(), ("t", "three", "two", "unknown")])
def test_pages_put_together_are_the_whole(limit: int, names: tuple[str, ...]) -> None:
    whole = {
        (topic.name, each.partition_index): each
        for topic in described(*names).topics
        for each in topic.partitions
    }
    seen: dict[Any, Any] = {}
    cursor: tuple[str, int] | None = None
    for _ in range(100):
        page = described(*names, limit=limit, cursor=cursor)
        fresh = [(t.name, each.partition_index) for t in page.topics for each in t.partitions]
        assert len(fresh) <= max(limit, 1)
        assert not set(fresh) & set(seen)
        seen |= {key: whole[key] for key in fresh}
        if page.next_cursor is None:
            break
        cursor = page.next_cursor.topic_name, page.next_cursor.partition_index
    else:
        pytest.fail("the pages have no end")
    assert seen == whole


def test_a_cursor_that_cannot_be_is_refused() -> None:
    for cursor in (("other", 0), ("t", -1)):
        answered = described("t", cursor=cursor)
        assert [each.error_code for each in answered.topics] == [ApiError.INVALID_REQUEST]
    # A topic that is gone may stand in it where all are asked for, or a partition that is.
    assert described(cursor=("tgone", 3)).topics[0].name == "three"
    assert described("t", cursor=("t", 5)).topics[0].partitions == ()


# --- versions ---


def offered(controller: dict[ApiKey, VersionRange]) -> dict[int, VersionRange]:
    return offered_versions(image(), served_versions(controller, {})).versions()


def test_without_a_controller_everything_is_offered() -> None:
    answer = offered_versions(image(), None)
    versions = answer.versions()
    assert set(versions) == {ApiKey.API_VERSIONS, *ANSWERED, *FORWARDED}
    assert list(versions) == sorted(versions)


def test_what_the_controller_does_not_serve_is_not_offered() -> None:
    assert set(offered({})) == {ApiKey.API_VERSIONS, *ANSWERED}


def test_versions_are_those_that_both_speak() -> None:
    create, delete, metadata = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.METADATA
    theirs = {create: VersionRange(0, 4), delete: VersionRange(6, 9), metadata: VersionRange(3, 3)}
    versions = offered(theirs)
    assert versions[create] == (2, 4)
    assert versions[delete] == (6, 6)
    assert versions[metadata] == TABLES[metadata].versions
    assert create not in offered({create: VersionRange(0, 1)})


def test_with_a_controller_of_ours_nothing_is_missing() -> None:
    whole = offered_versions(image(), None)
    assert whole.versions() == offered(dict(CONTROLLER_VERSIONS))


def test_levels_are_those_of_the_image_and_every_version_can_be_sent() -> None:
    answer = offered_versions(image(), None)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert levels == {"metadata.version": 30}
    assert answer.finalized_features_epoch == image().provenance.last_offset
    for version in range(5):
        header = RequestHeader(ApiKey.API_VERSIONS, version, 1, None)
        frame = encode_api_versions(header, answer)
        assert decode_answer(frame[4:], ApiKey.API_VERSIONS, version).correlation_id == 1


# --- fenced ---


def test_a_fenced_broker_answers_metadata_as_one_that_is_about_to_start() -> None:
    for version in EVERY_METADATA:
        request = MetadataRequest(topics=(TopicWanted(name="t"), TopicWanted(name="unknown")))
        answered = carried(
            ApiKey.METADATA,
            version,
            answer(asking(), ApiKey.METADATA, request, version, is_fenced=True),
        )
        assert answered.brokers == ()
        assert answered.controller_id == -1
        retried = ApiError.LEADER_NOT_AVAILABLE
        assert codes(answered.topics) == {"t": retried, "unknown": retried}
        assert answered.error_code == (retried if version >= 13 else 0)


def test_a_fenced_broker_does_not_answer_what_clients_would_not_retry() -> None:
    cluster = DescribeClusterRequest(include_cluster_authorized_operations=False)
    pages = DescribeTopicPartitionsRequest(topics=())
    for key, request in (
        (ApiKey.DESCRIBE_CLUSTER, cluster),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, pages),
    ):
        assert answer(asking(), key, request, 0, is_fenced=True) is None
        assert answer(asking(), key, request, 0, is_fenced=False) is not None


def test_what_is_forwarded_is_not_answered_here() -> None:
    with pytest.raises(ValueError, match="does not answer CREATE_TOPICS"):
        answer(asking(), ApiKey.CREATE_TOPICS, None, 7, is_fenced=False)


# --- all ---


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@given(data=st.data())
def test_whatever_is_asked_is_answered_in_words_that_the_version_has(
    key: ApiKey, version: int, data: st.DataObject
) -> None:
    request: msgspec.Struct = data.draw(messages(TABLES[key].request, version))
    for is_fenced in (False, True):
        message = answer(asking(), key, request, version, is_fenced=is_fenced)
        if message is not None:
            assert type(carried(key, version, message)) is TABLES[key].response
