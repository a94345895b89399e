"""One anomaly in a million records, or in a thousand elections, is found, and nothing else is.

A change is gated by a tenth of the million.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.commits import (
    acknowledged_writes,
    lost_commits,
    phantom_commits,
)
from splitbrain.spark_analysis.jobs.divergence import first_divergences
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from splitbrain.spark_analysis.jobs.leadership import election_timeline, leader_overlaps, reigns_of
from splitbrain.spark_analysis.schemas import (
    COMMITTED,
    FAULTS,
    LOGS,
    OPERATIONS,
    STATE_EVENTS,
    Table,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

#: Acknowledged writes.
SIZES = (20_000, pytest.param(1_000_000, marks=pytest.mark.nightly))
ELECTIONS = 1_000
NODES = ("n1", "n2", "n3")
MS = 1_000_000
#: Epoch that a second node leads too.
SHARED = 617


class Planted(NamedTuple):
    operations: DataFrame
    committed: DataFrame
    logs: DataFrame
    writes: int
    #: Offsets, in the middle of everything.
    lost: int
    divergent: int


def stored(session: SparkSession, folder: Path, table: Table, columns: dict[str, Any]) -> DataFrame:
    """The columns as rows of the table, of one run; what is not told is null."""
    count = len(next(iter(columns.values())))
    arrays = [
        pa.array(columns[field.name]).cast(field.type)
        if field.name in columns
        else pa.repeat(pa.scalar("run" if field.name == "run_id" else None, field.type), count)
        for field in table.schema
    ]
    path = folder / f"{table.name}.parquet"
    pq.write_table(pa.table(arrays, schema=table.schema), path, row_group_size=1 << 17)
    return session.read.schema(struct_type(table)).parquet(str(path))


COMPILED = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "4",
}


@pytest.fixture(scope="module", autouse=True)
def compiled(session: SparkSession) -> Iterator[None]:
    """Have queries compiled, as those on large runs are."""
    before = {name: str(session.conf.get(name)) for name in COMPILED}
    for name, value in COMPILED.items():
        session.conf.set(name, value)
    yield
    for name, value in before.items():
        session.conf.set(name, value)


@pytest.fixture(scope="module", params=SIZES)
def planted(
    request: pytest.FixtureRequest, session: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    """Acknowledged writes and three logs; two records are not what they should be."""
    writes: int = request.param
    lost, divergent = (writes * share // 1_000_000 for share in (612_345, 345_678))
    folder = tmp_path_factory.mktemp("planted")
    offset = np.arange(writes)
    text = pa.array(offset).cast(pa.string())
    key = pa.array([f"k{number}" for number in range(100)]).take(pa.array(offset % 100))
    epoch = 1 + offset // 1000
    operations = stored(
        session,
        folder,
        OPERATIONS,
        {
            "index": offset,
            "process": offset % 10,
            "f": pa.repeat("write", writes),
            "key": key,
            "argument": text,
            "result": text,
            "type": pa.repeat("ok", writes),
            "start_ns": offset * MS,
            "end_ns": offset * MS + MS // 2,
            "position_epoch": epoch,
            "position_offset": offset,
            "final": np.zeros(writes, dtype=bool),
        },
    )
    held = np.delete(offset, lost)
    count = len(held)
    digests = np.tile(held, len(NODES))
    digests[count : 2 * count][held == divergent] = -1
    node = np.repeat(np.arange(len(NODES)), count)
    tiled = pa.array(np.tile(held, len(NODES)))
    committed = stored(
        session,
        folder,
        COMMITTED,
        {
            "node": pa.array(NODES).take(pa.array(node)),
            "offset": tiled,
            "epoch": np.tile(epoch[held], len(NODES)),
            "f": pa.repeat("write", count * len(NODES)),
            "key": key.take(tiled),
            "value": text.take(tiled),
            "digest": pa.array(digests).cast(pa.string()),
        },
    )
    extents = {"node": NODES, "start_offset": [0] * 3, "end_offset": [writes] * 3}
    logs = stored(session, folder, LOGS, extents)
    return Planted(operations, committed, logs, writes, lost, divergent)


def test_one_lost_commit_among_many_is_found_and_nothing_else(planted: Planted) -> None:
    operations, committed, logs, writes, lost, _ = planted
    assert acknowledged_writes(operations).count() == writes
    (row,) = lost_commits(operations, committed, logs).collect()
    assert (row["position_epoch"], row["position_offset"]) == (1 + lost // 1000, lost)
    assert (row["holders"], row["unknown"]) == (0, 0)
    assert phantom_commits(operations, committed).isEmpty()
    assert duplicates(operations, committed).isEmpty()


def test_one_divergent_record_among_many_is_found_and_nothing_else(planted: Planted) -> None:
    divergent = planted.divergent
    epoch = 1 + divergent // 1000
    theirs = (epoch, str(divergent))
    found = {tuple(row) for row in first_divergences(planted.committed, planted.logs).collect()}
    assert found == {
        ("run", "n1", "n2", divergent, *theirs, epoch, "-1"),
        ("run", "n2", "n3", divergent, epoch, "-1", *theirs),
    }


def test_one_overlap_in_a_thousand_elections_is_found_and_nothing_else(
    session: SparkSession, tmp_path: Path
) -> None:
    said: list[dict[str, Any]] = []
    for epoch in range(1, ELECTIONS + 1):
        start = epoch * 1000 * MS
        reigning = [(NODES[epoch % 3], start, start + 900 * MS)]
        if epoch == SHARED:
            reigning.append((NODES[(epoch + 1) % 3], start + 300 * MS, start + 340 * MS))
        for node, begin, end in reigning:
            said += [
                {"node": node, "epoch": epoch, "role": role, "time_ns": at}
                for role, at in (("leader", begin), ("follower", end))
            ]
    columns = {name: [one[name] for one in said] for name in said[0]}
    count = len(said)
    # A node's own order; the run is one incarnation of each.
    columns |= {
        "incarnation": [0] * count,
        "sequence": range(1, count + 1),
        "kind": ["role"] * count,
    }
    state_events = stored(session, tmp_path, STATE_EVENTS, columns)
    faults, operations = (session.createDataFrame([], struct_type(t)) for t in (FAULTS, OPERATIONS))

    reigns = election_timeline(state_events, faults, operations)
    (row,) = leader_overlaps(reigns_of(reigns)).collect()
    assert row["same_epoch"]
    assert (row["epoch_a"], row["epoch_b"]) == (SHARED, SHARED)
    assert (row["node_a"], row["node_b"]) == (NODES[SHARED % 3], NODES[(SHARED + 1) % 3])
    assert row["end_ns"] - row["start_ns"] == 40 * MS

    timeline = reigns.collect()
    assert len(timeline) == ELECTIONS + 1
    assert {one["epoch"] for one in timeline if one["epoch_leaders"] > 1} == {SHARED}
    assert {one["leaderless_ms"] for one in timeline} == {None, 0.0, 100.0}
    assert {one["ended"] for one in timeline} == {"resigned"}
