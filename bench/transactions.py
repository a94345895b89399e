"""Measures the checker of transactions: ``python -m bench.transactions [--rows NAMES]``.

Makes histories and judges each: from operations in memory, and from a file, read into columns by a
process of its own. Prints the CPU seconds of both judgements and of reading, the peak of memory of
reading and judging columns, and of some the CPU seconds of ``splitbrain check`` on the file, all of
its processes together. Histories of rows are judged from operations alone; there the peak is with
these in memory. The exit code is 1 where a verdict is not the one that the history was made for.
The last line is one JSON object.

With ``--elle`` Elle is asked about the same histories, of lists and registers: its verdict, the CPU
seconds of its process for a first and a last run from operations in memory, and for reading them.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from bench import elle_peer
from bench.transaction_histories import (
    STEP_NS,
    USUAL,
    Shape,
    drawn_shape,
    history,
    lagging,
    ring,
    skewed,
    snapshot_rows,
)
from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.levels import KINDS, STRICT_SERIALIZABLE, Kind
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.column_reader import read_columns
from splitbrain.history.columns import ColumnOperations
from splitbrain.history.records import Event, PairedOperation

#: Figures of each row.
_FIGURES: Final = (
    *("objects_cpu_s", "reading_cpu_s", "columns_cpu_s", "peak_mib", "command_cpu_s"),
)
#: Registers that are added for Elle, which takes the square of their number in one of two ways.
_FOR_ELLE: Final = (4_000, 8_000)
#: Heads of those that ``--elle`` adds.
_OF_ELLE: Final = {
    "reading_cpu_s": "Elle reads",
    "first_cpu_s": "Elle first",
    "warm_cpu_s": "Elle warm",
    "verdict": "Elle says",
}


class Row(NamedTuple):
    """One history, and how it is judged."""

    kind: Kind
    make: Callable[[], list[PairedOperation]]
    level: str = STRICT_SERIALIZABLE
    verdict: str = "valid"
    #: Whether it is written to a file and judged from there, too.
    from_file: bool = False


def rows_of(seed: int, drawn: int, with_elle: bool = False) -> dict[str, Row]:
    """Rows by name; some are drawn by the seed, small ones added where Elle is asked."""
    mini = Shape(10, 1000, 2, 100, is_mini=True)
    #: 222,222 of these have about 1,000,000 micro-operations.
    wide = Shape(50, 1000, 8, 100)

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
        **{
            f"{name} 222,222": of("rw-register", wide, 222_222, level=level)
            for name, level in (
                ("RC", "monotonic-atomic-view"),
                ("RA", "read-atomic"),
                ("CC", "causal"),
            )
        },
        "lagging CC 20,000": Row(
            "rw-register", lambda: lagging(wide, 20_000, seed), level="causal"
        ),
        "rows 50,000": of("rows", Shape(10, 10, 4, 20), 50_000),
        "rows SER 6,000": Row("rows", lambda: snapshot_rows(6_000, seed), verdict="invalid"),
        "rows SI 6,000": Row(
            "rows", lambda: snapshot_rows(6_000, seed), level="snapshot-isolation"
        ),
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
    for count in _FOR_ELLE if with_elle else ():
        found[f"registers {count:,}"] = of("rw-register", USUAL, count)
    return found


def measure(row: Row, elle: str | None = None) -> dict[str, Any]:
    """Judge one history, from operations in this process; with a class path Elle does so, too."""
    operations = row.make()
    began = time.process_time()
    result = check(operations, Unlimited(), row.kind, row.level)
    found: dict[str, Any] = {
        "transactions": len(operations),
        "micro_operations": sum(len(operation.argument) for operation in operations),
        "verdict": result.verdict.value,
        "as_expected": result.verdict.value == row.verdict,
        "objects_cpu_s": round(time.process_time() - began, 2),
        "peak_mib": _peak_mib(),
    }
    shortest = [len(v["edges"]) for v in result.violations if "edges" in v]
    if shortest:
        found["shortest_cycle"] = min(shortest)
    if row.kind == "rows":
        return found
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        with path.open("wb") as file:
            file.writelines(map(_line, events_of(operations)))
        questions = (
            elle_peer.questions_of(row.kind, row.level, len(operations)) if elle is not None else []
        )
        edn = Path(folder) / "history.edn"
        if questions:
            elle_peer.write_edn(events_of(operations), edn)
        del operations
        command = [sys.executable, "-m", "bench.transactions", "--judge", str(path)]
        command += ["--kind", row.kind, "--level", row.level]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        columns = json.loads(done.stdout)
        found["as_expected"] &= columns.pop("verdict") == row.verdict
        found |= columns
        if row.from_file:
            found["command_cpu_s"] = round(_check_file(row, path), 2)
        if elle is not None:
            found["elle"] = [_elle_figures(elle, question, edn) for question in questions]
    return found


def _elle_figures(class_path: str, question: elle_peer.Question, path: Path) -> dict[str, Any]:
    try:
        answer = elle_peer.ask(class_path, question, path)
    except elle_peer.ElleError as error:
        return {"options": question.options, "verdict": "none", "error": str(error)}
    return {
        "options": question.options,
        "verdict": answer.verdict,
        "anomalies": answer.anomalies,
        "reading_cpu_s": round(answer.reading_cpu_s, 2),
        "first_cpu_s": round(answer.runs_cpu_s[0], 2),
        "warm_cpu_s": round(answer.runs_cpu_s[-1], 2),
    }


def judge_columns(path: Path, kind: Kind, level: str) -> dict[str, Any]:
    """Read a history into columns and judge it, in this process."""
    began = time.process_time()
    columns = read_columns(path, "jsonl", are_transactions=True)
    if columns is None:
        raise SystemExit(f"{path} is not read into columns")
    read = time.process_time()
    result = check(ColumnOperations(columns), Unlimited(), kind, level)
    return {
        "verdict": result.verdict.value,
        "reading_cpu_s": round(read - began, 2),
        "columns_cpu_s": round(time.process_time() - read, 2),
        "peak_mib": _peak_mib(),
    }


def _peak_mib() -> int:
    # The figure of ``getrusage`` holds that of the process that started this one.
    status = Path("/proc/self/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024)


def _check_file(row: Row, path: Path) -> float:
    """Return the CPU seconds of the command that judges the same from a file."""
    command = [sys.executable, "-m", "splitbrain.harness.cli", "check", str(path)]
    command += ["--model", row.kind, "--level", row.level]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != (0 if row.verdict == "valid" else 1):
        raise SystemExit(f"{' '.join(command)} did not judge as expected: {done.stdout}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def events_of(operations: Sequence[PairedOperation]) -> Iterator[Event]:
    """Return the events of a history in the order of their times."""
    last = max(operation.start for operation in operations) + STEP_NS
    moments = [(operation.start, place, True) for place, operation in enumerate(operations)]
    moments += [
        (last if operation.end is None else operation.end, place, False)
        for place, operation in enumerate(operations)
    ]
    moments.sort()
    for index, (moment, place, is_begin) in enumerate(moments):
        o = operations[place]
        kind = "invoke" if is_begin else o.type
        value = o.result if o.type == "ok" and not is_begin else o.argument
        yield Event(index, moment, o.process, kind, "txn", value=value)


def _line(event: Event) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.transactions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=6, help="number of drawn shapes")
    parser.add_argument("--rows", help="names of rows with semicolons between; all by default")
    parser.add_argument(
        "--elle",
        metavar="CLASSPATH",
        help="measure Elle, too: a Java class path with it, all that it needs, and Clojure,"
        " as `lein classpath` prints it where Elle's project is",
    )
    parser.add_argument("--one", action="store_true", help="measure in this process, print JSON")
    parser.add_argument("--judge", type=Path, help="judge this file in this process, print JSON")
    parser.add_argument("--kind", choices=KINDS, default="list-append")
    parser.add_argument("--level", default=STRICT_SERIALIZABLE)
    return parser


def main() -> int:
    """Measure every row; exit code 1 where a verdict is not as expected."""
    parser = _parser()
    options = parser.parse_args()
    if options.judge is not None:
        told = judge_columns(options.judge, options.kind, options.level)
        sys.stdout.write(json.dumps(told) + "\n")
        return 0
    rows = rows_of(options.seed, options.drawn, options.elle is not None)
    names = options.rows.split(";") if options.rows else list(rows)
    for name in names:
        if name not in rows:
            parser.error(f"there is no row {name!r}; choose some of: {'; '.join(rows)}")
    if options.one:
        sys.stdout.write(json.dumps(measure(rows[names[0]], options.elle)) + "\n")
        return 0
    command = [sys.executable, "-m", "bench.transactions", "--one"]
    command += ["--seed", str(options.seed), "--drawn", str(options.drawn)]
    if options.elle is not None:
        try:
            elle_peer.load(options.elle)
        except elle_peer.ElleError as error:
            parser.error(str(error))
        command += ["--elle", options.elle]
    return _measure_each(rows, names, command)


def _measure_each(rows: dict[str, Row], names: list[str], command: list[str]) -> int:
    """Print the figures of each row named, measured by a process of its own."""
    measured: list[dict[str, Any]] = []
    heads = "".join(f"{name.partition('_')[0]:>10}" for name in _FIGURES)
    if "--elle" in command:
        heads += "".join(f"{head:>12}" for head in _OF_ELLE.values())
    sys.stdout.write(f"{'row':<20}{'kind':<13}{'verdict':<9}{heads}\n")
    for name in names:
        done = subprocess.run([*command, "--rows", name], stdout=subprocess.PIPE, check=True)
        row: dict[str, Any] = {"row": name, "kind": rows[name].kind, **json.loads(done.stdout)}
        measured.append(row)
        figures = "".join(f"{row.get(figure, ''):>10}" for figure in _FIGURES)
        ours = f"{name:<20}{row['kind']:<13}{row['verdict']:<9}{figures}"
        sys.stdout.write("".join(f"{line}\n" for line in beside(ours, row.get("elle", []))))
        sys.stdout.flush()
    sys.stdout.write(json.dumps({"rows": measured}) + "\n")
    return int(not all(row["as_expected"] for row in measured))


def beside(ours: str, answers: Sequence[dict[str, Any]]) -> list[str]:
    """Return the line of a row with Elle's answers beside it, each but the first on its own."""
    told: list[str] = []
    for answer in answers:
        figures = "".join(f"{answer.get(figure, ''):>12}" for figure in _OF_ELLE)
        told.append(f"{figures}  {answer['options']}  {answer.get('error', '')}".rstrip())
    return [ours + told[0], *(" " * len(ours) + line for line in told[1:])] if told else [ours]


if __name__ == "__main__":
    sys.exit(main())
