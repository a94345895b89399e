"""Declared, versioned schemas of every table that this room writes, results included.

All times are nanoseconds since the run's start where a name ends in ``_ns``, and milliseconds as a
double where it ends in ``_ms``. Values of operations are JSON with sorted keys, so that equal
values are equal strings. Every table begins with ``run_id``: the jobs work on one run or on many.
A change of a table raises its version; Parquet files carry name and version in their metadata.
Must never be inferred from data.
"""

from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

#: Key of a Parquet file's metadata that holds ``name/version``.
SCHEMA_METADATA_KEY: Final = b"splitbrain.schema"

_LONG: Final = LongType()
_DOUBLE: Final = DoubleType()
_STRING: Final = StringType()
_BOOLEAN: Final = BooleanType()
_STRINGS: Final = ArrayType(StringType())


class Table(NamedTuple):
    """A declared table."""

    name: str
    version: int
    schema: StructType


def _required(name: str, kind: DataType) -> StructField:
    return StructField(name, kind, nullable=False)


def _optional(name: str, kind: DataType) -> StructField:
    return StructField(name, kind, nullable=True)


def _table(name: str, version: int, *fields: StructField) -> Table:
    return Table(name, version, StructType([_required("run_id", _STRING), *fields]))


# --- made at ingest -------------------------------------------------------------------------

#: Invocation and completion paired (``history.records.PairedOperation``), in the order of
#: completion, operations without an answer last.
OPERATIONS: Final = _table(
    "operations",
    1,
    _required("index", _LONG),
    _required("process", _LONG),
    _required("f", _STRING),
    _optional("key", _STRING),
    _optional("argument", _STRING),  # JSON
    _optional("result", _STRING),  # JSON, of ok operations only
    _required("type", _STRING),  # ok, fail, info
    _required("start_ns", _LONG),
    _optional("end_ns", _LONG),  # null: open (info)
    _optional("node", _STRING),
    _optional("error", _STRING),
    _optional("position_epoch", _LONG),
    _optional("position_offset", _LONG),
    _required("final", _BOOLEAN),
)

#: One row per fault of ``faults.jsonl``; a time is null where the phase was not reached.
FAULTS: Final = _table(
    "faults",
    1,
    _required("index", _LONG),
    _required("kind", _STRING),
    _required("target", _STRING),  # symbolic
    _required("nodes", _STRINGS),  # hit
    _optional("leader", _STRING),  # led at injection
    _optional("invoked_ns", _LONG),
    _optional("verified_ns", _LONG),
    _optional("healing_ns", _LONG),
    _optional("removed_ns", _LONG),
    _optional("resumed_ns", _LONG),
    _required("verified", _BOOLEAN),  # seen from outside to have bitten
    _required("applicable", _BOOLEAN),  # its target existed
)

#: What the nodes said of themselves; ordered within a node by incarnation and sequence.
STATE_EVENTS: Final = _table(
    "state_events",
    1,
    _required("node", _STRING),
    _required("incarnation", _LONG),
    _required("sequence", _LONG),
    _required("kind", _STRING),
    _required("epoch", _LONG),
    _optional("role", _STRING),
    _optional("leader", _LONG),
    _optional("offset", _LONG),
    _optional("base_offset", _LONG),
    _optional("reason", _STRING),
    _optional("time_ns", _LONG),  # null: never stamped by the harness
)

#: Records of each node's committed log.
COMMITTED: Final = _table(
    "committed",
    1,
    _required("node", _STRING),
    _required("offset", _LONG),
    _required("epoch", _LONG),
    _optional("f", _STRING),  # null: control record
    _optional("key", _STRING),
    _optional("value", _STRING),  # JSON
    _required("digest", _STRING),
)

#: One row per node of the run; offsets are null where the node's log was not dumped.
LOGS: Final = _table(
    "logs",
    1,
    _required("node", _STRING),
    _optional("start_offset", _LONG),  # a snapshot covers what lies before
    _optional("end_offset", _LONG),  # one past the last
)

# --- results of the jobs --------------------------------------------------------------------

#: By kind, second of the invocation and outcome; quantiles are exact, linear between neighbours,
#: null where no operation of the group has a completion time.
LATENCY: Final = _table(
    "latency",
    1,
    _required("f", _STRING),
    _required("second", _LONG),
    _required("type", _STRING),
    _required("count", _LONG),
    _optional("p50_ms", _DOUBLE),
    _optional("p95_ms", _DOUBLE),
    _optional("p99_ms", _DOUBLE),
    _optional("max_ms", _DOUBLE),
)

