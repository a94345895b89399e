"""A budget says why it is used up, and the probe of memory tells of others and of the dead."""

import os
import subprocess
import sys

import pytest

from splitbrain.contracts.budget import Budget
from splitbrain.history import process_budget
from splitbrain.history.process_budget import ProcessBudget, resident_mib


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock's reading, in seconds, which the test sets."""
    now = [100.0]
    monkeypatch.setattr(process_budget.time, "monotonic", lambda: now[0])
    return now


def test_time_is_used_up_at_its_end_and_not_before(clock: list[float]) -> None:
    budget: Budget = ProcessBudget(5, 1 << 20)
    clock[0] += 5
    assert budget.exhausted() is None
    clock[0] += 0.01
    assert budget.exhausted() == "time budget of 5 s used up"


def test_memory_is_looked_at_now_and_then(clock: list[float]) -> None:
    budget = ProcessBudget(60, 1)
    assert budget.exhausted() is None
    clock[0] += 0.2
    assert budget.exhausted() == "memory budget of 1 MiB used up"


def test_another_process_has_memory_until_it_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert resident_mib(other.pid) > 0
    assert resident_mib(other.pid) == 0.0
    assert resident_mib(os.getpid()) > 1
