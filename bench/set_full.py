"""Times the set-full checker: ``python -m bench.set_full``.

Histories of one set that keeps everything: adds, and reads that show all added by then, so that the
elements read grow with the square of the adds. Cost per element read must stay the same. Prints a
table, and one JSON object on the last line. Processor time, so that other work tells little.
"""

import gc
import json
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec

from splitbrain.checker.set_full import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation


class _Case(msgspec.Struct, frozen=True):
    name: str
    adds: int
    #: One read after so many adds.
    adds_per_read: int
    #: Elements that a read in the middle of the history forgets for ever, so that all are lost.
    lost: int = 0


_CASES: Sequence[_Case] = (
    _Case("valid", 10_000, 50),
    _Case("valid", 20_000, 50),
    _Case("valid", 40_000, 50),
    _Case("10,000 lost", 40_000, 50, lost=10_000),
    _Case("few reads, many elements", 1_000_000, 100_000),
)


def history(case: _Case) -> tuple[list[PairedOperation], int]:
    """Operations of one set, and the elements read in total."""
    operations: list[PairedOperation] = []
    present: list[int] = []
    total = 0
    for number in range(case.adds):
        start = 10 * number
        operations.append(_operation("add", number, number, start, start + 15))
        present.append(number)
        if number % case.adds_per_read == case.adds_per_read - 1:
            if case.lost and number > case.adds // 2:
                present = present[case.lost :] if present[0] == 0 else present
            # The last add is still open when the read begins, so it may be shown.
            operations.append(_operation("read", None, list(present), start + 3, start + 9))
            total += len(present)
    return operations, total


def _operation(f: str, argument: object, result: object, start: int, end: int) -> PairedOperation:
    return PairedOperation(
        index=2 * start,
        process=start % 20 // 10 + (2 if f == "read" else 0),
        f=f,
        key=None,
        argument=argument,
        result=result,
        type="ok",
        start=start,
        end=end,
    )


def _measure(case: _Case) -> dict[str, object]:
    operations, total = history(case)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    result = check(operations, Unlimited())
    seconds = time.process_time() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.figures["lost"] == case.lost, result.figures
    return {
        "name": case.name,
        "adds": case.adds,
        "elements_read": total,
        "seconds": round(seconds, 3),
        "ns_per_element_read": round(seconds / total * 1e9),
        "peak_grew_mib": grown // 1024,
    }


def main() -> None:
    """Measure every case."""
    head = ("history", "adds", "elements read", "CPU s", "ns/element", "peak grew MiB")
    print("{:<28}{:>12}{:>16}{:>10}{:>12}{:>15}".format(*head))
    rows: list[dict[str, object]] = []
    for case in _CASES:
        # A process of its own, so that the peak of its memory is its own.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            row = pool.submit(_measure, case).result()
        rows.append(row)
        print(
            f"{row['name']:<28}{row['adds']:>12,}{row['elements_read']:>16,}{row['seconds']:>10}"
            f"{row['ns_per_element_read']:>12}{row['peak_grew_mib']:>15,}",
            flush=True,
        )
    print(json.dumps({"bench": "set_full", "rows": rows}))


if __name__ == "__main__":
    main()
