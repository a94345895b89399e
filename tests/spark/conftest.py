"""Fixtures of the Spark tests: one session, and drawn runs in one lake.

Starting a session may take a minute on a busy machine.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from splitbrain.spark_analysis.frames import RunTables
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.reader import LakeTables, open_lake
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.session import settings_for, spark_session
from tests.spark.reference import Run
from tests.spark.run_folders import MS, Shape, World

SHAPES = (
    Shape(seed=1),
    Shape(seed=2, positionless=0.2, snapshot=True),
    Shape(seed=3, faults=5, repeated_values=0.9, torn=True),
    Shape(seed=4, nodes=5, faults=1, missing_log=True, positionless=0.1),
    Shape(seed=5, faults=0, seconds=3.0),
    Shape(seed=6, faults=2, missing_log=True, positionless=1.0, repeated_values=0.0),
    Shape(seed=7, nodes=2, snapshot=True, positionless=0.5),
)


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    # Nearly all that the tests read is small.
    with spark_session(application="splitbrain tests") as started, settings_for(started, rows=0):
        yield started


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run id to folder: drawn worlds, some of them damaged beyond what planting tests do."""
    root = tmp_path_factory.mktemp("runs")
    folders: dict[str, Path] = {}
    for shape in SHAPES:
        world = World(shape)
        if shape.seed % 2 == 0:
            _damage(world)
        folder = world.write(root / f"run-{shape.seed}")
        folders[folder.name] = folder
    empty = root / "run-empty"
    empty.mkdir()
    (empty / "history.jsonl").touch()
    folders[empty.name] = empty
    return folders


def _damage(world: World) -> None:
    """Lose, repeat and invent records, hide completions, and let two nodes lead one epoch."""
    acknowledged = world.acknowledged()
    for event in world.random.sample(acknowledged, min(20, len(acknowledged))):
        world.lose(event, nodes=world.random.randint(1, len(world.nodes)))
    for event in world.random.sample(world.events, 40):
        if event.f != "read":
            argument = event.value[:2] if event.f == "cas" else event.value
            world.commit(event.f, event.key or "", argument)
    reign = world.reigns[-1]
    other = next(node for node in world.nodes if node != reign.node)
    world.lead_as_well(other, reign.epoch, reign.start + 100 * MS)
    # A fault that overlaps another one and was never removed.
    first = world.faults[0]
    late = msgspec.structs.replace(first, index=90, phase="invoked", time=first.time + 50 * MS)
    world.faults.append(late)


@pytest.fixture(scope="session")
def references(runs: dict[str, Path]) -> dict[str, Run]:
    return {run_id: Run(folder) for run_id, folder in runs.items()}


@pytest.fixture(scope="session")
def lake(
    session: SparkSession, runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> LakeTables:
    """The runs in a lake, one of them superseded, by the names of their folders."""
    store = LocalStore(tmp_path_factory.mktemp("lake"))
    torn = runs["run-1"] / "history.jsonl"
    whole = torn.read_bytes()
    torn.write_bytes(whole[: len(whole) // 2])
    ingest_runs(store, runs.values(), batch_rows=1000)
    torn.write_bytes(whole)
    ingest_runs(store, runs.values(), batch_rows=1000)
    # A run's id in a lake has a digest behind its name.
    name = sql.substring_index("run_id", ".", 1)
    return LakeTables(*(frame.withColumn("run_id", name) for frame in open_lake(session, store)))


@pytest.fixture(scope="session")
def tables(lake: LakeTables) -> RunTables:
    """Those that the analysis of a run has too."""
    return RunTables(lake.operations, lake.faults, lake.state_events, lake.committed, lake.logs)
