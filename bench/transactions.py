"""Measures the checker of transactions: ``python -m bench.transactions [--rows NAMES]``.

Makes histories, judges each in a process of its own, and prints the CPU seconds from operations in
memory to the verdict, the peak of memory with the history in it, and for those that a file is
written of, the CPU seconds of ``splitbrain check`` on it, all of its processes together. The exit
code is 1 where a verdict is not the one that the history was made for. The last line is one JSON
object.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.levels import KINDS, STRICT_SERIALIZABLE, Kind
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import Event, PairedOperation

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
    #: Whether each write follows a read of its key, and is all that the transaction does with it.
    is_mini: bool = False


USUAL: Final = Shape(10, 10, 4, 100)


def drawn_shape(random: Random) -> Shape:
    """Shape between the ones that the rows name."""
    return Shape(
        sessions=round(2 * 50 ** random.random()),
        keys=round(10_000 ** random.random()),
        length_max=random.randint(1, 12),
        writes_per_key=round(5 * 40 ** random.random()),
        open_share=random.choice((0.0, 0.05, 0.2)),
        failed_share=random.choice((0.0, 0.1)),
    )


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
        places = [
            min(int(random.paretovariate(1.0)) - 1, shape.keys - 1)
            for _ in range(random.randint(1, shape.length_max))
        ]
        for place in {*places} if shape.is_mini else places:
            key = keys[place]
            is_write = random.random() < 0.5
            if shape.is_mini or not is_write:
                asked.append(["r", key, None])
                answered.append(["r", key, copy(state.get(key))])
            if not is_write:
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


def ring(count: int) -> list[PairedOperation]:
    """Transactions each of which missed the append of the next one, the last that of the first."""
    shape = Shape(count, count, 2, 1)
    found: list[PairedOperation] = []
    for number in range(count - 1):
        parts = [["r", (number + 1) % (count - 1), None], ["append", number, 1]]
        found.append(_operation(number, shape, parts, parts, "ok"))
    # Everything overlaps; one more saw all of them.
    keys = range(count - 1)
    asked, answered = [["r", key, None] for key in keys], [["r", key, [1]] for key in keys]
    found.append(_operation(count - 1, shape, asked, answered, "ok"))
    return found


def skewed(count: int, seed: int) -> list[PairedOperation]:
    """Transactions on snapshots up to ten transactions old, none of which overwrites another's."""
    random = Random(seed)
    shape = Shape(10, 10, 4, 100)
    state: dict[int, tuple[int, ...]] = dict.fromkeys(range(shape.keys), ())
    past = [state]
    born = shape.keys
    found: list[PairedOperation] = []
    for number in range(count):
        seen = random.choice(past)
        free = [key for key in state if seen.get(key) == state[key]]
        keys = random.sample(sorted(seen), 3)
        asked: list[list[Any]] = [["r", key, None] for key in keys]
        answered: list[list[Any]] = [["r", key, [*seen[key]]] for key in keys]
        state = dict(state)
        if free:
            key = random.choice(free)
            for parts in (asked, answered):
                parts.append(["append", key, number])
            state[key] = (*state[key], number)
            if len(state[key]) == shape.writes_per_key:
                del state[key]
                state[born] = ()
                born += 1
        past = [*past, state][-10:]
        found.append(_operation(number, shape, asked, answered, "ok"))
    return found


class Row(NamedTuple):
    """One history, and how it is judged."""

    kind: Kind
    make: Callable[[], list[PairedOperation]]
    level: str = STRICT_SERIALIZABLE
    verdict: str = "valid"
    #: Whether it is written to a file and judged from there, too.
    from_file: bool = False


