"""Parts of a judgement run in processes that can be killed; none takes the others along."""

import os
import re
import time
from typing import Any

import pytest

from splitbrain.contracts.budget import Budget
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.workers import Part, PartOutcome, run_parts

_HERE = "judge_parts_under_test"


@pytest.fixture(autouse=True)
def _parts_importable(  # pyright: ignore[reportUnusedFunction]  # pytest finds it by itself
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Put a module of misbehaving parts on the path that workers inherit."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / f"{_HERE}.py").write_text(_SOURCE)
    monkeypatch.syspath_prepend(str(folder))


_SOURCE = """
import os, signal, sys, time

def double(payload, budget):
    print("this must not disturb the frames")
    sys.stderr.write("nor this")
    return payload * 2

def hang(payload, budget):
    while True:
        pass

def polite(payload, budget):
    while True:
        reason = budget.exhausted()
        if reason:
            return reason

def eat(payload, budget):
    held = []
    while True:
        held.append(bytearray(b"x" * 8_000_000))

def crash(payload, budget):
    os.kill(os.getpid(), signal.SIGSEGV)

def leave(payload, budget):
    sys.stderr.write("the reason on stderr\\n")
    os._exit(7)

def throw(payload, budget):
    raise ValueError("no such thing")

def unsendable(payload, budget):
    return lambda: None

def process_id(payload, budget):
    time.sleep(payload)
    return os.getpid()

def started(payload, budget):
    return time.monotonic()
"""


def _run(*parts: Part, jobs: int = 2, time_budget_s: float = 30.0) -> list[PartOutcome]:
    return run_parts(parts, Limits(time_budget_s, memory_budget_mib=256, jobs=jobs))


def _part(function: str, payload: Any = None, weight: int = 0) -> Part:
    return Part(f"{_HERE}:{function}", payload, weight)


def test_values_come_back_in_the_order_of_the_parts() -> None:
    outcomes = _run(*(_part("double", n, weight=n) for n in range(6)))
    assert [outcome.value for outcome in outcomes] == [0, 2, 4, 6, 8, 10]
    assert all(outcome.failure is None for outcome in outcomes)


def test_a_part_that_hangs_is_stopped_and_the_others_are_not() -> None:
    outcomes = _run(_part("hang", weight=9), _part("double", 4), time_budget_s=0.5)
    assert outcomes[0].failure == "time budget of 0.5 s used up, stopped"
    assert outcomes[1].value == 8


def test_a_part_that_polls_its_budget_ends_by_itself() -> None:
    (outcome,) = _run(_part("polite"), time_budget_s=0.3)
    assert outcome.failure is None
    assert outcome.value == "time budget of 0.3 s used up"


def test_a_part_that_eats_memory_is_stopped_and_the_others_are_not() -> None:
    outcomes = _run(_part("eat"), _part("double", 4))
    assert outcomes[0].failure == "memory budget of 256 MiB used up, stopped"
    assert outcomes[1].value == 8


@pytest.mark.parametrize(
    ("function", "payload", "reason"),
    [
        ("crash", None, r"crashed: its worker was ended by signal 11$"),
        ("leave", None, r"crashed: its worker ended with code 7 \(the reason on stderr\)$"),
        ("throw", None, r"crashed: ValueError: no such thing$"),
        ("unsendable", None, r"crashed: its result cannot be sent"),
        ("double", lambda: None, r"cannot be sent to a worker"),
        ("gone", None, r"crashed: AttributeError"),
    ],
)
def test_a_part_that_fails_says_how_and_takes_no_other_along(
    function: str, payload: Any, reason: str
) -> None:
    outcomes = _run(_part(function, payload), _part("double", 4), jobs=1)
    assert re.match(reason, outcomes[0].failure or "")
    assert outcomes[1].value == 8


def test_the_heaviest_part_starts_first() -> None:
    outcomes = _run(_part("started", weight=1), _part("started", weight=5), jobs=1)
    assert outcomes[1].value < outcomes[0].value


def test_parts_share_workers_and_run_beside_each_other() -> None:
    outcomes = _run(*(_part("process_id", 0.2) for _ in range(6)), jobs=2)
    assert len({outcome.value for outcome in outcomes}) == 2


def test_no_process_is_left_behind() -> None:
    outcomes = _run(_part("process_id", 0), _part("process_id", 0))
    for outcome in outcomes:
        with pytest.raises(ProcessLookupError):
            os.kill(outcome.value, 0)


def test_no_parts_need_no_worker() -> None:
    started = time.monotonic()
    assert _run() == []
    assert time.monotonic() - started < 0.1


def test_parts_meet_the_budget_contract() -> None:
    from splitbrain.history.process_budget import ProcessBudget

    budget: Budget = ProcessBudget(60, 1024)
    assert budget.exhausted() is None
