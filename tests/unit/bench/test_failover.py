"""Ends of failovers by acknowledgements, and the bench that measures them, in memory."""

import asyncio
import random
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import msgspec
import pytest

from bench import failover_arithmetic as arithmetic
from bench import failover_measurement
from bench.failover import settings_of
from bench.failover_arithmetic import (
    Acknowledgement,
    Failover,
    TimedFault,
    by_new_leader,
    ends,
    failover,
    leader_changed_before,
    quantile,
    spread,
)
from bench.failover_cluster import Cluster
from bench.failover_elections import idle, loaded, roles_taken
from bench.failover_measurement import FAULTS, Measurements, measure
from bench.failover_peers import TopicCreator
from bench.failover_table import picture, table
from bench.failover_writers import WriterOptions
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Runtime
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView, Route, System
from tests.unit.systems.compose_file.fake_kafka import brokers, targets

MS = 1_000_000
OLD, NEW = NodeName("n1"), NodeName("n2")
FAULT = TimedFault(leader=OLD, epoch_before=4, asked_ns=1_000 * MS, returned_ns=1_050 * MS)


def acknowledgement(
    invoked_ms: float, acknowledged_ms: float, epoch: int | None = 5, *, node: NodeName = NEW
) -> Acknowledgement:
    return Acknowledgement(
        int(invoked_ms * MS), int(acknowledged_ms * MS), node, epoch, follows=True
    )


def seen(node: NodeName, leader: NodeName | None, epoch: int | None) -> Acknowledgement:
    """Of a system whose writes tell no epoch."""
    return msgspec.structs.replace(
        acknowledgement(1_200, 1_210, None, node=node), view=LeaderView(leader, epoch)
    )


#: Acknowledgements around a fault in the order of arrival; only the last one counts.
STREAM = [
    acknowledgement(990, 995, 4, node=OLD),
    # Acknowledged by the leader that dies, while it is being killed.
    acknowledgement(1_005, 1_010, 4, node=OLD),
    # Invoked before the fault, appended by the new leader.
    acknowledgement(998, 1_150, 5),
    acknowledgement(1_190, 1_200, 5),
]


def test_the_first_write_of_the_new_leader_that_was_invoked_after_the_fault_counts() -> None:
    assert [ends(one, FAULT) for one in STREAM] == [False, False, False, True]
    assert failover(STREAM, FAULT) == Failover(50.0, 200.0, 200.0)


@pytest.mark.parametrize(
    ("rule", "wrong_ms"), [("invoked_after", 150.0), ("by_new_leader", 10.0)], ids=str
)
def test_without_one_of_the_rules_an_earlier_write_would_count(
    monkeypatch: pytest.MonkeyPatch, rule: str, wrong_ms: float
) -> None:
    monkeypatch.setattr(arithmetic, rule, lambda *_: True)
    result = failover(STREAM, FAULT)
    assert result is not None
    assert result.any_writer_ms == wrong_ms


def test_a_write_in_the_moment_of_the_fault_counts_and_the_old_leader_once_elected_anew() -> None:
    assert ends(acknowledgement(1_000, 1_100), FAULT)
    assert not ends(acknowledgement(1_500, 1_501, 4, node=OLD), FAULT)
    assert ends(acknowledgement(1_500, 1_501, 6, node=OLD), FAULT)


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (seen(NEW, NEW, 5), True),
        # The old leader goes on in its old epoch, cut off from those who know better.
        (seen(OLD, OLD, 4), False),
        # It acknowledged, and somebody else leads the new epoch.
        (seen(OLD, NEW, 5), False),
        (seen(NEW, None, 5), False),
        (seen(NEW, NEW, None), False),
        (acknowledgement(1_200, 1_210, None), False),
    ],
)
def test_without_epochs_the_node_that_acknowledged_must_lead_a_new_one(
    one: Acknowledgement, counts: bool
) -> None:
    assert by_new_leader(one, FAULT) == counts


def test_it_is_over_when_a_client_that_follows_has_written_too() -> None:
    pinned = msgspec.structs.replace(acknowledgement(1_100, 1_110), follows=False)
    assert failover([pinned], FAULT) is None
    assert failover([pinned, acknowledgement(1_120, 1_130)], FAULT) == Failover(50.0, 110.0, 130.0)


def test_a_leader_deposed_before_the_fault_spoils_the_measurement() -> None:
    assert not leader_changed_before(STREAM, FAULT)
    assert leader_changed_before([acknowledgement(980, 999, 5)], FAULT)


def test_quantiles_are_values_that_occurred_and_p99_of_few_is_the_worst() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert (quantile(values, 0.5), quantile(values, 0.99)) == (50.0, 99.0)
    assert quantile([3.0], 0.01) == 3.0
    assert spread([1.0, 5.0, 2.0]) == arithmetic.Spread(2.0, 5.0, 5.0)
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


