"""Schemas, declared and versioned, of every table that this room writes.

Tables of an ingest are declared here; those of the jobs' results follow from their rows in
``contracts.analysis`` (``table_of``). All times are nanoseconds since the run's start where a name
ends in ``_ns``, and milliseconds as a double where it ends in ``_ms``. Values of operations are
JSON with sorted keys, so that equal values are equal strings. Every table begins with ``run_id``;
results across runs alone have none. A change of a table raises its version, which Parquet files
carry in their metadata, and ``spark_analysis.lake.upgrades`` converts older versions. Needs no
Spark: an ingest works without it.
"""

import datetime as dt
import functools
from typing import Any, Final, NamedTuple, get_args

import msgspec
import pyarrow as pa

from splitbrain.contracts.analysis.run import Moment, Row, Value

#: Key in a Parquet file's metadata for ``name/version``.
SCHEMA_METADATA_KEY: Final = b"splitbrain.schema"

_LONG: Final = pa.int64()
_DOUBLE: Final = pa.float64()
_STRING: Final = pa.string()
_BOOLEAN: Final = pa.bool_()
_STRINGS: Final = pa.list_(pa.string())
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_FIGURES: Final = pa.map_(pa.string(), pa.float64())


class Table(NamedTuple):
    """Declared table."""

    name: str
    version: int
    #: With name and version in its metadata.
    schema: pa.Schema


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def _optional(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=True)


def declare(name: str, version: int, *fields: pa.Field, of_run: bool = True) -> Table:
    """Declare a table of these columns, behind ``run_id`` where each row is of one run."""
    metadata = {SCHEMA_METADATA_KEY: f"{name}/{version}".encode()}
    columns = [_required("run_id", _STRING), *fields] if of_run else fields
    return Table(name, version, pa.schema(columns, metadata))


# --- results of the jobs --------------------------------------------------------------------

_KINDS: Final[dict[Any, pa.DataType]] = {
    int: _LONG,
    float: _DOUBLE,
    str: _STRING,
    bool: _BOOLEAN,
    list[str]: _STRINGS,
    list[int]: pa.list_(_LONG),
    dt.datetime: _TIMESTAMP,
    Moment: _LONG,
    Value: _STRING,
}


class Column(NamedTuple):
    """Column of a result, and the field of the row that it is read back as."""

    name: str
    field: str
    #: Type of the field, without None.
    kind: Any
    is_optional: bool


@functools.cache
def columns_of(row: type[Row]) -> tuple[Column, ...]:
    """Return the columns that follow from a row's fields."""
    columns: list[Column] = []
    for field in msgspec.structs.fields(row):
        choices = get_args(field.type) if type(None) in get_args(field.type) else (field.type,)
        (kind,) = (choice for choice in choices if choice is not type(None))
        name = f"{field.name.removesuffix('_ms')}_ns" if kind == Moment else field.name
        columns.append(Column(name, field.name, kind, len(choices) > 1))
    return tuple(columns)


@functools.cache
def table_of(row: type[Row]) -> Table:
    """Return the table of these rows."""
    name, version = row.table.split("/")
    fields = (
        pa.field(column.name, _KINDS[column.kind], column.is_optional) for column in columns_of(row)
    )
    return declare(name, int(version), *fields, of_run=row.is_of_run)


# --- made at ingest -------------------------------------------------------------------------

#: Invocation and completion paired (``history.records.PairedOperation``), in the order of
#: completion, operations without an answer last.
OPERATIONS: Final = declare(
    "operations",
    3,
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
    # since version 2
    _optional("effect", _STRING),  # reads, changes, records, refused; null: nobody declared it
    # since version 3: the change as the system's records show it; null: as it was asked for
    _optional("recorded_f", _STRING),
    _optional("recorded_value", _STRING),  # JSON
)

#: One row per fault of ``faults.jsonl``; a time is null where the phase was not reached.
FAULTS: Final = declare(
    "faults",
    3,
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
    # since version 2
    _required("links", _STRINGS),  # cut, as source>destination
    _optional("evidence", _STRING),  # what was seen of it, in words
    _required("healed", _BOOLEAN),  # seen from outside to be gone
    # since version 3
    _optional("ends_process", _STRING),  # of its nodes: at-once, later, perhaps; null: no
)

#: Events logged by the nodes, ordered within a node by incarnation and sequence.
STATE_EVENTS: Final = declare(
    "state_events",
    2,
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
    # since version 2
    _optional("detail", _STRING),  # JSON, null where there is none
)

