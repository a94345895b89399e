"""Topics for clients of ours: answers are certain, or say that they are not."""

from typing import Any

import pytest

from splitbrain.nodes.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.quorum.effects import AnswerRead, RejectRead
from splitbrain.nodes.quorum.events import ReadRequested
from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.server.controller.controller_service import ControllerService
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.apis import ApiKey
from tests.unit.nodes.server.lone_controller import Controller, creation

SECOND_US = 1_000_000


@pytest.fixture
def controller() -> Controller:
    """It leads, and knows one broker that is not fenced."""
    made = Controller()
    made.lead()
    made.beat(made.register().broker_epoch)
    return made


def ask(controller: Controller, kind: Any, key: str = "t", value: Any = None) -> ClientAnswer:
    return controller.world.ask(controller.node, ClientRequest(7, kind, key, value))


def handed_in(controller: Controller, request: ClientRequest) -> list[ClientAnswer]:
    answers: list[ClientAnswer] = []
    controller.node.service.handle(request, answers.append)
    return answers


def record_at(controller: Controller, offset: int | None) -> Any:
    assert offset is not None
    node = controller.node
    for batch in node.parts.disk.batches(Offset(offset), node.replica.log_end_offset):
        for record in batch.records:
            if record.offset == offset:
                return decode_record(record.value or b"")
    raise AssertionError(f"nothing at {offset}")


def test_a_creation_is_answered_with_the_place_of_its_record(controller: Controller) -> None:
    created = ask(controller, "create-topic", value=2)
    assert (created.outcome, created.definite, created.result) == ("ok", True, True)
    assert created.epoch == controller.node.replica.epoch
    record = record_at(controller, created.offset)
    assert isinstance(record, TopicRecord)
    assert record.name == "t"
    assert created.offset is not None
    assert isinstance(record_at(controller, created.offset + 2), PartitionRecord)
    described = ask(controller, "describe-topic")
    assert (described.outcome, described.result) == ("ok", 2)
    assert described.offset == created.offset + 3


def test_a_deletion_is_answered_with_the_place_of_its_record(controller: Controller) -> None:
    ask(controller, "create-topic", value=1)
    topic = controller.image.topics.named("t")
    assert topic is not None
    deleted = ask(controller, "delete-topic")
    assert (deleted.outcome, deleted.result) == ("ok", True)
    record = record_at(controller, deleted.offset)
    assert record == RemoveTopicRecord(topic.topic_id)
    described = ask(controller, "describe-topic")
    assert (described.outcome, described.result) == ("ok", None)


def test_what_is_there_already_and_what_is_not_there_is_said(controller: Controller) -> None:
    ask(controller, "create-topic", value=1)
    end = controller.node.replica.log_end_offset
    again = ask(controller, "create-topic", value=5)
    assert (again.outcome, again.definite, again.result) == ("ok", True, False)
    missing = ask(controller, "delete-topic", "u")
    assert (missing.outcome, missing.definite, missing.result) == ("ok", True, False)
    # There is no record, so none is named.
    assert (again.offset, missing.offset) == (None, None)
    assert controller.node.replica.log_end_offset == end


def test_a_topic_without_a_number_has_the_clusters(controller: Controller) -> None:
    assert ask(controller, "create-topic").result is True
    assert ask(controller, "describe-topic").result == controller.settings.num_partitions


