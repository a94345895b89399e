"""Times the linearizability checker: ``python -m bench.linearizability``.

Generated histories of growing length, width and share of ``info``; for the harder shapes the share
of seeds decided within a limit. Prints a table, and one JSON object on the last line.
"""

import gc
import json
import resource
import statistics
import time
from collections.abc import Sequence

import msgspec

from bench.histories import HistoryOptions, generate
from checker.linearizability.check import check_part
from checker.linearizability.parts import split
from checker.models.registry import model_named
from checker.verdict import Verdict, merge


class _Case(msgspec.Struct, frozen=True):
    name: str
    options: HistoryOptions
    limit_s: float
    seeds: int = 1


class Deadline:
    """A budget of wall time."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s

    def exhausted(self) -> str | None:
        """The reason once the time is over."""
        over = time.monotonic() > self._end
        return f"time budget of {self._limit_s:g} s used up" if over else None


def _cases() -> Sequence[_Case]:
    return (
        _Case("cas, 10 clients, 10,000 operations", HistoryOptions(10_000, 10), 60),
        _Case("cas, 10 clients, 100,000 operations", HistoryOptions(100_000, 10), 60),
        _Case("cas, 20 clients, 1,000 operations", HistoryOptions(1_000, 20), 20, 20),
        _Case("cas, 20 clients, 10,000 operations", HistoryOptions(10_000, 20), 20, 5),
        _Case("cas, 50 clients, 1,000 operations", HistoryOptions(1_000, 50), 20, 5),
        _Case("10 % info, 10 clients, 1,000", HistoryOptions(1_000, 10, info=0.1), 20, 20),
        _Case(
            "10 % info, 10 clients, 1,000, violation",
            HistoryOptions(1_000, 10, info=0.1, violation=True),
            20,
            20,
        ),
        _Case(
            "10 % info, 10 clients, 200, violation",
            HistoryOptions(200, 10, info=0.1, violation=True),
            20,
            20,
        ),
        _Case(
            "unique values, 10 clients, 100,000 operations",
            HistoryOptions(100_000, 10, values=0, mix="register"),
            60,
        ),
        _Case(
            "500 keys, 10 clients, 100,000 operations",
            HistoryOptions(100_000, 10, keys=500),
            60,
        ),
    )


def _measure(case: _Case) -> dict[str, object]:
    seconds: list[float] = []
    verdicts: list[Verdict] = []
    configurations = 0
    for seed in range(case.seeds):
        options = msgspec.structs.replace(case.options, seed=seed)
        operations = generate(options)
        gc.collect()
        began = time.perf_counter()
        budget = Deadline(case.limit_s)
        parts = split(operations, model_named("cas-register"))
        results = [check_part(part, "cas-register", budget) for part in parts]
        seconds.append(time.perf_counter() - began)
        verdicts.append(merge(result.verdict for result in results))
        configurations += sum(result.figures.get("configurations", 0) for result in results)
    decided = sum(verdict is not Verdict.UNKNOWN for verdict in verdicts)
    expected = Verdict.INVALID if case.options.violation else Verdict.VALID
    wrong = sum(verdict not in (expected, Verdict.UNKNOWN) for verdict in verdicts)
    assert not wrong, f"{case.name}: {wrong} wrong verdicts"
    return {
        "name": case.name,
        "seconds_median": round(statistics.median(seconds), 3),
        "seconds_max": round(max(seconds), 3),
        "decided": decided,
        "seeds": case.seeds,
        "limit_s": case.limit_s,
        "configurations": configurations // case.seeds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Measure every case."""
    head = ("history", "median s", "max s", "decided", "configurations", "peak MiB so far")
    print("{:<48}{:>10}{:>10}{:>10}{:>16}{:>17}".format(*head))
    rows: list[dict[str, object]] = []
    for case in _cases():
        row = _measure(case)
        rows.append(row)
        decided = f"{row['decided']}/{row['seeds']}"
        print(
            f"{case.name:<48}{row['seconds_median']:>10}{row['seconds_max']:>10}{decided:>10}"
            f"{row['configurations']:>16}{row['peak_mib']:>17}",
            flush=True,
        )
    print(json.dumps({"bench": "linearizability", "rows": rows}))


if __name__ == "__main__":
    main()
