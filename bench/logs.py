"""Measures the checker of logs: ``python -m bench.logs [--operations N]``.

Makes a history of sends and polls as a driven cluster leaves it, judges it in this process, and
prints the CPU seconds from operations in memory to the verdict and the peak of memory with the
history in it. The exit code is 1 where a verdict is not the one that the history was made for: the
second one lacks an acknowledged record. The last line is one JSON object.
"""

import argparse
import json
import resource
import sys
import time
from random import Random
from typing import Any, Final

from splitbrain.checker.logs.check import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation

_STEP_NS: Final = 1000
_PRODUCERS: Final = 8
_CONSUMERS: Final = 2
_LOGS: Final = 16
#: Records of a poll at most.
_BATCH_MAX: Final = 20


def history(count: int, seed: int, *, is_right: bool) -> list[PairedOperation]:
    """Sends of one record and polls of all logs by assigned consumers, which read all at the end.

    Of a history that is not right every answer lacks one acknowledged record.
    """
    random = Random(seed)
    keys = [f"log-{number}" for number in range(_LOGS)]
    logs: dict[str, list[list[int]]] = {key: [] for key in keys}
    places = [dict.fromkeys(keys, 0) for _ in range(_CONSUMERS)]
    found: list[PairedOperation] = []

    def add(process: int, f: str, argument: Any, result: Any, *, final: bool = False) -> None:
        start = len(found) * _STEP_NS
        end = start + _PRODUCERS * _STEP_NS - 1
        operation = PairedOperation(
            len(found), process, f, None, argument, result, "ok", start, end, final=final
        )
        found.append(operation)

    def poll(consumer: int, most: int, *, final: bool) -> None:
        read: dict[str, list[list[int]]] = {}
        place = places[consumer]
        for key in keys:
            ahead = logs[key][place[key] : place[key] + most]
            if ahead:
                read[key] = [record for record in ahead if is_right or record[1] != count // 2]
                place[key] += len(ahead)
        answer: list[Any] = ["poll", read, dict(place)] if final else ["poll", read]
        add(_PRODUCERS + consumer, "poll", [["poll"]], [answer], final=final)

    for consumer in range(_CONSUMERS):
        add(_PRODUCERS + consumer, "assign", dict.fromkeys(keys, 0), dict.fromkeys(keys, 0))
    sends = 0
    while len(found) < count - _CONSUMERS:
        if random.randrange(10) == 0:
            poll(random.randrange(_CONSUMERS), _BATCH_MAX, final=False)
            continue
        key = random.choice(keys)
        sends += 1
        offset = len(logs[key])
        logs[key].append([offset, sends])
        add(sends % _PRODUCERS, "send", [["send", key, sends]], [["send", key, [offset, sends]]])
    for consumer in range(_CONSUMERS):
        poll(consumer, count, final=True)
    return found


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.logs")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for expected in ("valid", "invalid"):
        operations = history(options.operations, options.seed, is_right=expected == "valid")
        began = time.process_time()
        result = check(operations, Unlimited())
        spent_s = round(time.process_time() - began, 2)
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        rows.append({"verdict": result.verdict.value, "cpu_s": spent_s, "peak_mib": peak_mib})
        print(
            f"{len(operations):,} operations, {result.figures['read']:,} records read: "
            f"{result.verdict.value}, {spent_s} CPU-s, {peak_mib:,} MiB",
            flush=True,
        )
        del operations
        if result.verdict.value != expected:
            print(f"it should be {expected}: {result.reason}")
            return 1
    print(json.dumps({"bench": "logs", "operations": options.operations, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
