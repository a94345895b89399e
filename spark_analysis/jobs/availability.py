"""Whether the system served while a fault lasted, how fast it failed over, and how it recovered.

Definitions, used by the job and by its reference in the tests:

- The *load* is every operation that is no final read. A *write* is one that was asked to
  change something, as its workload declares (``frames.is_write``); it is *acknowledged* where it
  ended ok, at its completion time.
- A *window* is one injected fault, from ``start``, when the runtime was asked to inject, to
  ``end``, when the fault was seen removed; a fault never removed lasts to the end of the load.
- *before* and *after* are the 5 s (``CONTEXT_NS``) next to a window, shortened to the load and to
  where no other window lies.
- Time is cut into *slots* of 100 ms since the run's start. A span of time is judged by the slots
  that lie whole in it. Its **availability** is the share of them in which a write was
  acknowledged; its **ok ratio** is the share of ok among the operations invoked in them. Null for
  a span without a whole slot, for the ratio also for one without an invocation.
- **Failover** is the time from ``start`` to the first acknowledgement of a write that was *invoked
  after* ``start`` and placed in a *new epoch*: one greater than that of every write acknowledged
  until ``start``. It must come before the next fault is injected. Null where it does not (the
  fault moved no leader, say), or where nothing was acknowledged before.
- **Recovery** is the time from ``end`` to the first acknowledgement of a write invoked at or after
  it, before the next injection; null where there is none.
- The *longest unavailability* is the longest time between two acknowledgements of writes, where
  the first invocation of a write and the last event of one bound the whole; info operations
  without completion count with their invocation.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import ServiceWindow, Unavailability
from splitbrain.spark_analysis.frames import conform, is_write
from splitbrain.spark_analysis.schemas import table_of

SLOT_NS: Final = 100_000_000
CONTEXT_NS: Final = 5_000_000_000
_NS_PER_MS: Final = 1e6
_NS_PER_SECOND: Final = 1_000_000_000
_PHASES: Final = ("before", "during", "after")


def fault_windows(
    operations: DataFrame,
    faults: DataFrame,
    *,
    slot_ns: int = SLOT_NS,
    context_ns: int = CONTEXT_NS,
) -> DataFrame:
    """Return a ``ServiceWindow`` of every fault that was injected; none for runs without load."""
    load = operations.where(~sql.col("final"))
    acknowledged = load.where((sql.col("type") == "ok") & is_write()).select(
        "run_id",
        sql.col("start_ns").alias("write_start"),
        sql.col("end_ns").alias("write_end"),
        sql.col("position_epoch").alias("epoch"),
    )
    # Few rows each at any length of the history, needed in several places: computed once.
    invocations = _invocations_by_slot(load, slot_ns).localCheckpoint(eager=False)
    by_slot = _by_slot(invocations, acknowledged, slot_ns).localCheckpoint(eager=False)
    earliest = invocations.where(sql.col("write_end").isNotNull()).select(
        "run_id", "slot", "write_end", "epoch"
    )
    windows = _windows(by_slot, faults).localCheckpoint(eager=False)
    served = _served(by_slot, _spans(windows, slot_ns, context_ns))
    moved = _failover_and_recovery(acknowledged, earliest, windows, slot_ns)
    joined = windows.join(served, ["run_id", "index"], "left").join(
        moved, ["run_id", "index"], "left"
    )
    return conform(joined, table_of(ServiceWindow))


def longest_unavailability(operations: DataFrame) -> DataFrame:
    """Return the ``Unavailability`` of each run that tried to write; of equal gaps the earliest."""
    writes = operations.where(~sql.col("final") & is_write())
    acknowledged = writes.where(sql.col("type") == "ok").select(
        "run_id", sql.col("end_ns").alias("at")
    )
    edges = writes.groupBy("run_id").agg(
        sql.min("start_ns").alias("begin"),
        sql.max(sql.coalesce("end_ns", "start_ns")).alias("finish"),
    )
    moments = acknowledged.unionByName(
        edges.select("run_id", sql.explode(sql.array("begin", "finish")).alias("at"))
    )
    # In two steps, by second and then over seconds, so that no run is sorted in one piece.
    second = sql.floor(sql.col("at") / sql.lit(_NS_PER_SECOND)).cast("long")
    moments = moments.withColumn("second", second)
    inside = Window.partitionBy("run_id", "second").orderBy("at")
    by_second = (
        moments.withColumn("gap", _gap(sql.lag("at").over(inside), sql.col("at")))
        .groupBy("run_id", "second")
        .agg(
            sql.max("gap").alias("inner"), sql.min("at").alias("first"), sql.max("at").alias("last")
        )
    )
    across = Window.partitionBy("run_id").orderBy("second")
    longest = (
        by_second.withColumn("outer", _gap(sql.lag("last").over(across), sql.col("first")))
        .groupBy("run_id")
        .agg(sql.max(sql.greatest("inner", "outer")).alias("gap"))
        .select(
            "run_id",
            (-sql.col("gap.minus_start_ns")).alias("start_ns"),
            (sql.col("gap.length_ns") - sql.col("gap.minus_start_ns")).alias("end_ns"),
            (sql.col("gap.length_ns") / _NS_PER_MS).alias("gap_ms"),
        )
    )
    return conform(longest, table_of(Unavailability))


def _gap(start: Column, end: Column) -> Column:
    """Return a struct whose greatest is the longest gap, and of equal ones the earliest."""
    gap = sql.struct((end - start).alias("length_ns"), (-start).alias("minus_start_ns"))
    return sql.when(start.isNotNull(), gap)


def _windows(by_slot: DataFrame, faults: DataFrame) -> DataFrame:
    """Return one row per injected fault, with the load's bounds and its neighbours' times."""
    bounds = by_slot.groupBy("run_id").agg(
        sql.min("load_start").alias("load_start"), sql.max("load_end").alias("load_end")
    )
    injected = faults.where(sql.col("invoked_ns").isNotNull()).join(sql.broadcast(bounds), "run_id")
    # A fault injected when the load was over lasts no time rather than a negative one.
    end = sql.greatest("invoked_ns", sql.coalesce("removed_ns", "load_end"))
    windows = injected.select(
        *("run_id", "index", "kind", "target", "nodes", "verified", "load_start", "load_end"),
        sql.col("invoked_ns").alias("start_ns"),
        end.alias("end_ns"),
        "removed_ns",
    )
    other = windows.select(
        "run_id",
        sql.col("index").alias("other_index"),
        sql.col("start_ns").alias("other_start"),
        sql.col("end_ns").alias("other_end"),
    )
    earlier = sql.col("other_start") < sql.col("start_ns")
    outlasts = sql.col("other_end") > sql.col("end_ns")
    neighbours = (
        windows.join(sql.broadcast(other), "run_id")
        .where(sql.col("index") != sql.col("other_index"))
        .groupBy("run_id", "index")
        .agg(
            sql.max(sql.when(earlier, sql.least("other_end", "start_ns"))).alias("free_from"),
            sql.min(sql.when(outlasts, sql.greatest("other_start", "end_ns"))).alias("free_until"),
            _first_after("start_ns").alias("next_after_start"),
            _first_after("end_ns").alias("next_after_end"),
        )
    )
    return windows.join(sql.broadcast(neighbours), ["run_id", "index"], "left")


def _first_after(time: str) -> Column:
    return sql.min(sql.when(sql.col("other_start") > sql.col(time), sql.col("other_start")))


def _spans(windows: DataFrame, slot_ns: int, context_ns: int) -> DataFrame:
    """Return three rows per window: the whole slots before, during and after it, end exclusive."""
    start, end = sql.col("start_ns"), sql.col("end_ns")
    before = sql.greatest(start - context_ns, sql.col("load_start"), sql.col("free_from"))
    after = sql.least(end + context_ns, sql.col("load_end"), sql.col("free_until"))
    bounds = {"before": (before, start), "during": (start, end), "after": (end, after)}
    phases = sql.array(
        *(
            sql.struct(sql.lit(phase).alias("phase"), begin.alias("begin"), finish.alias("finish"))
            for phase, (begin, finish) in bounds.items()
        )
    )
    spans = windows.select("run_id", "index", sql.inline(phases))
    slot = sql.lit(slot_ns)
    return spans.select(
        *("run_id", "index", "phase"),
        sql.ceil(sql.col("begin") / slot).cast("long").alias("first_slot"),
        sql.floor(sql.col("finish") / slot).cast("long").alias("end_slot"),
    ).where(sql.col("first_slot") < sql.col("end_slot"))


def _invocations_by_slot(load: DataFrame, slot_ns: int) -> DataFrame:
    """Count invocations by slot, with the first acknowledgement of the writes of each epoch.

    One reading of the history for all of it; ``epoch`` is null for all but placed writes.
    """
    is_acknowledged = (sql.col("type") == "ok") & is_write()
    return (
        load.withColumn("acknowledged", is_acknowledged)
        .groupBy(
            "run_id",
            _slot("start_ns", slot_ns),
            sql.when(sql.col("acknowledged"), sql.col("position_epoch")).alias("epoch"),
        )
        .agg(
            sql.count(sql.lit(1)).alias("invoked"),
            sql.count_if(sql.col("type") == "ok").alias("ok"),
            sql.min(sql.when(sql.col("acknowledged"), sql.col("end_ns"))).alias("write_end"),
            sql.min("start_ns").alias("load_start"),
            sql.max(sql.coalesce("end_ns", "start_ns")).alias("load_end"),
        )
    )


def _by_slot(invocations: DataFrame, acknowledged: DataFrame, slot_ns: int) -> DataFrame:
    """Return invocations and acknowledged writes by slot, and the load's bounds."""
    nothing, nowhere = sql.lit(0).cast("long"), sql.lit(None).cast("long")
    invoked = invocations.select(
        *("run_id", "slot", "invoked", "ok", nothing.alias("serving"), "load_start", "load_end")
    )
    served = (
        acknowledged.select("run_id", _slot("write_end", slot_ns))
        .distinct()
        .select("run_id", "slot", nothing, nothing, sql.lit(1).cast("long"), nowhere, nowhere)
    )
    return (
        invoked.unionAll(served)
        .groupBy("run_id", "slot")
        .agg(
            *(sql.sum(name).alias(name) for name in ("invoked", "ok")),
            sql.max("serving").alias("serving"),
            sql.min("load_start").alias("load_start"),
            sql.max("load_end").alias("load_end"),
        )
    )


