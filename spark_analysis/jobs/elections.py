"""The election timeline: every reign in its place, how it ended, and who else led its epoch.

Reigns are those of ``jobs.leadership``. How one **ended**:

- ``killed``: a kill of the node was seen before the node told of anything else.
- ``stopped``, ``fatal``: the node said so.
- ``restarted``: its next word is one of its next incarnation, and nobody saw it end.
- ``resigned``: it took another role, or leads another epoch.
- ``run-ended``: it never told of an end.

``leaderless_ms`` is the time before a reign in which no node was in the role of leader: from the
latest end of all reigns that began before it (by start, epoch, node), 0 where one of them lasted
on, null for the first of a run. A leader that is cut off reigns until it knows, so clients may have
waited for longer; that is told by ``jobs.availability``. ``epoch_leaders`` over 1 is
**split-brain**, on which the verdict belongs to ``checker``.

A reign began **without a fault** where none was in force when it did, nor had one been for 5 s: the
cluster needs a while to settle after a fault, and elects again. The first epoch with a leader is
left out: a cluster that starts must elect. A fault that was never removed is in force to the end.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import Leader, Reign
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.jobs.availability import CONTEXT_NS
from splitbrain.spark_analysis.jobs.leadership import ended_reigns
from splitbrain.spark_analysis.schemas import table_of

_NS_PER_MS: Final = 1e6


def election_timeline(
    state_events: DataFrame, faults: DataFrame, operations: DataFrame
) -> DataFrame:
    """Return every ``Reign`` with its circumstances; the operations tell the end of the run."""
    in_run = Window.partitionBy("run_id").orderBy("start_ns", "epoch", "node")
    earlier_end = sql.max("end_ns").over(in_run.rowsBetween(Window.unboundedPreceding, -1))
    gap = sql.greatest(sql.col("start_ns") - sql.col("earlier_end"), sql.lit(0))
    timeline = (
        ended_reigns(state_events, faults, operations)
        .withColumn("earlier_end", earlier_end)
        # The greatest value ignores nulls: the first reign has nothing before it.
        .withColumn("leaderless_ms", sql.when(sql.col("earlier_end").isNotNull(), gap / _NS_PER_MS))
        .withColumn(
            "epoch_leaders",
            sql.size(sql.collect_set("node").over(Window.partitionBy("run_id", "epoch"))),
        )
        .withColumnRenamed("node", "leader")
    )
    return conform(timeline, table_of(Reign))


def reigns_of(timeline: DataFrame) -> DataFrame:
    """Return the rows of ``Leader`` in those of ``Reign``."""
    return conform(timeline.withColumnRenamed("leader", "node"), table_of(Leader))


def without_fault(timeline: DataFrame, faults: DataFrame) -> DataFrame:
    """Return the rows of ``Reign`` without a fault; one never injected provokes nothing."""
    in_force = faults.where(sql.col("invoked_ns").isNotNull()).select(
        sql.col("run_id").alias("fault_run"),
        "invoked_ns",
        (sql.col("removed_ns") + CONTEXT_NS).alias("settled_ns"),
    )
    provoked = (
        (sql.col("run_id") == sql.col("fault_run"))
        & (sql.col("invoked_ns") <= sql.col("start_ns"))
        & (sql.col("settled_ns").isNull() | (sql.col("start_ns") < sql.col("settled_ns")))
    )
    later = timeline.withColumn(
        "first_epoch", sql.min("epoch").over(Window.partitionBy("run_id"))
    ).where(sql.col("epoch") > sql.col("first_epoch"))
    return conform(later.join(sql.broadcast(in_force), provoked, "left_anti"), table_of(Reign))