def test_how_many_replicas_a_topic_has_does_not_depend_on_when_it_is_asked_for() -> None:
    """Of the cluster's two brokers one comes later; a topic with one replica would keep it."""
    controller = Controller(default_replication_factor=2)
    controller.lead()
    controller.beat(controller.register().broker_epoch)
    refused = ask(controller, "create-topic", value=4)
    assert (refused.outcome, refused.definite) == ("invalid-request", True)
    assert "INVALID_REPLICATION_FACTOR" in (refused.reason or "")
    assert "only 1 broker(s) are registered" in (refused.reason or "")
    epoch = controller.register(6).broker_epoch
    for name in ("fenced", "running"):
        assert ask(controller, "create-topic", name, 4).result is True
        topic = controller.image.topics.named(name)
        assert topic is not None
        assert {len(each.replicas) for each in topic.partitions} == {2}
        controller.beat(epoch, 6)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("", 1, "INVALID_TOPIC_EXCEPTION"),
        ("a/b", 1, "INVALID_TOPIC_EXCEPTION"),
        ("t", 0, "INVALID_PARTITIONS"),
        ("t", -2, "INVALID_PARTITIONS"),
        ("t", "2", "needs a number"),
        ("t", True, "needs a number"),
        ("t", 1 << 40, "needs a number"),
        ("t", 100_000, "POLICY_VIOLATION"),
    ],
)
def test_what_cannot_be_created_is_refused(
    controller: Controller, key: str, value: Any, reason: str
) -> None:
    end = controller.node.replica.log_end_offset
    refused = ask(controller, "create-topic", key, value)
    assert (refused.outcome, refused.definite) == ("invalid-request", True)
    assert reason in (refused.reason or "")
    assert controller.node.replica.log_end_offset == end


def test_without_a_broker_nothing_is_created() -> None:
    controller = Controller()
    controller.lead()
    refused = ask(controller, "create-topic", value=1)
    assert (refused.outcome, refused.definite) == ("invalid-request", True)
    assert "INVALID_REPLICATION_FACTOR" in (refused.reason or "")


def test_who_does_not_lead_says_so() -> None:
    controller = Controller()
    for kind in ("create-topic", "delete-topic", "describe-topic"):
        refused = ask(controller, kind, value=1)
        assert (refused.outcome, refused.definite) == ("not-leader", True)


def test_an_answer_waits_until_what_it_tells_is_committed(controller: Controller) -> None:
    end = controller.node.replica.log_end_offset
    first = handed_in(controller, ClientRequest(1, "create-topic", "t", 1))
    second = handed_in(controller, ClientRequest(2, "create-topic", "t", 1))
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    controller.world.until(lambda: not controller.world.turns)
    assert (first, second) == ([], [])
    controller.world.until(lambda: bool(first) and bool(second))
    assert controller.image.topics.named("t") is not None
    assert [first[0].result, second[0].result] == [True, False]


@pytest.mark.planted("ack-before-commit")
def test_with_the_planted_bug_an_answer_does_not_wait(controller: Controller) -> None:
    answers = handed_in(controller, ClientRequest(1, "create-topic", "t", 1))
    controller.world.until(lambda: bool(answers))
    assert controller.image.topics.named("t") is None
    controller.world.until(lambda: controller.image.topics.named("t") is not None)
    assert [answer.result for answer in answers] == [True]


def test_a_leadership_that_ends_leaves_what_is_appended_open(controller: Controller) -> None:
    end = controller.node.replica.log_end_offset
    appended = handed_in(controller, ClientRequest(1, "create-topic", "t", 1))
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    queued = handed_in(controller, ClientRequest(2, "create-topic", "u", 1))
    read = handed_in(controller, ClientRequest(3, "describe-topic", "t"))
    controller.node.resign()
    controller.world.until(lambda: bool(read))
    assert [(each.outcome, each.definite) for each in appended] == [("unknown", False)]
    assert [(each.outcome, each.definite) for each in queued] == [("not-leader", True)]
    assert [(each.outcome, each.definite) for each in read] == [("not-leader", True)]


def test_what_saw_something_is_nothing_once_the_leadership_has_ended(
    controller: Controller,
) -> None:
    end = controller.node.replica.log_end_offset
    handed_in(controller, ClientRequest(1, "create-topic", "t", 1))
    again = handed_in(controller, ClientRequest(2, "create-topic", "t", 1))
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    controller.world.until(lambda: not controller.world.turns)
    assert again == []
    controller.node.resign()
    assert [(each.outcome, each.definite) for each in again] == [("not-leader", True)]