def _served(by_slot: DataFrame, spans: DataFrame) -> DataFrame:
    """Return availability and ok ratio of each window's spans, side by side."""
    inside = [
        by_slot["run_id"] == spans["run_id"],
        by_slot["slot"] >= spans["first_slot"],
        by_slot["slot"] < spans["end_slot"],
    ]
    keys = [spans[name] for name in ("run_id", "index", "phase", "first_slot", "end_slot")]
    judged = (
        sql.broadcast(spans)
        .join(by_slot, inside, "left")
        .groupBy(*keys)
        .agg(*(sql.sum(name).alias(name) for name in ("serving", "invoked", "ok")))
    )
    availability = sql.coalesce("serving", sql.lit(0)) / (
        sql.col("end_slot") - sql.col("first_slot")
    )
    ratio = sql.when(sql.col("invoked") > 0, sql.col("ok") / sql.col("invoked"))
    figures = [
        sql.max(sql.when(sql.col("phase") == phase, figure)).alias(f"{name}_{phase}")
        for name, figure in (("availability", availability), ("ok_ratio", ratio))
        for phase in _PHASES
    ]
    return judged.groupBy("run_id", "index").agg(*figures)


def _slot(time: str, slot_ns: int) -> Column:
    return sql.floor(sql.col(time) / sql.lit(slot_ns)).cast("long").alias("slot")


