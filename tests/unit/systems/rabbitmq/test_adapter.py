"""The adapter: its configuration, and its reading of brokers' views."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address
from splitbrain.systems.rabbitmq import adapter
from splitbrain.systems.rabbitmq.adapter import RabbitSystem
from splitbrain.systems.rabbitmq.status import NodeRow, QueueRow
from tests.unit.systems.pod_place import pod_place

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
BROKERS = tuple(f"rabbit@{node}" for node in NODES)


class Anywhere:
    """A runtime of which nothing but the names is asked."""

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address(node, 1)


CLUSTER = tuple(NodeRow(broker, running=True) for broker in BROKERS)
QUORUM_QUEUE = QueueRow("q", "running", online=BROKERS)
MIRRORED_QUEUE = QueueRow("q", "running", synchronised_slave_nodes=BROKERS[1:])


def shown(
    monkeypatch: pytest.MonkeyPatch,
    rows: Sequence[NodeRow] | None,
    queue: QueueRow,
    kind: str = "quorum",
) -> RabbitSystem:
    """An adapter whose broker n2 has its own view of the cluster and of a queue."""
    monkeypatch.setattr(
        adapter, "ask_nodes", lambda there, timeout_s: rows if there.host == "n2" else CLUSTER
    )
    monkeypatch.setattr(adapter, "ask_queues", lambda there, timeout_s: (queue,))
    system = RabbitSystem()
    system.experiment = Experiment(system="rabbitmq", settings={"queue": kind})
    return system


def test_one_cluster_whose_queues_are_whole_has_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, CLUSTER, QUORUM_QUEUE).converged(Anywhere())
    shown(monkeypatch, CLUSTER, MIRRORED_QUEUE, "mirrored").converged(Anywhere())


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (None, "n2 does not answer"),
        (CLUSTER[:2], "n2 sees 2 brokers that run"),
        (
            (msgspec.structs.replace(CLUSTER[0], partitions=("rabbit@n3",)), *CLUSTER[1:]),
            "n2 sees rabbit@n3 cut off",
        ),
    ],
)
def test_a_cluster_that_is_not_one(
    monkeypatch: pytest.MonkeyPatch, rows: Sequence[NodeRow] | None, problem: str
) -> None:
    system = shown(monkeypatch, rows, QUORUM_QUEUE)
    for ask in (system.ready, system.converged):
        with pytest.raises(HarnessError, match=problem):
            ask(Anywhere())


@pytest.mark.parametrize(
    ("kind", "queue", "problem"),
    [
        ("quorum", QueueRow("q", "down"), "queue q is down"),
        ("quorum", QueueRow("q", "running", online=BROKERS[:2]), "has 2 members online"),
        (
            "quorum",
            msgspec.structs.replace(QUORUM_QUEUE, messages_unacknowledged=2),
            "has 2 elements out",
        ),
        ("mirrored", QUORUM_QUEUE, "has 0 mirrors in step"),
    ],
)
def test_a_queue_that_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, kind: str, queue: QueueRow, problem: str
) -> None:
    with pytest.raises(HarnessError, match=problem):
        shown(monkeypatch, CLUSTER, queue, kind).converged(Anywhere())


def test_mirrored_queues_have_a_policy_once_there_is_a_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policies: list[dict[str, Any]] = []

    def take(there: Address, name: str, policy: dict[str, Any], timeout_s: float) -> bool:
        policies.append(policy)
        return True

    monkeypatch.setattr(adapter, "put_policy", take)
    shown(monkeypatch, CLUSTER, QUORUM_QUEUE).ready(Anywhere())
    assert policies == []
    shown(monkeypatch, CLUSTER, MIRRORED_QUEUE, "mirrored").ready(Anywhere())
    assert [policy["definition"]["ha-mode"] for policy in policies] == ["all"]


def test_a_cluster_is_configured(tmp_path: Path) -> None:
    system = RabbitSystem()
    given = {"cluster_partition_handling": "ignore", "net_ticktime": "12"}
    system.experiment = Experiment(system="rabbitmq", settings=given)
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    lines = (tmp_path / "nodes/n3/config/rabbitmq.conf").read_text().splitlines()
    assert {
        "cluster_partition_handling = ignore",
        "net_ticktime = 12",
        "cluster_formation.classic_config.nodes.1 = rabbit@n1",
    } <= {*lines}
    assert spec.nodes[2].environment["RABBITMQ_NODENAME"] == "rabbit@n3"
    assert system.tempo().notices_s == 15.0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"runtime": "local"}, "rabbitmq does not run on the runtime local"),
        ({"settings": {"net_ticktime": "0"}}, "the setting net_ticktime of rabbitmq cannot be '0'"),
        ({"settings": {"queue": "classic"}}, "rabbitmq does not know 'classic' as queue"),
    ],
)
def test_options_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        RabbitSystem().check_options(Experiment(system="rabbitmq", **options))
