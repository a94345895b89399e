"""A child process is asked, urged, and at last made to end; its lock tells that it lives."""

import signal
import sys
import threading
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.suite.attempt import (
    Attempt,
    OrphanChild,
    OwnChild,
    attempts_at,
    is_held,
    new_attempt,
    see_out,
    start,
)
from splitbrain.harness.console.stop import Stop
from tests.awaiting import await_true

#: Ignores what asks it to end, and so does the process that it starts.
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.fork()
print("deaf", flush=True)
time.sleep(60)
"""
#: Ends when it was asked twice.
SLOW = """
import signal, sys, threading
asked = threading.Semaphore(0)
signal.signal(signal.SIGINT, lambda *_: asked.release())
print("listening", flush=True)
asked.acquire()
asked.acquire()
sys.exit(7)
"""


def started(folder: Path, text: str) -> tuple[Attempt, OwnChild]:
    attempt = new_attempt(folder)
    child = start(attempt, [sys.executable, "-c", text])
    await_true(attempt.output.read_text)
    return attempt, child


def test_a_deaf_child_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    attempt, child = started(tmp_path, DEAF)
    await_true(lambda: attempt.output.read_text() == "deaf\n" * 2)
    ending = see_out(
        child, Stop(), 0.1, threading.Event(), end_patience_s=0.1, urged_patience_s=0.1
    )
    assert ending == "out of time"
    assert child.has_ended(5)
    assert child.exit_code == -signal.SIGKILL
    await_true(lambda: not is_held(attempt.lock))


def test_a_slow_child_is_urged_when_the_user_is(tmp_path: Path) -> None:
    _, child = started(tmp_path, SLOW)
    stop, urged = Stop(), threading.Event()
    stop.interrupt()
    urged.set()
    assert see_out(child, stop, 60, urged) == "interrupted"
    assert child.exit_code == 7


def test_an_orphan_is_known_by_its_lock_and_ended_by_its_id(tmp_path: Path) -> None:
    attempt, child = started(tmp_path, SLOW)
    orphan = OrphanChild(attempt)
    assert not orphan.has_ended(0)
    reaper = threading.Thread(target=child.has_ended, args=(30,))
    reaper.start()
    ending = see_out(orphan, Stop(), 0.0, threading.Event(), end_patience_s=0.1)
    reaper.join()
    assert (ending, orphan.has_ended(0), child.exit_code) == ("out of time", True, 7)
    # Its id may belong to anybody by now: nothing is sent.
    orphan.signal(signal.SIGKILL)


def test_an_orphan_without_a_record_is_waited_for_and_never_signalled(tmp_path: Path) -> None:
    attempt, child = started(tmp_path, SLOW)
    attempt.record.unlink()
    OrphanChild(attempt).signal(signal.SIGKILL)
    assert is_held(attempt.lock)
    child.signal(signal.SIGKILL)
    assert child.has_ended(30)
    assert OrphanChild(attempt).has_ended(30)


def test_attempts_are_numbered(tmp_path: Path) -> None:
    for _ in range(11):
        new_attempt(tmp_path / "run")
    assert [attempt.number for attempt in attempts_at(tmp_path / "run")] == list(range(1, 12))


def test_a_program_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    attempt = new_attempt(tmp_path)
    with pytest.raises(HarnessError, match="could not start the program"):
        start(attempt, ["/nowhere/at-all"])
    assert not is_held(attempt.lock)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="choose another --runs-folder"):
        new_attempt(tmp_path / "file")
