"""Polls at the replica that the leader names for a client's rack, against pretended brokers."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.systems.kafka.driver import KafkaDriver
from tests.unit.systems.compose_file.fake_kafka import FakeBroker, batch, brokers, targets
from tests.unit.systems.kafka.test_adapter import configuration, system_with

OUT_OF_RANGE = 1


class RackBroker(FakeBroker):
    """A broker whose leader names the broker of a client's rack, as long as it is in sync."""

    #: Racks for which the leader was asked, and offsets that followers were asked for.
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.racks: list[str] = []
        self.in_rack: dict[str, int] = {"n2": 2}

    def _fetch(self, request: Any, answer: Any) -> Any:
        if request.API_VERSION < 11:
            return super()._fetch(request, answer)
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert asked.current_leader_epoch == -1
        self.racks.append(request.rack_id)
        named = self.in_rack.get(request.rack_id, -1) if self.leads else -1
        end = len(self.log) if self.high_watermark is None else self.high_watermark
        found = [] if named > 0 else enumerate(self.log[asked.fetch_offset :], asked.fetch_offset)
        row = answer.FetchableTopicResponse.PartitionData(
            partition_index=asked.partition,
            error_code=self.fetch_error,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=0,
            aborted_transactions=[],
            preferred_read_replica=named,
            records=b"".join(batch(offset, value) for offset, value in found),
        )
        told = answer.FetchableTopicResponse(topic=topic.topic, partitions=[row])
        return answer(throttle_time_ms=0, error_code=0, session_id=0, responses=[told])


Step = Operation | Callable[[Sequence[RackBroker]], None]


def told(*steps: Step, rack: str = "own") -> tuple[list[Completion], Sequence[RackBroker]]:
    """Completions of a client whose own node is n2, and the brokers, of which n1 leads."""

    async def run() -> tuple[list[Completion], Sequence[RackBroker]]:
        async with brokers(2, {"splitbrain": 12}, RackBroker) as found:
            driver = KafkaDriver({"client.rack": rack}, {}, "log")
            driver.targets = targets(found)
            client = driver.open_client(NodeName("n2"), driver.targets[NodeName("n2")])
            answers: list[Completion] = []
            for step in steps:
                if isinstance(step, Operation):
                    answers.append(await client.invoke(step, 5.0))
                else:
                    step(found)  # type: ignore[arg-type]
            await client.close()
            return answers, found  # type: ignore[return-value]

    return asyncio.run(run())


def poll(places: dict[str, int] | None = None, *, final: bool = False) -> Operation:
    asked: list[Any] = ["poll"] if places is None else ["poll", places]
    return Operation("poll", None, [asked], final=final)


def holding(number: int, *values: int, mark: int | None = None) -> Step:
    """A broker holds these values, and knows that so many of them are committed."""

    def hold(found: Sequence[RackBroker]) -> None:
        found[number - 1].log = [msgspec.json.encode(("0", value)) for value in values]
        found[number - 1].high_watermark = mark

    return hold


def test_a_client_polls_at_the_replica_of_its_rack_and_goes_on_there() -> None:
    answers, (leader, follower) = told(
        holding(1, 7, 8, 9), holding(2, 7, 8), poll({"0": 0}), holding(2, 7, 8, 9), poll()
    )
    assert [answer.value for answer in answers] == [
        [["poll", {"0": [[0, 7], [1, 8]]}, {"0": 2}]],
        [["poll", {"0": [[2, 9]]}, {"0": 3}]],
    ]
    assert (leader.racks, follower.racks) == (["n2"], ["n2", "n2"])


def test_what_a_follower_does_not_know_to_be_committed_is_not_read() -> None:
    (answer,), _ = told(holding(1, 7, 8), holding(2, 7, 8, mark=1), poll({"0": 0}))
    assert answer.value == [["poll", {"0": [[0, 7]]}, {"0": 1}]]


def test_a_replica_that_refuses_is_given_up_for_the_leader() -> None:
    def refuse(found: Sequence[RackBroker]) -> None:
        found[1].fetch_error = OUT_OF_RANGE
        found[0].in_rack = {}

    answers, (leader, follower) = told(
        *(holding(1, 7, 8), holding(2, 7), poll({"0": 0}), refuse, poll(), poll())
    )
    assert [answer.type for answer in answers] == ["ok", "fail", "ok"]
    assert answers[1].error == "offset-out-of-range"
    assert answers[2].value == [["poll", {"0": [[1, 8]]}, {"0": 2}]]
    assert (len(leader.racks), len(follower.racks)) == (2, 2)


def test_a_final_read_is_the_leaders() -> None:
    (answer,), (_, follower) = told(holding(1, 7, 8), holding(2, 7), poll({"0": 0}, final=True))
    assert answer.value == [["poll", {"0": [[0, 7], [1, 8]]}, {"0": 2}]]
    assert follower.racks == []


def test_without_the_setting_the_leader_alone_is_asked() -> None:
    (answer,), (leader, follower) = told(
        holding(1, 7, 8), holding(2, 7), poll({"0": 0}), rack="none"
    )
    assert answer.value == [["poll", {"0": [[0, 7], [1, 8]]}, {"0": 2}]]
    assert leader.racks == follower.racks == []


def test_brokers_stand_in_racks_where_clients_ask_for_theirs(tmp_path: Path) -> None:
    with_racks = configuration(tmp_path / "own", system_with(3, client_rack="own"), "n2")
    assert with_racks["broker.rack"] == "n2"
    assert with_racks["replica.selector.class"].endswith(".RackAwareReplicaSelector")
    assert "broker.rack" not in configuration(tmp_path / "none", system_with(3), "n2")
