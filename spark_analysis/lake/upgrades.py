"""Older versions of tables, and the upgrade of their rows to today's.

Every version that was ever written stays here, spelt out, with the step to the next one. A file of
version 1 of a table at version 3 is read with the schema of version 1 and taken through both steps.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import TRAITS_OF_OLD
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.schemas import Table, declare


class Older(NamedTuple):
    """Version of a table that is no longer written."""

    table: Table
    #: Turns its rows into those of the next version; columns that it does not name stay.
    to_next: Callable[[DataFrame], DataFrame]


Versions = Mapping[tuple[str, int], Older]


def _faults_2(rows: DataFrame) -> DataFrame:
    """Add cut links and evidence, which were not recorded."""
    return rows.withColumns(
        {
            "links": sql.array().cast("array<string>"),
            "evidence": sql.lit(None).cast("string"),
            "healed": sql.col("removed_ns").isNotNull(),
        }
    )


def _faults_3(rows: DataFrame) -> DataFrame:
    """Add effects on processes, which stood in the code alone."""
    ends = [
        sql.lit(text)
        for kind, traits in TRAITS_OF_OLD.items()
        if traits.ends_process is not None
        for text in (kind, traits.ends_process)
    ]
    return rows.withColumn("ends_process", sql.try_element_at(sql.create_map(*ends), "kind"))


def _runs_4(rows: DataFrame) -> DataFrame:
    """Add whether a violation was expected: nobody planted a bug then but to have it found."""
    return rows.withColumn("expected", sql.size("bugs") > 0)


def _with_nulls(**types: str) -> Callable[[DataFrame], DataFrame]:
    """Return the step that adds columns of which nothing was recorded."""

    def step(rows: DataFrame) -> DataFrame:
        return rows.withColumns({name: sql.lit(None).cast(kind) for name, kind in types.items()})

    return step


def _fields(kind: pa.DataType, *names: str, nullable: bool = False) -> list[pa.Field]:
    return [pa.field(name, kind, nullable) for name in names]


_RUNS_1: Final = (
    *_fields(pa.string(), "name"),
    *_fields(pa.string(), "test", "system_version", "runtime", nullable=True),
    *_fields(pa.string(), "workload", "nemesis", nullable=True),
    *_fields(pa.list_(pa.string()), "bugs", "nodes"),
    *_fields(pa.int64(), "seed", "planned_faults", nullable=True),
    *_fields(pa.float64(), "time_limit_s", nullable=True),
    *_fields(pa.int64(), "concurrency", nullable=True),
    *_fields(pa.float64(), "rate", nullable=True),
    *_fields(pa.timestamp("us", tz="UTC"), "started_at", nullable=True),
    *_fields(pa.string(), "tool_version", "tool_commit", "replay_of", nullable=True),
    *_fields(pa.string(), "outcome"),
    *_fields(pa.string(), "verdict", nullable=True),
    *_fields(pa.list_(pa.string()), "vacuous"),
    *_fields(pa.int64(), "exit_code", nullable=True),
    *_fields(pa.list_(pa.string()), "problems"),
    *_fields(pa.string(), "state"),
    *_fields(pa.list_(pa.string()), "damage_kinds", "damage"),
    *_fields(pa.int64(), "operations"),
)
_FAULTS_1: Final = (
    *_fields(pa.int64(), "index"),
    *_fields(pa.string(), "kind", "target"),
    *_fields(pa.list_(pa.string()), "nodes"),
    *_fields(pa.string(), "leader", nullable=True),
    *_fields(pa.int64(), "invoked_ns", "verified_ns", "healing_ns", nullable=True),
    *_fields(pa.int64(), "removed_ns", "resumed_ns", nullable=True),
    *_fields(pa.bool_(), "verified", "applicable"),
)
_OPERATIONS_1: Final = (
    *_fields(pa.int64(), "index", "process"),
    *_fields(pa.string(), "f"),
    *_fields(pa.string(), "key", "argument", "result", nullable=True),
    *_fields(pa.string(), "type"),
    *_fields(pa.int64(), "start_ns"),
    *_fields(pa.int64(), "end_ns", nullable=True),
    *_fields(pa.string(), "node", "error", nullable=True),
    *_fields(pa.int64(), "position_epoch", "position_offset", nullable=True),
    *_fields(pa.bool_(), "final"),
)
_OPERATIONS_2: Final = (*_OPERATIONS_1, *_fields(pa.string(), "effect", nullable=True))
_FAULTS_2: Final = (
    *_FAULTS_1,
    *_fields(pa.list_(pa.string()), "links"),
    *_fields(pa.string(), "evidence", nullable=True),
    *_fields(pa.bool_(), "healed"),
)
_STATE_EVENTS_1: Final = (
    *_fields(pa.string(), "node"),
    *_fields(pa.int64(), "incarnation", "sequence"),
    *_fields(pa.string(), "kind"),
    *_fields(pa.int64(), "epoch"),
    *_fields(pa.string(), "role", nullable=True),
    *_fields(pa.int64(), "leader", "offset", "base_offset", nullable=True),
    *_fields(pa.string(), "reason", nullable=True),
    *_fields(pa.int64(), "time_ns", nullable=True),
)
_RUNS_2: Final = (*_RUNS_1, *_fields(pa.string(), "plan_digest", nullable=True))
_RUNS_3_FIELDS: Final = (
    *_RUNS_2,
    *_fields(pa.int64(), "elections", nullable=True),
    *_fields(pa.float64(), "unavailability_max_ms", nullable=True),
    *_fields(pa.string(), "reproduce", nullable=True),
)
_RUNS_3: Final = _with_nulls(elections="long", unavailability_max_ms="double", reproduce="string")
_OLDER: Final = (
    Older(declare("runs", 1, *_RUNS_1), _with_nulls(plan_digest="string")),
    # Columns from ``results.json`` were not kept.
    Older(declare("runs", 2, *_RUNS_2), _RUNS_3),
    Older(declare("runs", 3, *_RUNS_3_FIELDS), _runs_4),
    # No plan declared the effects of functions.
    Older(declare("operations", 1, *_OPERATIONS_1), _with_nulls(effect="string")),
    # Logs whose records had another form were left out.
    Older(
        declare("operations", 2, *_OPERATIONS_2),
        _with_nulls(recorded_f="string", recorded_value="string"),
    ),
    Older(declare("faults", 1, *_FAULTS_1), _faults_2),
    Older(declare("faults", 2, *_FAULTS_2), _faults_3),
    Older(declare("state_events", 1, *_STATE_EVENTS_1), _with_nulls(detail="string")),
)
#: Older versions by table name and version.
OLDER: Final[Versions] = {(old.table.name, old.table.version): old for old in _OLDER}


def table_as_written(table: Table, version: int, older: Versions = OLDER) -> Table:
    """Return the table as a version declared it.

    Raises:
        HarnessError: a later version of splitbrain wrote it.
    """
    if version == table.version:
        return table
    if version > table.version or (table.name, version) not in older:
        raise HarnessError(
            "read the lake",
            f"table {table.name}",
            f"it holds version {version}, and this splitbrain knows versions up to {table.version}",
            "Use the splitbrain that wrote it, or a later one.",
        )
    return older[table.name, version].table


def upgraded(
    rows: DataFrame,
    table: Table,
    version: int,
    older: Versions = OLDER,
    *,
    kept: Sequence[str] = (),
) -> DataFrame:
    """Return rows of an older version as rows of today's table, then the kept columns."""
    for step in range(version, table.version):
        rows = older[table.name, step].to_next(rows)
    return conform(rows, table, kept=kept)
