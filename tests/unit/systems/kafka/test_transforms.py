"""Transforms in a pretended Kafka: outputs and offset go together, and whoever is fenced yields."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import pytest
from kafka.protocol.producer.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.systems.kafka import transforms
from splitbrain.systems.kafka.driver import KafkaDriver
from tests.unit.systems.compose_file.fake_kafka import brokers, targets
from tests.unit.systems.kafka.fake_groups import GroupBroker

N1 = NodeName("n1")
TOPICS = {"splitbrain": 4, "__consumer_offsets": 4}
TRANSFORM, ABANDON = (Operation(f, None, "0") for f in ("transform", "abandon"))
FETCH = Operation("fetch-offsets", None, None)
NOT_COORDINATOR, CONCURRENT, UNSTABLE, OLD_EPOCH, FENCED = 16, 51, 88, 47, 90

Change = Callable[["TransformBroker"], None]


class TransformBroker(GroupBroker):
    """Coordinates transactions, too, that commit offsets."""

    kinds: ClassVar[dict[Any, Any]] = {
        **GroupBroker.kinds,
        AddOffsetsToTxnRequest: AddOffsetsToTxnResponse,
        TxnOffsetCommitRequest: TxnOffsetCommitResponse,
    }

    def __init__(self, number: int, shared: Any) -> None:
        super().__init__(number, shared)
        #: Another coordinates, and it does not know: it tells what it has, and commits nothing.
        self.is_deposed = False
        self.pending: dict[int, int] = {}
        #: Groups that transactions were told to have offsets of.
        self.joined: list[str] = []

    def _error(self, name: str) -> Any:
        return 0 if self.is_deposed and name == "OffsetFetch" else super()._error(name)

    def _addoffsetstotxn(self, request: Any, answer: Any) -> Any:
        self.joined.append(request.group_id)
        return answer(throttle_time_ms=0, error_code=self._error("AddOffsetsToTxn"))

    def _txnoffsetcommit(self, request: Any, answer: Any) -> Any:
        code = self._error("TxnOffsetCommit")
        (topic,) = request.topics
        (row,) = topic.partitions
        if not code:
            self.pending[row.partition_index] = row.committed_offset
        kind = answer.TxnOffsetCommitResponseTopic
        told = kind.TxnOffsetCommitResponsePartition(
            partition_index=row.partition_index, error_code=code
        )
        return answer(throttle_time_ms=0, topics=[kind(name=topic.name, partitions=[told])])

    def _endtxn(self, request: Any, answer: Any) -> Any:
        told = super()._endtxn(request, answer)
        if not told.error_code and request.committed:
            self.group.committed.update(self.pending)
        self.pending.clear()
        return told


def told(
    *steps: Operation | Change, count: int = 1, timeout_s: float = 20.0, **options: str
) -> tuple[list[Completion], Sequence[TransformBroker]]:
    """Ask brokers with three inputs, and change them in between; the answers, and them."""

    async def ask() -> tuple[list[Completion], Sequence[TransformBroker]]:
        answers: list[Completion] = []
        async with brokers(count, TOPICS, TransformBroker) as found:
            # All partitions of a pretended broker are one, and outputs are inputs, too.
            for broker in found:
                broker.log = [msgspec.json.encode(("0", 10 + offset)) for offset in range(3)]
            named = {name.replace("_", "."): value for name, value in options.items()}
            driver = KafkaDriver(named, {}, "transform")
            driver.targets = targets(found)
            client = driver.open_client(N1, found[0].address)
            for step in steps:
                if isinstance(step, Operation):
                    answers.append(await client.invoke(step, timeout_s))
                else:
                    step(found[0])  # type: ignore[arg-type]
            await client.close()
        return answers, found  # type: ignore[return-value]

    return asyncio.run(ask())


def erring(name: str, *codes: Any) -> Change:
    return lambda broker: broker.errors.setdefault(name, []).extend(codes)


def answer(start: int, *values: Any) -> dict[str, Any]:
    inputs = [[offset, value] for offset, value in enumerate(values, start)]
    end = start + len(values)
    return {"log": "0", "from": start, "to": end, "inputs": inputs, "taken-as": [70, 1]}


def outputs(broker: TransformBroker) -> list[Any]:
    return [msgspec.json.decode(value) for value in broker.log[3:]]


def test_outputs_and_offset_are_committed_together() -> None:
    def begun_before(broker: GroupBroker) -> None:
        broker.group.committed = {0: 1}

    (done,), (broker,) = told(begun_before, TRANSFORM)
    assert (done.type, done.value, done.node) == ("ok", answer(1, 11, 12), "n1")
    assert outputs(broker) == [["3", ["0", 1, 11]], ["2", ["0", 2, 12]]]
    assert broker.group.committed == {0: 3, 2: 0}
    assert broker.ended == [(1, True)]
    assert [in_transaction for *_, in_transaction in broker.stamps] == [True, True]
    # It was asked for what was committed only after the one before it was fenced.
    known = ("InitProducerId", "OffsetCommit", "OffsetFetch", "EndTxn")
    assert [name for name in broker.heard if name in known] == [*known]
    assert broker.group.commits == [("", -1, {2: 0})]
    assert "AddOffsetsToTxn" not in broker.heard


@pytest.mark.parametrize(
    ("options", "begins"), [({}, 3), ({"offsets_read": "plain"}, 0)], ids=["usual", "plain"]
)
def test_a_coordinator_that_was_replaced_is_not_asked_where_to_begin(
    options: dict[str, str], begins: int
) -> None:
    def another_coordinates(broker: TransformBroker) -> None:
        broker.shared.coordinator = 2

    def forget(broker: TransformBroker) -> None:
        broker.is_deposed, broker.silent = True, {"OffsetCommit"}

    steps = (another_coordinates, TRANSFORM, ABANDON, forget, TRANSFORM)
    answers, _ = told(*steps, count=2, timeout_s=2.0, **options)
    assert [(each.type, each.value["from"]) for each in answers] == [
        ("ok", 0),
        ("ok", 3),
        ("ok", begins),
    ]


def test_before_kip_890_the_transaction_is_told_of_the_group() -> None:
    _, (broker,) = told(TRANSFORM, transaction_version="1")
    assert broker.joined == ["splitbrain-group"]
    assert broker.group.committed == {0: 3, 2: 0}


def test_it_reads_on_by_itself_until_it_gives_up_what_it_did() -> None:
    answers, (broker,) = told(TRANSFORM, TRANSFORM, ABANDON, TRANSFORM)
    assert [each.value["from"] for each in answers] == [0, 3, 6, 6]
    # Epochs that the ends of transactions raise are no other owner's.
    first, *others, last = [each.value["taken-as"] for each in answers]
    assert others == [first, first]
    assert last > first
    assert [committed for _, committed in broker.ended] == [True, True, False, True]
    assert broker.heard.count("InitProducerId") == broker.heard.count("OffsetFetch") == 2
    assert broker.group.committed[0] == answers[-1].value["to"]


def test_where_nothing_is_to_be_read_no_transaction_is_begun() -> None:
    def at_the_end(broker: GroupBroker) -> None:
        broker.group.committed = {0: 3}

    answers, (broker,) = told(at_the_end, TRANSFORM, ABANDON)
    assert [(each.type, each.value) for each in answers] == [("ok", answer(3))] * 2
    assert not {"Produce", "TxnOffsetCommit", "EndTxn"} & {*broker.heard}


def test_an_offset_that_may_change_yet_is_asked_for_again() -> None:
    (done,), (broker,) = told(erring("OffsetFetch", UNSTABLE, UNSTABLE), TRANSFORM)
    assert done.type == "ok"
    assert broker.heard.count("OffsetFetch") == 3
    assert broker.heard.count("InitProducerId") == 1


def test_an_offset_is_sent_again_until_its_coordinator_takes_it() -> None:
    (done,), (broker,) = told(erring("TxnOffsetCommit", CONCURRENT, NOT_COORDINATOR), TRANSFORM)
    assert done.type == "ok"
    assert broker.heard.count("TxnOffsetCommit") == 3
    assert broker.ended == [(1, True)]


def test_an_offset_that_is_refused_is_no_commit() -> None:
    answers, (broker,) = told(erring("TxnOffsetCommit", FENCED), TRANSFORM)
    assert [(each.type, each.error) for each in answers] == [("fail", "producer-fenced")]
    assert broker.ended == []


@pytest.mark.parametrize("code", [OLD_EPOCH, FENCED])
def test_whoever_is_fenced_leaves_the_input_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    now = 100.0
    monkeypatch.setattr(transforms.time, "monotonic", lambda: now)

    def fence(broker: GroupBroker) -> None:
        broker.produce_errors = [(code, -1)]

    def later(_: GroupBroker) -> None:
        nonlocal now
        now += 1.0

    answers, (broker,) = told(fence, TRANSFORM, TRANSFORM, later, TRANSFORM)
    assert [each.type for each in answers] == ["fail", "fail", "ok"]
    assert answers[1].error == "input-of-another"
    assert broker.heard.count("InitProducerId") == 2


def test_a_commit_without_an_answer_is_open_and_the_next_begins_anew() -> None:
    def silence(broker: GroupBroker) -> None:
        broker.silent = {"EndTxn"}

    def speak(broker: GroupBroker) -> None:
        broker.silent = set()

    answers, (broker,) = told(silence, TRANSFORM, ABANDON, speak, TRANSFORM, timeout_s=1.0)
    assert [(each.type, each.error) for each in answers[:2]] == [
        ("info", "timeout"),
        # Nobody ever asks for it to be committed.
        ("fail", "timeout"),
    ]
    assert answers[2].type == "ok"
    assert broker.heard.count("InitProducerId") == 3


def test_offsets_that_go_apart_follow_the_commit() -> None:
    answers, (broker,) = told(TRANSFORM, ABANDON, offsets="apart")
    assert [each.type for each in answers] == ["ok", "ok"]
    order = [name for name in broker.heard if name in ("EndTxn", "OffsetCommit")]
    assert order == ["OffsetCommit", "EndTxn", "OffsetCommit", "EndTxn"]
    assert "TxnOffsetCommit" not in broker.heard
    assert broker.group.commits == [("", -1, {2: 0}), ("", -1, {0: 3})]


def test_committed_offsets_are_told() -> None:
    answers, _ = told(TRANSFORM, FETCH)
    assert (answers[1].type, answers[1].value) == ("ok", {"0": 3, "1": None, "2": 0, "3": None})
