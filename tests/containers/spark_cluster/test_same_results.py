"""The jobs give on a real cluster what they give in a local Spark, and workers have our code."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from history.run_folder import RunFolder
from spark_analysis.session import MASTER_VARIABLE
from tests.containers.spark_cluster.standalone import WORKERS, Cluster
from tests.spark.run_folders import MS, Shape, World

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]


def a_run_with_everything(folder: Path) -> Path:
    """Faults, elections, a leader too many, lost and phantom commits."""
    world = World(Shape(seed=61, faults=3, repeated_values=0.5))
    for event in world.random.sample(world.acknowledged(), 5):
        world.lose(event, nodes=len(world.nodes))
    world.commit("write", "k1", 424242)
    reign = world.reigns[-1]
    other = next(node for node in world.nodes if node != reign.node)
    world.lead_as_well(other, reign.epoch, reign.start + 100 * MS)
    return world.write(folder)


def analysed_here(run: Path) -> None:
    subprocess.run([sys.executable, "-m", "spark_analysis", str(run)], check=True, timeout=600)


def summary(run: Path) -> dict[str, Any]:
    found = msgspec.json.decode(RunFolder(run).analysis_summary.read_bytes(), type=dict[str, Any])
    del found["seconds"]
    return found


def rows(run: Path) -> dict[str, list[dict[str, Any]]]:
    """Every result table, in an order that does not depend on who wrote which part."""
    folder = RunFolder(run).analysis
    tables = sorted(path for path in folder.iterdir() if path.is_dir())
    return {
        path.name: sorted(pq.read_table(path).to_pylist(), key=msgspec.json.encode)
        for path in tables
    }


def test_a_cluster_gives_the_results_of_a_local_spark(
    cluster: Cluster, shared: Path, tmp_path: Path
) -> None:
    run = a_run_with_everything(shared / "run")
    here = shutil.copytree(run, tmp_path / "run")
    analysed_here(here)

    code, output = cluster.run_driver(["python3", "-m", "spark_analysis", str(run)])
    assert code == 0, output
    cluster.hand_over()

    assert summary(run) == summary(here)
    assert summary(run)["lost"]["missing"] == 5
    assert summary(run)["phantom"]["unexplained"] == 1
    assert rows(run) == rows(here)
    assert any(rows(run).values())
    # Not the driver alone: the application held a core of every worker.
    applications = cluster.state()["completedapps"]
    assert applications
    assert {(app["cores"], app["state"]) for app in applications} == {(WORKERS, "FINISHED")}


#: Judges one small part on each core, and says where; no core is done before all have begun.
JUDGES_ON_WORKERS = """
import pathlib, socket, sys, time
from spark_analysis.session import spark_session

meeting = pathlib.Path(sys.argv[1])

def judged(values):
    from checker.linearizability.check import check
    from contracts.budget import Unlimited
    from history.records import PairedOperation

    (value,) = values
    (meeting / str(value)).touch()
    deadline = time.monotonic() + 120
    while len(list(meeting.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    operations = [
        PairedOperation(0, 0, "write", None, 1, None, "ok", 0, 10),
        PairedOperation(2, 1, "read", None, None, value, "ok", 20, 30),
    ]
    yield socket.gethostname(), value, check(operations, "register", Unlimited()).verdict.value

with spark_session() as spark:
    rows = spark.sparkContext.parallelize([1, 2], 2).mapPartitions(judged).collect()
for host, value, verdict in sorted(rows, key=lambda row: row[1]):
    print(value, verdict)
print("workers", len({row[0] for row in rows}))
"""


def test_workers_judge_with_the_code_that_the_driver_ships(cluster: Cluster, shared: Path) -> None:
    meeting = shared / "meeting"
    meeting.mkdir()
    code, output = cluster.run_driver(["python3", "-c", JUDGES_ON_WORKERS, str(meeting)])
    assert code == 0, output
    assert output.splitlines()[-3:] == ["1 valid", "2 invalid", f"workers {WORKERS}"]


def test_a_master_that_does_not_answer_is_one_sentence(cluster: Cluster, shared: Path) -> None:
    run = World(Shape(seed=62, seconds=2.0)).write(shared / "unjudged")
    command = ["python3", "-m", "spark_analysis", str(run)]
    dead = "spark://nowhere.invalid:7077"
    code, output = cluster.run_driver(command, **{MASTER_VARIABLE: dead})
    assert code == 3
    assert dead in output
    assert len(output.splitlines()) == 1