#: By second of the completion, of the invocation for operations that are open.
THROUGHPUT: Final = _table(
    "throughput",
    1,
    _required("second", _LONG),
    _required("ok", _LONG),
    _required("fail", _LONG),
    _required("info", _LONG),
)

#: One row per fault that was injected; see ``jobs.availability`` for every definition.
WINDOWS: Final = _table(
    "windows",
    1,
    _required("index", _LONG),
    _required("kind", _STRING),
    _required("target", _STRING),
    _required("nodes", _STRINGS),
    _required("start_ns", _LONG),
    _required("end_ns", _LONG),
    _required("verified", _BOOLEAN),
    _optional("availability_before", _DOUBLE),
    _optional("availability_during", _DOUBLE),
    _optional("availability_after", _DOUBLE),
    _optional("ok_ratio_before", _DOUBLE),
    _optional("ok_ratio_during", _DOUBLE),
    _optional("ok_ratio_after", _DOUBLE),
    _optional("failover_ms", _DOUBLE),
    _optional("recovery_ms", _DOUBLE),
    _optional("new_epoch", _LONG),
)

#: Longest time without an acknowledged write, one row per run that tried to write.
UNAVAILABILITY: Final = _table(
    "unavailability",
    1,
    _required("start_ns", _LONG),
    _required("end_ns", _LONG),
    _required("gap_ms", _DOUBLE),
)

#: Acknowledged writes that no majority of the nodes can hold.
LOST: Final = _table(
    "lost",
    1,
    _required("index", _LONG),
    _required("process", _LONG),
    _required("f", _STRING),
    _optional("key", _STRING),
    _optional("argument", _STRING),
    _optional("position_epoch", _LONG),
    _optional("position_offset", _LONG),
    _required("start_ns", _LONG),
    _optional("end_ns", _LONG),
    _required("holders", _LONG),  # nodes that hold it
    _required("unknown", _LONG),  # nodes of which it cannot be said
)

#: Committed records that the history does not explain.
PHANTOM: Final = _table(
    "phantom",
    1,
    _required("epoch", _LONG),
    _required("offset", _LONG),
    _required("f", _STRING),
    _optional("key", _STRING),
    _optional("value", _STRING),
    _required("nodes", _STRINGS),  # that hold it, sorted
    _required("reason", _STRING),  # failed, duplicate, never-invoked
)

#: One row per reign: a node in the role of leader in one epoch.
LEADERS: Final = _table(
    "leaders",
    1,
    _required("node", _STRING),
    _required("epoch", _LONG),
    _required("start_ns", _LONG),
    _required("end_ns", _LONG),
)

#: Two reigns of different nodes: in one epoch always, in two epochs where they overlap in time.
LEADER_OVERLAPS: Final = _table(
    "leader_overlaps",
    1,
    _required("epoch_a", _LONG),
    _required("epoch_b", _LONG),
    _required("node_a", _STRING),
    _required("node_b", _STRING),
    _required("start_ns", _LONG),
    _required("end_ns", _LONG),
    _required("same_epoch", _BOOLEAN),
)


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """The frame's columns in the declared order and types; a missing column is Spark's error."""
    return frame.select(
        *(sql.col(f"`{field.name}`").cast(field.dataType) for field in table.schema)
    )


def arrow_schema(table: Table) -> pa.Schema:
    """The table's schema for pyarrow, with name and version in its metadata."""
    fields = [
        pa.field(field.name, _arrow_type(field.dataType), nullable=field.nullable)
        for field in table.schema
    ]
    return pa.schema(
        fields, metadata={SCHEMA_METADATA_KEY: f"{table.name}/{table.version}".encode()}
    )


def _arrow_type(kind: DataType) -> pa.DataType:
    match kind:
        case LongType():
            return pa.int64()
        case DoubleType():
            return pa.float64()
        case StringType():
            return pa.string()
        case BooleanType():
            return pa.bool_()
        case ArrayType():
            return pa.list_(_arrow_type(kind.elementType))
        case _:
            raise TypeError(f"no Arrow type is declared for Spark's {kind.simpleString()}")
