"""One engine's process of ``bench.analytics_peers``; prints a JSON line per job.

Its results go to ``RESULTS/ENGINE-JOB.parquet``.
"""

import argparse
import resource
import shutil
import time
from pathlib import Path

import msgspec

from bench.analytics_engines.jobs import COLUMNS, Engine


def main() -> None:
    """Run each job as often as asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("engine")
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--memory-mib", type=int, required=True)
    parser.add_argument("--limit-mib", type=int)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--jobs", required=True)
    parser.add_argument("--times", type=int, required=True)
    arguments = parser.parse_args()
    if arguments.limit_mib is not None:
        limit = arguments.limit_mib << 20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    started = time.perf_counter()
    engine = _engine(arguments)
    _say({"start_s": round(time.perf_counter() - started, 3)})
    jobs = arguments.jobs.split(",")
    for job in jobs if arguments.engine == "spark" else (j for j in jobs if j in COLUMNS):
        _say({"job": job, **_timed(engine, job, arguments)})
    _say({"peak_mib": _peak_mib()})
    engine.close()


def _engine(arguments: argparse.Namespace) -> Engine:
    tables = arguments.folder / "tables"
    match arguments.engine:
        case "spark":
            from bench.analytics_engines.with_spark import Spark

            return Spark(tables, arguments.memory_mib, arguments.threads)
        case "duckdb":
            from bench.analytics_engines.with_duckdb import Duckdb

            return Duckdb(tables, arguments.memory_mib, arguments.threads)
        case "polars":
            from bench.analytics_engines.with_polars import Polars

            return Polars(tables)
        case _:
            from bench.analytics_engines.with_pandas import Pandas

            return Pandas(tables)


def _timed(engine: Engine, job: str, arguments: argparse.Namespace) -> dict[str, object]:
    seconds: list[float] = []
    for _ in range(arguments.times):
        output = arguments.results / f"{arguments.engine}-output"
        output.mkdir()
        started = time.perf_counter()
        try:
            result = engine.run(job, output)
        except MemoryError as error:
            return {"failed": str(error) or "not enough memory"}
        finally:
            shutil.rmtree(output, ignore_errors=True)
        seconds.append(round(time.perf_counter() - started, 3))
        result.to_parquet(arguments.results / f"{arguments.engine}-{job}.parquet")
    return {"first_s": seconds[0], "warm_s": seconds[-1]}


def _peak_mib() -> int:
    """Of this process and of the children that live: Spark's JVM."""
    pids = ["self", *Path("/proc/self/task").joinpath(_own(), "children").read_text().split()]
    return sum(_high_water_mib(pid) for pid in pids)


def _own() -> str:
    return Path("/proc/self").resolve().name


def _high_water_mib(pid: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))


def _say(line: dict[str, object]) -> None:
    print(msgspec.json.encode(line).decode(), flush=True)


if __name__ == "__main__":
    main()