def test_an_answer_that_changes_nothing_is_confirmed_by_the_quorum(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may lead by now, and have created or deleted the topic."""
    service = controller.node.service
    assert isinstance(service, ControllerService)
    requests: list[ReadRequested] = []
    feed = service._topics.reads  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(feed, "_ask", requests.append)
    answers = handed_in(controller, ClientRequest(1, "delete-topic", "t"))
    controller.world.until(lambda: bool(requests))
    assert answers == []
    service.read_rejected(RejectRead(requests[0].read_id, None, controller.node.replica.epoch))
    assert [(each.outcome, each.definite) for each in answers] == [("not-leader", True)]
    answers = handed_in(controller, ClientRequest(2, "delete-topic", "t"))
    controller.world.until(lambda: len(requests) == 2)
    end = Offset(controller.image.provenance.end_offset)
    service.confirmed(AnswerRead(requests[1].read_id, end, controller.node.replica.epoch))
    assert [(each.outcome, each.result) for each in answers] == [("ok", False)]


def test_a_description_waits_for_the_offset_that_was_confirmed(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = controller.node.service
    assert isinstance(service, ControllerService)
    requests: list[ReadRequested] = []
    reads = service._topics.reads  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(reads, "_ask", requests.append)
    answers = handed_in(controller, ClientRequest(1, "describe-topic", "t"))
    controller.world.until(lambda: bool(requests))
    number = controller.call(ApiKey.CREATE_TOPICS, creation("t"), 7)
    end = controller.node.replica.log_end_offset
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    offset = Offset(controller.node.replica.log_end_offset)
    service.confirmed(AnswerRead(requests[0].read_id, offset, controller.node.replica.epoch))
    assert answers == []
    controller.world.until(lambda: number in controller.world.replies)
    assert [(each.result, each.offset) for each in answers] == [(2, offset)]


def test_who_waits_too_long_is_told_whether_it_may_still_happen(controller: Controller) -> None:
    world = controller.world
    appended = handed_in(controller, ClientRequest(1, "create-topic", "t", 1, timeout_ms=10))
    end = controller.node.replica.log_end_offset
    world.until(lambda: controller.node.replica.log_end_offset > end)
    again = handed_in(controller, ClientRequest(2, "create-topic", "t", 1, timeout_ms=10))
    world.until(lambda: not world.turns)
    queued = handed_in(controller, ClientRequest(3, "create-topic", "u", 1, timeout_ms=10))
    world.time_us += SECOND_US
    # The clock rings before the disk has done its work, and before the queue has its turn.
    for handle in [each for each in world.handles if each.time_us < world.time_us]:
        if handle.action is not None:
            handle.action()
            handle.cancel()
    assert [(each.outcome, each.definite) for each in appended] == [("timeout", False)]
    assert [(each.outcome, each.definite) for each in again] == [("timeout", True)]
    assert [(each.outcome, each.definite) for each in queued] == [("timeout", True)]
    end = controller.node.replica.log_end_offset
    world.until(lambda: controller.image.topics.named("t") is not None)
    world.until(lambda: not world.turns)
    # A client told that nothing happens was told the truth.
    assert controller.image.topics.named("u") is None
    assert [len(each) for each in (appended, again, queued)] == [1, 1, 1]


def test_a_node_that_stops_answers_everybody(controller: Controller) -> None:
    end = controller.node.replica.log_end_offset
    appended = handed_in(controller, ClientRequest(1, "create-topic", "t", 1))
    controller.world.until(lambda: controller.node.replica.log_end_offset > end)
    queued = handed_in(controller, ClientRequest(2, "create-topic", "u", 1))
    read = handed_in(controller, ClientRequest(3, "describe-topic", "t"))
    controller.node.service.stop()
    late = handed_in(controller, ClientRequest(4, "delete-topic", "t"))
    assert [(each.outcome, each.definite) for each in appended] == [("unknown", False)]
    for answers in (queued, read, late):
        assert [(each.outcome, each.definite) for each in answers] == [("stopping", True)]


def test_registers_are_not_here(controller: Controller) -> None:
    refused = ask(controller, "write", "r", 1)
    assert (refused.outcome, refused.definite) == ("invalid-request", True)
