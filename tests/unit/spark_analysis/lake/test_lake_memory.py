"""Ingesting takes as much memory for a run as for one of ten times its length."""

import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.history.run_folder import RunFolder
from tests.lake_runs import make_run

pytestmark = pytest.mark.timeout(300)

#: Prints the greatest resident size, MiB, of a process that ingests a run.
_CHILD = """
import resource, sys
from pathlib import Path
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore

ingest_runs(LocalStore(Path(sys.argv[2])), [Path(sys.argv[1])], batch_rows=5_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write_long_history(root: Path, operations: int) -> None:
    """Ten clients, one write after another."""
    with RunFolder(root).history.open("w") as file:
        for number in range(operations):
            slot, at = number % 10, number * 1_000
            fields = f'"process":{slot},"f":"write","key":"r{slot}","value":{number}'
            file.write(f'{{"index":{2 * number},"time":{at},"type":"invoke",{fields}}}\n')
            file.write(f'{{"index":{2 * number + 1},"time":{at + 500},"type":"ok",{fields}}}\n')


def peak_mib(tmp_path: Path, operations: int) -> float:
    root = make_run(tmp_path / f"run-{operations}")
    write_long_history(root, operations)
    made = subprocess.run(
        [sys.executable, "-c", _CHILD, root, tmp_path / f"lake-{operations}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(made.stdout)


def test_memory_is_bounded_by_the_batch_not_by_the_run(tmp_path: Path) -> None:
    short, long = peak_mib(tmp_path, 20_000), peak_mib(tmp_path, 200_000)
    # Ten times as many operations would be 180,000 rows more at about 1 KiB each.
    assert long < short + 25
