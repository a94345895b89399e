"""Ctrl-C and SIGTERM: what each does in each stage of a command, and that none ends in silence."""

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.harness.console.interrupts import Interrupts
from splitbrain.harness.folder import results
from splitbrain.history.run_folder import RunFolder
from tests.told_processes import ToldProcess

ROOT = Path(__file__).parents[4]


class Taken:
    """Interrupts whose process is not left, and what became of the signals."""

    def __init__(self) -> None:
        self.said: queue.Queue[str] = queue.Queue()
        self.left: queue.Queue[int] = queue.Queue()
        self.interrupts = Interrupts(self.said.put, self.left.put)

    def signal(self, number: signal.Signals = signal.SIGINT) -> None:
        os.kill(os.getpid(), number)


@pytest.fixture
def taken() -> Iterator[Taken]:
    found = Taken()
    with found.interrupts:
        yield found


def test_signals_do_what_the_stage_says_one_after_the_other(
    taken: Taken, capsys: pytest.CaptureFixture[str]
) -> None:
    with taken.interrupts.during(
        lambda: "stopping", lambda: "hurrying", farewell=lambda: ("the rest is left", 3)
    ):
        for number, expected in ((signal.SIGINT, "stopping"), (signal.SIGTERM, "hurrying")):
            taken.signal(number)
            assert taken.said.get(timeout=30) == expected
        taken.signal()
        assert taken.left.get(timeout=30) == 3
    assert capsys.readouterr().err == "splitbrain: the rest is left\n"


def test_the_innermost_stage_has_the_signals(taken: Taken) -> None:
    outer = taken.interrupts.during(lambda: "outer", farewell=lambda: ("", 3))
    inner = taken.interrupts.during(lambda: "inner", farewell=lambda: ("", 3))
    with outer:
        with inner:
            taken.signal()
            assert taken.said.get(timeout=30) == "inner"
        taken.signal()
        assert taken.said.get(timeout=30) == "outer"


def test_outside_of_every_stage_a_signal_is_an_exception(taken: Taken) -> None:
    with pytest.raises(KeyboardInterrupt):
        taken.signal()
    with pytest.raises(KeyboardInterrupt):
        taken.signal(signal.SIGTERM)


def test_the_handlers_before_are_those_after() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Taken().interrupts:
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


class Command(ToldProcess):
    """The command in a process of its own, held at one stage."""

    def __init__(self, folder: Path, stage: str) -> None:
        self.folder = folder
        paths = os.pathsep.join(entry or str(ROOT) for entry in sys.path)
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.unit.harness.console.interrupted_command",
                str(folder),
                stage,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
        )
        super().__init__(process)

    def signal(self, number: signal.Signals = signal.SIGINT) -> "Command":
        self.process.send_signal(number)
        return self

    def results(self) -> results.Results:
        return results.read(RunFolder((self.folder / "latest").resolve()).results)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_amid_the_load_it_heals_collects_judges_and_says_interrupted_first(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = Command(tmp_path, "load").until("clients started").until("reached load")
    code, said = command.signal(number).end()
    assert code == 2, said
    assert "torn down" in said
    assert said.splitlines()[-1].startswith(" INTERRUPTED  Ended early by the user"), said
    # No tables for somebody who does not want to wait, but the way to get them.
    assert "splitbrain analyze" in said
    assert not RunFolder((tmp_path / "latest").resolve()).analysis.exists()
    found = command.results()
    assert found.interrupted
    assert {result.checker for result in found.checkers} >= {"split-brain", "record"}


@pytest.mark.slow
def test_amid_the_setup_nothing_is_left_and_nothing_is_proven(tmp_path: Path) -> None:
    command = Command(tmp_path, "setup").until("reached setup").signal()
    code, said = command.end()
    assert code == 2, said
    assert "nodes removed" in said
    assert " INTERRUPTED " in said.splitlines()[-1]


@pytest.mark.slow
def test_amid_the_convergence_it_is_not_waited_for(tmp_path: Path) -> None:
    code, said = Command(tmp_path, "convergence").until("reached convergence").signal().end()
    assert code == 2, said
    assert "nodes removed" in said
    assert " INTERRUPTED " in said.splitlines()[-1]


@pytest.mark.slow
def test_amid_the_judging_the_rest_stays_undecided(tmp_path: Path) -> None:
    command = Command(tmp_path, "judging").until("judging").signal()
    code, said = command.end()
    assert code == 2, said
    assert "what is not decided yet stays undecided" in said
    told = {result.checker: result.verdict.value for result in command.results().checkers}
    assert told["split-brain"] == "unknown"
    assert told["node-health"] == "valid"


@pytest.mark.slow
def test_amid_the_analysis_the_verdict_stands(tmp_path: Path) -> None:
    command = Command(tmp_path, "spark").until("reached spark").signal()
    code, said = command.end()
    assert code == 0, said
    assert "the verdict stands (VALID)" in said
    assert "splitbrain analyze" in said
    assert " VALID " in said.splitlines()[-1]
    assert not command.results().interrupted


@pytest.mark.slow
def test_a_second_one_hurries_and_still_removes_the_nodes(tmp_path: Path) -> None:
    command = Command(tmp_path, "convergence").until("reached convergence")
    code, said = command.signal().until("once more to hurry").signal().end()
    assert code == 3, said
    assert "removing the nodes at once" in said
    assert "nodes removed" in said
    assert f"splitbrain check {(tmp_path / 'latest').resolve()}" in said.splitlines()[-1]


@pytest.mark.slow
def test_a_third_one_leaves_and_says_what_is_left_to_whom(tmp_path: Path) -> None:
    command = Command(tmp_path, "teardown").until("reached load")
    command.signal().until("once more to hurry").signal().until("once more to leave them")
    code, said = command.signal().end()
    assert code == 3, said
    assert "splitbrain clean" in said.splitlines()[-1]
