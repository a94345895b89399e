"""A suite that is killed, interrupted or started twice: the night goes on, nothing is lost."""

import json
import os
import signal

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.suite.attempt import Attempt, is_held
from splitbrain.harness.campaign.suite.ledger import NightEnded
from tests.awaiting import await_true
from tests.unit.harness.campaign.suite.fake_nights import Suites, does, matrix

pytestmark = pytest.mark.slow  # each test starts a suite of its own to kill


def gated(suites: Suites, seed: int = 1, **more: str) -> str:
    """A matrix of three seeds; the runs wait for the gate."""
    setting = does("valid", log=str(suites.log), gate=str(suites.gate), **more)
    return matrix("m", setting=setting, seeds=f"{seed}:{seed + 3}")


def kill_in_flight(suites: Suites, seed: int) -> Attempt:
    """Start a night, SIGKILL the suite while the run of this seed is in flight."""
    process = suites.process()
    suites.await_logged(seed)
    process.kill()
    process.communicate()
    return Attempt(suites.orphans()[-1].parent)


def kill_orphan(attempt: Attempt) -> None:
    pid = json.loads(attempt.record.read_bytes())["pid"]
    os.killpg(pid, signal.SIGKILL)
    await_true(lambda: not is_held(attempt.lock))


def test_a_killed_suite_goes_on_and_takes_over_the_run_in_flight(suites: Suites) -> None:
    suites.write(gated(suites))
    attempt = kill_in_flight(suites, 1)
    assert is_held(attempt.lock), "the run outlives its suite"
    assert suites.runs() == []
    suites.gate.touch()
    assert suites.run() == 0, suites.output
    assert "goes on: 0 of 3 runs done" in suites.output
    # Nothing is done twice.
    assert suites.logged() == [1, 2, 3]
    assert len(suites.nights()) == 1
    first = suites.runs()[0]
    assert (first.seed, first.exit_code, first.attempt) == (1, None, 1)
    assert [run.attempt for run in suites.runs()] == [1, 1, 1]


def test_what_is_done_is_not_done_again(suites: Suites) -> None:
    setting = does("valid", log=str(suites.log))
    late = does("valid", log=str(suites.log), gate=str(suites.gate))
    suites.write(matrix("m", setting=setting, seeds=[1]), matrix("late", setting=late, seeds=[2]))
    attempt = kill_in_flight(suites, 2)
    assert [run.seed for run in suites.runs()] == [1]
    kill_orphan(attempt)
    suites.gate.touch()
    assert suites.run() == 0
    assert "goes on: 1 of 2 runs done" in suites.output
    assert [run.seed for run in suites.runs()] == [1, 2]
    assert suites.logged() == [1, 2, 2]


def test_a_run_that_died_with_its_suite_is_convicted_by_its_folder(suites: Suites) -> None:
    suites.write(gated(suites, does1="loses"))
    kill_orphan(kill_in_flight(suites, 1))
    suites.gate.touch()
    assert suites.run() == 1, suites.output
    assert suites.logged() == [1, 2, 3]
    assert suites.verdicts() == ["invalid", "valid", "valid"]


def test_a_run_that_died_with_its_suite_is_not_acquitted_but_done_again(suites: Suites) -> None:
    suites.write(gated(suites))
    kill_orphan(kill_in_flight(suites, 1))
    suites.gate.touch()
    assert suites.run() == 0, suites.output
    assert suites.logged() == [1, 1, 2, 3]
    assert [run.attempt for run in sorted(suites.runs(), key=lambda run: run.seed)] == [2, 1, 1]


def let_end(suites: Suites, attempt: Attempt) -> None:
    """Open the gate, and wait for the end of the run that outlived its suite."""
    suites.gate.touch()
    await_true(lambda: not is_held(attempt.lock))


