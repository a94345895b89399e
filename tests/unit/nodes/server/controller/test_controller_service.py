"""A controller on a node: it leads once it may, answers what is committed, and lets go in time."""

from typing import Any

import msgspec
import pytest

from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.metadata.records import (
    BeginTransactionRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
)
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer, DescribeQuorumRequest
from splitbrain.nodes.server.controller import controller_service
from splitbrain.nodes.server.controller.controller_service import SERVED
from splitbrain.nodes.server.controller.image_figures import image_figures
from splitbrain.nodes.transport.client_protocol import ClientRequest, NodeState
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.calls import decode_reply, encode_call
from splitbrain.nodes.wire.controller_apis import PINNED_LEVELS
from splitbrain.nodes.wire.envelopes import envelope_of
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families import cluster, topics
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest, EnvelopeResponse
from splitbrain.nodes.wire.families.voters import AddRaftVoterRequest
from splitbrain.nodes.wire.messages import decode_answer, encode_request
from splitbrain.nodes.wire.principals import ANONYMOUS
from tests.planted import with_bug
from tests.unit.nodes.controller.clusters import broker, image_with, topic
from tests.unit.nodes.server.hand_made_world import SETTINGS
from tests.unit.nodes.server.lone_controller import Controller, creation

SECOND_US = 1_000_000


@pytest.fixture
def controller() -> Controller:
    made = Controller()
    made.lead()
    return made


def forwarded(controller: Controller, frame: bytes) -> EnvelopeResponse:
    envelope = envelope_of(frame[4:], ANONYMOUS, b"\x7f\0\0\1")
    sealed = controller.ask(ApiKey.ENVELOPE, envelope, 0)
    assert isinstance(sealed, EnvelopeResponse)
    return sealed


def test_a_new_leader_writes_the_levels_first_and_then_that_it_is_there(
    controller: Controller,
) -> None:
    wanted = {name: level for name, level in PINNED_LEVELS.items() if level and "kraft" not in name}
    assert dict(controller.image.features) == wanted
    (listener,) = controller.image.controllers[1].end_points
    assert (listener.name, listener.host, listener.port) == ("CONTROLLER", "127.0.0.1", 1)


def test_a_second_life_finds_the_levels_and_registers_anew() -> None:
    controller = Controller()
    controller.lead()
    first = controller.image.controllers[1].incarnation_id
    controller.node.end(0, "over")
    controller.node.close()
    controller.world.crash()
    controller.node = controller.begin()
    controller.world.lead(controller.node)
    controller.world.until(lambda: controller.image.controllers[1].incarnation_id != first)
    assert controller.image.metadata_version == PINNED_LEVELS["metadata.version"]


def test_a_broker_comes_is_unfenced_and_gets_a_topic(controller: Controller) -> None:
    registered = controller.register()
    assert registered.error_code == ApiError.NONE
    assert controller.image.brokers[5].fenced
    beat = controller.beat(registered.broker_epoch)
    assert (beat.error_code, beat.is_fenced) == (ApiError.NONE, False)
    created = controller.ask(ApiKey.CREATE_TOPICS, creation("t"), 7)
    assert [topic.error_code for topic in created.topics] == [ApiError.NONE]
    topic = controller.image.topics.named("t")
    assert topic is not None
    assert [partition.leader for partition in topic.partitions] == [5, 5]


def test_an_answer_waits_until_its_records_are_committed(controller: Controller) -> None:
    controller.beat(controller.register().broker_epoch)
    end = controller.node.replica.log_end_offset
    number = controller.call(ApiKey.CREATE_TOPICS, creation("t"), 7)
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    assert number not in controller.world.replies
    assert controller.image.topics.named("t") is None
    controller.world.until(lambda: number in controller.world.replies)
    assert controller.image.topics.named("t") is not None


@pytest.mark.planted("answered-before-commit")
def test_answered_before_commit_answers_at_the_append(controller: Controller) -> None:
    controller.beat(controller.register().broker_epoch)
    end = controller.node.replica.log_end_offset
    number = controller.call(ApiKey.CREATE_TOPICS, creation("t"), 7)
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    assert controller.node.replica.high_watermark == end
    assert number in controller.world.replies


@pytest.mark.parametrize("has_bug", [False, with_bug("activation-not-first", True)])
def test_the_first_record_of_all_begins_to_say_what_the_cluster_can_have(
    controller: Controller, has_bug: bool
) -> None:
    batches = controller.node.parts.disk.batches(Offset(1), controller.node.replica.high_watermark)
    first = decode_record(next(iter(batches)).records[0].value or b"")
    assert isinstance(first, RegisterControllerRecord if has_bug else BeginTransactionRecord)


