"""The jobs give on a real cluster what they give in a local Spark, and workers have our code."""

import datetime as dt
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from tests.containers.spark_cluster.drivers import LOOK_ACROSS, at_once, told_both
from tests.containers.spark_cluster.standalone import WORKERS, Cluster
from tests.lake_runs import make_run
from tests.spark.planted_reads import read_set, read_stale
from tests.spark.run_folders import MS, Shape, World

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

#: Runs of the lake, one a night; a change of level needs five on either side.
NIGHTS = 16


def a_run_with_everything(folder: Path) -> Path:
    """Something for every job: no table of its results is empty."""
    world = World(Shape(seed=61, faults=3, repeated_values=0.0))
    writes = [event for event in world.acknowledged() if event.f == "write"]
    for event in writes[20:25]:
        world.lose(event, nodes=len(world.nodes))
    world.commit("write", "k1", 424242)
    world.commit("write", str(writes[0].key), writes[0].value)
    read_stale(world)
    world.commit("add", "s1", 1)
    log = world.logs[world.nodes[-1]]
    log[7] = msgspec.structs.replace(log[7], digest="another")
    read_set(world, "s1", [1, 2, 2])
    reign = world.reigns[-1]
    other = next(node for node in world.nodes if node != reign.node)
    world.lead_as_well(other, reign.epoch, reign.start + 100 * MS)
    return world.write(folder)


def analysed_here(run: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "splitbrain.spark_analysis", str(run)], check=True, timeout=600
    )


def summary(run: Path) -> dict[str, Any]:
    found = msgspec.json.decode(RunFolder(run).analysis_summary.read_bytes(), type=dict[str, Any])
    del found["seconds"]
    return found


def rows(run: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table and every result, in an order that does not depend on who wrote which part."""
    folder = RunFolder(run)
    return {
        path.name: sorted(pq.read_table(path).to_pylist(), key=msgspec.json.encode)
        for path in sorted([*folder.analysis.glob("*/*"), folder.operations])
    }


# Four minutes on two cores; test_parts.py has a cluster's workers judge in the gate.
@pytest.mark.nightly
def test_clusters_agree_with_a_local_spark(cluster: Cluster, shared: Path, tmp_path: Path) -> None:
    run = a_run_with_everything(shared / "run")
    here = shutil.copytree(run, tmp_path / "run")
    command = ["python3", "-m", "splitbrain.spark_analysis", str(run)]
    (code, output), _ = at_once(lambda: cluster.run_driver(command), lambda: analysed_here(here))
    assert code == 0, output
    cluster.hand_over()

    assert summary(run) == summary(here)
    assert summary(run)["lost"]["missing"] == 5
    assert summary(run)["phantom"]["unexplained"] == 2
    assert rows(run) == rows(here)
    assert [name for name, found in rows(run).items() if not found] == []
    # Not the driver alone: the application held a core of every worker.
    applications = cluster.state()["completedapps"]
    assert applications
    assert {(app["cores"], app["state"]) for app in applications} == {(WORKERS, "FINISHED")}


# A minute and a half; the jobs over one run gate each change.
@pytest.mark.nightly
def test_a_cluster_says_of_all_runs_what_a_local_spark_says(
    cluster: Cluster, shared: Path, tmp_path: Path
) -> None:
    """Outcomes, failures, flakes, what faults met, and trends with a change."""
    before, night = NIGHTS // 2, dt.datetime(2026, 11, 1, 22, tzinfo=dt.UTC)
    runs = [
        make_run(
            tmp_path / f"run-{number:02}",
            seed=number // 2,
            # Fewer operations a second: what faults do to them changes too.
            operations_per_second=12 if number < before else 3,
            verdict="invalid" if number % 5 == 0 else "valid",
            run_id=f"run-{number:02}",
            started_at=(night + dt.timedelta(days=number)).isoformat(),
        )
        for number in range(NIGHTS)
    ]
    lake = shared / "lake"
    ingest_runs(LocalStore(lake), runs)
    words = (str(lake),)
    there, here = told_both(cluster, LOOK_ACROSS, words, words)
    assert there == here
    assert there["runs"] == NIGHTS
    tables = ("matrix", "failures", "flakes", "coverage", "points", "changes")
    assert [name for name in tables if not there[name]["rows"]] == []