N1, N2, N3 = NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
OPTIONS = WriterOptions(interval_s=0.001, timeout_s=0.05)
PATIENCE_S = 20.0


class Memory:
    """Both the runtime and the system: nodes, who leads, and who only believes that it does."""

    name = "memory"
    experiment = None

    def __init__(self, *, tells_epochs: bool = True) -> None:
        self.tells_epochs = tells_epochs
        self.leads = N1
        self.epoch = 1
        #: Old leaders that go on in their old epoch, by node.
        self.believes: dict[NodeName, int] = {}
        self.down: set[NodeName] = set()
        self.log: list[str] = []
        #: Whether nobody is elected in a leader's place.
        self.is_stuck = False
        #: Whether the next view of the leader is out of date when it is given.
        self.outdated_view = False
        self._acknowledged = threading.Condition()
        self._newest_acknowledged = 0

    # The runtime.

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def kill(self, node: NodeName, act: str = "kill") -> None:
        self.log.append(f"{act} {node}")
        self.down.add(node)
        self.elect(node)

    def pause(self, node: NodeName) -> None:
        self.kill(node, "pause")

    def cut(self, links: Iterable[Link]) -> None:
        (node,) = {link.source for link in links if self.leads == link.source}
        self.log.append(f"cut {node}")
        self.believes[node] = self.epoch
        self.elect(node)

    def start(self, node: NodeName, act: str = "start") -> None:
        self.log.append(f"{act} {node}")
        self.down.discard(node)

    def resume(self, node: NodeName) -> None:
        self.start(node, "resume")

    def restore(self, links: Iterable[Link]) -> None:
        assert len(list(links)) == 4
        self.log.append("restore")
        self.believes.clear()

    def elect(self, old: NodeName) -> None:
        if self.is_stuck:
            return
        self.leads = NODES[(NODES.index(old) + 1) % 3]
        self.epoch += 1

    # The system.

    def ready(self, runtime: object) -> None:
        assert not self.down

    converged = ready

    def leader(self, runtime: object, timeout_s: float) -> LeaderView:
        view = LeaderView(self.leads, self.epoch)
        if self.outdated_view:
            self.outdated_view = False
            self.elect(self.leads)
            with self._acknowledged:
                assert self._acknowledged.wait_for(
                    lambda: self._newest_acknowledged == self.epoch, PATIENCE_S
                )
        return view

    def acknowledge(self, epoch: int) -> None:
        """A writer is about to hear of a write of this epoch."""
        with self._acknowledged:
            self._newest_acknowledged = max(epoch, self._newest_acknowledged)
            self._acknowledged.notify_all()

    def state_event_file(self, run_folder: Path, node: NodeName) -> Path | None:
        return None

    def open_client(self, runtime: object, route: Route) -> "MemoryClient":
        return MemoryClient(self, route)


class MemoryClient:
    """A pinned one asks its node; the other one knows who leads."""

    def __init__(self, memory: Memory, route: Route) -> None:
        self._memory = memory
        self._route = route

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        memory = self._memory
        node = self._route.node if self._route.kind == "pinned" else memory.leads
        await asyncio.sleep(0)
        if node in memory.down:
            return Completion("info", error="timed-out", node=node)
        epoch = memory.believes.get(node, memory.epoch if node == memory.leads else None)
        if epoch is None:
            return Completion("fail", error="not-leader", node=node)
        memory.acknowledge(epoch)
        position = (epoch, 0) if memory.tells_epochs else None
        return Completion("ok", operation.value, None, position, node)

    async def close(self) -> None:
        pass


def cluster_of(memory: Memory) -> Cluster:
    return Cluster(cast(System, memory), cast(Runtime, memory), Path())


def measured(memory: Memory, fault: str, runs: int = 2) -> tuple[Measurements, list[TimedFault]]:
    faults: list[TimedFault] = []

    def tell(number: int, hit: TimedFault, result: Failover | None) -> None:
        assert number == len(faults) + 1
        faults.append(hit)

    result = asyncio.run(measure(cluster_of(memory), fault, runs, OPTIONS, random.Random(1), tell))
    return result, faults


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failover_measurement, "PHASE_S_MAX", 0.0)


