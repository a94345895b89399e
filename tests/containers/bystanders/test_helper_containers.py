"""Helper containers: found when their test died, spared while it lives; foreign ones never ours."""

from pathlib import Path

import pytest
from docker import DockerClient
from docker.errors import NotFound

from splitbrain.harness.cli import main as cli
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.names import OWNER_LABEL, RUN_LABEL
from splitbrain.runtimes.docker.sweep import runs, sweep
from tests.containers.bystanders.helper_containers import (
    FOREIGN_LABEL,
    WebServer,
    helper_image,
    helper_mark,
    sweep_foreign,
)
from tests.runtimes.node_programs import living

pytestmark = pytest.mark.containers


def test_a_helper_is_spared_while_its_test_lives_and_swept_when_it_died(
    engine: DockerClient, tmp_path: Path, foreign_container: WebServer
) -> None:
    lock = RunFolder(tmp_path / "dead").lock
    mark = helper_mark(lock)
    server = WebServer(helper_image(engine), mark.labels())
    try:
        with living(lock.parent):
            server.start()
            assert mark in runs(engine)
            assert sweep(engine, lock=lock) == []
            assert server.answer() == 200
        (swept,) = sweep(engine, lock=lock)
        assert (swept.run_id, swept.removed["containers"], swept.problem) == (mark.run_id, 1, None)
        with pytest.raises(NotFound):
            engine.containers.get(server.get_container_id())
    finally:
        server.get_docker_client().client.close()
    assert foreign_container.answer() == 200


def test_no_sweep_knows_a_foreign_container(
    engine: DockerClient, foreign_container: WebServer, helper_lock: Path
) -> None:
    labels = engine.containers.get(foreign_container.get_container_id()).labels
    assert RUN_LABEL not in labels
    assert OWNER_LABEL not in labels
    assert str(helper_lock) not in {mark.lock for mark in runs(engine)}
    assert sweep(engine, lock=helper_lock) == []
    assert foreign_container.answer() == 200


def test_a_foreign_container_whose_test_died_is_removed_by_the_next(
    engine: DockerClient, tmp_path: Path, foreign_container: WebServer
) -> None:
    lock = RunFolder(tmp_path / "dead").lock
    with living(lock.parent):
        orphan = WebServer(helper_image(engine), {FOREIGN_LABEL: str(lock)}).start()
    try:
        assert orphan.get_container_id() in sweep_foreign(engine)
    finally:
        orphan.get_docker_client().client.close()
    assert foreign_container.answer() == 200


def test_helpers_listen_on_this_machine(engine: DockerClient, foreign_container: WebServer) -> None:
    container = engine.containers.get(foreign_container.get_container_id())
    published = container.attrs["NetworkSettings"]["Ports"]["8000/tcp"]
    assert {port["HostIp"] for port in published} == {"127.0.0.1"}


def test_a_web_server_is_no_engine(
    foreign_container: WebServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{foreign_container.port}")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert cli.run(["test", "--nemesis", "none"]) == 3
    assert capsys.readouterr().err == (
        "splitbrain: could not talk to the container engine (docker): what answers there is no "
        "engine. Start the engine or point DOCKER_HOST to one; `make engine` says how to get one "
        "on this machine\n"
    )
    assert sorted(tmp_path.iterdir()) == before
