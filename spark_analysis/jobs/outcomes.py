"""Outcomes of runs: their matrix, failures since a moment, flaky ones, and classes of errors.

Definitions, used by the jobs and by their reference in the tests:

- The *faults* of a run are the kinds of those that were injected into it.
- A run is *expected* to be invalid where its suite says so: its findings are no news.
- A *failure* is a fingerprint (``checker.fingerprints``) of expected runs, or of the others: that
  a canary shows it makes no failure known that nobody expected. It is *known* where a run that
  started before a given moment met it and one since then did, *new* where only one since then did,
  else *resolved*: not met again, which is less than mended. A run of unknown start counts as
  before. A failure judged before anomalies had names counts as the named one that had the same
  fingerprint then, if there is one alone.
- Runs have *one plan* where their plan digests are equal. Of those that were judged valid or
  invalid (n), k met the failure. It is *not-replayed* for n = 1, *deterministic* for k = n,
  *never-again* where only the first of them met it, else it fails *sometimes*. Runs without such a
  judgement are left out.
"""

import datetime as dt
import functools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.analysis.across import Cell, Failure, Flake, RunFingerprint
from splitbrain.contracts.analysis.run import ClientError
from splitbrain.spark_analysis.frames import arrow_functions, conform, struct_type
from splitbrain.spark_analysis.schemas import table_of

NO_FAULT: Final = "none"
UNKNOWN: Final = "unknown"
#: Characters of an account.
SENTENCE_MAX: Final = 600
#: Runs that are named in one row of the matrix.
EXAMPLES_MAX: Final = 5
#: Outcome that each column of the matrix counts; examples in this order.
OUTCOMES: Final = {
    "invalid": "invalid",
    "failed": "failed",
    "unknown": "unknown",
    "vacuous": "vacuous",
    "unjudged": "none",
    "valid": "valid",
}
_CELL: Final = ("system", "version", "workload", "fault", "expected")


def outcome_matrix(runs: DataFrame, faults: DataFrame) -> DataFrame:
    """Return a ``Cell`` of each system, version, workload and kind of fault."""
    kinds = (
        faults.where(sql.col("invoked_ns").isNotNull())
        .select("run_id", sql.col("kind").alias("fault"))
        .distinct()
    )
    cells = runs.join(kinds, "run_id", "left").select(
        "run_id",
        "outcome",
        sql.coalesce("system", sql.lit(UNKNOWN)).alias("system"),
        sql.coalesce("system_version", sql.lit(UNKNOWN)).alias("version"),
        sql.coalesce("workload", sql.lit(UNKNOWN)).alias("workload"),
        sql.coalesce("fault", sql.lit(NO_FAULT)).alias("fault"),
        "expected",
        _urgency().alias("urgency"),
    )
    # Numbered first, so that no row gathers the names of more runs than it shows.
    worst = Window.partitionBy(*_CELL).orderBy("urgency", "run_id")
    shown = (sql.col("place") <= EXAMPLES_MAX) & (sql.col("outcome") != "valid")
    example = sql.when(shown, sql.struct("place", "run_id"))
    grouped = (
        cells.withColumn("place", sql.row_number().over(worst))
        .groupBy(*_CELL)
        .agg(
            sql.count(sql.lit(1)).alias("runs"),
            *(
                sql.count_if(sql.col("outcome") == outcome).alias(name)
                for name, outcome in OUTCOMES.items()
            ),
            sql.sort_array(sql.collect_list(example)).alias("found"),
        )
        .withColumn("examples", sql.col("found.run_id"))
    )
    return conform(grouped, table_of(Cell))


def _urgency() -> Column:
    """Return an outcome's place in ``OUTCOMES``; unknown words come last."""
    places = list(OUTCOMES.values())
    return functools.reduce(
        lambda so_far, place: sql.when(sql.col("outcome") == places[place], place).otherwise(
            so_far
        ),
        range(len(places)),
        sql.lit(len(places)),
    )


def run_fingerprints(verdicts: DataFrame, runs: DataFrame) -> DataFrame:
    """Return each ``RunFingerprint`` of the runs' findings once.

    An invalid run without an invalid checker counts as a finding of ``run``, as at the gate.
    """
    invalid = verdicts.where(sql.col("verdict") == Verdict.INVALID.value).select(
        "run_id", "checker", "reason", "figures", "violations"
    )
    unexplained = (
        runs.where(sql.col("outcome") == "invalid")
        .join(invalid.select("run_id"), "run_id", "left_anti")
        .select(
            "run_id",
            sql.lit("run").alias("checker"),
            sql.lit("").alias("reason"),
            sql.lit("{}").alias("figures"),
            sql.lit("[]").alias("violations"),
        )
    )
    with arrow_functions():
        fields = struct_type(table_of(RunFingerprint)).add(_BEFORE_NAMES, "string")
        found = invalid.unionByName(unexplained).mapInArrow(_fingerprinted, fields)
    return _with_present_names(found).distinct()


#: Column of the fingerprint that a named failure had before.
_BEFORE_NAMES: Final = "before_names"


