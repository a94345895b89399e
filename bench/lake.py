"""``python -m bench.lake``: what many small runs cost a lake, by how they were committed.

The same runs, each in a commit of its own, as if they had come one by one; then compacted; and
ingested together. For each: files, bytes, seconds to open the lake, and for two jobs over all runs.
Prints a table and, on its last line, one JSON object.

    python -m bench.lake [--runs 500]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from splitbrain.spark_analysis.jobs.commits import lost_commits
from splitbrain.spark_analysis.jobs.latency import latency_quantiles
from splitbrain.spark_analysis.lake.compaction import compact
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.reader import LakeTables, open_lake
from splitbrain.spark_analysis.lake.snapshot import clean
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.session import spark_session
from tests.lake_runs import make_run


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of this process that the work took."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return round(time.perf_counter() - wall, 3), round(time.process_time() - cpu, 3)


def queries(session: SparkSession, store: LocalStore) -> dict[str, float]:
    """Wall seconds to open the lake and to run two jobs, the better of two."""
    opened: list[LakeTables] = []
    open_s = min(timed(lambda: opened.append(open_lake(session, store)))[0] for _ in range(2))
    lake = opened[-1]
    jobs = {
        "latency_s": lambda: latency_quantiles(lake.operations),
        "lost_s": lambda: lost_commits(lake.operations, lake.committed, lake.logs),
    }
    figures = {"open_s": open_s}
    for name, job in jobs.items():

        def run(job: Callable[[], Any] = job) -> None:
            job().write.format("noop").mode("overwrite").save()

        figures[name] = min(timed(run)[0] for _ in range(2))
    return figures


def sizes(store: LocalStore) -> dict[str, int]:
    """Files and bytes of the tables."""
    files = list(store.files("tables"))
    return {"files": len(files), "bytes": sum(file.size_bytes for file in files)}


def measure(session: SparkSession, root: Path, runs: int) -> dict[str, dict[str, Any]]:
    """All figures, by layout."""
    folders = [make_run(root / "runs" / f"run-{seed}", seed=seed) for seed in range(runs)]
    apart, together = LocalStore(root / "apart"), LocalStore(root / "together")
    figures: dict[str, dict[str, Any]] = {}
    ingest_s, cpu_s = timed(lambda: ingest_runs(apart, folders, commit_bytes=1))
    again_s, _ = timed(lambda: ingest_runs(apart, folders))
    figures["one by one"] = {"write_s": ingest_s, "write_cpu_s": cpu_s, "again_s": again_s}
    figures["one by one"] |= sizes(apart) | queries(session, apart)
    compact_s, cpu_s = timed(lambda: (compact(apart), clean(apart, grace_s=-1)))
    figures["compacted"] = {"write_s": compact_s, "write_cpu_s": cpu_s}
    again_s, _ = timed(lambda: ingest_runs(apart, folders))
    figures["compacted"] |= {"again_s": again_s} | sizes(apart) | queries(session, apart)
    ingest_s, cpu_s = timed(lambda: ingest_runs(together, folders))
    again_s, _ = timed(lambda: ingest_runs(together, folders))
    figures["together"] = {"write_s": ingest_s, "write_cpu_s": cpu_s, "again_s": again_s}
    figures["together"] |= sizes(together) | queries(session, together)
    return figures


def main() -> None:
    """Measure, and print the table and the line."""
    parser = argparse.ArgumentParser(description="Many small runs in a lake.")
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    with (
        tempfile.TemporaryDirectory(prefix="splitbrain-bench-") as name,
        spark_session(memory_mib=2048) as session,
    ):
        figures = measure(session, Path(name), runs)
    load = round(os.getloadavg()[0], 2)
    print(f"{runs:,} runs, load average {load}")
    print(f"{'':<14}" + "".join(f"{layout:>14}" for layout in figures))
    for row in figures["together"]:
        cells = (figures[layout][row] for layout in figures)
        print(f"{row:<14}" + "".join(f"{cell:>14,}" for cell in cells))
    line = {"bench": "lake", "runs": runs, "load_average": load, "layouts": figures}
    print(msgspec.json.encode(line).decode())


if __name__ == "__main__":
    main()
