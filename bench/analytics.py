"""``python -m bench.analytics``: how long ingest and each Spark job take on synthetic runs.

Ingest is plain Python and pyarrow; the jobs run on the session that ``splitbrain analyze`` would
start. The first size pays for loading and compiling classes, so each job is run twice and both
times are shown. Prints a table and, on its last line, one JSON object.

    python -m bench.analytics [--events 100000,1000000] [--memory-mib 2048]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.analyze import analyze
from splitbrain.spark_analysis.frames import RunTables, open_tables
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs.availability import fault_windows, longest_unavailability
from splitbrain.spark_analysis.jobs.commits import lost_commits, phantom_commits
from splitbrain.spark_analysis.jobs.latency import latency_quantiles, throughput
from splitbrain.spark_analysis.jobs.leadership import election_timeline, leader_overlaps, reigns_of
from splitbrain.spark_analysis.session import spark_session
from tests.spark.run_folders import Shape, World

#: Events a second that the synthetic clients make at the pace below, measured.
_EVENTS_PER_SECOND = 9_000


def make_run(root: Path, events: int) -> tuple[Path, int]:
    """Return a run folder of about so many events, and how many they really are."""
    seconds = max(2.0, events / _EVENTS_PER_SECOND)
    faults = min(20, max(1, int(seconds / 5)))
    shape = Shape(seed=events, seconds=seconds, workers=50, pace_ms=5.0, faults=faults)
    world = World(shape)
    return world.write(root / f"run-{events}"), len(world.events)


def jobs_of(tables: RunTables) -> dict[str, Callable[[], DataFrame]]:
    """Name of each job to what makes its result."""
    operations, faults, state_events, committed, logs = tables
    return {
        "latency quantiles": lambda: latency_quantiles(operations),
        "throughput": lambda: throughput(operations),
        "fault windows": lambda: fault_windows(operations, faults),
        "longest unavailability": lambda: longest_unavailability(operations),
        "lost commits": lambda: lost_commits(operations, committed, logs),
        "phantom commits": lambda: phantom_commits(operations, committed),
        "leader overlaps": lambda: leader_overlaps(
            reigns_of(election_timeline(state_events, faults, operations))
        ),
    }


def timed_s(work: Callable[[], object]) -> float:
    """Seconds that the work took."""
    started = time.perf_counter()
    work()
    return round(time.perf_counter() - started, 3)


def measure(session: SparkSession, root: Path, events: int) -> dict[str, Any]:
    """All figures of one size."""
    folder, made = make_run(root, events)
    figures: dict[str, Any] = {"events": made}
    figures["ingest_s"] = timed_s(lambda: ingest(folder))
    figures["history_bytes"] = RunFolder(folder).history.stat().st_size
    tables = open_tables(session, [folder])
    jobs: dict[str, list[float]] = {}
    for name, job in jobs_of(tables).items():

        def run(job: Callable[[], DataFrame] = job) -> None:
            job().write.format("noop").mode("overwrite").save()

        jobs[name] = [timed_s(run), timed_s(run)]
    figures["jobs_s"] = jobs
    figures["analyze_s"] = timed_s(lambda: analyze(folder, session))
    return figures


def print_table(measured: list[dict[str, Any]]) -> None:
    """The figures for people."""
    print(f"{'seconds':<26}" + "".join(f"{row['events']:>22,}" for row in measured))
    print(f"{'ingest':<26}" + "".join(f"{row['ingest_s']:>22.2f}" for row in measured))
    for name in measured[0]["jobs_s"]:
        cells = ("{:.2f}, then {:.2f}".format(*row["jobs_s"][name]) for row in measured)
        print(f"{name:<26}" + "".join(f"{cell:>22}" for cell in cells))
    print(
        f"{'analyze, ingest done':<26}" + "".join(f"{row['analyze_s']:>22.2f}" for row in measured)
    )


def main() -> None:
    """Measure every size in one session."""
    parser = argparse.ArgumentParser(description="Time of ingest and of each Spark job.")
    parser.add_argument("--events", default="100000,1000000", help="sizes, comma-separated")
    parser.add_argument("--memory-mib", type=int, default=2048, help="heap of the JVM")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.events.split(",")]
    with tempfile.TemporaryDirectory(prefix="splitbrain-bench-") as name:
        started = time.perf_counter()
        with spark_session(memory_mib=arguments.memory_mib) as session:
            session_s = round(time.perf_counter() - started, 3)
            measured = [measure(session, Path(name), size) for size in sizes]
    load = round(os.getloadavg()[0], 2)
    print(f"session {session_s:.2f} s, load average {load}")
    print_table(measured)
    line = {"bench": "analytics", "session_s": session_s, "load_average": load, "runs": measured}
    print(msgspec.json.encode(line).decode())


if __name__ == "__main__":
    main()
