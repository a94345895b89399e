"""The failover of a fault: from its call to the first change acknowledged in a new epoch."""

from typing import Any

import pytest

from splitbrain.history.fault_windows import FaultWindow, failovers_ns
from splitbrain.history.functions import USUAL
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation


def window(start: int, index: int = 0) -> FaultWindow:
    return FaultWindow(
        index=index, kind="kill", nodes=("n1",), start=start, end=start + 5, seen=start, healed=True
    )


def change(start: int, end: int, epoch: int | None, f: str = "create", **fields: Any) -> Any:
    position = None if epoch is None else (epoch, start)
    return operation(f, 1, [1, True], start=start, end=end, position=position, **fields)


BEFORE = change(0, 5, 1)

STORIES: dict[str, tuple[list[PairedOperation], dict[int, int]]] = {
    "the first in a new epoch": ([BEFORE, change(11, 30, 2), change(12, 40, 2)], {0: 20}),
    "in the old epoch": ([BEFORE, change(11, 30, 1), change(31, 50, 2)], {0: 40}),
    "asked before the fault": ([BEFORE, change(9, 30, 2), change(31, 50, 2)], {0: 40}),
    "no leader moved": ([BEFORE, change(11, 30, 1)], {}),
    "nothing before it": ([change(11, 30, 2)], {}),
    "what changes nothing": ([BEFORE, change(11, 30, 2, f="describe")], {}),
    "without position": ([BEFORE, change(11, 30, None)], {}),
    "not acknowledged": ([BEFORE, change(11, 30, 2, outcome="fail")], {}),
    "a final one": ([BEFORE, change(11, 30, 2, final=True)], {}),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_failover_is_told_where_there_was_one(name: str) -> None:
    operations, told = STORIES[name]
    assert failovers_ns([window(10)], operations, USUAL) == told


def test_a_failover_ends_before_the_next_fault() -> None:
    operations = [BEFORE, change(11, 30, 2), change(41, 60, 3)]
    windows = [window(10), window(35, 1)]
    assert failovers_ns(windows, operations, USUAL) == {0: 20, 1: 25}
    late = [BEFORE, change(11, 38, 2), change(41, 60, 3)]
    assert failovers_ns(windows, late, USUAL) == {1: 25}
