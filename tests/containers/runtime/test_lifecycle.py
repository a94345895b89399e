"""Deploying, tearing down, sweeping, and what happens when the harness dies."""

import fcntl
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker import sweep
from splitbrain.runtimes.docker.images import POD, Images
from splitbrain.runtimes.docker.names import RUN_LABEL, mark_of_run
from splitbrain.runtimes.docker.runtime import DockerRuntime
from tests.awaiting import await_true
from tests.containers.web_servers import NAMES, resources, specification, states
from tests.runtimes.killed_harness import killed_at_the_end
from tests.runtimes.node_programs import living

pytestmark = pytest.mark.containers

#: A harness that deploys, harms links, pauses a node, says so, and waits to be killed.
HARNESS = """
    import fcntl, sys
    from pathlib import Path
    from splitbrain.contracts.arms import Shape
    from splitbrain.contracts.names import RunId
    from splitbrain.history.run_folder import RunFolder
    from splitbrain.runtimes.docker.runtime import DockerRuntime
    from tests.containers.web_servers import NAMES, specification
    from tests.runtimes.node_programs import link

    folder = Path(sys.argv[1])
    watched = sys.argv[2] == "watched"
    lock = RunFolder(folder).lock.open("w")
    if not watched:
        fcntl.flock(lock, fcntl.LOCK_EX)
    runtime = DockerRuntime(watched=watched)
    spec = specification(folder)
    runtime.deploy(spec)
    runtime.cut([link("n1", "n2")])
    runtime.links.shape([link("n2", "n1")], Shape(loss=0.1, delay_us=50_000, rate_kbit=500))
    runtime.links.reset([link("n3", "n1")])
    runtime.pause(NAMES[2])
    print(spec.run_id, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def dead_run(
    request: pytest.FixtureRequest, tmp_path: Path, engine: DockerClient
) -> Iterator[tuple[RunId, Path]]:
    """Id of a run whose harness was killed by SIGKILL, and its folder.

    Of a watched run the test holds the lock: a sweep by another test, which runs at the same time,
    would otherwise remove the pods while the watchdog's work is looked at.
    """
    folder = tmp_path / "run"
    folder.mkdir()
    with RunFolder(folder).lock.open("w") as lock:
        if request.param == "watched":
            fcntl.flock(lock, fcntl.LOCK_EX)
        with killed_at_the_end(textwrap.dedent(HARNESS), str(folder), request.param) as run_id:
            pass
        yield run_id, folder
    sweep.remove_run(engine, mark_of_run(run_id, RunFolder(folder).lock))


def test_teardown_leaves_nothing_behind(run_folder: Path, engine: DockerClient) -> None:
    runtime = DockerRuntime()
    spec = specification(run_folder)
    runtime.deploy(spec)
    assert states(engine, spec.run_id) == ["running"] * 6
    assert set(resources(engine, spec.run_id)) == {"containers", "networks", "volumes"}
    runtime.teardown()
    runtime.teardown()
    assert resources(engine, spec.run_id) == {}


def test_a_taken_name_is_refused_with_the_way_out(run_folder: Path) -> None:
    spec = specification(run_folder, NAMES[0])
    first = DockerRuntime()
    first.deploy(spec)
    try:
        second = DockerRuntime()
        with pytest.raises(HarnessError, match="the same id"):
            second.deploy(spec)
        assert first.status(NAMES[0]) == "running"
    finally:
        first.teardown()


def test_a_sweep_spares_living_and_foreign_things(run_folder: Path, engine: DockerClient) -> None:
    foreign = engine.containers.create(
        Images(engine).ensure(())[POD.name], labels={"somebody": "else"}
    )
    runtime = DockerRuntime()
    spec = specification(run_folder)
    runtime.deploy(spec)
    try:
        assert spec.run_id not in {swept.run_id for swept in sweep.sweep(engine)}
        assert states(engine, spec.run_id) == ["running"] * 6
        assert engine.containers.get(str(foreign.id)).status == "created"
    finally:
        runtime.teardown()
        foreign.remove()


@pytest.mark.parametrize("dead_run", ["unwatched"], indirect=True)
def test_a_sweep_salvages_a_dead_run(dead_run: tuple[RunId, Path], engine: DockerClient) -> None:
    run_id, folder = dead_run
    assert states(engine, run_id) == ["paused"] + ["running"] * 5
    # Another run's start may sweep it first; what counts is what is left.
    sweep.sweep(engine)
    assert states(engine, run_id) == []
    assert run_id not in {mark.run_id for mark in sweep.runs(engine)}
    for name in NAMES:
        assert (RunFolder(folder).node(name) / "data" / "starts").read_text() == "started\n"


@pytest.mark.parametrize("dead_run", ["watched"], indirect=True)
def test_the_watchdog_heals_and_stops(dead_run: tuple[RunId, Path], engine: DockerClient) -> None:
    run_id, folder = dead_run
    await_true(lambda: states(engine, run_id) == ["exited"] * 3 + ["running"] * 3)
    assert "is gone" in (folder / "watchdog.log").read_text()
    pods = engine.containers.list(
        filters={"label": [f"{RUN_LABEL}={run_id}", "splitbrain.role=pod"]}
    )
    for pod in pods:
        assert pod.exec_run(["/opt/splitbrain/firewall.sh", "list"]).output == b""
        assert pod.exec_run(["/opt/splitbrain/firewall.sh", "list-resets"]).output == b""
        shown: Any = pod.exec_run(["/opt/splitbrain/links.py", "show"]).output
        assert json.loads(shown) == {"arriving": {}, "leaving": {}}
        running: Any = pod.exec_run(["sh", "-c", "cat /proc/*/cmdline"]).output
        assert b"pause.sh" in running
        assert b"packet_queue.py" not in running


def test_the_watchdog_leaves_in_silence_when_the_run_ends_in_order(run_folder: Path) -> None:
    with living(run_folder / "quiet") as folder:
        runtime = DockerRuntime()
        runtime.deploy(specification(folder, NAMES[0]))
        runtime.teardown()
    assert (folder / "watchdog.log").read_text() == ""
