"""Throughput of the runner itself: operations a second with clients that complete at once.

Run as ``python -m bench.runner [--operations N] [--repeats R] [--workers 0,1,2] [--slots S]``. The
load phase of a run with null clients and the register workload, in the run's own process (0 worker
processes) or in worker processes, each run in a fresh process; the history is then read back and
checked event by event. Medians over the repeats; the last line is one JSON object. Take ratios:
the figures are those of the machine and its load. ``--operations 5000000`` shows that memory stays
flat.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.null_client import NullClients
from bench.runner_samples import Course, Sampler
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.clients import Load, LoadSetup
from splitbrain.harness.run.load.routes import reader_slots
from splitbrain.harness.run.load_phase import LoadPhase
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import NANOSECONDS, RunClock
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.course import Phase
from splitbrain.history.reader import HistoryReader
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import HistoryWriter, LineWriter
from splitbrain.workloads.workload import workload

_NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
_UNLIMITED_S = 1e9


class Measurement(msgspec.Struct, frozen=True):
    """One run."""

    workers: int
    operations: int
    operations_per_second: float
    #: Processor time of all processes for one operation, microseconds; and of the parent alone.
    cpu_us: float
    parent_cpu_us: float
    mebibytes_per_second: float
    #: Resident memory along the run, MiB.
    parent_mib: Course
    worker_mib: Course
    #: Age of the newest event in the file when it was looked at, ms.
    lag_ms: Course
    #: Longest time between two syncs of the file, seconds.
    unsynced_s_max: float
    #: Whether the history is complete and in order.
    problems: tuple[str, ...]


def measure(workers: int, operations: int, slots: int, folder: Path) -> Measurement:
    """Run one load and check its history."""
    clock, stop, traffic = RunClock(), Stop(), Traffic()
    path = folder / "history.jsonl"
    with LineWriter(RunFolder(folder).phases) as phases:
        history = HistoryWriter(path, clock.now)
        progress = Progress(clock, phases, traffic)
        readers = reader_slots(_NODES, slots)
        phase = LoadPhase(
            LoadSetup(
                _NODES,
                workload("register", seed=1, slots=slots, readers=readers, options={}),
                Load(slots, math.inf, _UNLIMITED_S, 1.0, workers, operations // slots),
            ),
            NullClients(),
            carry_out=lambda _start, _end: None,
            history=history,
            clock=clock,
            progress=progress,
            stop=stop,
            opener_for_workers=NullClients,
        )
        with Sampler(path, clock.now, lambda: progress.phase == "load-started") as sampler:
            before_s = _cpu_s(resource.RUSAGE_SELF)
            phase.run()
            parent_s = _cpu_s(resource.RUSAGE_SELF) - before_s
        history.close()
    if stop.failure is not None:
        raise stop.failure
    seconds = _load_seconds(folder)
    return Measurement(
        workers=workers,
        operations=operations,
        operations_per_second=round(operations / seconds),
        cpu_us=round((parent_s + _cpu_s(resource.RUSAGE_CHILDREN)) / operations * 1e6, 2),
        parent_cpu_us=round(parent_s / operations * 1e6, 2),
        mebibytes_per_second=round(path.stat().st_size / 2**20 / seconds, 1),
        parent_mib=Course.of(sampler.parent_mib),
        worker_mib=Course.of(sampler.worker_mib),
        lag_ms=Course.of(sampler.lag_ms),
        unsynced_s_max=round(sampler.longest_unsynced_s(), 2),
        problems=tuple(history_problems(path, operations // slots * slots)),
    )


def history_problems(path: Path, operations: int) -> list[str]:
    """Return the problems of a history of so many operations; read it as a stream."""
    reader = HistoryReader(path)
    is_open: dict[int, bool] = {}
    index, time, completed = 0, 0, 0
    for event in reader:
        if event.index != index:
            return [f"index {event.index} where {index} is due"]
        if event.time < time:
            return [f"event {index} is older than the one before"]
        is_invocation = event.type == "invoke"
        if is_open.get(event.process, False) == is_invocation:
            return [f"event {index}: process {event.process} does not alternate"]
        is_open[event.process] = is_invocation
        index, time, completed = index + 1, event.time, completed + (not is_invocation)
    problems: list[str] = []
    if any(is_open.values()):
        problems.append(f"{sum(is_open.values())} operations are open")
    if completed != operations:
        problems.append(f"{completed} operations instead of {operations}")
    if reader.torn_bytes is not None:
        problems.append("the last line is torn")
    return problems


def _load_seconds(folder: Path) -> float:
    lines = RunFolder(folder).phases.read_bytes().splitlines()
    times = {
        phase.phase: phase.time
        for phase in (msgspec.json.decode(line, type=Phase) for line in lines)
    }
    return (times["load-ended"] - times["load-started"]) / NANOSECONDS


def _cpu_s(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def _in_fresh_process(arguments: argparse.Namespace, workers: int) -> Measurement:
    """Measure where nothing before has taken memory or processor time."""
    child = subprocess.run(
        [
            *(sys.executable, "-m", "bench.runner", "--one", "--workers", str(workers)),
            *("--operations", str(arguments.operations), "--slots", str(arguments.slots)),
        ],
        stdout=subprocess.PIPE,
        check=False,
    )
    if child.returncode:
        sys.exit(child.returncode)
    return msgspec.json.decode(child.stdout, type=Measurement)


def _median_row(workers: int, runs: list[Measurement]) -> dict[str, object]:
    def median(name: str) -> float:
        return round(statistics.median(getattr(run, name) for run in runs), 2)

    def course(name: str) -> Course:
        # Of the run with the largest maximum: the worst is what counts.
        courses: list[Course] = [getattr(run, name) for run in runs]
        return max(courses, key=lambda course: course.max)

    return {
        "workers": workers,
        "repeats": len(runs),
        "operations": runs[0].operations,
        "operations_per_second": median("operations_per_second"),
        "operations_per_second_min": min(run.operations_per_second for run in runs),
        "operations_per_second_max": max(run.operations_per_second for run in runs),
        "cpu_us": median("cpu_us"),
        "parent_cpu_us": median("parent_cpu_us"),
        "mebibytes_per_second": median("mebibytes_per_second"),
        "parent_mib": msgspec.to_builtins(course("parent_mib")),
        "worker_mib": msgspec.to_builtins(course("worker_mib")),
        "lag_ms": msgspec.to_builtins(course("lag_ms")),
        "unsynced_s_max": max(run.unsynced_s_max for run in runs),
        "problems": [problem for run in runs for problem in run.problems],
    }


def _print_row(row: dict[str, object]) -> None:
    def told(name: str) -> str:
        course = msgspec.convert(row[name], Course)
        return f"{course.first:g}/{course.median:g}/{course.last:g}/{course.max:g}"

    print(
        f"{row['workers']:>7} {row['operations_per_second']:>9,.0f} "
        f"{row['operations_per_second_min']:>9,.0f} {row['cpu_us']:>9} {row['parent_cpu_us']:>9} "
        f"{row['mebibytes_per_second']:>7}  {told('parent_mib'):>23}  {told('worker_mib'):>23}  "
        f"{told('lag_ms'):>23}  {'; '.join(map(str, row['problems'])) or 'whole'}",  # type: ignore[call-overload]
        flush=True,
    )


def main() -> int:
    """Measure and print; exit code 1 if a history is not whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=500_000, help="of each run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", default="0,1,2", help="numbers of worker processes")
    parser.add_argument("--slots", type=int, default=10, help="concurrent operations")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.workers.split(",")]
    if arguments.one:
        with tempfile.TemporaryDirectory() as folder:
            result = measure(counts[0], arguments.operations, arguments.slots, Path(folder))
        print(msgspec.json.encode(result).decode())
        return 0
    runs: dict[int, list[Measurement]] = {count: [] for count in counts}
    # In turns, so that what else the machine does meets all of them alike.
    for _ in range(arguments.repeats):
        for count in counts:
            runs[count].append(_in_fresh_process(arguments, count))
    print(f"{arguments.operations:,} operations, {arguments.slots} slots, {os.cpu_count()} cores")
    print(f"{'':>81}{'first/median/last/max':>40}")
    head = ("workers", "op/s", "min op/s", "CPU us/op", "parent us", "MiB/s")
    print("{:>7} {:>9} {:>9} {:>9} {:>9} {:>7}".format(*head), end="  ")
    print(f"{'parent MiB':>23}  {'largest worker MiB':>23}  {'file behind by ms':>23}  history")
    rows = [_median_row(count, runs[count]) for count in counts]
    for row in rows:
        _print_row(row)
    print(json.dumps({"bench": "runner", "cores": os.cpu_count(), "rows": rows}))
    return 1 if any(row["problems"] for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HarnessError as problem:
        sys.exit(str(problem))
