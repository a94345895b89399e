"""Reigns: who led which epoch and when, who led at the same time, and how each reign ended.

Definitions, used by the jobs and by their reference in the tests:

- A **reign** is one node in the role of leader in one epoch. It begins with the node's own state
  event and ends with the node's next change of role or epoch, its end, the first event of its next
  incarnation, or a fault that was seen to end its process: with the request for it, for a kind that
  ends it at once; with the heal, where the kind does so later and the reign began before the fault.
  Else it ends with the last event of the run, state events and operations alike.
- It **ended** ``killed``: a kill that was seen came before the node told of anything else;
  ``stopped``, ``fatal``: the node said so; ``restarted``: its next event is one of its next
  incarnation, and nobody saw it end; ``resigned``: it took another role, or leads another epoch;
  ``run-ended``: it never told of an end.
- ``leaderless_ms`` is the time before a reign in which no node was in the role of leader: from the
  latest end of all reigns that began before it (by start, epoch, node), 0 where one of them lasted
  on, null for the first of a run. A leader that is cut off reigns until it knows, so clients may
  have waited for longer; that is told by ``jobs.availability``.
- Two reigns of different nodes **overlap**: always, where they are of one epoch, which no quorum
  may ever do (split-brain; ``epoch_leaders`` is then over 1); and where they have common time, of
  different epochs, which is harmless by itself: a leader that is cut off cannot know yet. Of two
  reigns in one epoch that follow each other the overlap is the start of the later one.
- A reign began **without a fault** where none was in force when it did, nor had one been for 5 s:
  the cluster needs a while to settle after a fault, and elects again. The first epoch with a leader
  is left out: a cluster that starts must elect. A fault never removed is in force to the end.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import Leader, LeaderOverlap, Reign
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.jobs.availability import CONTEXT_NS
from splitbrain.spark_analysis.schemas import table_of

#: Kinds of state events that can begin or end a reign.
_SAID_ENDS: Final = ("stopped", "fatal")
_BOUNDARIES: Final = ("started", "role", *_SAID_ENDS)
_NS_PER_MS: Final = 1e6


def election_timeline(
    state_events: DataFrame, faults: DataFrame, operations: DataFrame
) -> DataFrame:
    """Return every ``Reign`` with its circumstances; the operations tell the end of the run."""
    in_run = Window.partitionBy("run_id").orderBy("start_ns", "epoch", "node")
    earlier_end = sql.max("end_ns").over(in_run.rowsBetween(Window.unboundedPreceding, -1))
    gap = sql.greatest(sql.col("start_ns") - sql.col("earlier_end"), sql.lit(0))
    timeline = (
        _ended_reigns(state_events, faults, operations)
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


def leader_overlaps(leaders: DataFrame) -> DataFrame:
    """Return a ``LeaderOverlap`` for reigns of different nodes, in one epoch or at one time.

    ``a`` has the lower epoch, in one epoch the earlier start, at one time the lesser name.
    """
    names = ("node", "epoch", "start_ns", "end_ns")
    a = leaders.withColumnsRenamed({name: f"{name}_a" for name in names})
    b = leaders.withColumnsRenamed({name: f"{name}_b" for name in names})
    same_epoch = sql.col("epoch_a") == sql.col("epoch_b")
    in_order = sql.struct("epoch_a", "start_ns_a", "node_a") < sql.struct(
        "epoch_b", "start_ns_b", "node_b"
    )
    start = sql.greatest("start_ns_a", "start_ns_b")
    end = sql.least("end_ns_a", "end_ns_b")
    pairs = (
        a.join(b, "run_id")
        .where((sql.col("node_a") != sql.col("node_b")) & in_order)
        .withColumn("same_epoch", same_epoch)
        .withColumn("start_ns", start)
        .withColumn("end_ns", sql.greatest(end, start))
        .where(same_epoch | (start < end))
    )
    return conform(pairs, table_of(LeaderOverlap))


def _ended_reigns(state_events: DataFrame, faults: DataFrame, operations: DataFrame) -> DataFrame:
    """Return rows of ``Leader`` with ``ended``; events that were never stamped are left out."""
    stamped = state_events.where(sql.col("time_ns").isNotNull())
    leads = (sql.col("kind") == "role") & (sql.col("role") == "leader")
    state = sql.when(sql.coalesce(leads, sql.lit(False)), sql.struct("incarnation", "epoch"))
    order = Window.partitionBy("run_id", "node").orderBy("incarnation", "sequence")
    changes = (
        stamped.where(sql.col("kind").isin(*_BOUNDARIES) | _first_of_incarnation())
        .withColumn("state", state)
        .withColumn("before", sql.lag("state").over(order))
        # An event that repeats the state does not cut a reign in two.
        .where(~sql.col("state").eqNullSafe(sql.col("before")))
        .withColumn("next_ns", sql.lead("time_ns").over(order))
        .withColumn("next_kind", sql.lead("kind").over(order))
        .withColumn("next_incarnation", sql.lead("incarnation").over(order))
    )
    ended = (
        sql.when(sql.col("next_ns").isNull(), "run-ended")
        .when(sql.col("next_kind").isin(*_SAID_ENDS), sql.col("next_kind"))
        .when(sql.col("next_incarnation") > sql.col("incarnation"), "restarted")
        .otherwise("resigned")
    )
    reigning = changes.where(sql.col("state").isNotNull()).select(
        *("run_id", "node", "epoch", sql.col("time_ns").alias("start_ns"), "next_ns"),
        ended.alias("ended"),
    )
    bounded = reigning.join(sql.broadcast(_run_ends(stamped, operations)), "run_id", "left").select(
        *("run_id", "node", "epoch", "start_ns", "ended"),
        sql.greatest("start_ns", sql.coalesce("next_ns", "run_end_ns")).alias("end_ns"),
    )
    return _cut_by_kills(bounded, faults)


def _first_of_incarnation() -> Column:
    """Mark the first event after a restart: the node led nothing before it."""
    return sql.col("sequence") == 0


def _run_ends(stamped: DataFrame, operations: DataFrame) -> DataFrame:
    events = stamped.groupBy("run_id").agg(sql.max("time_ns").alias("at"))
    load = operations.groupBy("run_id").agg(sql.max(sql.coalesce("end_ns", "start_ns")).alias("at"))
    return events.unionByName(load).groupBy("run_id").agg(sql.max("at").alias("run_end_ns"))


def _cut_by_kills(reigning: DataFrame, faults: DataFrame) -> DataFrame:
    """End each reign with its process: a killed node logs no end."""
    at_once, later = (sql.col("ends_process") == ends for ends in ("at-once", "later"))
    seen = sql.col("verified_ns")
    kills = faults.where((at_once | later) & seen.isNotNull()).select(
        *("run_id", sql.explode("nodes").alias("node")),
        sql.when(at_once, sql.col("invoked_ns"))
        .otherwise(sql.col("healing_ns"))
        .alias("killed_ns"),
        sql.when(at_once, seen).otherwise(sql.col("invoked_ns")).alias("met_ns"),
    )
    killed = sql.when(
        (sql.col("met_ns") > sql.col("start_ns")) & (sql.col("killed_ns") < sql.col("end_ns")),
        # The last that a killed leader told may come while its kill is on the way.
        sql.greatest("killed_ns", "start_ns"),
    )
    return (
        reigning.join(sql.broadcast(kills), ["run_id", "node"], "left")
        .groupBy("run_id", "node", "epoch", "start_ns", "end_ns", "ended")
        .agg(sql.min(killed).alias("first_killed_ns"))
        .withColumn("end_ns", sql.least("end_ns", "first_killed_ns"))
        .withColumn(
            "ended",
            sql.when(sql.col("first_killed_ns").isNotNull(), "killed").otherwise(sql.col("ended")),
        )
    )
