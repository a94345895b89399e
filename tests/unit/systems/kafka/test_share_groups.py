"""Members of a share group in a pretended Kafka: what they acquire, settle and lose."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.systems.kafka.driver import KafkaDriver
from tests.unit.systems.compose_file.fake_kafka import brokers, targets
from tests.unit.systems.kafka.fake_groups import UNKNOWN_MEMBER
from tests.unit.systems.kafka.fake_share_groups import (
    ACCEPT,
    LOCK_MS,
    NO_SESSION,
    REJECT,
    RELEASE,
    WRONG_STATE,
    ShareBroker,
)

N1 = NodeName("n1")
TOPICS = {"splitbrain": 4, "__consumer_offsets": 4}
ACQUIRE, LEAVE = (Operation(f, None, None) for f in ("acquire", "leave"))
DRAIN = Operation("acquire", None, None, final=True, drains=True)
NOT_COORDINATOR, STORAGE = 16, 56
TIMED_OUT = 7

Change = Callable[..., None]


def settle(kind: str = "accept") -> Operation:
    return Operation("settle", None, kind)


def told(
    *steps: Operation | Change, count: int = 1, timeout_s: float = 20.0
) -> tuple[list[Completion], Sequence[ShareBroker]]:
    """Ask brokers with three records, and change them in between; the answers, and them."""

    async def ask() -> tuple[list[Completion], Sequence[ShareBroker]]:
        answers: list[Completion] = []
        async with brokers(count, TOPICS, ShareBroker) as found:
            for broker in found:
                broker.log = [msgspec.json.encode(("0", 10 + offset)) for offset in range(3)]
            driver = KafkaDriver({}, {}, "share-groups")
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


def erring(name: str, *codes: Any) -> Change:
    return lambda first, *_: first.errors.setdefault(name, []).extend(codes)


def records(*offsets: int, count: int = 1) -> dict[str, list[list[int]]]:
    return {"0": [[offset, 10 + offset, count] for offset in offsets]}


def test_a_member_acquires_and_accepts_what_it_was_given() -> None:
    answers, (broker,) = told(ACQUIRE, settle(), ACQUIRE, settle(), ACQUIRE)
    first, accepted, second, rest, nothing = [each.value for each in answers]
    assert {each.type for each in answers} == {"ok"}
    epochs = {"0": [4, 4], "1": [4, 4]}
    member = first.pop("member")
    assert first == {
        "records": records(0, 1),
        "epochs": epochs,
        "unanswered": [],
        "lock-ms": LOCK_MS,
    }
    assert accepted == {
        "member": member,
        "settled": {"0": [0, 1]},
        "unclear": {},
        "epochs": {"0": [4, 4]},
    }
    assert (second["records"], rest["settled"]) == (records(2), {"0": [2]})
    # Logs of which a later answer says nothing had nothing.
    assert (nothing["records"], nothing["epochs"]) == ({}, epochs)
    assert broker.share.settled == [(0, 1, ACCEPT), (2, 2, ACCEPT)]
    assert broker.share.sessions == {member: (4, [0, 1])}


@pytest.mark.parametrize(("kind", "number"), [("release", RELEASE), ("reject", REJECT)])
def test_what_is_released_is_delivered_again_and_what_is_rejected_is_not(
    kind: str, number: int
) -> None:
    answers, (broker,) = told(ACQUIRE, settle(kind), ACQUIRE)
    again = records(0, 1, count=2) if kind == "release" else records(2)
    assert (answers[2].value["records"], broker.share.settled) == (again, [(0, 1, number)])


def test_what_was_acquired_in_turns_is_settled_at_once() -> None:
    def others_have_the_second(broker: ShareBroker) -> None:
        broker.share.holders[1] = "another"

    answers, (broker,) = told(others_have_the_second, ACQUIRE, ACQUIRE, settle())
    assert answers[0].value["records"] == records(0, 2)
    assert answers[1].value["records"] == {}
    assert answers[2].value["settled"] == {"0": [0, 2]}
    assert broker.share.settled == [(0, 0, ACCEPT), (2, 2, ACCEPT)]


def test_whoever_has_nothing_settles_nothing() -> None:
    answers, (broker,) = told(settle(), ACQUIRE, settle(), settle())
    assert [(each.type, each.error) for each in answers] == [
        ("fail", "nothing-acquired"),
        ("ok", None),
        ("ok", None),
        ("fail", "nothing-acquired"),
    ]
    assert broker.heard.count("ShareAcknowledge") == 1


@pytest.mark.parametrize(
    ("code", "unclear"), [(WRONG_STATE, {}), (STORAGE, {"0": [0, 1]}), (TIMED_OUT, {"0": [0, 1]})]
)
def test_what_a_leader_refuses_to_settle_is_not_settled_or_nobody_knows(
    code: int, unclear: dict[str, list[int]]
) -> None:
    answers, _ = told(ACQUIRE, erring("Settle", code), settle())
    assert answers[1].type == "ok"
    assert (answers[1].value["settled"], answers[1].value["unclear"]) == ({}, unclear)


def test_a_session_that_the_leader_does_not_know_is_begun_anew() -> None:
    answers, (broker,) = told(ACQUIRE, erring("ShareFetch", NO_SESSION), ACQUIRE, ACQUIRE)
    assert [each.value["unanswered"] for each in answers] == [[], ["0", "1"], []]
    # Whatever it had is given to it again.
    assert answers[2].value["records"] == records(0, 1, count=2)
    assert [number for number, _ in broker.share.sessions.values()] == [0]


def test_a_leader_that_does_not_answer_costs_its_logs_and_no_others() -> None:
    def freeze(broker: ShareBroker) -> None:
        broker.silent = {"ShareFetch"}

    def thaw(broker: ShareBroker) -> None:
        broker.silent = set()

    answers, _ = told(ACQUIRE, freeze, ACQUIRE, settle(), thaw, ACQUIRE, timeout_s=1.0)
    assert [each.type for each in answers] == ["ok", "ok", "fail", "ok"]
    assert (answers[1].value["unanswered"], answers[1].value["epochs"]) == (["0", "1"], {})
    assert answers[2].error == "nothing-acquired"
    assert answers[3].value["records"] == records(0, 1, count=2)


def test_a_settlement_without_an_answer_is_unclear() -> None:
    def freeze(broker: ShareBroker) -> None:
        broker.silent = {"ShareAcknowledge"}

    answers, _ = told(ACQUIRE, freeze, settle(), timeout_s=1.0)
    assert answers[1].value["unclear"] == {"0": [0, 1]}
    assert answers[1].value["epochs"] == {}


def test_a_leader_tells_its_epochs_before_and_after() -> None:
    def change(broker: ShareBroker) -> None:
        # Of logs 0 and 1, before and after.
        broker.epochs = [6, 6, 7, 6]

    answers, _ = told(ACQUIRE, change, ACQUIRE)
    assert answers[1].value["epochs"] == {"0": [6, 7], "1": [6, 6]}


def test_logs_that_it_lost_leave_its_session() -> None:
    def give(broker: ShareBroker) -> None:
        broker.group.given = [[1]]

    answers, (broker,) = told(ACQUIRE, settle(), give, ACQUIRE)
    assert [*answers[2].value["epochs"]] == ["1"]
    assert [partitions for _, partitions in broker.share.sessions.values()] == [[1]]


def test_a_member_that_the_group_has_removed_joins_anew() -> None:
    answers, (broker,) = told(ACQUIRE, erring("ShareGroupHeartbeat", UNKNOWN_MEMBER), ACQUIRE)
    assert [each.type for each in answers] == ["ok", "ok"]
    joined = [epoch for epoch, _ in broker.group.told].count(0)
    assert joined == 2


def test_whoever_leaves_gives_up_what_it_has() -> None:
    answers, (broker,) = told(ACQUIRE, LEAVE, settle(), LEAVE, ACQUIRE)
    member = answers[0].value["member"]
    assert [(each.type, each.value) for each in answers[1:2]] == [("ok", member)]
    assert (answers[2].error, answers[3].value) == ("nothing-acquired", None)
    assert broker.group.left == [member]
    assert answers[4].value["member"] != member


def test_without_a_coordinator_nothing_is_acquired() -> None:
    answers, (broker,) = told(erring("OffsetFetch", *[NOT_COORDINATOR] * 9), ACQUIRE, timeout_s=1.0)
    assert (answers[0].type, answers[0].error) == ("fail", "not-coordinator")
    assert "ShareFetch" not in broker.heard


def test_at_the_end_all_logs_are_read_until_there_is_no_more() -> None:
    answers, (broker,) = told(DRAIN, DRAIN, DRAIN)
    assert [each.type for each in answers] == ["ok"] * 3
    assert [each.value and each.value["records"] for each in answers] == [
        records(0, 1),
        records(2),
        None,
    ]
    assert broker.share.done == {0, 1, 2}
    assert [partitions for _, partitions in broker.share.sessions.values()] == [[0, 1, 2, 3]]


def test_an_end_that_was_not_seen_is_none() -> None:
    answers, _ = told(erring("ShareFetch", NO_SESSION), DRAIN)
    assert (answers[0].type, answers[0].error) == ("info", "unanswered")


def test_a_group_begins_at_the_start_of_its_logs() -> None:
    async def prepared() -> dict[str, str]:
        async with brokers(1, TOPICS, ShareBroker) as found:
            driver = KafkaDriver({}, {}, "share-groups")
            driver.targets = targets(found)
            await driver.prepare(found[0].address)
            return found[0].share.configs  # type: ignore[attr-defined]

    assert asyncio.run(prepared()) == {"share.auto.offset.reset": "earliest"}
