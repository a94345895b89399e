"""``splitbrain clean`` when some of it cannot be done."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.harness.campaign import cleaning
from splitbrain.harness.cli import main as cli
from splitbrain.runtimes import registry
from splitbrain.runtimes.dead_runs import Swept


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cleaning, "await_orphans", lambda _: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def entry(sweep: object) -> Callable[[], registry._Entry]:
    nothing: object = None
    return lambda: registry._Entry(nothing, nothing, sweep)  # type: ignore[arg-type]


def no_engine(_: Path | None) -> list[Swept]:
    raise HarnessError("talk to the engine", "docker", "it is away", "Start it")


def one_run(_: Path | None, problem: str | None = None) -> list[Swept]:
    return [Swept(RunId("r-7"), Path("/x/lock"), {"processes": 3, "mounts": 0}, problem)]


def test_a_runtime_that_cannot_look_does_not_keep_the_others_leftovers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runtimes = {"docker": entry(no_engine), "local": entry(one_run)}
    monkeypatch.setattr(registry, "_RUNTIMES", runtimes)
    assert cli.run(["clean"]) == 0
    said = capsys.readouterr().out
    assert "docker was not looked at: could not talk to the engine" in said
    assert "r-7: removed processes 3\n" in said
    assert cli.run(["clean", "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    docker, local = answered["runtimes"]
    assert docker["skipped"].startswith("could not talk to the engine")
    assert local["runs"][0]["removed"] == {"processes": 3, "mounts": 0}


def test_what_is_still_there_is_told_and_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stuck(lock: Path | None) -> list[Swept]:
        return one_run(lock, "could not remove a mount (x): busy. Look who uses it")

    monkeypatch.setattr(registry, "_RUNTIMES", {"local": entry(stuck)})
    assert cli.run(["clean"]) == 3
    assert "busy. Look who uses it" in capsys.readouterr().out


def test_nothing_to_do_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "_RUNTIMES", {"local": entry(lambda _: [])})
    assert cli.run(["clean"]) == 0
    assert capsys.readouterr().out == "Dead runs left nothing.\n"


def test_a_process_that_works_in_a_dead_ones_temporary_folder_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "splitbrain-spark-x"
    folder.mkdir()

    def sleeper(argument: str) -> subprocess.Popen[bytes]:
        """Return it once it runs: one just begun has no command line for a moment."""
        command = [sys.executable, "-c", "print(flush=True); input()", argument]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    with sleeper(f"-Djava.io.tmpdir={folder}") as user, sleeper(f"{folder}-other") as stranger:
        cleaning.kill_users(folder)
        assert user.wait(10) == -9
        assert stranger.poll() is None
        stranger.kill()
