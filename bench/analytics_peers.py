"""``python -m bench.analytics_peers``: Spark's jobs beside duckdb, polars and pandas, same files.

Every engine runs in a process of its own, each job twice: the last time is a warm session's. All
results of one job must be equal, numbers to 9 digits; where they are not, the bench fails. Peak
memory is that of the process and its children at their largest. Prints a table and, on its last
line, one JSON object.

    python -m bench.analytics_peers [--events 10000000] [--engines spark,duckdb,polars,pandas]
        [--memory-mib 2048] [--limit-mib N] [--times 2] [--folder KEPT]

``--memory-mib`` is Spark's heap and duckdb's own limit; polars and pandas know none.
``--limit-mib`` is the operating system's, on the data of every process, for histories that are
larger than memory: an engine that needs more fails, and the table says so.
"""

# pyright: standard

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
import pandas as pd

from bench.analytics_data import write_tables
from bench.analytics_engines.jobs import COLUMNS, FLOORS, SPARK_ONLY

ENGINES: Final = ("spark", "duckdb", "polars", "pandas")
_DIGITS: Final = 1e-9


def main() -> int:
    """Make the tables, run every engine, compare and print; returns the exit code."""
    parser = argparse.ArgumentParser(description="Spark's jobs beside other engines.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--jobs", default=",".join((*COLUMNS, *SPARK_ONLY, *FLOORS)))
    parser.add_argument("--memory-mib", type=int, default=2048)
    parser.add_argument("--limit-mib", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--times", type=int, default=2, help="of each job; the last one is warm")
    parser.add_argument("--folder", type=Path, help="made once, used again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="splitbrain-bench-") as name:
        folder = arguments.folder or Path(name)
        tables = folder / "tables"
        if not tables.exists():
            print(f"making {arguments.events:,} events", flush=True)
            write_tables(tables, arguments.events)
        measured = {
            engine: _measure(engine, folder, Path(name), arguments)
            for engine in arguments.engines.split(",")
        }
        differing = _differing(measured, Path(name))
    load = round(os.getloadavg()[0], 2)
    print(f"{arguments.events:,} events, {arguments.threads} threads, load average {load}")
    _print_table(measured, arguments.jobs.split(","))
    for sentence in differing:
        print(sentence)
    line = {
        "bench": "analytics_peers",
        "events": arguments.events,
        "memory_mib": arguments.memory_mib,
        "limit_mib": arguments.limit_mib,
        "load_average": load,
        "engines": measured,
        "equal": not differing,
    }
    print(msgspec.json.encode(line).decode())
    return 1 if differing else 0


def _measure(
    engine: str, folder: Path, results: Path, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return the output of one engine's process; if it died, up to its last whole line."""
    command = [
        *(sys.executable, "-m", "bench.analytics_child", engine, str(folder), str(results)),
        *("--memory-mib", str(arguments.memory_mib), "--threads", str(arguments.threads)),
        *("--jobs", arguments.jobs, "--times", str(arguments.times)),
    ]
    if arguments.limit_mib is not None:
        command += ["--limit-mib", str(arguments.limit_mib)]
    environment = {**os.environ, "POLARS_MAX_THREADS": str(arguments.threads)}
    finished = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    figures: dict[str, Any] = {"jobs": {}}
    for line in finished.stdout.splitlines():
        record = msgspec.json.decode(line, type=dict[str, Any])
        if "job" in record:
            figures["jobs"][record.pop("job")] = record
        else:
            figures |= record
    if finished.returncode:
        figures["died"] = finished.returncode
    return figures


def _differing(measured: dict[str, dict[str, Any]], results: Path) -> list[str]:
    """One sentence for each job whose results are not equal."""
    sentences: list[str] = []
    for job, (order, compared) in COLUMNS.items():
        files = {engine: results / f"{engine}-{job}.parquet" for engine in measured}
        frames = {
            engine: in_one_order(pd.read_parquet(file), order, compared)
            for engine, file in files.items()
            if file.exists()
        }
        if not frames:
            continue
        first, *others = frames
        for other in others:
            try:
                pd.testing.assert_frame_equal(
                    frames[first], frames[other], check_dtype=False, rtol=_DIGITS, atol=0
                )
            except AssertionError as error:
                what = " ".join(str(error).split())[:200]
                sentences.append(f"{job} of {first} and {other} differ: {what}")
    return sentences


def in_one_order(
    frame: pd.DataFrame, order: tuple[str, ...], compared: tuple[str, ...]
) -> pd.DataFrame:
    """Return the compared columns in one order and in plain types."""
    chosen = frame[[*order, *compared]].copy()
    for name in chosen.columns:
        chosen[name] = (
            chosen[name].astype("float64")
            if pd.api.types.is_numeric_dtype(chosen[name])
            else chosen[name].astype(str)
        )
    return chosen.sort_values(list(order), ignore_index=True)


def _print_table(measured: dict[str, dict[str, Any]], jobs: list[str]) -> None:
    print(f"{'seconds, first then warm':<26}" + "".join(f"{name:>18}" for name in measured))
    print(
        f"{'start':<26}" + "".join(f"{row.get('start_s', 0):>18.2f}" for row in measured.values())
    )
    for job in jobs:
        cells = (_cell(row["jobs"].get(job)) for row in measured.values())
        print(f"{job:<26}" + "".join(f"{cell:>18}" for cell in cells))
    peaks = (row.get("peak_mib") for row in measured.values())
    print(f"{'peak MiB':<26}" + "".join(f"{peak or 'died':>18}" for peak in peaks))
    if "duckdb" not in measured:
        return
    for engine in measured:
        ratios = [
            f"{job} {warm / base:.1f}"
            for job in jobs
            if (warm := measured[engine]["jobs"].get(job, {}).get("warm_s"))
            and (base := measured["duckdb"]["jobs"].get(job, {}).get("warm_s"))
        ]
        if engine != "duckdb" and ratios:
            print(f"{engine}, times duckdb's: {', '.join(ratios)}")


def _cell(job: dict[str, Any] | None) -> str:
    if job is None:
        return "-"
    if "failed" in job:
        return "no memory"
    return f"{job['first_s']:.2f}, {job['warm_s']:.2f}"


if __name__ == "__main__":
    sys.exit(main())