@pytest.mark.parametrize(
    ("what", "code", "logged"),
    [("unjudged", 0, [1, 2, 3]), ("is-judged-in-haste", 3, [1, 1, 2, 3])],
)
def test_a_run_that_was_not_judged_is_judged_later_and_in_haste_it_is_done_again(
    suites: Suites, what: str, code: int, logged: list[int]
) -> None:
    suites.write(gated(suites, does1=what))
    let_end(suites, kill_in_flight(suites, 1))
    assert suites.run() == code, suites.output
    assert suites.logged() == logged
    assert "KeyError" not in suites.output


def test_a_line_torn_by_the_crash_is_no_hindrance(suites: Suites) -> None:
    suites.write(gated(suites))
    kill_in_flight(suites, 1)
    with suites.ledger.path.open("ab") as file:
        file.write(b'{"kind":"run","suite":"un')
    suites.gate.touch()
    assert suites.run() == 0
    assert suites.verdicts() == ["valid"] * 3


def test_a_changed_file_begins_a_new_night_and_keeps_what_was_in_flight(suites: Suites) -> None:
    suites.write(gated(suites, does1="loses"))
    let_end(suites, kill_in_flight(suites, 1))
    suites.write(matrix("m", setting=does("valid"), seeds=[8]))
    assert suites.run() == 1, suites.output
    assert "is not gone on with: the suite file has changed since" in suites.output
    assert [(run.seed, run.verdict) for run in suites.runs()] == [(1, "invalid"), (8, "valid")]
    assert "Exit code 1 all the same: the night before it holds a violation." in suites.output
    ended = [line.reason for line in suites.lines() if isinstance(line, NightEnded)]
    assert ended == ["replaced", "done"]


def test_fresh_begins_a_new_night(suites: Suites) -> None:
    suites.write(gated(suites))
    let_end(suites, kill_in_flight(suites, 1))
    assert suites.run(fresh=True) == 0
    assert len(suites.nights()) == 2
    assert [run.seed for run in suites.runs()] == [1, 1, 2, 3]


def test_two_processes_never_work_on_one_night(suites: Suites) -> None:
    suites.write(gated(suites))
    process = suites.process()
    suites.await_logged(1)
    with pytest.raises(HarnessError, match="another process is working on it"):
        suites.run()
    suites.gate.touch()
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert suites.verdicts() == ["valid"] * 3


def signalled(suites: Suites, number: signal.Signals, code: int) -> str:
    """Start a night, signal it during its first run, and return the output when it has ended."""
    process = suites.process()
    suites.await_logged(1)
    process.send_signal(number)
    output, _ = process.communicate()
    assert process.returncode == code, output
    return output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_suite_ends_its_run_in_order_and_can_be_gone_on_with(
    suites: Suites, number: signal.Signals
) -> None:
    suites.write(gated(suites))
    output = signalled(suites, number, 2)
    assert "NOT OVER: suite unit" in output
    assert "The same command goes on with this night." in output
    folder = next(suites.folder.glob("suites/unit/*/runs/*/attempt-1/*/*/phases.jsonl"))
    assert "interrupted" in folder.read_text()
    assert suites.runs() == []
    suites.gate.touch()
    assert suites.run() == 0, suites.output
    assert suites.logged() == [1, 1, 2, 3]


def test_a_violation_of_an_interrupted_run_is_kept(suites: Suites) -> None:
    suites.write(gated(suites, does1="loses"))
    signalled(suites, signal.SIGINT, 1)
    assert suites.verdicts() == ["invalid"]


def test_what_was_ignored_before_stays_ignored(suites: Suites) -> None:
    suites.write(gated(suites))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = suites.process()
    finally:
        signal.signal(signal.SIGHUP, before)
    suites.await_logged(1)
    process.send_signal(signal.SIGHUP)
    suites.gate.touch()
    output, _ = process.communicate()
    assert process.returncode == 0, output


def test_a_child_that_ends_without_a_verdict_is_done_again(suites: Suites) -> None:
    suites.write(gated(suites, does1="unprepared"))
    signalled(suites, signal.SIGINT, 2)
    attempt = Attempt(suites.orphans()[0].parent)
    assert not is_held(attempt.lock)
    assert suites.runs() == []
    suites.gate.touch()
    assert suites.run() == 0
    assert suites.logged() == [1, 1, 2, 3]
