"""One anomaly among thousands of sound records is found, and nothing else is."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.lost_commits import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.judge.evidence_loader import read_committed_log
from splitbrain.history.fault_windows import fault_windows
from splitbrain.history.leadership import overlaps, reigns
from splitbrain.history.records import Event
from splitbrain.spark_analysis.frames import RunTables, open_tables
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs import commits, leadership
from tests.spark.reference import Run
from tests.spark.run_folders import MS, Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

#: Several thousand acknowledged writes, several elections.
BUSY = Shape(seed=11, seconds=40.0, workers=10, pace_ms=10.0, faults=6, repeated_values=0.0)


def tables_of(session: SparkSession, world: World, root: Path) -> RunTables:
    folder = world.write(root / "run")
    ingest(folder)
    return open_tables(session, [folder])


def lost(tables: RunTables) -> DataFrame:
    return commits.lost_commits(tables.operations, tables.committed, tables.logs)


def effective_writes(world: World) -> list[Event]:
    """Acknowledged writes that changed something."""
    return [one for one in world.acknowledged() if one.f == "write" or one.value[2]]


def test_one_lost_commit_among_thousands_is_found_and_nothing_else(
    session: SparkSession, tmp_path: Path
) -> None:
    world = World(BUSY)
    acknowledged = effective_writes(world)
    victim = world.random.choice(acknowledged)
    world.lose(victim, nodes=2)
    tables = tables_of(session, world, tmp_path)

    (row,) = lost(tables).collect()

    assert (row["position_epoch"], row["position_offset"]) == victim.position
    assert (row["holders"], row["unknown"]) == (1, 0)
    assert commits.acknowledged_writes(tables.operations).count() == len(acknowledged) > 5000
    assert commits.phantom_commits(tables.operations, tables.committed).isEmpty()


def test_a_commit_that_a_minority_lacks_is_not_lost(session: SparkSession, tmp_path: Path) -> None:
    world = World(Shape(seed=12))
    for event in effective_writes(world)[:50]:
        world.lose(event, nodes=1)
    assert lost(tables_of(session, world, tmp_path)).isEmpty()


def test_a_record_with_another_value_does_not_hold_the_write(
    session: SparkSession, tmp_path: Path
) -> None:
    world = World(Shape(seed=13, repeated_values=0.0))
    victim = next(event for event in effective_writes(world) if event.f == "write")
    assert victim.position is not None
    offset = victim.position[1]
    for node in world.nodes:
        record = world.logs[node][offset]
        world.logs[node][offset] = type(record)(
            record.offset, record.epoch, record.f, record.key, "forged", record.digest
        )
    tables = tables_of(session, world, tmp_path)

    (missing,) = lost(tables).collect()
    (phantom,) = commits.phantom_commits(tables.operations, tables.committed).collect()

    assert missing["position_offset"] == phantom["offset"] == offset
    assert (phantom["value"], phantom["reason"]) == ('"forged"', "never-invoked")
    assert phantom["nodes"] == world.nodes


@pytest.mark.parametrize("reason", ["never-invoked", "failed", "duplicate"])
def test_one_phantom_commit_is_found_with_its_reason(
    session: SparkSession, tmp_path: Path, reason: str
) -> None:
    world = World(BUSY)
    value: object = "out of nowhere"
    key = "r0"
    if reason != "never-invoked":
        wanted = "fail" if reason == "failed" else "ok"
        event = next(one for one in world.events if one.type == wanted and one.f == "write")
        key, value = event.key or "", event.value
    record = world.commit("write", key, value)
    tables = tables_of(session, world, tmp_path)

    (row,) = commits.phantom_commits(tables.operations, tables.committed).collect()

    assert (row["offset"], row["epoch"], row["reason"]) == (record.offset, record.epoch, reason)
    assert lost(tables).isEmpty()


def test_one_overlap_in_an_epoch_among_many_elections_is_found_and_nothing_else(
    session: SparkSession, tmp_path: Path
) -> None:
    world = World(Shape(seed=14, seconds=120.0, pace_ms=400.0, faults=40))
    reign = world.reigns[17]
    other = next(node for node in world.nodes if node != reign.node)
    world.lead_as_well(other, reign.epoch, reign.start + 20 * MS)
    tables = tables_of(session, world, tmp_path)

    leaders = leaders_of(tables)
    found = leadership.leader_overlaps(leaders)

    (row,) = found.where("same_epoch").collect()
    assert (row["epoch_a"], row["epoch_b"]) == (reign.epoch, reign.epoch)
    assert {row["node_a"], row["node_b"]} == {reign.node, other}
    assert row["end_ns"] - row["start_ns"] == 40 * MS
    # Leaders that were cut off or frozen believed on for a while: told, and told apart.
    assert found.where("not same_epoch").count() > 5
    assert leaders.select("epoch").distinct().count() == len(world.reigns)


def leaders_of(tables: RunTables) -> DataFrame:
    events, faults = tables.state_events, tables.faults
    return leadership.reigns_of(leadership.election_timeline(events, faults, tables.operations))


def test_two_leaders_of_one_epoch_one_after_the_other_are_an_overlap(
    session: SparkSession, tmp_path: Path
) -> None:
    world = World(Shape(seed=15, faults=0))
    (reign,) = world.reigns
    world.lead_as_well(world.nodes[1], reign.epoch, 10 * MS)
    tables = tables_of(session, world, tmp_path)

    leaders = leaders_of(tables)
    (row,) = leadership.leader_overlaps(leaders).collect()

    assert row["same_epoch"]
    assert row["start_ns"] == row["end_ns"] == reign.start


def end_before(folder: Path, node: str, share: float) -> None:
    """Let a node's commit position lie below the end of its log."""
    path = folder / "nodes" / node / "log.jsonl"
    header, *records = path.read_bytes().splitlines(keepends=True)
    told = msgspec.json.decode(header)
    told["end_offset"] = round(told["end_offset"] * share)
    path.write_bytes(b"".join([msgspec.json.encode(told), b"\n", *records]))


