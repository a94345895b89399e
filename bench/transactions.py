"""Measures the checker of transactions: ``python -m bench.transactions [--transactions N]``.

Makes serializable histories of both kinds, of several shapes, and prints for each the CPU seconds
from operations to the verdict and the peak of memory, each in a process of its own. The exit code
is 1 where a verdict was not valid. The last line is one JSON object.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from copy import copy
from random import Random
from typing import Any, Final, NamedTuple

from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.levels import KINDS, Kind
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation

_STEP_NS: Final = 1000


class Shape(NamedTuple):
    """Shape of a history."""

    sessions: int
    keys: int
    length_max: int
    #: Writes after which a key is replaced by a new one.
    writes_per_key: int
    #: Shares of transactions without answer, and of those that fail.
    open_share: float = 0.0
    failed_share: float = 0.0


SHAPES: Final = {
    "usual": Shape(10, 10, 4, 100),
    "many sessions": Shape(100, 10, 4, 100),
    "many keys": Shape(10, 10_000, 4, 100),
    "long": Shape(10, 100, 12, 100),
    "open and failed": Shape(10, 10, 4, 100, 0.2, 0.1),
    "few versions": Shape(10, 10, 4, 10),
}


def history(kind: Kind, shape: Shape, count: int, seed: int) -> list[PairedOperation]:
    """Transactions carried out one after the other, each open for as long as its session is."""
    random = Random(f"{seed} {kind} {shape}")
    state: dict[int, Any] = {}
    written: dict[int, int] = {}
    keys = list(range(shape.keys))
    values = 0
    operations: list[PairedOperation] = []
    for number in range(count):
        draw = random.random()
        outcome = "ok"
        if draw < shape.open_share + shape.failed_share:
            outcome = "info" if draw < shape.open_share else "fail"
        asked: list[list[Any]] = []
        answered: list[list[Any]] = []
        for _ in range(random.randint(1, shape.length_max)):
            place = min(int(random.paretovariate(1.0)) - 1, shape.keys - 1)
            key = keys[place]
            if random.random() < 0.5:
                asked.append(["r", key, None])
                answered.append(["r", key, copy(state.get(key))])
                continue
            values += 1
            f = "append" if kind == "list-append" else "w"
            asked.append([f, key, values])
            answered.append([f, key, values])
            written[key] = written.get(key, 0) + 1
            if outcome != "fail":
                state[key] = [*state.get(key, ()), values] if f == "append" else values
            if written[key] == shape.writes_per_key:
                keys[place] = shape.keys + values
        operations.append(_operation(number, shape, asked, answered, outcome))
    return operations


def _operation(
    number: int, shape: Shape, asked: list[Any], answered: list[Any], outcome: Any
) -> PairedOperation:
    # A session that saw an open one goes on under another number.
    process = number if outcome == "info" else number % shape.sessions
    return PairedOperation(
        index=number,
        process=process if outcome != "info" else 1_000_000 + number,
        f="txn",
        key=None,
        argument=asked,
        result=answered if outcome == "ok" else None,
        type=outcome,
        start=number * _STEP_NS,
        end=None if outcome == "info" else (number + shape.sessions) * _STEP_NS - 1,
    )


def measure(kind: Kind, name: str, count: int, seed: int) -> dict[str, Any]:
    """Judge one history in this process."""
    operations = history(kind, SHAPES[name], count, seed)
    began = time.process_time()
    result = check(operations, Unlimited(), kind)
    cpu_s = time.process_time() - began
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "kind": kind,
        "shape": name,
        "transactions": count,
        "verdict": result.verdict.value,
        "cpu_s": round(cpu_s, 2),
        "peak_mib": round(peak_mib),
    }


def main() -> int:
    """Measure every shape; exit code 1 where a verdict is not valid."""
    parser = argparse.ArgumentParser(prog="python -m bench.transactions")
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shapes", default=",".join(SHAPES), help="names with commas between")
    parser.add_argument("--kinds", default=",".join(KINDS), help="names with commas between")
    parser.add_argument("--one", action="store_true", help="measure in this process, print JSON")
    options = parser.parse_args()
    shapes, kinds = options.shapes.split(","), options.kinds.split(",")
    if options.one:
        found = measure(kinds[0], shapes[0], options.transactions, options.seed)
        sys.stdout.write(json.dumps(found) + "\n")
        return 0
    rows: list[dict[str, Any]] = []
    sys.stdout.write(f"{'kind':<14}{'shape':<18}{'verdict':<10}{'CPU s':>7}{'MiB':>7}\n")
    for kind in kinds:
        for name in shapes:
            command = [sys.executable, "-m", "bench.transactions", "--one", "--kinds", kind]
            command += ["--shapes", name, "--transactions", str(options.transactions)]
            command += ["--seed", str(options.seed)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            row = json.loads(done.stdout)
            rows.append(row)
            sys.stdout.write(
                f"{kind:<14}{name:<18}{row['verdict']:<10}{row['cpu_s']:>7}{row['peak_mib']:>7}\n"
            )
            sys.stdout.flush()
    sys.stdout.write(json.dumps({"rows": rows}) + "\n")
    return int(any(row["verdict"] != "valid" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
