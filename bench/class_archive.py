"""Time that the archive of Spark's classes saves an analysis.

``python -m bench.class_archive RUN_FOLDER --repeats 5`` analyses a copy of a recorded run in a
process of its own, with the archive and without, by turns, and prints seconds and processor seconds
of each, JVM included; the last line has the medians and their ratios as JSON. The archive is made
first, unless it is there.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from splitbrain.contracts.distribution import PACKAGE


class Analysis(msgspec.Struct, frozen=True):
    """One analysis, from the start of its process to its end."""

    wall_s: float
    cpu_s: float


def analyse(run_folder: Path, cache: Path) -> Analysis:
    """Analyse the run anew in a process whose caches are in this folder."""
    for made in ("operations", "analysis"):
        shutil.rmtree(run_folder / made, ignore_errors=True)
    before, began = _children_s(), time.monotonic()
    subprocess.run(
        [sys.executable, "-P", "-m", f"{PACKAGE}.spark_analysis", str(run_folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )
    return Analysis(time.monotonic() - began, _children_s() - before)


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.class_archive", description=__doc__)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="splitbrain-classes-") as folder:
        run = Path(folder) / "run"
        shutil.copytree(options.run_folder, run)
        caches = {name: Path(folder) / name for name in ("with", "without")}
        subprocess.run(
            [sys.executable, "-P", "-m", f"{PACKAGE}.spark_analysis.class_archive", str(run)],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "XDG_CACHE_HOME": str(caches["with"])},
        )
        print(f"{'repeat':>6} {'with s':>8} {'cpu s':>7} {'without s':>10} {'cpu s':>7}")
        found: dict[str, list[Analysis]] = {name: [] for name in caches}
        for repeat in range(options.repeats):
            for name, cache in caches.items():
                found[name].append(analyse(run, cache))
            used, bare = found["with"][-1], found["without"][-1]
            print(
                f"{repeat:>6} {used.wall_s:>8.1f} {used.cpu_s:>7.1f} {bare.wall_s:>10.1f} "
                f"{bare.cpu_s:>7.1f}",
                flush=True,
            )
    medians = {
        f"{name}_{figure}": round(statistics.median(getattr(one, figure) for one in all_of), 2)
        for name, all_of in found.items()
        for figure in ("wall_s", "cpu_s")
    }
    ratios = {
        figure: round(medians[f"with_{figure}"] / medians[f"without_{figure}"], 2)
        for figure in ("wall_s", "cpu_s")
    }
    print(json.dumps({**medians, "ratios": ratios}))


if __name__ == "__main__":
    main()
