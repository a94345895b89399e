"""The watchdog's own course: whom it asks to stop the nodes, how long it tries, what it says."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.names import RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes import watchdog
from splitbrain.runtimes.dead_runs import DEAD
from splitbrain.runtimes.owners import await_end
from splitbrain.runtimes.watchdog import DONE, Watchdog, main

Stopper = Callable[[RunId, Path], None]

RUN = RunId("r-7")


@pytest.fixture
def dead_owner() -> int:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        owner.kill()
    return owner.pid


@pytest.fixture(autouse=True)
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where the owner writes its word."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        yield writing
    os.close(writing)


def test_the_stopper_of_the_runs_own_runtime_gets_the_run(
    dead_owner: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []

    def stopper_of(runtime: str) -> Stopper:
        asked.append(runtime)
        return lambda run_id, folder: asked.append((run_id, folder))

    assert main(["local", RUN, str(tmp_path), str(dead_owner)], stopper_of) == 1
    assert asked == ["local", (RUN, tmp_path)]
    assert "its nodes are stopped" in capsys.readouterr().out


def test_an_absent_engine_is_asked_again_until_it_is_back(
    dead_owner: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_STOP_INTERVAL_S", 0.001)
    answers = [HarnessError("a", "b", "away", "wait"), HarnessError("a", "b", "away", "wait"), None]

    def stop(_run_id: RunId, _folder: Path) -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    assert main(["docker", RUN, str(tmp_path), str(dead_owner)], lambda _: stop) == 1
    assert answers == []


def test_a_stop_that_cannot_be_is_one_sentence_and_3(
    dead_owner: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(watchdog, "_STOP_PATIENCE_S", 0.0)

    def stop(_run_id: RunId, _folder: Path) -> None:
        raise HarnessError("stop the nodes", "docker", "it is away", "Start it")

    assert main(["docker", RUN, str(tmp_path), str(dead_owner)], lambda _: stop) == 3
    assert "it is away. Start it" in capsys.readouterr().err


def test_a_run_that_others_have_swept_is_not_waited_for(dead_owner: int, tmp_path: Path) -> None:
    RunFolder(tmp_path).lock.write_bytes(DEAD)
    asked: list[RunId] = []

    def stop(run_id: RunId, _folder: Path) -> None:
        asked.append(run_id)
        raise HarnessError("stop the nodes", "docker", "it is away", "Start it")

    assert main(["docker", RUN, str(tmp_path), str(dead_owner)], lambda _: stop) == 1
    assert asked == [RUN]


def test_nothing_is_stopped_when_a_run_ended_in_order(tmp_path: Path, standard_input: int) -> None:
    os.write(standard_input, DONE)

    def stop(_run_id: RunId, _folder: Path) -> None:
        raise AssertionError("the run is in order")

    assert main(["docker", RUN, str(tmp_path), str(os.getpid())], lambda _: stop) == 0


def test_an_unknown_runtime_and_bad_arguments_are_bad_usage(tmp_path: Path) -> None:
    def unknown(name: str) -> Stopper:
        raise UsageError(f"there is no runtime {name}", "Choose another")

    assert main(["podman", RUN, str(tmp_path), "1"], unknown) == 64
    assert main([]) == 64
    assert main(["docker", RUN, str(tmp_path), "me"]) == 64


def test_a_dismissed_watchdog_ends_in_silence(tmp_path: Path) -> None:
    process = Watchdog("docker", RUN, tmp_path)
    process.dismiss(30)
    process.dismiss(30)
    assert await_end(process.process_id, 0)
    assert (tmp_path / watchdog.LOG_NAME).read_text() == ""