def rows_of(seed: int, drawn: int) -> dict[str, Row]:
    """Rows by name; the last ones are drawn by the seed."""
    mini = Shape(10, 1000, 2, 100, is_mini=True)

    def of(kind: Kind, shape: Shape, count: int, **fields: Any) -> Row:
        return Row(kind, lambda: history(kind, shape, count, seed), **fields)

    found = {
        "lists 100,000": of("list-append", USUAL, 100_000, from_file=True),
        "lists 1,000,000": of("list-append", USUAL, 1_000_000),
        "mini SI 100,000": of(
            "rw-register", mini, 100_000, level="snapshot-isolation", from_file=True
        ),
        "mini SER 100,000": of("rw-register", mini, 100_000, level="serializable"),
        "registers 100,000": of("rw-register", USUAL, 100_000),
        "ring 50,000": Row("list-append", lambda: ring(50_000), verdict="invalid"),
        "skew 10,000": Row("list-append", lambda: skewed(10_000, seed), verdict="invalid"),
    }
    random = Random(seed)
    for number in range(drawn):
        shape = drawn_shape(random)
        kind = KINDS[number % len(KINDS)]
        # An order of registers' blind writes may stay open; those of an open one are blind.
        if kind == "rw-register":
            shape = shape._replace(is_mini=True, open_share=0.0)
        found[f"drawn {number}"] = of(kind, shape, 50_000)
    return found


def measure(row: Row) -> dict[str, Any]:
    """Judge one history in this process, and from a file by the command if so."""
    operations = row.make()
    began = time.process_time()
    result = check(operations, Unlimited(), row.kind, row.level)
    found: dict[str, Any] = {
        "transactions": len(operations),
        "verdict": result.verdict.value,
        "as_expected": result.verdict.value == row.verdict,
        "cpu_s": round(time.process_time() - began, 2),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    shortest = [len(v["edges"]) for v in result.violations if "edges" in v]
    if shortest:
        found["shortest_cycle"] = min(shortest)
    if row.from_file:
        found["end_to_end_cpu_s"] = round(_check_file(row, operations), 2)
    return found


def _check_file(row: Row, operations: Sequence[PairedOperation]) -> float:
    """Return the CPU seconds of the command that judges the same from a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        path.write_bytes(b"".join(map(_line, _events(operations))))
        command = [sys.executable, "-m", "splitbrain.harness.cli", "check", str(path)]
        command += ["--model", row.kind, "--level", row.level]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != (0 if row.verdict == "valid" else 1):
        raise SystemExit(f"{' '.join(command)} did not judge as expected: {done.stdout}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _events(operations: Sequence[PairedOperation]) -> list[Event]:
    last = max(operation.start for operation in operations) + _STEP_NS
    events: list[tuple[int, Event]] = []
    for o in operations:
        end, value = last if o.end is None else o.end, o.result if o.type == "ok" else o.argument
        events.append((o.start, Event(0, o.start, o.process, "invoke", "txn", value=o.argument)))
        events.append((end, Event(0, end, o.process, o.type, "txn", value=value)))
    events.sort(key=lambda timed: timed[0])
    return [msgspec.structs.replace(e, index=index) for index, (_, e) in enumerate(events)]


def _line(event: Event) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def main() -> int:
    """Measure every row; exit code 1 where a verdict is not as expected."""
    parser = argparse.ArgumentParser(prog="python -m bench.transactions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=6, help="number of drawn shapes")
    parser.add_argument("--rows", help="names of rows with semicolons between; all by default")
    parser.add_argument("--one", action="store_true", help="measure in this process, print JSON")
    options = parser.parse_args()
    rows = rows_of(options.seed, options.drawn)
    names = options.rows.split(";") if options.rows else list(rows)
    for name in names:
        if name not in rows:
            parser.error(f"there is no row {name!r}; choose some of: {'; '.join(rows)}")
    if options.one:
        sys.stdout.write(json.dumps(measure(rows[names[0]])) + "\n")
        return 0
    measured: list[dict[str, Any]] = []
    heads = f"{'CPU s':>8}{'MiB':>7}{'from file':>11}"
    sys.stdout.write(f"{'row':<20}{'kind':<13}{'verdict':<9}{heads}\n")
    for name in names:
        command = [sys.executable, "-m", "bench.transactions", "--one", "--rows", name]
        command += ["--seed", str(options.seed), "--drawn", str(options.drawn)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        row = {"row": name, "kind": rows[name].kind, **json.loads(done.stdout)}
        measured.append(row)
        figures = f"{row['cpu_s']:>8}{row['peak_mib']:>7}{row.get('end_to_end_cpu_s', ''):>11}"
        sys.stdout.write(f"{name:<20}{row['kind']:<13}{row['verdict']:<9}{figures}\n")
        sys.stdout.flush()
    sys.stdout.write(json.dumps({"rows": measured}) + "\n")
    return int(not all(row["as_expected"] for row in measured))


if __name__ == "__main__":
    sys.exit(main())
