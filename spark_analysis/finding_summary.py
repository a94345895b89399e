"""What further jobs found in one run, as parts of ``analysis/summary.json``.

Times in milliseconds since the run's start; figures are of all rows, examples the most telling few.

- ``reigns``: ``count``, ``ended`` (how, to how many), ``leaderless_max_ms`` (null: fewer than two),
  ``examples``: those before which there was no leader for longest: ``epoch, leader, start_ms,
  end_ms, ended, leaderless_ms, epoch_leaders``
- ``divergences``: ``pairs`` of logs that differ, null where fewer than two were dumped;
  ``examples``: ``node_a, node_b, offset, epoch_a, digest_a, epoch_b, digest_b``
- ``duplicates``: ``committed`` writes, null without any log; elements ``read`` twice; ``examples``:
  ``kind, f, key, value, node, count, expected, first_offset, index``, the value as its text
- ``stale_reads``: ``count, age_max_ms, age_max_versions``, the two null where there is none;
  ``examples``, the oldest first: ``index, process, node, key, result, start_ms, end_ms, age_ms,
  age_versions``
- ``client_errors``: ``count`` of operations that did not end ok; ``classes``, the most frequent
  first: ``type, error, count, first_ms, last_ms``, where the times are of invocations
"""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from splitbrain.spark_analysis.collected import collect, figures, in_ms, plain_rows
from splitbrain.spark_analysis.finding_schemas import (
    CLIENT_ERRORS,
    DIVERGENCES,
    DUPLICATES,
    ELECTIONS,
    STALE_READS,
)
from splitbrain.spark_analysis.schemas import Table

#: Rows of each finding that are shown.
EXAMPLES_MAX: Final = 20
#: Classes of errors that are shown; a client may put anything into one.
CLASSES_MAX: Final = 50
_WORDS_MAX: Final = 20


def summarize_findings(results: Mapping[Table, DataFrame], *, logs: int) -> dict[str, Any]:
    """The parts of the summary.

    Args:
        results: stored results of one run, those of the tables above among them.
        logs: committed logs that were dumped.
    """
    return {
        "reigns": _reigns(results[ELECTIONS]),
        "divergences": _divergences(results[DIVERGENCES], logs),
        "duplicates": _duplicates(results[DUPLICATES], logs),
        "stale_reads": _stale_reads(results[STALE_READS]),
        "client_errors": _client_errors(results[CLIENT_ERRORS]),
    }


def _reigns(found: DataFrame) -> dict[str, Any]:
    ended = collect(
        found.groupBy("ended").agg(_rows().alias("count")),
        *(sql.desc("count"), "ended"),
        limit=_WORDS_MAX,
    )
    longest = collect(
        found.where(sql.col("leaderless_ms") > 0),
        *(sql.desc("leaderless_ms"), "start_ns", "epoch"),
        limit=EXAMPLES_MAX,
    )
    totals = figures(found, count=_rows(), leaderless_max_ms=sql.max("leaderless_ms"))
    return {
        "count": totals["count"],
        "ended": ended.set_index("ended")["count"].to_dict(),
        "leaderless_max_ms": totals["leaderless_max_ms"],
        "examples": plain_rows(in_ms(longest)),
    }


def _divergences(found: DataFrame, logs: int) -> dict[str, Any]:
    first = collect(found, "offset", "node_a", "node_b", limit=EXAMPLES_MAX)
    pairs = figures(found, pairs=_rows())["pairs"]
    return {"pairs": pairs if logs > 1 else None, "examples": plain_rows(first)}


def _duplicates(found: DataFrame, logs: int) -> dict[str, Any]:
    counts = figures(
        found,
        committed=sql.count_if(sql.col("kind") == "committed"),
        read=sql.count_if(sql.col("kind") == "read"),
    )
    if not logs:
        counts["committed"] = None
    first = collect(
        found, *("kind", "first_offset", "index", "node", "key", "value"), limit=EXAMPLES_MAX
    )
    return {**counts, "examples": plain_rows(first)}


def _stale_reads(found: DataFrame) -> dict[str, Any]:
    oldest = collect(found, *(sql.desc("age_ms"), "index"), limit=EXAMPLES_MAX)
    return {
        **figures(
            found,
            count=_rows(),
            age_max_ms=sql.max("age_ms"),
            age_max_versions=sql.max("age_versions"),
        ),
        "examples": plain_rows(in_ms(oldest), decoded=("result",)),
    }


def _client_errors(found: DataFrame) -> dict[str, Any]:
    by_class = found.groupBy("type", "error").agg(
        sql.sum("count").alias("count"),
        sql.min("first_ns").alias("first_ns"),
        sql.max("last_ns").alias("last_ns"),
    )
    classes = collect(by_class, *(sql.desc("count"), "type", "error"), limit=CLASSES_MAX)
    return {
        **figures(found, count=sql.coalesce(sql.sum("count"), sql.lit(0))),
        "classes": plain_rows(in_ms(classes)),
    }


def _rows() -> Column:
    return sql.count(sql.lit(1))