#: Records of each node's committed log.
COMMITTED: Final = declare(
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
LOGS: Final = declare(
    "logs",
    1,
    _required("node", _STRING),
    _optional("start_offset", _LONG),  # a snapshot covers what lies before
    _optional("end_offset", _LONG),  # one past the last
)

#: Resource use of each node, and the system's own figures, once a second.
METRICS: Final = declare(
    "metrics",
    1,
    _required("node", _STRING),
    _required("time_ns", _LONG),
    _required("status", _STRING),  # running, paused, exited, ...
    _optional("cpu_seconds_total", _DOUBLE),
    _optional("memory_bytes", _LONG),
    _optional("figures", _FIGURES),  # the system's own; null: the node did not answer
)

#: One row per checker of ``results.json``.
VERDICTS: Final = declare(
    "verdicts",
    1,
    _required("checker", _STRING),
    _required("verdict", _STRING),  # valid, invalid, unknown
    _required("reason", _STRING),
    _required("figures", _STRING),  # JSON
    _required("violation_count", _LONG),  # that are told; a checker tells the first of many
    _required("violations", _STRING),  # JSON, most telling first
    _required("observation_count", _LONG),
    _required("observations", _STRING),  # JSON
)

#: Events met by the faults of a run, one row per kind, role, phase and workload
#: (``docs/faults/coverage.md``); no row without a count.
COVERAGE: Final = declare(
    "coverage",
    1,
    _required("kind", _STRING),
    _required("role", _STRING),  # of a node that was hit: leader, follower, ...
    _required("phase", _STRING),  # of the newest epoch: election, new-leader, settled, unknown
    _required("workload", _STRING),
    _required("faults", _LONG),  # injected
    _required("bitten", _LONG),  # of them, seen from outside
)

#: One row per run; null if in neither plan nor results.
RUNS: Final = declare(
    "runs",
    4,
    _required("name", _STRING),  # of the run folder; run_id is unique, this need not be
    _optional("test", _STRING),
    _optional("system_version", _STRING),
    _optional("runtime", _STRING),
    _optional("workload", _STRING),
    _optional("nemesis", _STRING),
    _required("bugs", _STRINGS),  # planted
    _required("nodes", _STRINGS),
    _optional("seed", _LONG),
    _optional("planned_faults", _LONG),
    _optional("time_limit_s", _DOUBLE),
    _optional("concurrency", _LONG),
    _optional("rate", _DOUBLE),  # operations a second
    _optional("started_at", _TIMESTAMP),
    _optional("tool_version", _STRING),
    _optional("tool_commit", _STRING),
    _optional("replay_of", _STRING),
    _required("outcome", _STRING),  # valid, invalid, unknown, vacuous, failed, none (not judged)
    _optional("verdict", _STRING),
    _required("vacuous", _STRINGS),  # why it proves nothing
    _optional("exit_code", _LONG),
    _required("problems", _STRINGS),  # around the verdict
    _required("state", _STRING),  # whole, pruned, partial, damaged, open; see ``damage``
    _required("damage_kinds", _STRINGS),  # sorted
    _required("damage", _STRINGS),  # a sentence each
    _required("operations", _LONG),  # rows of this run in that table
    # since version 2
    _optional("plan_digest", _STRING),  # of what a replay has in common with what it replays
    # since version 3
    _optional("elections", _LONG),  # epochs with a leader; null: nothing tells
    _optional("unavailability_max_ms", _DOUBLE),  # without an acknowledged write
    _optional("reproduce", _STRING),  # the command line that runs it again
    # since version 4
    _required("expected", _BOOLEAN),  # its suite expects a violation (``history.expectation``)
)

#: One row per sweep of simulated worlds that left its files (``history.seed_records``); its
#: ``run_id`` is that of no run.
SWEEPS: Final = declare(
    "sweeps",
    1,
    _required("seeds", _STRING),  # as on the command line
    _required("planned", _LONG),  # number of them, without skipped ones
    _required("bugs", _STRINGS),  # planted
    _optional("state_machine", _STRING),  # null: drawn by each seed
    _required("beyond_promise", _BOOLEAN),
    _required("patches", _STRINGS),
    _optional("started_at", _TIMESTAMP),
    _optional("tool_version", _STRING),
    _optional("tool_commit", _STRING),
    _optional("exit_code", _LONG),  # null: it did not come to its end
    _required("clean", _LONG),
    _required("failed", _LONG),
    _required("undecided", _LONG),
    _required("crashed", _LONG),  # could not be run
    _required("differed", _LONG),  # came out differently, or not at all, when run again
    _required("state", _STRING),  # whole, partial, damaged
    _required("damage_kinds", _STRINGS),  # sorted
    _required("damage", _STRINGS),  # a sentence each
)

#: One row per seed of those sweeps.
SEEDS: Final = declare(
    "seeds",
    1,
    _required("seed", _LONG),
    _required("outcome", _STRING),  # clean, failed, undecided, crashed
    _required("differed", _BOOLEAN),
    _required("workload", _STRING),
    _required("failed_by", _STRINGS),  # an invariant's id, names of checkers
    _required("fingerprints", _STRINGS),
    _optional("sentence", _STRING),
    _required("found", _STRING),  # JSON: checkers with their reason and most telling violation
    _required("undecided", _STRING),  # JSON: checkers with their reason
    _required("trace_hash", _STRING),
    _required("steps", _LONG),
    _required("simulated_ms", _DOUBLE),
    _required("operations", _LONG),  # acknowledged
    _required("faults", _LONG),  # injected, once for each role that one met
    _required("bitten", _LONG),  # of them, that took effect
    _optional("elections", _LONG),
    _required("figures", _FIGURES),  # counts of what happened
    _required("wall_ms", _DOUBLE),
    _optional("folder", _STRING),  # of its run, where that was kept
    _optional("reproduce", _STRING),  # of a seed that is not clean
)

#: Tables that an ingest makes of a run folder, and all that a lake has.
INGESTED_TABLES: Final = (OPERATIONS, FAULTS, STATE_EVENTS, COMMITTED, LOGS)
LAKE_TABLES: Final = (*INGESTED_TABLES, METRICS, VERDICTS, COVERAGE, RUNS, SWEEPS, SEEDS)