def test_an_answer_that_changes_nothing_waits_for_what_it_saw(controller: Controller) -> None:
    controller.beat(controller.register().broker_epoch)
    end = controller.node.replica.log_end_offset
    first = controller.call(ApiKey.CREATE_TOPICS, creation("t"), 7)
    second = controller.call(ApiKey.CREATE_TOPICS, creation("t"), 7)
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    controller.world.until(lambda: not controller.world.turns)
    assert not {first, second} & controller.world.replies.keys()
    controller.world.until(lambda: second in controller.world.replies)
    reply: Any = controller.world.replies[second]
    assert [topic.error_code for topic in reply.topics] == [ApiError.TOPIC_ALREADY_EXISTS]


def test_a_silent_broker_is_fenced_when_its_session_is_over(controller: Controller) -> None:
    epoch = controller.register().broker_epoch
    controller.beat(epoch)
    started = controller.world.time_us
    controller.world.until(lambda: controller.image.brokers[5].fenced)
    assert controller.world.time_us - started >= 9 * SECOND_US


def test_who_lost_the_leadership_refuses_what_waits_and_what_comes(controller: Controller) -> None:
    epoch = controller.register().broker_epoch
    controller.beat(epoch)
    waiting = controller.call(ApiKey.CREATE_TOPICS, creation("t"), 7)
    controller.node.resign()
    late = controller.call(ApiKey.CREATE_TOPICS, creation("u"), 7)
    for number in (waiting, late):
        reply: Any = controller.world.replies[number]
        assert [topic.error_code for topic in reply.topics] == [ApiError.NOT_CONTROLLER]


def test_what_a_client_asked_a_broker_comes_back_in_the_brokers_envelope(
    controller: Controller,
) -> None:
    controller.beat(controller.register().broker_epoch)
    sealed = forwarded(controller, encode_call(creation("t"), 5, 77, "client"))
    assert sealed.error_code == ApiError.NONE
    assert sealed.response_data is not None
    inner: Any = decode_reply(sealed.response_data, ApiKey.CREATE_TOPICS, 5)
    assert inner.correlation_id == 77
    assert [topic.name for topic in inner.message.topics] == ["t"]


def test_who_asks_a_broker_about_the_quorum_is_answered_by_the_replica(
    controller: Controller,
) -> None:
    request = encode_request(DescribeQuorumRequest(), 78, "client", version=2)
    sealed = forwarded(controller, request)
    assert sealed.error_code == ApiError.NONE
    assert sealed.response_data is not None
    received = decode_answer(sealed.response_data, ApiKey.DESCRIBE_QUORUM, 2)
    assert isinstance(received.message, DescribeQuorumAnswer)
    assert (received.correlation_id, received.message.leader_id) == (78, 1)


def test_what_may_not_be_forwarded_is_refused_by_the_envelope(controller: Controller) -> None:
    voters = AddRaftVoterRequest(
        cluster_id=None, timeout_ms=1, voter_id=9, voter_directory_id="9" * 32, listeners=()
    )
    sealed = forwarded(controller, encode_call(voters, 0, 79, "client"))
    assert sealed.error_code == ApiError.UNSUPPORTED_VERSION


def test_an_envelope_that_cannot_be_opened_is_answered(controller: Controller) -> None:
    envelope = EnvelopeRequest(
        request_data=b"", request_principal=b"", client_host_address=b"\x7f\0\0\1"
    )
    refused = controller.ask(ApiKey.ENVELOPE, envelope, 0)
    assert refused.error_code == ApiError.PRINCIPAL_DESERIALIZATION_FAILURE


def test_everybody_is_told_who_the_controllers_are(controller: Controller) -> None:
    request = cluster.DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=2
    )
    described = controller.ask(ApiKey.DESCRIBE_CLUSTER, request, 2)
    assert described.controller_id == 1
    assert [(node.broker_id, node.host) for node in described.brokers] == [(1, "127.0.0.1")]


def test_versions_tell_what_is_served_and_at_which_levels(controller: Controller) -> None:
    offered = controller.node.service.versions()
    assert set(offered.versions()) >= set(SERVED)
    levels = {feature.name: feature.max_version_level for feature in offered.finalized_features}
    assert levels["metadata.version"] == 30
    assert offered.finalized_features_epoch == controller.image.provenance.last_offset