@pytest.mark.parametrize(("seed", "tails"), [(21, False), (22, False), (21, True)])
def test_lost_commits_and_overlaps_equal_those_of_the_checker(
    session: SparkSession, tmp_path: Path, seed: int, *, tails: bool
) -> None:
    world = World(Shape(seed=seed, repeated_values=0.0, positionless=0.1, snapshot=seed == 22))
    acknowledged = effective_writes(world)
    for event in world.random.sample(acknowledged, 30):
        world.lose(event, nodes=world.random.randint(1, 3))
    folder = world.write(tmp_path / "run")
    if tails:
        end_before(folder, "n1", 0.5)
        end_before(folder, "n2", 0.8)
    ingest(folder)
    tables = open_tables(session, [folder])
    run = Run(folder)
    problems: list[str] = []
    logs = {
        node: log
        for node in run.logs
        if (log := read_committed_log(folder / "nodes" / node / "log.jsonl", problems))
    }
    assert (len(logs), problems) == (3, [])

    result = check(Evidence(tuple(run.operations), committed_logs=logs, voters=3), Unlimited())
    leaders = leaders_of(tables)
    found = leadership.leader_overlaps(leaders).where("not same_epoch").collect()

    assert lost(tables).count() == result.figures["lost"] > 5
    assert commits.acknowledged_writes(tables.operations).count() == result.figures["acknowledged"]
    end_of_run = max(row["end_ns"] for row in leaders.collect())
    stamped = {node: tuple(events) for node, events in run.state_events.items()}
    expected = overlaps(reigns(stamped, fault_windows(run.faults)), end_of_run)
    assert sorted(row["end_ns"] - row["start_ns"] for row in found) == sorted(
        overlap.duration_ns for overlap in expected
    )
