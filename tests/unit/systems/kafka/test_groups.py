"""Members of a group in a pretended Kafka: what they are given, deliver, commit and lose."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import LeaderView
from splitbrain.systems.kafka import driver as kafka_driver
from splitbrain.systems.kafka import groups
from splitbrain.systems.kafka.coordinator import CERTAINLY_NOT_COMMITTED, partition_of
from splitbrain.systems.kafka.driver import KafkaDriver
from splitbrain.systems.kafka.errors import error_name
from splitbrain.systems.kafka.members import shared_out
from tests.unit.systems.compose_file.fake_kafka import brokers, targets
from tests.unit.systems.kafka.fake_groups import (
    FENCED_EPOCH,
    ILLEGAL_GENERATION,
    REBALANCING,
    STALE_EPOCH,
    UNKNOWN_MEMBER,
    GroupBroker,
)

N1 = NodeName("n1")
TOPICS = {"splitbrain": 4, "__consumer_offsets": 4}
CONSUME, COMMIT, LEAVE, FETCH = (
    Operation(f, None, None) for f in ("consume", "commit", "leave", "fetch-offsets")
)
NOT_COORDINATOR, LOADING, TIMED_OUT, UNAVAILABLE = 16, 14, 7, 15

Change = Callable[..., None]


def send(value: int) -> Operation:
    return Operation("send", None, [["send", "0", value]])


def told(
    *steps: Operation | Change, count: int = 1, timeout_s: float = 20.0, protocol: str = "classic"
) -> tuple[list[Completion], Sequence[GroupBroker]]:
    """Ask brokers that coordinate a group, and change them in between; the answers, and them."""

    async def ask() -> tuple[list[Completion], Sequence[GroupBroker]]:
        answers: list[Completion] = []
        async with brokers(count, TOPICS, GroupBroker) as found:
            driver = KafkaDriver({"group.protocol": protocol}, {}, "groups")
            driver.targets = targets(found)
            client = driver.open_client(N1, found[0].address)
            for step in steps:
                if isinstance(step, Operation):
                    answers.append(await client.invoke(step, timeout_s))
                else:
                    step(*found)
            await client.close()
        return answers, found  # type: ignore[return-value]

    return asyncio.run(ask())


def records(*offsets: int) -> list[list[int]]:
    return [[offset, 10 + offset] for offset in offsets]


def filled(*found: GroupBroker) -> None:
    """Three records, in every log: all partitions of a pretended broker are one."""
    for broker in found:
        broker.log = [msgspec.json.encode(("0", 10 + offset)) for offset in range(3)]


def erring(name: str, *codes: Any) -> Change:
    return lambda first, *_: first.errors.setdefault(name, []).extend(codes)


def test_a_newcomer_is_named_leads_and_reads_from_the_committed_offsets() -> None:
    def change(broker: GroupBroker) -> None:
        filled(broker)
        broker.group.committed = {1: 2}
        broker.group.others = ["m0"]

    (first, second), (broker,) = told(change, CONSUME, CONSUME)
    assert (first.type, first.node) == ("ok", "n1")
    # The other of the two has the first half.
    assert first.value == {
        "member": "m1",
        "generation": 1,
        "logs": ["2", "3"],
        "began": {"2": None, "3": None},
        "records": {"2": records(0, 1, 2), "3": records(0, 1, 2)},
        "positions": {"2": 3, "3": 3},
    }
    assert broker.group.shares == {"m0": [0, 1], "m1": [2, 3]}
    assert (second.value["began"], second.value["records"]) == ({}, {})
    assert second.value["positions"] == {"2": 3, "3": 3}
    assert broker.heard.count("JoinGroup") == 2
    assert broker.heard.count("Heartbeat") == 1


def test_a_follower_gets_what_the_leader_gives_it() -> None:
    def change(broker: GroupBroker) -> None:
        filled(broker)
        broker.group.committed = {1: 2}
        broker.group.others, broker.group.others_lead = ["m0"], True
        broker.group.shares = {"m1": [1]}

    (answer,), _ = told(change, CONSUME)
    assert answer.value["logs"] == ["1"]
    assert (answer.value["began"], answer.value["records"]) == ({"1": 2}, {"1": records(2)})


@pytest.mark.parametrize(
    ("code", "name"),
    [(REBALANCING, "m1"), (ILLEGAL_GENERATION, "m1"), (UNKNOWN_MEMBER, "m2")],
)
def test_a_member_whose_group_went_on_begins_anew(code: int, name: str) -> None:
    (_, _, again, _), (broker,) = told(
        *(filled, CONSUME, COMMIT, erring("Heartbeat", code), CONSUME, CONSUME)
    )
    assert (again.value["member"], again.value["generation"]) == (name, 2)
    # Of all that it was given.
    assert again.value["began"] == dict.fromkeys(again.value["logs"], 3)
    assert broker.group.generation == 2


@pytest.mark.parametrize("name", ["JoinGroup", "SyncGroup"])
@pytest.mark.parametrize("code", [REBALANCING, UNKNOWN_MEMBER])
def test_a_join_that_comes_to_nothing_is_tried_again(name: str, code: int) -> None:
    (answer,), (broker,) = told(filled, erring(name, code), CONSUME)
    assert answer.type == "ok"
    assert answer.value["generation"] == broker.group.generation


def test_a_commit_is_of_all_that_was_delivered() -> None:
    answers, (broker,) = told(
        *(COMMIT, filled, CONSUME, COMMIT, send(13), COMMIT, CONSUME, COMMIT, FETCH)
    )
    assert (answers[0].type, answers[0].error) == ("fail", "nothing-delivered")
    offsets = dict.fromkeys("0123", 3)
    assert answers[2].value == {"member": "m1", "generation": 1, "offsets": offsets}
    assert broker.group.commits[1] == broker.group.commits[0]
    assert broker.group.commits[2] == ("m1", 1, dict.fromkeys(range(4), 4))
    assert answers[-1].value == dict.fromkeys("0123", 4)
    assert answers[-1].node == "n1"


def test_after_a_consume_that_failed_nothing_is_committed_and_the_next_begins_anew() -> None:
    def break_(broker: GroupBroker) -> None:
        broker.fetch_error = 56

    answers, (broker,) = told(
        *(filled, CONSUME, COMMIT, send(13), lambda one: one.broken.add("Fetch"), CONSUME, COMMIT),
        *(lambda one: one.broken.clear(), CONSUME, break_, CONSUME),
    )
    assert [answer.type for answer in answers] == ["ok", "ok", "ok", "fail", "fail", "ok", "ok"]
    assert answers[4].error == "nothing-delivered"
    # It is a member of the same generation.
    assert answers[5].value["generation"] == 1
    assert answers[5].value["began"] == dict.fromkeys("0123", 3)
    assert answers[5].value["records"]["0"] == [[3, 13]]
    # A log that nobody leads holds up no other.
    assert (answers[6].value["records"], answers[6].value["positions"]["0"]) == ({}, 4)
    assert len(broker.group.commits) == 1


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        *((code, "fail") for code in CERTAINLY_NOT_COMMITTED),
        *((code, "info") for code in (NOT_COORDINATOR, UNAVAILABLE, TIMED_OUT, 28, -1)),
    ],
)
def test_an_error_of_a_commit_is_certain_where_the_coordinator_looked_first(
    code: int, outcome: str
) -> None:
    answers, (broker,) = told(filled, CONSUME, erring("OffsetCommit", code), COMMIT)
    assert (answers[1].type, answers[1].error) == (outcome, error_name(code))
    assert broker.group.commits == []


@pytest.mark.parametrize("codes", [[0, 0, 0, 25], [25, 25, 25, 7]])
def test_a_commit_that_failed_in_part_is_open(codes: list[int]) -> None:
    answers, _ = told(filled, CONSUME, erring("OffsetCommit", codes), COMMIT)
    assert answers[1].type == "info"


def test_a_commit_without_an_answer_is_open_and_a_consume_delivered_nothing() -> None:
    answers, _ = told(
        *(filled, CONSUME, lambda one: one.silent.add("OffsetCommit"), COMMIT),
        *(lambda one: one.silent.add("ListOffsets"), CONSUME, COMMIT),
        timeout_s=1.0,
    )
    assert [answer.type for answer in answers] == ["ok", "info", "fail", "fail"]


def test_a_membership_outlives_its_coordinator() -> None:
    def move(first: GroupBroker, second: GroupBroker) -> None:
        first.shared.coordinator = 2
        second.group = first.group

    answers, (first, second) = told(filled, CONSUME, COMMIT, move, CONSUME, CONSUME, FETCH, count=2)
    assert [answer.type for answer in answers] == ["ok", "ok", "fail", "ok", "ok"]
    assert answers[2].error == "not-coordinator"
    assert (answers[3].value["generation"], answers[3].node) == (1, "n2")
    assert answers[3].value["began"] == dict.fromkeys("0123", 3)
    assert first.heard.count("JoinGroup") == 2
    assert "JoinGroup" not in second.heard


def test_where_nobody_coordinates_one_is_asked_for() -> None:
    def nobody(broker: GroupBroker) -> None:
        broker.shared.coordinator = 9

    answers, (broker,) = told(nobody, FETCH, CONSUME)
    assert {(answer.type, answer.error) for answer in answers} == {("fail", "not-coordinator")}
    assert broker.heard.count("FindCoordinator") == 2


def test_who_left_is_no_member() -> None:
    answers, (broker,) = told(filled, LEAVE, CONSUME, LEAVE, COMMIT, LEAVE, CONSUME)
    left = [answers[place].value for place in (0, 2, 4)]
    assert (left, broker.group.left) == ([None, "m1", None], ["m1"])
    assert answers[3].error == "nothing-delivered"
    assert answers[5].value["member"] == "m2"


def test_a_join_that_waits_for_others_goes_on_in_the_next_operation() -> None:
    async def ask() -> tuple[list[Completion], GroupBroker]:
        async with brokers(1, TOPICS, GroupBroker) as found:
            (broker,) = found
            assert isinstance(broker, GroupBroker)
            filled(broker)
            driver = KafkaDriver({}, {}, "groups")
            driver.targets = targets(found)
            client = driver.open_client(N1, broker.address)
            others = broker.waits["SyncGroup"] = asyncio.Event()
            answers = [await client.invoke(CONSUME, 1.0)]
            answers += [await client.invoke(step, 20.0) for step in (send(13), COMMIT, LEAVE)]
            others.set()
            answers.append(await client.invoke(CONSUME, 20.0))
            await client.close()
        return answers, broker

    answers, broker = asyncio.run(ask())
    assert [answer.error for answer in answers] == [
        *("rebalancing", None, "nothing-delivered", "rebalancing", None)
    ]
    assert answers[-1].value["records"]["0"] == [*records(0, 1, 2), [3, 13]]
    assert broker.heard.count("SyncGroup") == 1


def test_a_final_consume_reads_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_CONSUMED_MAX", 2)
    answers, _ = told(filled, CONSUME, CONSUME, Operation("leave", None, None))
    assert [answer.value["records"]["0"] for answer in answers[:2]] == [records(0, 1), records(2)]
    (answer,), _ = told(filled, Operation("consume", None, 0, final=True))
    assert answer.value["records"]["0"] == records(0, 1, 2)


def epoch_told(*steps: Operation | Change) -> tuple[list[Completion], GroupBroker]:
    answers, (broker,) = told(filled, *steps, protocol="consumer")
    return answers, broker


def test_a_member_with_an_epoch_says_what_it_owns_until_it_is_what_it_is_given() -> None:
    def given(broker: GroupBroker) -> None:
        broker.group.given = [[0, 1], [0, 1], [1], [1], [1, 2]]

    (first, commit, second, third), broker = epoch_told(given, CONSUME, COMMIT, CONSUME, CONSUME)
    member = first.value["member"]
    assert (first.value["epoch"], first.value["logs"]) == (1, ["0", "1"])
    assert first.value["began"] == {"0": None, "1": None}
    assert commit.value == {"member": member, "epoch": 1, "offsets": {"0": 3, "1": 3}}
    assert broker.group.commits == [(member, 1, {0: 3, 1: 3})]
    # One log was taken away, and the other goes on where it was.
    assert (second.value["logs"], second.value["began"]) == (["1"], {})
    assert second.value["positions"] == {"1": 3}
    assert (third.value["logs"], third.value["began"]) == (["1", "2"], {"2": None})
    assert broker.group.told == [
        *((0, []), (1, [0, 1])),
        *((1, [0, 1]), (2, [1])),
        *((2, [1]), (3, [1, 2])),
    ]
    assert broker.group.asked_as == [None, (member, 1), (member, 3)]


@pytest.mark.parametrize("code", [UNKNOWN_MEMBER, FENCED_EPOCH])
def test_a_member_that_was_fenced_gives_up_all_and_joins_anew(code: int) -> None:
    (_, commit, again, _), broker = epoch_told(
        *(CONSUME, erring("OffsetCommit", STALE_EPOCH), COMMIT),
        *(erring("ConsumerGroupHeartbeat", code), CONSUME, COMMIT),
    )
    assert (commit.type, commit.error) == ("fail", "stale-member-epoch")
    assert broker.group.told[2:4] == [(1, [0, 1]), (0, [])]
    assert again.value["began"] == {"0": None, "1": None}


def test_a_member_with_an_epoch_leaves_by_it() -> None:
    (_, left, refused), broker = epoch_told(CONSUME, LEAVE, COMMIT)
    assert left.type == "ok"
    assert broker.group.told[-1] == (-1, [0, 1])
    assert refused.error == "nothing-delivered"


@pytest.mark.parametrize("count", range(1, 7))
def test_logs_are_shared_out_evenly(count: int) -> None:
    shares = shared_out([f"m{n}" for n in range(count)])
    assert [log for logs in shares.values() for log in logs] == [0, 1, 2, 3]
    sizes = [len(logs) for logs in shares.values()]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _one, _two: None, None),
        (lambda one, _two: setattr(one.shared, "coordinator", 9), "nobody would coordinate"),
        (lambda _one, two: setattr(two, "_error", lambda _: 0), "n1 and n2 would coordinate"),
        (lambda _one, two: two.broken.add("OffsetFetch"), "n2 does not answer"),
        (lambda one, _two: one.shared.topics.pop("__consumer_offsets"), "__consumer_offsets"),
    ],
)
def test_a_group_has_come_to_rest_once_one_broker_coordinates_it_and_its_members_are_gone(
    change: Change, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def converge() -> None:
        async with brokers(2, TOPICS, GroupBroker) as found:
            change(*found)
            driver = KafkaDriver({}, {}, "groups")
            driver.targets = targets(found)
            with pytest.raises(HarnessError, match="may be in the group yet"):
                await driver.converged()
            monkeypatch.setattr(kafka_driver, "_MEMBERS_GONE_S", 0.0)
            await driver.converged()

    if says is None:
        asyncio.run(converge())
        return
    with pytest.raises(AssertionError, match=says):
        asyncio.run(converge())


@pytest.mark.parametrize(
    ("group", "number"), [("a", 97), ("hello", 99162322), ("polygenelubricants", 0)]
)
def test_a_group_has_its_partition_by_the_hash_of_java(group: str, number: int) -> None:
    assert partition_of(group) == number % 4


def test_the_leader_of_a_group_is_its_coordinator() -> None:
    async def ask() -> tuple[LeaderView, list[tuple[str, int]]]:
        async with brokers(2, TOPICS, GroupBroker) as found:
            found[0].shared.leader = 2
            driver = KafkaDriver({}, {}, "groups")
            driver.targets = targets(found)
            view = await driver.leader_of_first(20.0)
            coordinators = [broker for broker in found if isinstance(broker, GroupBroker)]
            return view, [asked for broker in coordinators for asked in broker.ends_asked]

    view, asked = asyncio.run(ask())
    assert view == LeaderView(NodeName("n2"), 4)
    assert asked == [("__consumer_offsets", partition_of("splitbrain-group"))] * 2


def test_logs_need_a_partition_each() -> None:
    with pytest.raises(UsageError, match="leaves no place for 4 logs"):
        KafkaDriver({"partitions": "3"}, {}, "groups")
