"""Times the checkers of outcomes: ``python -m bench.outcome_checkers [--operations N]``.

Correct histories and, where a tangle is harder, wrong ones, at half the length and at the whole:
cost per operation must stay about the same. Prints a table, and one JSON object on the last line.
Processor time, so that other work tells little.
"""

import argparse
import json
import time
from collections.abc import Callable
from random import Random
from typing import Any

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.registry import checker_named
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation

_OPERATIONS = 1_000_000


def _operation(place: int, process: int, f: str, argument: Any, result: Any) -> PairedOperation:
    """One operation after the other, two nanoseconds each."""
    return PairedOperation(
        index=2 * place,
        process=process,
        f=f,
        key="k",
        argument=argument,
        result=result,
        type="ok",
        start=2 * place,
        end=2 * place + 1,
    )


def counter(count: int) -> list[PairedOperation]:
    """Adds of either sign and reads, by turns."""
    random = Random("counter")
    value = 0
    operations: list[PairedOperation] = []
    for place in range(count):
        amount = random.randrange(-3, 4)
        if place % 2:
            operations.append(_operation(place, place % 9, "read", None, value))
        else:
            value += amount
            operations.append(_operation(place, place % 9, "add", amount, amount))
    return operations


def bank(count: int) -> list[PairedOperation]:
    """Reads of ten accounts, a hundred in all."""
    accounts = {f"account-{number}": 10 for number in range(10)}
    return [_operation(place, place % 9, "read", None, accounts) for place in range(count)]


def queue(count: int) -> list[PairedOperation]:
    """Each element is dequeued before the next is enqueued."""
    return [
        _operation(place, 1, "dequeue", None, place - 1)
        if place % 2
        else _operation(place, 0, "enqueue", place, place)
        for place in range(count)
    ]


def ids(count: int) -> list[PairedOperation]:
    """Return an id in each operation."""
    return [_operation(place, place % 9, "generate", None, place) for place in range(count)]


def register(count: int) -> list[PairedOperation]:
    """Distinct values, a third of them writes; every read is up to date."""
    return [
        _operation(place, place % 20, "read", None, place - place % 3)
        if place % 3
        else _operation(place, place % 20, "write", place, place)
        for place in range(count)
    ]


def tangle(count: int) -> list[PairedOperation]:
    """Each of many processes reads two versions; together they go round in one circle."""
    versions = count // 3
    operations = [_operation(n, -1, "write", n, n) for n in range(versions)]
    for n in range(versions):
        for step in (0, 1):
            place = versions + 2 * n + step
            operations.append(_operation(place, n, "read", None, (n + step) % versions))
    return operations


def fence(count: int) -> list[PairedOperation]:
    """Guarded writes with rising tokens."""
    return [
        _operation(place, place % 9, "write", [place // 10, 0], [place // 10, 0, True])
        for place in range(count)
    ]


_CASES: tuple[tuple[str, Callable[[int], list[PairedOperation]], str], ...] = (
    ("counter-bounds", counter, "valid"),
    ("bank:total=100", bank, "valid"),
    ("queue-totals", queue, "valid"),
    ("unique-ids", ids, "valid"),
    ("sessions", register, "valid"),
    ("sessions", tangle, "invalid"),
    ("fencing", fence, "valid"),
)


def _seconds(checker: str, operations: list[PairedOperation], expected: str) -> float:
    judge = checker_named(checker)
    evidence = Evidence(operations=tuple(operations))
    began = time.process_time()
    result = judge(evidence, Unlimited())
    seconds = time.process_time() - began
    assert result.verdict == expected, f"{checker}: {result.reason}"
    return seconds


def main() -> None:
    """Measure every case at half the length and at the whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=_OPERATIONS)
    count: int = parser.parse_args().operations
    print(f"{'checker':<18}{'history':<12}{'operations':>12}{'CPU s, half':>14}{'CPU s':>10}")
    rows: list[dict[str, object]] = []
    for checker, history, expected in _CASES:
        half, whole = (_seconds(checker, history(n), expected) for n in (count // 2, count))
        rows.append(
            {
                "checker": checker,
                "history": history.__name__,
                "operations": count,
                "seconds_half": round(half, 3),
                "seconds": round(whole, 3),
            }
        )
        name = history.__name__
        print(f"{checker:<18}{name:<12}{count:>12,}{half:>14.3f}{whole:>10.3f}", flush=True)
    print(json.dumps({"bench": "outcome_checkers", "rows": rows}))


if __name__ == "__main__":
    main()
