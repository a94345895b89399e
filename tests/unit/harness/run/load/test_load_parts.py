"""The small parts of the load: shares, what opens clients elsewhere, counts, pacing."""

import asyncio
import math
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address, NodeSpec, Placement
from splitbrain.contracts.system import CLIENT_PORT, Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.clients import RATE_PER_PROCESS_MAX, Clients, Load, LoadSetup
from splitbrain.harness.run.load.messages import FixedEndpoints, SystemClients, fixed_endpoints
from splitbrain.harness.run.load.seat import Books, Processes
from splitbrain.harness.run.load.worker_processes import shares
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.traffic import Counts, Traffic
from splitbrain.history.functions import USUAL
from splitbrain.systems.registry import names, system
from splitbrain.workloads.keys import KeyRotation
from splitbrain.workloads.workload import workload
from tests.unit.harness.ended_operations import ended
from tests.unit.harness.run.load.load_clients import Behaviour
from tests.unit.harness.run.load.load_rig import LOAD, NODES


def test_ordinary_rates_need_no_worker_process() -> None:
    ordinary = Load(concurrency=10, rate=200.0, time_limit_s=60.0, operation_timeout_s=1.0)
    assert ordinary.processes_needed == 0
    assert msgspec.structs.replace(ordinary, rate=float(RATE_PER_PROCESS_MAX)).processes_needed == 0


def test_higher_rates_get_a_process_for_each_part_up_to_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    load = Load(concurrency=10, rate=1.0, time_limit_s=60.0, operation_timeout_s=1.0)

    def workers(**changes: Any) -> int:
        return msgspec.structs.replace(load, **changes).processes_needed

    assert workers(rate=RATE_PER_PROCESS_MAX + 1) == 2
    assert workers(rate=RATE_PER_PROCESS_MAX * 3) == 3
    assert workers(rate=math.inf) == 4
    assert workers(rate=math.inf, concurrency=3) == 3
    # One process would do no better than the run's own.
    assert workers(rate=math.inf, concurrency=1) == 0
    assert workers(rate=1.0, workers=2) == 2
    assert workers(rate=math.inf, workers=0) == 0


@pytest.mark.parametrize(("slots", "workers"), [(10, 2), (10, 3), (3, 3), (7, 2), (2, 5)])
def test_every_slot_has_one_worker_process(slots: int, workers: int) -> None:
    shared = shares(slots, workers)
    assert [slot for share in shared for slot in share] == list(range(slots))
    assert max(map(len, shared)) - min(map(len, shared)) <= 1
    assert len(shared) == min(slots, workers)


class Endpoints:
    name = "fake"

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        if port != CLIENT_PORT:
            raise HarnessError("find", port, "not published", "Publish it.")
        return Address("127.0.0.1", 7000 + NODES.index(node))


def specs() -> list[NodeSpec]:
    ports = {CLIENT_PORT: 1, "peer": 2}
    return [NodeSpec(node, "", (), {}, ports, "/data") for node in NODES]


def test_addresses_go_along_to_another_process() -> None:
    endpoints: FixedEndpoints = pickle.loads(
        pickle.dumps(fixed_endpoints(Endpoints(), specs()))  # type: ignore[arg-type]
    )
    assert endpoints.nodes() == NODES
    assert endpoints.endpoint(NODES[1], CLIENT_PORT) == Address("127.0.0.1", 7001)
    with pytest.raises(HarnessError, match="'peer' from a worker process"):
        endpoints.endpoint(NODES[1], "peer")


def place(node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
    return Placement("127.0.0.1", node, dict(ports), "/config", "/state", "/data")


# One of a file is nothing without it, and is asked the same in tests/unit/systems/compose_file.
@pytest.mark.parametrize("name", sorted({*names()} - {"compose", "kafka-cluster"}))
def test_every_system_opens_its_clients_in_another_process(name: str, tmp_path: Path) -> None:
    adapter = system(name)
    run = RunId("20260101T000000Z-1")
    for node in NODES:
        (tmp_path / "nodes" / node).mkdir(parents=True)
    deployment = adapter.deployment(run, tmp_path, Experiment(system="kraft", nodes=3), place)
    endpoints = fixed_endpoints(Endpoints(), deployment.nodes)  # type: ignore[arg-type]
    opener = pickle.loads(pickle.dumps(SystemClients(adapter, endpoints)))
    for kind in ("leader", "pinned"):
        assert opener(Route(kind, NODES[0])) is not None


def test_shares_of_traffic_add_up_and_are_taken_once() -> None:
    total, part = Traffic(), Traffic()
    part.completed(ended("ok", "n1"), 20)
    part.completed(ended("ok", "n2"), 10)
    part.completed(ended("info", "n1"), 30)
    total.completed(ended("ok", "n2"), 15)
    total.add(part.take())
    total.add(part.take())
    assert total.counts() == Counts(3, 0, 1, {"n1": 1, "n2": 2})
    assert total.acknowledged_since(19)
    assert total.acknowledged_since(14, "n2")
    assert not total.acknowledged_since(15, "n2")
    assert not total.acknowledged_since(20)


def test_processes_used_elsewhere_are_not_handed_out_again() -> None:
    here, elsewhere = Processes(4), Processes(4)
    for _ in range(3):
        elsewhere.fresh(1)
    for process in elsewhere.upcoming((1, 2)):
        here.skip_to(process)
    assert [here.fresh(slot) for slot in range(4)] == [0, 13, 2, 3]
    here.skip_to(1)
    assert here.fresh(1) == 17


def test_clocks_of_two_processes_agree() -> None:
    clock = RunClock()
    other = RunClock(clock.start_ns)
    first, second, third = clock.now(), other.now(), clock.now()
    assert first <= second <= third


def test_a_key_that_only_another_copy_has_named_is_given_up_too() -> None:
    here, elsewhere = (KeyRotation("r", lanes=2, slots=4, info_per_key=3) for _ in range(2))
    key = elsewhere.key(1, 0)
    for _ in range(3):
        here.saw_info(key)
    assert here.key(1, 0) == "r1-0-1"
    assert here.key(0, 0) == "r0-0"
    for _ in range(3):
        here.saw_info("r1-0-1")
    assert here.key(1, 0) == "r1-0-2"


class Unrecorded:
    """A recorder that keeps nothing."""

    def __init__(self) -> None:
        self._clock = RunClock()

    def append(self, process: int, type_: Any, f: str, **fields: Any) -> Any:
        from splitbrain.history.records import Event

        return Event(0, self._clock.now(), process, type_, f)


def test_a_load_ends_at_once_while_its_slots_sleep() -> None:
    async def scenario() -> None:
        stopped = asyncio.Event()
        adds = workload("set", seed=1, slots=4, readers=frozenset(), options={})
        setup = LoadSetup(NODES, adds, msgspec.structs.replace(LOAD, rate=0.001))
        books = Books(Unrecorded(), Traffic(), Processes(4), USUAL, 1_000_000)
        clients = Clients(setup, Behaviour(), books, Stop())
        running = asyncio.ensure_future(clients.run(stopped))
        await asyncio.sleep(0)
        stopped.set()
        await asyncio.wait_for(running, 10)

    asyncio.run(scenario())
