"""Parts judged on a cluster get the verdicts of a local Spark; budgets hold on its workers too."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitbrain.contracts.analysis.parts import PartVerdict
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.schemas import OPERATIONS, table_of
from tests.containers.spark_cluster.drivers import JUDGE_PARTS, JUDGE_RUN, told_both, told_there
from tests.containers.spark_cluster.standalone import WORKERS, Cluster
from tests.spark.operation_frames import operation_rows
from tests.synthetic_runs import SyntheticRun

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

#: A module that workers get from the driver; on one key it never comes back.
HANGS_ON_ONE_KEY = """
import sys, time
from multiprocessing.connection import Connection
from splitbrain.spark_analysis.part_judging import judged, work

def answer(question, budget):
    while question[1] == "hangs":
        time.sleep(60)
    return judged(*question, budget)

if __name__ == "__main__":
    work(Connection(int(sys.argv[1])), answer, float(sys.argv[2]), int(sys.argv[3]))
"""


def queue(key: str, *taken: int) -> list[PairedOperation]:
    """Three elements put one after the other, then taken."""
    put = [
        PairedOperation(2 * n, 0, "enqueue", key, n, None, "ok", 10 * n, 10 * n + 5)
        for n in range(3)
    ]
    return put + [
        PairedOperation(
            100 + 2 * n, 1, "dequeue", key, None, value, "ok", 100 + 10 * n, 105 + 10 * n
        )
        for n, value in enumerate(taken)
    ]


def endless(key: str) -> list[PairedOperation]:
    """Twenty concurrent elements, and takers that agree with no order: no search ends in time."""
    put = [PairedOperation(n, n, "enqueue", key, n, None, "ok", n, 1000 + n) for n in range(20)]
    return put + [
        PairedOperation(100 + n, 100 + n, "dequeue", key, None, 19 - n % 3, "ok", 10, 2000)
        for n in range(10)
    ]


def stored(shared: Path, name: str, operations: list[PairedOperation]) -> Path:
    path = shared / f"{name}.parquet"
    pq.write_table(
        pa.Table.from_pylist(operation_rows({"run": operations}), OPERATIONS.schema), path
    )
    return path


def by_key(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the verdict on a part, without its time."""
    found = {row.pop("key"): row for row in rows}
    assert len(found) == len(rows)
    for row in found.values():
        del row["seconds"]
    return found


def test_parts_that_are_valid_invalid_and_too_hard(cluster: Cluster, shared: Path) -> None:
    operations = [*queue("sound", 0, 1, 2), *queue("turned", 1, 0), *endless("hard")]
    path = stored(shared, "queues", operations)
    words = (str(path), "fifo-queue", "3", "-")
    there, here = map(by_key, told_both(cluster, JUDGE_PARTS, words, words))

    assert {key: row["verdict"] for key, row in there.items()} == {
        "sound": "valid",
        "turned": "invalid",
        "hard": "unknown",
    }
    # Whether it looked at its clock or was stopped is chance.
    for found in (there, here):
        reason = found["hard"].pop("reason")
        assert reason.startswith(
            "30 operations of key hard are undecided: time budget of 3 s used up"
        )
    assert there == here


def test_a_part_that_never_ends_is_killed_on_its_worker(cluster: Cluster, shared: Path) -> None:
    judge = shared / "hangs_on_one_key.py"
    judge.write_text(HANGS_ON_ONE_KEY)
    operations = [one for key in ("hangs", "a", "b", "c") for one in queue(key, 0, 1, 2)]
    path = stored(shared, "hanging", operations)
    found = by_key(told_there(cluster, JUDGE_PARTS, str(path), "fifo-queue", "2", str(judge)))
    assert {key: row["verdict"] for key, row in found.items()} == {
        "hangs": "unknown",
        **dict.fromkeys("abc", "valid"),
    }
    assert "time budget of 2 s used up, stopped" in found["hangs"]["reason"]


def test_parts_of_a_run_have_the_same_verdicts(
    cluster: Cluster, shared: Path, tmp_path: Path
) -> None:
    run = SyntheticRun(shared / "stale", flaw="stale-read", operations_per_second=40).write()
    here = shutil.copytree(run, tmp_path / run.name)
    model = "cas-register"
    answer, wanted = told_both(cluster, JUDGE_RUN, (str(run), model), (str(here), model))
    cluster.hand_over()
    assert answer == wanted
    assert {count["verdict"] for count in answer["counts"]} == {"valid", "invalid"}

    def verdicts(folder: Path) -> dict[str, dict[str, Any]]:
        return by_key(
            pq.read_table(RunFolder(folder).analysis_result(table_of(PartVerdict).name)).to_pylist()
        )

    assert verdicts(run) == verdicts(here)
    assert len(verdicts(run)) > WORKERS