def test_a_decision_that_contradicts_the_log_is_not_appended_and_ends_the_leadership(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(_: View, __: Any, ___: int) -> Decision:
        answer = topics.DeleteTopicsResponse(throttle_time_ms=0, responses=())
        return Decision(answer, (RemoveTopicRecord("9" * 32),))

    monkeypatch.setattr(
        "splitbrain.nodes.controller.roles.active.HANDLERS", {ApiKey.DELETE_TOPICS: wrong}
    )
    end = controller.node.replica.log_end_offset
    number = controller.call(
        ApiKey.DELETE_TOPICS, topics.DeleteTopicsRequest(topic_names=("t",), timeout_ms=1), 5
    )
    controller.world.until(lambda: number in controller.world.replies)
    reply: Any = controller.world.replies[number]
    assert [each.error_code for each in reply.responses] == [ApiError.UNKNOWN_SERVER_ERROR]
    assert controller.node.replica.log_end_offset == end
    assert "error wrong decision" in controller.world.lines
    assert "info controller renounced" in controller.world.lines


def test_an_idle_leader_writes_that_it_is_there() -> None:
    controller = Controller(max_idle_interval_ms=500)
    controller.lead()
    end = controller.node.replica.log_end_offset
    started = controller.world.time_us
    controller.world.until(lambda: controller.node.replica.log_end_offset >= end + 4)
    assert controller.world.time_us - started >= 3 * SECOND_US // 2


def test_more_than_a_batch_takes_is_appended_in_several(controller: Controller) -> None:
    small = Controller(records_per_batch_max=2)
    small.lead()
    small.beat(small.register().broker_epoch)
    # The registration and its unfencing went in their own batches; the levels in four.
    assert dict(small.image.features) == dict(controller.image.features)
    assert not small.image.brokers[5].fenced


def test_a_client_of_registers_is_told_that_there_are_none(controller: Controller) -> None:
    answer = controller.world.ask(controller.node, ClientRequest(1, "read", "r", None, "o1"))
    assert answer.outcome == "invalid-request"
    status = controller.world.ask(controller.node, ClientRequest(2, "status", "", None, "o2"))
    assert isinstance(status.result, NodeState)
    assert status.result.role == "leader"


def test_equal_logs_make_equal_digests_and_a_snapshot_tells_the_image(
    controller: Controller,
) -> None:
    controller.beat(controller.register().broker_epoch)
    machine = controller.machine
    assert machine is not None
    values = machine.freeze()
    assert values is not None
    other = MetadataMachine()
    loading = other.begin_loading()
    for value in values():
        loading.add(value)
    loading.install(machine.end_offset)
    assert other.digest() == machine.digest()
    assert other.end_offset == machine.end_offset


def test_a_life_begins_with_the_newest_snapshot_and_what_came_after_it() -> None:
    settings = msgspec.structs.replace(SETTINGS, snapshot_max_new_record_bytes=2_000)
    controller = Controller(settings)
    controller.lead()
    controller.beat(controller.register().broker_epoch)
    for number in range(20):
        controller.ask(ApiKey.CREATE_TOPICS, creation(f"t{number}"), 7)
    controller.world.until(lambda: controller.node.replica.newest_snapshot is not None)
    written = controller.node.replica.newest_snapshot
    assert written is not None
    controller.ask(ApiKey.CREATE_TOPICS, creation("last"), 7)
    before = controller.image
    controller.node.end(0, "over")
    controller.node.close()
    controller.world.crash()
    controller.node = controller.begin()
    assert controller.machine is not None
    assert controller.machine.end_offset >= written.end_offset
    controller.world.lead(controller.node)
    controller.world.until(lambda: controller.image.topics.named("last") is not None)
    assert controller.image.topics == before.topics
    assert controller.image.brokers == before.brokers
    assert controller.image.features == before.features


def test_beyond_what_may_wait_a_request_is_refused_at_once_and_the_others_are_answered(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_service, "WAITING_COUNT_MAX", 3)
    controller.beat(controller.register().broker_epoch)
    numbers = [controller.call(ApiKey.CREATE_TOPICS, creation(f"t{n}"), 7) for n in range(5)]
    refused: list[Any] = [controller.world.replies[number] for number in numbers[3:]]
    assert {each.topics[0].error_code for each in refused} == {ApiError.NOT_CONTROLLER}
    controller.world.until(lambda: all(number in controller.world.replies for number in numbers))
    assert {f"t{n}" for n in range(5) if controller.image.topics.named(f"t{n}")} == {
        "t0",
        "t1",
        "t2",
    }
    assert controller.ask(ApiKey.CREATE_TOPICS, creation("t4"), 7).topics[0].error_code == 0


def test_brokers_are_counted_by_fence_and_partitions_over_all_topics() -> None:
    records = [broker(1), broker(2), broker(3, fenced=True)]
    topics = [*topic("a", "ab" * 16, count=2), *topic("b", "cd" * 16, count=3)]
    image = image_with([*records, *topics])
    assert image_figures(image) == {
        "active_broker_count": 2,
        "fenced_broker_count": 1,
        "topic_count": 2,
        "partition_count": 5,
    }


def test_an_empty_image_counts_nothing() -> None:
    assert set(image_figures(MetadataImage()).values()) == {0}
