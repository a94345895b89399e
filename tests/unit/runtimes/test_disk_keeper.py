"""The engine tells how a command in the container that holds the disks ended, or loses it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.runtimes.docker.disk_keeper import ask, release_run
from splitbrain.runtimes.docker.names import RunMark


class Keeper:
    """A container whose commands end as a test says; notes them."""

    name, status = "disks-1", "running"

    def __init__(self, exit_code: int, output: bytes) -> None:
        self._result = SimpleNamespace(exit_code=exit_code, output=output)
        self.commands: list[str] = []

    def exec_run(self, command: list[str]) -> SimpleNamespace:
        self.commands.append(command[2])
        return self._result


def state(keeper: Any) -> Any:
    return ask(keeper, "/disks/1", "look at the disks", "state")


def test_an_answer_is_the_last_line() -> None:
    assert state(Keeper(0, b'remark\n{"n1": "frozen"}\n')) == {"n1": "frozen"}


@pytest.mark.parametrize(
    ("code", "output", "problem"),
    [(1, b"No space left\n", "No space left"), (137, b"", "exit code 137"), (0, b" \n", "lost")],
)
def test_a_command_without_an_answer_is_one_sentence(
    code: int, output: bytes, problem: str
) -> None:
    with pytest.raises(HarnessError, match=problem) as caught:
        state(Keeper(code, output))
    assert caught.value.action == "look at the disks"


def released(keeper: Keeper, tmp_path: Path) -> list[str]:
    found: Any = SimpleNamespace(list=lambda **_: [keeper])
    client: Any = SimpleNamespace(containers=found)
    release_run(client, RunMark(RunId("run-1"), str(tmp_path), "owner"), nodes_are_down=True)
    return keeper.commands


def test_a_dead_runs_disks_are_mounted_afresh_though_the_engine_loses_the_answers(
    tmp_path: Path,
) -> None:
    assert released(Keeper(0, b""), tmp_path) == ["heal", "recover"]


def test_disks_that_could_not_be_healed_are_not_mounted_afresh(tmp_path: Path) -> None:
    assert released(Keeper(1, b"Device or resource busy"), tmp_path) == ["heal"]