def _failover_and_recovery(
    acknowledged: DataFrame, earliest: DataFrame, windows: DataFrame, slot_ns: int
) -> DataFrame:
    """Return failover, new epoch and recovery of each window; windows with neither are left out."""
    # Epochs are few: those known at an injection follow from their first acknowledgements.
    epochs = (
        earliest.where(sql.col("epoch").isNotNull())
        .groupBy("run_id", "epoch")
        .agg(sql.min("write_end").alias("first_end"))
    )
    known = (
        sql.broadcast(windows.select("run_id", "index", "start_ns"))
        .join(epochs, "run_id")
        .where(sql.col("first_end") <= sql.col("start_ns"))
        .groupBy("run_id", "index")
        .agg(sql.max("epoch").alias("known_epoch"))
    )
    spans = windows.select(
        "run_id", "index", "start_ns", "removed_ns", "next_after_start", "next_after_end"
    ).join(sql.broadcast(known), ["run_id", "index"], "left")
    # All writes of a slot that lies whole behind a moment were invoked after it, and their earliest
    # stands for them; only in the moment's own slot each counts by itself.
    moments = windows.select(
        "run_id", sql.explode(sql.array("start_ns", "removed_ns")).alias("moment")
    ).select("run_id", _slot("moment", slot_ns))
    single = (
        acknowledged.withColumn("slot", _slot("write_start", slot_ns))
        .join(sql.broadcast(moments.distinct()), ["run_id", "slot"], "left_semi")
        .select("run_id", "write_start", "write_end", "epoch")
    )
    whole = earliest.select("run_id", sql.col("slot") * sql.lit(slot_ns), "write_end", "epoch")
    write_start, write_end = sql.col("write_start"), sql.col("write_end")
    failed_over = (
        (write_start > sql.col("start_ns"))
        & (sql.col("epoch") > sql.col("known_epoch"))
        & sql.coalesce(write_end < sql.col("next_after_start"), sql.lit(True))
    )
    recovered = (write_start >= sql.col("removed_ns")) & sql.coalesce(
        write_end < sql.col("next_after_end"), sql.lit(True)
    )
    found = (
        single.unionAll(whole)
        .join(sql.broadcast(spans), "run_id")
        .where(failed_over | recovered)
        .groupBy("run_id", "index", "start_ns", "removed_ns")
        .agg(
            sql.min(sql.when(failed_over, sql.struct("write_end", "epoch"))).alias("failover"),
            sql.min(sql.when(recovered, write_end)).alias("recovered"),
        )
    )
    return found.select(
        "run_id",
        "index",
        ((sql.col("failover.write_end") - sql.col("start_ns")) / _NS_PER_MS).alias("failover_ms"),
        ((sql.col("recovered") - sql.col("removed_ns")) / _NS_PER_MS).alias("recovery_ms"),
        sql.col("failover.epoch").alias("new_epoch"),
    )
