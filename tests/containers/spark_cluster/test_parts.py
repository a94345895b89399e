"""Parts judged on a cluster get the verdicts of a local Spark; budgets hold on its workers too.

One driver on the cluster and one here judge everything, each in one session: starting Spark is most
of the time.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitbrain.contracts.analysis.parts import PartVerdict
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.schemas import OPERATIONS, table_of
from splitbrain.spark_analysis.session import MASTER_VARIABLE
from tests.containers.spark_cluster.drivers import JUDGE, told_both
from tests.containers.spark_cluster.standalone import WORKERS, Cluster
from tests.spark.operation_frames import operation_rows
from tests.spark.run_folders import Shape, World
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
    """Ten concurrent elements, each put twice, and takers that agree with no order.

    No search of states ends in time. There is no other way where an element comes twice and a
    process goes on at the very moment of its last return.
    """
    put = [
        PairedOperation(n, n, "enqueue", key, n % 10, None, "ok", n, 1000 + n) for n in range(20)
    ]
    put.append(PairedOperation(20, 0, "enqueue", key, 10, None, "ok", 1000, 2000))
    return put + [
        PairedOperation(100 + n, 100 + n, "dequeue", key, None, 9 - n % 3, "ok", 10, 2000)
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


class Judged(NamedTuple):
    """Results of each step, by its name, and the run folders that were judged."""

    there: dict[str, Any]
    here: dict[str, Any]
    run: Path
    copy: Path


@pytest.fixture(scope="module")
def judged(cluster: Cluster, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    queues = [*queue("sound", 0, 1, 2), *queue("turned", 1, 0), *endless("hard")]
    hanging = [operation for key in ("hangs", "a", "b", "c") for operation in queue(key, 0, 1, 2)]
    judge = shared / "hangs_on_one_key.py"
    judge.write_text(HANGS_ON_ONE_KEY)
    meeting = shared / "meeting"
    meeting.mkdir()
    run = SyntheticRun(shared / "stale", flaw="stale-read", operations_per_second=40).write()
    copy = shutil.copytree(run, tmp_path_factory.mktemp("here") / run.name)
    everywhere = {
        "queues": ("parts", str(stored(shared, "queues", queues)), "fifo-queue", "3", "-")
    }
    on_workers = {
        "hanging": (
            "parts",
            str(stored(shared, "hanging", hanging)),
            "fifo-queue",
            "2",
            str(judge),
        ),
        "hosts": ("hosts", str(meeting)),
    }
    there, here = told_both(
        cluster,
        JUDGE,
        (steps(everywhere | on_workers | {"run": ("run", str(run), "cas-register")}),),
        (steps(everywhere | {"run": ("run", str(copy), "cas-register")}),),
    )
    cluster.hand_over()
    return Judged(there, here, run, copy)


def steps(by_name: Mapping[str, Sequence[str]]) -> str:
    return msgspec.json.encode(by_name).decode()


def test_parts_that_are_valid_invalid_and_too_hard(judged: Judged) -> None:
    there, here = by_key(judged.there["queues"]), by_key(judged.here["queues"])
    assert {key: row["verdict"] for key, row in there.items()} == {
        "sound": "valid",
        "turned": "invalid",
        "hard": "unknown",
    }
    # Whether it looked at its clock or was stopped is chance.
    for rows in (there, here):
        reason = rows["hard"].pop("reason")
        assert reason.startswith(
            "31 operations of key hard are undecided: time budget of 3 s used up"
        )
    assert there == here


def test_a_part_that_never_comes_back_is_killed_on_its_worker(judged: Judged) -> None:
    rows = by_key(judged.there["hanging"])
    assert {key: row["verdict"] for key, row in rows.items()} == {
        "hangs": "unknown",
        **dict.fromkeys("abc", "valid"),
    }
    assert "time budget of 2 s used up, stopped" in rows["hangs"]["reason"]


def test_the_parts_of_a_run_have_the_same_verdicts(judged: Judged) -> None:
    assert judged.there["run"] == judged.here["run"]
    assert {count["verdict"] for count in judged.there["run"]["counts"]} == {"valid", "invalid"}
    verdicts = verdicts_of(judged.run)
    assert verdicts == verdicts_of(judged.copy)
    assert len(verdicts) > WORKERS


def verdicts_of(folder: Path) -> dict[str, dict[str, Any]]:
    path = RunFolder(folder).analysis_result(table_of(PartVerdict).name)
    return by_key(pq.read_table(path).to_pylist())


def test_workers_judge_with_the_code_that_the_driver_ships(judged: Judged) -> None:
    rows = sorted(judged.there["hosts"])
    assert [row[:2] for row in rows] == [[1, "valid"], [2, "invalid"]]
    assert len({host for _, _, host in rows}) == WORKERS


def test_a_master_that_does_not_answer_is_one_sentence(cluster: Cluster, shared: Path) -> None:
    run = World(Shape(seed=62, seconds=2.0)).write(shared / "unjudged")
    command = ["python3", "-m", "splitbrain.spark_analysis", str(run)]
    dead = "spark://nowhere.invalid:7077"
    code, output = cluster.run_driver(command, **{MASTER_VARIABLE: dead})
    assert code == 3
    assert dead in output
    assert len(output.splitlines()) == 1
