"""Times the readers of histories: ``python -m bench.reading``.

One generated history of a register (unique values, ten clients) is written in every format and
read by a fresh process each: CPU seconds, wall seconds and the memory that it takes at its peak,
the interpreter's own apart. JSON lines and the table hold ``--operations``, the formats of others a
tenth of them. Prints a table, and one JSON object on the last line. With ``--edn-format`` the
library of that name, where it is installed, is timed beside our EDN reader. "columns" is the CPU
time straight into columns, for the formats that are read so. Last, what handing the
operations to a worker takes, packed as the harness does it and pickled one by one, both ways.
"""

import argparse
import gzip
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.harness.judge.checking import Packed
from splitbrain.history.column_reader import read_columns
from splitbrain.history.edn import parse
from splitbrain.history.importers import load
from splitbrain.history.operations_table import write_operations
from splitbrain.history.pairing import events_of
from splitbrain.history.records import Event, PairedOperation

_CLIENTS = 10
_FORMATS = ("jsonl", "jsonl.gz", "parquet", "edn", "jepsen-log", "kv", "etcd-robustness")
#: Formats of others, which nobody writes by the million.
_SMALLER = frozenset({"edn", "jepsen-log", "kv", "etcd-robustness"})
_EDN_LINES = 2_000


def main() -> None:
    """Measure every format."""
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--edn-format", action="store_true")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        _read(options.read)
        return
    rows: list[dict[str, Any]] = []
    heads = ("format", "operations", "MB", "columns s", "CPU s", "wall s", "peak MiB")
    print(("{:<20}" + "{:>12}" * 6).format(*heads))
    for count, names in (
        (options.operations, [name for name in _FORMATS if name not in _SMALLER]),
        (options.operations // 10, [name for name in _FORMATS if name in _SMALLER]),
    ):
        with tempfile.TemporaryDirectory() as folder:
            for name, path in _write(Path(folder), count, names):
                row = {"format": name, "operations": count, **_measured(path)}
                rows.append(row)
                cells = ["-" if value is None else value for value in row.values()]
                print("{:<20}{:>12,}{:>12}{:>12}{:>12}{:>12}{:>12}".format(*cells), flush=True)
    libraries = _edn_libraries() if options.edn_format else None
    if libraries:
        print(", ".join(f"{name}: {micros} µs a line" for name, micros in libraries.items()))
    handing = _handing_over(options.operations)
    print(", ".join(f"{name}: {seconds} CPU-s" for name, seconds in handing.items()))
    figures = {"rows": rows, "edn_us_per_line": libraries, "handing_over_cpu_s": handing}
    print(json.dumps({"bench": "reading", **figures}))


def _measured(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.reading", "--read", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {"mb": round(path.stat().st_size / 1e6, 1), **json.loads(done.stdout)}


def _read(path: Path) -> None:
    """In a process of its own: read one file as ``splitbrain check`` does."""
    before = _peak_kib()
    cpu = time.process_time()
    columns = read_columns(path)
    columns_s = None if columns is None else round(time.process_time() - cpu, 2)
    del columns
    cpu, wall = time.process_time(), time.perf_counter()
    history = load(path)
    row = {
        "columns_cpu_s": columns_s,
        "cpu_s": round(time.process_time() - cpu, 2),
        "wall_s": round(time.perf_counter() - wall, 2),
        "peak_mib": (_peak_kib() - before) // 1024,
    }
    assert history.operations
    print(json.dumps(row))


def _peak_kib() -> int:
    """Most memory that this process has had; ``getrusage`` would count its parent's too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def _write(folder: Path, count: int, names: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Each format's file, removed before the next one is made."""
    options = HistoryOptions(count, _CLIENTS, values=0, mix="register")
    operations = generate(options)
    events = events_of(operations)
    for name in names:
        path = folder / f"history.{name}"
        if name == "parquet":
            write_operations(path, operations)
        elif name == "etcd-robustness":
            path.write_bytes(b"".join(map(_etcd_line, operations)))
        else:
            content = b"".join(_event_line(name, event) for event in events)
            path.write_bytes(gzip.compress(content, 6) if name.endswith(".gz") else content)
        yield name, path
        path.unlink()


def _event_line(name: str, event: Event) -> bytes:
    value = "nil" if event.value is None else str(event.value)
    if name == "edn":
        text = (
            f"{{:index {event.index}, :time {event.time}, :type :{event.type}, "
            f":process {event.process}, :f :{event.f}, :value {value}}}"
        )
    elif name == "kv":
        f = "get" if event.f == "read" else "put"
        text = (
            f"{{:process {event.process}, :type :{event.type}, :f :{f}, "
            f':key "{event.key}", :value "{value}"}}'
        )
    elif name == "jepsen-log":
        text = f"INFO  jepsen.util - {event.process}\t:{event.type}\t:{event.f}\t{value}"
    else:
        return msgspec.json.encode(event) + b"\n"
    return text.encode() + b"\n"


def _etcd_line(operation: PairedOperation) -> bytes:
    answer: dict[str, Any] = {"Revision": operation.index + 2}
    if operation.f == "read":
        request = {"Type": "range", "Range": {"Start": operation.key, "End": ""}}
        value = {"Value": str(operation.result)}
        answer["Range"] = {"KVs": [{"Key": operation.key, "Value": value}], "Count": 1}
    else:
        put = {"Key": operation.key, "Value": {"Value": str(operation.argument)}}
        request = {
            "Type": "txn",
            "Txn": {"OperationsOnSuccess": [{"Type": "put-operation", "Put": put}]},
        }
        answer["Txn"] = {"Results": [{"KVs": None}]}
    line = {
        "ClientId": operation.process,
        "Input": request,
        "Call": operation.start,
        "Output": answer,
        "Return": operation.end,
    }
    return msgspec.json.encode(line) + b"\n"


def _handing_over(count: int) -> dict[str, float]:
    """CPU seconds from this process's operations to those of another, in two ways."""
    operations = tuple(generate(HistoryOptions(count, _CLIENTS, values=0, mix="register")))
    part = Part("r0", operations)
    seconds: dict[str, float] = {}
    for name, message in (("packed", Packed(part)), ("pickled", part)):
        begun = time.process_time()
        arrived = pickle.loads(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))  # noqa: S301
        seconds[name] = round(time.process_time() - begun, 2)
        assert arrived is not None
    return seconds


def _edn_libraries() -> dict[str, float]:
    """Microseconds a line of our reader and of the one on PyPI."""
    lines = [
        f"{{:process {number % 10}, :type :invoke, :f :cas, :value [1 2], :time {number * 1000}}}"
        for number in range(_EDN_LINES)
    ]
    micros: dict[str, float] = {}
    for name, read in (("ours", parse), ("edn_format", import_module("edn_format").loads)):
        read(lines[0])
        begun = time.process_time()
        for line in lines:
            read(line)
        micros[name] = round((time.process_time() - begun) / len(lines) * 1e6, 1)
    return micros


if __name__ == "__main__":
    main()