def _with_present_names(found: DataFrame) -> DataFrame:
    """Give failures of earlier versions the fingerprint that they would have now, if it is one."""
    named = (
        found.where(sql.col(_BEFORE_NAMES).isNotNull())
        .groupBy(sql.col(_BEFORE_NAMES).alias("earlier"))
        .agg(
            sql.count_distinct("fingerprint").alias("names"),
            sql.min(sql.struct("fingerprint", "kind")).alias("present"),
        )
        .where(sql.col("names") == 1)
    )
    joined = found.join(sql.broadcast(named), sql.col("fingerprint") == sql.col("earlier"), "left")
    return conform(
        joined.withColumn("kind", sql.coalesce("present.kind", "kind")).withColumn(
            "fingerprint", sql.coalesce("present.fingerprint", "fingerprint")
        ),
        table_of(RunFingerprint),
    )


def _fingerprinted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # The worker's schema must not carry the declared metadata.
    declared = table_of(RunFingerprint).schema.remove_metadata()
    schema = declared.append(pa.field(_BEFORE_NAMES, pa.string()))
    for batch in batches:
        rows: list[dict[str, Any]] = []
        for row in batch.to_pylist():
            result = _result_of(row)
            fingerprint = fingerprint_of(result)
            assert fingerprint is not None, "an invalid result always has a fingerprint"
            rows.append(
                {
                    "run_id": row["run_id"],
                    "checker": fingerprint.checker,
                    "fingerprint": fingerprint.text,
                    "kind": fingerprint.anomaly or fingerprint.kind,
                    "shape": fingerprint.shape,
                    "sentence": headline_of(result)[:SENTENCE_MAX],
                    _BEFORE_NAMES: fingerprint.before_names,
                }
            )
        yield pa.RecordBatch.from_pylist(rows, schema)


def _result_of(row: dict[str, Any]) -> CheckResult:
    """Return the invalid row of ``VERDICTS`` as the checker's result."""
    return CheckResult(
        row["checker"],
        Verdict.INVALID,
        row["reason"],
        figures=msgspec.json.decode(row["figures"] or "{}", type=dict[str, Any]),
        violations=tuple(msgspec.json.decode(row["violations"], type=list[dict[str, Any]])),
    )


def failures_since(fingerprints: DataFrame, runs: DataFrame, since: dt.datetime) -> DataFrame:
    """Return a ``Failure`` of each fingerprint and expectation, by a moment with a time zone."""
    started = sql.col("started_at")
    is_since = sql.coalesce(started >= sql.lit(since), sql.expr("false"))
    latest = sql.struct(started, *map(sql.col, ("run_id", "sentence", "reproduce")))
    grouped = (
        fingerprints.join(runs.select("run_id", "started_at", "expected", "reproduce"), "run_id")
        .groupBy("fingerprint", "checker", "kind", "shape", "expected")
        .agg(
            sql.count_distinct(sql.when(is_since, sql.col("run_id"))).alias("runs_since"),
            sql.count_distinct(sql.when(~is_since, sql.col("run_id"))).alias("runs_before"),
            sql.min("started_at").alias("first_at"),
            sql.max("started_at").alias("last_at"),
            sql.max(latest)["run_id"].alias("example"),
            sql.max(latest)["sentence"].alias("sentence"),
            sql.max(latest)["reproduce"].alias("reproduce"),
        )
    )
    state = (
        sql.when(sql.col("runs_since") == 0, "resolved")
        .when(sql.col("runs_before") == 0, "new")
        .otherwise("known")
    )
    return conform(grouped.withColumn("state", state), table_of(Failure))


def flakes(fingerprints: DataFrame, runs: DataFrame) -> DataFrame:
    """Return a ``Flake`` of each plan that failed; none for runs without a plan."""
    judged = runs.where(sql.col("outcome").isin("valid", "invalid")).where(
        sql.col("plan_digest").isNotNull()
    )
    moment = sql.struct("started_at", "run_id")
    plans = judged.groupBy("plan_digest").agg(
        sql.count(sql.lit(1)).alias("runs"), sql.min(moment)["run_id"].alias("first_run")
    )
    failed = (
        judged.join(fingerprints, "run_id")
        .groupBy("plan_digest", "fingerprint", "checker", "kind")
        .agg(
            sql.count_distinct("run_id").alias("failed"),
            sql.min(moment)["run_id"].alias("example"),
            *(sql.min(name).alias(name) for name in ("system", "workload", "runtime")),
        )
    )
    count, of = sql.col("failed"), sql.col("runs")
    flake = (
        sql.when(of == 1, "not-replayed")
        .when(count == of, "deterministic")
        .when((count == 1) & (sql.col("example") == sql.col("first_run")), "never-again")
        .otherwise("sometimes")
    )
    return conform(failed.join(plans, "plan_digest").withColumn("flake", flake), table_of(Flake))


#: Class of operations for which the client gave none.
NO_CLASS = "none"


def client_errors(operations: DataFrame) -> DataFrame:
    """Return a ``ClientError`` of each kind, node, outcome and class of error."""
    found = (
        operations.where(sql.col("type") != "ok")
        .withColumn("error", sql.coalesce("error", sql.lit(NO_CLASS)))
        .groupBy("run_id", "f", "node", "type", "error")
        .agg(
            sql.count(sql.lit(1)).alias("count"),
            sql.min("start_ns").alias("first_ns"),
            sql.max("start_ns").alias("last_ns"),
        )
    )
    return conform(found, table_of(ClientError))