@pytest.mark.parametrize("tells_epochs", [True, False], ids=["epochs", "views"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_leader_is_hit_and_the_cluster_made_whole_each_time(
    fault: str, tells_epochs: bool
) -> None:
    memory = Memory(tells_epochs=tells_epochs)
    measurements, faults = measured(memory, fault)
    assert len(measurements.failovers) == 2
    assert [(hit.leader, hit.epoch_before) for hit in faults] == [(N1, 1), (N2, 2)]
    acts = {
        "kill": ["kill n1", "start n1", "kill n2", "start n2"],
        "pause": ["pause n1", "resume n1", "pause n2", "resume n2"],
        "partition": ["cut n1", "restore", "cut n2", "restore"],
    }
    assert memory.log == acts[fault]


@pytest.mark.parametrize(
    ("invoked_ms", "counts"), [(990, False), (1_010, False), (1_050, True), (1_200, True)]
)
def test_a_change_without_an_epoch_counts_once_the_fault_was_done(
    invoked_ms: float, counts: bool
) -> None:
    without = msgspec.structs.replace(FAULT, epoch_before=None)
    one = acknowledgement(invoked_ms, invoked_ms + 20, None)
    assert ends(one, without) == counts
    assert not leader_changed_before([acknowledgement(900, 990, None)], without)


def test_systems_stand_side_by_side_in_a_table_and_a_picture() -> None:
    quick, slow = Failover(1.0, 80.0, 90.0), Failover(1.0, 2_200.0, 2_300.0)
    rows = {
        "ours": {"kill": [quick, slow, quick], "pause": [slow]},
        "a & b": {"kill": [slow], "pause": []},
    }
    assert table(rows, ["kill", "pause"]) == [
        "| | kill | pause |",
        "|---|---|---|",
        "| ours | 0.08 (0.08 to 2.20) | 2.20 (2.20 to 2.20) |",
        "| a & b | 2.20 (2.20 to 2.20) | not within 90 s |",
    ]
    drawn = ET.fromstring(picture(rows, ["kill", "pause"]))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"ours", "a & b", "not within 90 s", "0.01", "10"} <= set(texts)
    ends_at = [line.attrib["x1"] for line in drawn.iter("{http://www.w3.org/2000/svg}line")]
    # Grid at 0.01, 0.1, 1 and 10 s; then one line from least to greatest for each that ended.
    assert len(ends_at) == 4 + 3


def test_whoever_creates_topics_goes_on_after_a_refusal() -> None:
    async def ask() -> list[tuple[str, str | None]]:
        async with brokers(1, {}) as (broker,):
            client = TopicCreator(N1, targets([broker])[N1])
            found = [await client.invoke(Operation("write", "x", 7), 5.0)]
            broker.create_error = 41
            found.append(await client.invoke(Operation("write", "x", 8), 5.0))
            await client.close()
            return [(each.type, each.error) for each in found]

    assert asyncio.run(ask()) == [("ok", None), ("info", "not-controller")]


def test_without_a_new_leader_a_measurement_is_unfinished_and_healed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old leader goes on acknowledging in its old epoch; nothing of that counts."""
    monkeypatch.setattr(failover_measurement, "PATIENCE_S", 0.2)
    memory = Memory()
    memory.is_stuck = True
    measurements, _ = measured(memory, "partition", 1)
    assert (measurements.unfinished_count, measurements.failovers) == (1, [])
    assert memory.log == ["cut n1", "restore"]


def test_a_leader_that_changed_before_the_fault_is_measured_again() -> None:
    memory = Memory()
    memory.outdated_view = True
    measurements, _ = measured(memory, "kill", 1)
    assert (measurements.spoilt_count, len(measurements.failovers)) == (1, 1)


def test_epochs_that_pass_without_a_fault_are_counted() -> None:
    memory = Memory()
    acknowledge = memory.acknowledge

    def acknowledge_and_elect(epoch: int) -> None:
        """Amid the load, however late it begins."""
        acknowledge(epoch)
        if memory.epoch == 1:
            memory.elect(N1)

    async def body() -> tuple[int, int, float]:
        quiet = await idle(cluster_of(memory), 0.0005)
        memory.acknowledge = acknowledge_and_elect
        busy = await loaded(cluster_of(memory), 0.005, 0.0)
        return quiet.epochs, busy.epochs, busy.operations_per_second

    idle_epochs, loaded_epochs, rate = asyncio.run(body())
    assert (idle_epochs, loaded_epochs) == (0, 1)
    assert rate > 0


def test_roles_are_read_from_whole_lines_after_the_position(tmp_path: Path) -> None:
    file = tmp_path / "events"

    def line(kind: Any, role: str | None) -> bytes:
        return msgspec.json.encode(StateEvent("n1", 0, 0, kind, 1, role)) + b"\n"

    before = line("role", "leader")
    after = line("role", "follower") + line("commit", None) + line("started", "unattached")
    file.write_bytes(before + after + line("role", "candidate")[:-5])
    assert roles_taken(file, len(before)) == ["follower"]
    assert roles_taken(tmp_path / "none", 0) == []


def test_single_settings_override_the_profile() -> None:
    name = "controller.quorum.fetch.timeout.ms"
    assert settings_of("kraft", None, []) == {}
    assert settings_of("kraft", "kafka-defaults", [])[name] == "2000"
    assert settings_of("kraft", "kafka-defaults", [f"{name}=7"])[name] == "7"


def test_unknown_profiles_and_settings_without_value_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no profile 'sentinel-defaults' for 'kraft'.*kafka-def"):
        settings_of("kraft", "sentinel-defaults", [])
    with pytest.raises(UsageError, match="'x=' has no value"):
        settings_of("kraft", None, ["x="])
