"""A refusal of the runtime is one sentence with the next step, and leaves nothing behind."""

import gc
import ipaddress
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker import DockerClient
from docker.types import IPAMConfig, IPAMPool

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.harness.folder.store import is_alive
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker import network
from splitbrain.runtimes.docker.names import mark_of_run
from splitbrain.runtimes.docker.runtime import DockerRuntime
from splitbrain.runtimes.docker.sweep import sweep
from splitbrain.runtimes.docker.watchdog import stop_nodes
from splitbrain.runtimes.owners import await_end, orphans
from splitbrain.runtimes.registry import sweep_all
from tests.awaiting import await_true
from tests.containers.leftovers.engine_relay import EngineRelay
from tests.containers.real_runs import ROOT, splitbrain, words_of_test
from tests.containers.web_servers import NAMES, resources, specification, states
from tests.runtimes.node_programs import living

pytestmark = [
    pytest.mark.containers,
    pytest.mark.alone,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: The only subnets of the pool while a test has made it small.
SMALL_POOL = ipaddress.IPv4Network("10.212.77.0/25")


@pytest.fixture
def through_relay(relay: EngineRelay) -> Iterator[DockerClient]:
    client = docker.DockerClient(base_url=relay.host, timeout=60)
    yield client
    client.close()
    # The library leaves a socket open each time when nobody listens: seen here, not later.
    gc.collect()


@pytest.fixture
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "POOL", SMALL_POOL)


def take_subnet(engine: DockerClient, subnet: ipaddress.IPv4Network) -> Any:
    pool = IPAMPool(subnet=str(subnet), gateway=str(subnet.network_address + 1))
    return engine.networks.create(
        f"foreign-{uuid.uuid4().hex[:8]}", ipam=IPAMConfig(pool_configs=[pool])
    )


def test_a_taken_subnet_is_passed_over_and_a_taken_pool_told(
    small_pool: None, engine: DockerClient, living_folder: Callable[[str], Path]
) -> None:
    first, second = SMALL_POOL.subnets(new_prefix=network.SUBNET_PREFIX)
    taken = [take_subnet(engine, first)]
    try:
        spec = specification(living_folder("a"), NAMES[0])
        runtime = DockerRuntime()
        runtime.deploy(spec)
        runtime.teardown()
        taken.append(take_subnet(engine, second))
        with pytest.raises(HarnessError, match=r"no subnet of .* is free.*splitbrain clean"):
            DockerRuntime().deploy(spec)
        assert resources(engine, spec.run_id) == {}
    finally:
        for network_ in taken:
            network_.remove()


def test_a_subnet_that_is_taken_between_the_look_and_the_making_is_passed_over(
    small_pool: None,
    engine: DockerClient,
    living_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "_taken", lambda _: [])
    foreign = take_subnet(engine, next(network.candidates(specification(Path()).run_id, [])))
    spec = specification(living_folder("a"), NAMES[0])
    runtime = DockerRuntime()
    try:
        runtime.deploy(spec)
        assert states(engine, spec.run_id) == ["running"] * 2
    finally:
        runtime.teardown()
        foreign.remove()
    assert resources(engine, spec.run_id) == {}


def test_an_image_that_vanished_is_told_with_the_way_to_get_it(
    engine: DockerClient, living_folder: Callable[[str], Path]
) -> None:
    spec = specification(living_folder("a"), NAMES[0], image="splitbrain-absent")
    runtime = DockerRuntime()
    runtime.prepare([])
    with pytest.raises(HarnessError, match=r"its image is not in the engine.*make images"):
        runtime.deploy(spec)
    assert resources(engine, spec.run_id) == {}


def test_an_engine_that_goes_away_is_told_and_its_return_leaves_all_to_be_cleaned(
    relay: EngineRelay,
    through_relay: DockerClient,
    engine: DockerClient,
    living_folder: Callable[[str], Path],
) -> None:
    spec = specification(living_folder("a"))
    runtime = DockerRuntime(through_relay, watched=False)
    runtime.deploy(spec)
    relay.cut()
    for action in (lambda: runtime.kill(NAMES[0]), runtime.heal_all, runtime.teardown):
        with pytest.raises(HarnessError, match="Start the engine") as told:
            action()
        assert told.value.exit_code == 3
        assert len(str(told.value).splitlines()) == 1
    assert states(engine, spec.run_id) == ["running"] * 6
    # It comes back: what could not be removed then is removed now.
    relay.mend()
    runtime.teardown()
    assert resources(engine, spec.run_id) == {}


def test_an_engine_that_goes_away_while_nodes_start_leaves_all_to_the_next_sweep(
    relay: EngineRelay,
    through_relay: DockerClient,
    engine: DockerClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "run"
    lock = RunFolder(folder).lock
    spec = specification(folder)
    runtime = DockerRuntime(through_relay, watched=False)
    create = through_relay.volumes.create

    def cut_then_create(*arguments: Any, **options: Any) -> Any:
        relay.cut()
        return create(*arguments, **options)

    monkeypatch.setattr(
        type(through_relay.volumes), "create", lambda _, *a, **o: cut_then_create(*a, **o)
    )
    # Nobody else is to sweep it before it is looked at.
    with living(folder):
        with pytest.raises(HarnessError, match="Start the engine"):
            runtime.deploy(spec)
        monkeypatch.undo()
        assert resources(engine, spec.run_id) != {}
    stop_nodes(engine, mark_of_run(spec.run_id, lock))
    # Another run that starts now may have been quicker.
    sweep(engine, lock=lock, patience_s=60)
    assert resources(engine, spec.run_id) == {}


def test_a_run_whose_engine_goes_away_ends_with_3_and_clean_removes_the_rest(
    relay: EngineRelay, engine: DockerClient, tmp_path: Path
) -> None:
    with subprocess.Popen(
        splitbrain(*words_of_test(tmp_path, "--nemesis", "none", "--time-limit", "5")),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DOCKER_HOST": relay.host},
    ) as harness:
        phases = tmp_path / "latest" / "phases.jsonl"
        await_true(lambda: phases.exists() and b'"ready"' in phases.read_bytes(), 60)
        relay.cut()
        output, errors = harness.communicate(timeout=200)
    assert harness.returncode == 3, output + errors
    assert "Traceback" not in output + errors
    assert "Start the engine" in output + errors
    folder = RunFolder((tmp_path / "latest").resolve())
    assert not is_alive(folder)
    # Back again, and with it what was running.
    relay.mend()
    sweep_all(folder.lock)
    assert resources(engine, RunId(folder.root.name)) == {}
    # Its watchdog, which has been waiting for the engine, has nothing more to do.
    for watchdog in orphans({"splitbrain.runtimes.watchdog"}):
        assert await_end(watchdog, 60)
