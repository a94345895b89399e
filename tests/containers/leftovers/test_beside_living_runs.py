"""Runs do not disturb each other, and cleaning does not touch a living one."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from docker import DockerClient

from splitbrain.contracts.names import RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes import owners
from splitbrain.runtimes.docker.runtime import DockerRuntime
from splitbrain.runtimes.docker.sweep import runs, sweep, sweep_engine
from tests.awaiting import await_true
from tests.containers.real_runs import ran
from tests.containers.web_servers import NAMES, resources, specification, states
from tests.runtimes.node_programs import link, living

pytestmark = [pytest.mark.containers, pytest.mark.alone, pytest.mark.timeout(300)]


def dead_run(folder: Path) -> DockerRuntime:
    """A deployed run whose lock nobody holds any more."""
    runtime = DockerRuntime(watched=False)
    # Until it is whole: whoever starts another run now sweeps the dead.
    with living(folder):
        runtime.deploy(specification(folder, NAMES[0]))
    return runtime


def locks(engine: DockerClient) -> list[str]:
    """Lock files of the runs that have anything in the engine."""
    return [mark.lock for mark in runs(engine)]


def test_runs_of_one_id_in_different_folders_live_and_die_apart(
    engine: DockerClient, living_folder: Callable[[str], Path]
) -> None:
    run_id = RunId("same-seed-same-second")
    specs = [
        msgspec.structs.replace(specification(living_folder(name), *NAMES[:2]), run_id=run_id)
        for name in ("a", "b")
    ]
    runtimes = [DockerRuntime(), DockerRuntime()]
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda pair: pair[0].deploy(pair[1]), zip(runtimes, specs, strict=True)))
        first, second = runtimes
        await_true(lambda: first.reachable(link("n1", "n2"), "client", 1.0))
        await_true(lambda: second.reachable(link("n1", "n2"), "client", 1.0))
        first.cut([link("n1", "n2")])
        first.kill(NAMES[0])
        assert second.reachable(link("n1", "n2"), "client", 1.0)
        first.teardown()
        assert states(engine, run_id) == ["running"] * 4
        assert second.reachable(link("n1", "n2"), "client", 1.0)
    finally:
        for runtime in runtimes:
            runtime.teardown()
    assert resources(engine, run_id) == {}


def test_clean_spares_a_living_run_and_one_whose_folder_was_deleted(
    engine: DockerClient, living_folder: Callable[[str], Path]
) -> None:
    runtimes: list[DockerRuntime] = []
    specs = [specification(living_folder(name), NAMES[0]) for name in ("kept", "deleted")]
    try:
        for spec in specs:
            runtimes.append(DockerRuntime(watched=False))
            runtimes[-1].deploy(spec)
        shutil.rmtree(specs[1].run_folder)
        code, output, errors = ran("clean")
        assert code == 0, errors
        for spec in specs:
            assert spec.run_id not in output
            assert states(engine, spec.run_id) == ["running"] * 2
    finally:
        for runtime in runtimes:
            runtime.teardown()


def test_a_dead_run_without_folder_is_removed(
    engine: DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = owners.this_process()
    gone = msgspec.structs.replace(mine, started_ticks=mine.started_ticks - 1)
    monkeypatch.setattr("splitbrain.runtimes.docker.runtime.this_process", lambda: gone)
    runtime = dead_run(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    sweep_engine()
    assert not [lock for lock in locks(engine) if str(tmp_path) in lock]
    runtime.teardown()


def test_two_cleans_at_once_leave_nothing(engine: DockerClient, tmp_path: Path) -> None:
    runtimes = [dead_run(tmp_path / name) for name in ("a", "b")]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(ran, ["clean"] * 2))
    assert [code for code, *_ in done] == [0, 0], done
    assert not [lock for lock in locks(engine) if str(tmp_path) in lock]
    for name in ("a", "b"):
        assert (RunFolder(tmp_path / name).node(NAMES[0]) / "data" / "starts").is_file()
    for runtime in runtimes:
        runtime.teardown()


def test_a_sweep_at_a_runs_start_races_with_another_runs_start_and_teardown(
    engine: DockerClient, living_folder: Callable[[str], Path]
) -> None:
    def come_and_go(name: str) -> RunId:
        spec = specification(living_folder(name), NAMES[0])
        runtime = DockerRuntime(watched=False)
        try:
            for _ in range(3):
                runtime.deploy(spec)
                assert runtime.status(NAMES[0]) == "running"
                runtime.teardown()
        finally:
            runtime.teardown()
        return spec.run_id

    def sweep_on(_: int) -> None:
        for _ in range(20):
            sweep(engine)

    with ThreadPoolExecutor(3) as pool:
        sweeping = pool.submit(sweep_on, 0)
        run_ids = list(pool.map(come_and_go, ["a", "b"]))
        sweeping.result()
    for run_id in run_ids:
        assert resources(engine, run_id) == {}
