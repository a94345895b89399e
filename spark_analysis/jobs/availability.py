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
_SLOT: Final = ("run_id", "slot")


def fault_windows(
    operations: DataFrame,
    faults: DataFrame,
    *,
    slot_ns: int = SLOT_NS,
    context_ns: int = CONTEXT_NS,
) -> DataFrame:
    """Return a ``ServiceWindow`` of every fault that was injected; none for runs without load."""
    injected = faults.where(sql.col("invoked_ns").isNotNull())
    # Few rows each at any length of the history, needed in several places: computed once.
    load = _load_by_slot(operations, injected, slot_ns).localCheckpoint(eager=False)
    windows = _windows(load, injected, slot_ns, context_ns).localCheckpoint(eager=False)
    joined = windows.join(_service(load, windows, slot_ns), ["run_id", "index"], "left")
    return conform(joined.withColumns(_shares()), table_of(ServiceWindow))


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


def _load_by_slot(operations: DataFrame, faults: DataFrame, slot_ns: int) -> DataFrame:
    """Count operations by the slot of their invocation; one reading of the history for all.

    Rows of acknowledged writes have the slot of the completion as ``served``, the epoch, and the
    earliest completion of these as ``write_end``. All writes of a slot that lies whole behind a
    moment were invoked after it, and ``write_end`` stands for them; only in the moment's own slot
    each counts by itself, with its ``write_start``.
    """
    moments = faults.select(
        "run_id", sql.explode(sql.array("invoked_ns", "removed_ns")).alias("moment")
    ).select("run_id", _slot(sql.col("moment"), slot_ns).alias("slot"))
    marked = moments.where(sql.col("slot").isNotNull()).distinct()
    acknowledged = sql.col("acknowledged")
    return (
        operations.where(~sql.col("final"))
        .select(
            *("run_id", "type", "start_ns", "end_ns", "position_epoch"),
            ((sql.col("type") == "ok") & is_write()).alias("acknowledged"),
            _slot(sql.col("start_ns"), slot_ns).alias("slot"),
        )
        .join(sql.broadcast(marked.withColumn("is_exact", sql.lit(True))), list(_SLOT), "left")
        .groupBy(
            *_SLOT,
            sql.when(acknowledged, _slot(sql.col("end_ns"), slot_ns)).alias("served"),
            sql.when(acknowledged, sql.col("position_epoch")).alias("epoch"),
            sql.when(acknowledged & sql.col("is_exact"), sql.col("start_ns")).alias("write_start"),
        )
        .agg(
            sql.count(sql.lit(1)).alias("invoked"),
            sql.count_if(sql.col("type") == "ok").alias("ok"),
            sql.min(sql.when(acknowledged, sql.col("end_ns"))).alias("write_end"),
            sql.min("start_ns").alias("load_start"),
            sql.max(sql.coalesce("end_ns", "start_ns")).alias("load_end"),
        )
    )


def _slot(time: Column, slot_ns: int) -> Column:
    return sql.floor(time / sql.lit(slot_ns)).cast("long")


def _windows(load: DataFrame, faults: DataFrame, slot_ns: int, context_ns: int) -> DataFrame:
    """Return one row per injected fault: its window, neighbours and spans, and the epoch known."""
    # Epochs are few: those known at an injection follow from their first acknowledgements.
    epoch = sql.when(sql.col("epoch").isNotNull(), sql.struct("epoch", "first_end"))
    runs = (
        load.groupBy("run_id", "epoch")
        .agg(
            sql.min("load_start").alias("load_start"),
            sql.max("load_end").alias("load_end"),
            sql.min("write_end").alias("first_end"),
        )
        .groupBy("run_id")
        .agg(
            sql.min("load_start").alias("load_start"),
            sql.max("load_end").alias("load_end"),
            sql.collect_list(epoch).alias("epochs"),
        )
    )
    start, end = sql.col("start_ns"), sql.col("end_ns")
    known = sql.filter("epochs", lambda epoch: epoch["first_end"] <= start)
    all_windows = sql.collect_list(sql.struct("start_ns", "end_ns"))
    windows = (
        faults.join(sql.broadcast(runs), "run_id")
        .withColumn("start_ns", sql.col("invoked_ns"))
        # A fault injected when the load was over lasts no time rather than a negative one.
        .withColumn("end_ns", sql.greatest("invoked_ns", sql.coalesce("removed_ns", "load_end")))
        .withColumn("known_epoch", sql.array_max(sql.transform(known, lambda it: it["epoch"])))
        .withColumn("others", all_windows.over(Window.partitionBy("run_id")))
    )
    earlier = sql.filter("others", lambda other: other["start_ns"] < start)
    outlasting = sql.filter("others", lambda other: other["end_ns"] > end)
    free_from = sql.array_max(sql.transform(earlier, lambda o: sql.least(o["end_ns"], start)))
    free_until = sql.array_min(
        sql.transform(outlasting, lambda o: sql.greatest(o["start_ns"], end))
    )
    before = sql.greatest(start - context_ns, sql.col("load_start"), free_from)
    after = sql.least(end + context_ns, sql.col("load_end"), free_until)
    bounds = {"before": (before, start), "during": (start, end), "after": (end, after)}
    whole = {
        name: column
        for phase, (begin, finish) in bounds.items()
        for name, column in {
            f"first_{phase}": sql.ceil(begin / sql.lit(slot_ns)).cast("long"),
            f"end_{phase}": _slot(finish, slot_ns),
        }.items()
    }
    return windows.withColumns(
        {
            **whole,
            "next_after_start": _first_after(start),
            "next_after_end": _first_after(end),
        }
    ).drop("others", "epochs")


def _first_after(moment: Column) -> Column:
    later = sql.filter("others", lambda other: other["start_ns"] > moment)
    return sql.array_min(sql.transform(later, lambda other: other["start_ns"]))


def _service(load: DataFrame, windows: DataFrame, slot_ns: int) -> DataFrame:
    """Return what each window's spans have served, and the failover and recovery behind it.

    One pass over the rows of each run that have to do with a window; one without any is left out.
    """
    write_start = sql.coalesce("write_start", sql.col("slot") * sql.lit(slot_ns))
    write_end, epoch = sql.col("write_end"), sql.col("epoch")
    failed_over = (
        (write_start > sql.col("start_ns"))
        & (epoch > sql.col("known_epoch"))
        & sql.coalesce(write_end < sql.col("next_after_start"), sql.lit(True))
    )
    recovered = (
        (write_start >= sql.col("removed_ns"))
        & write_end.isNotNull()
        & sql.coalesce(write_end < sql.col("next_after_end"), sql.lit(True))
    )
    nearby = _lies_in("slot", "before", "after") | _lies_in("served", "before", "after")
    figures: dict[str, Column] = {}
    for phase in _PHASES:
        invoked, served = (_lies_in(name, phase, phase) for name in ("slot", "served"))
        figures[f"serving_{phase}"] = sql.size(sql.collect_set(sql.when(served, sql.col("served"))))
        figures |= {
            f"{name}_{phase}": sql.sum(sql.when(invoked, sql.col(name)))
            for name in ("invoked", "ok")
        }
    failover = sql.min(sql.when(failed_over, sql.struct(write_end, epoch)))
    recovery = sql.min(sql.when(recovered, write_end)) - sql.first("removed_ns")
    figures |= {
        "failover_ms": (failover["write_end"] - sql.first("start_ns")) / _NS_PER_MS,
        "recovery_ms": recovery / _NS_PER_MS,
        "new_epoch": failover["epoch"],
    }
    of_run = load.withColumnRenamed("run_id", "of_run")
    of_window = (windows["run_id"] == of_run["of_run"]) & (nearby | failed_over | recovered)
    return (
        sql.broadcast(windows)
        .join(of_run, of_window)
        .groupBy("run_id", "index")
        .agg(*(figure.alias(name) for name, figure in figures.items()))
    )


def _lies_in(slot: str, first_phase: str, last_phase: str) -> Column:
    """Return whether a slot lies whole in the spans of a window's phases."""
    here = sql.col(slot)
    return (here >= sql.col(f"first_{first_phase}")) & (here < sql.col(f"end_{last_phase}"))


def _shares() -> dict[str, Column]:
    """Return availability and ok ratio of each window's spans, by the columns of ``_service``."""
    shares: dict[str, Column] = {}
    for phase in _PHASES:
        length = sql.col(f"end_{phase}") - sql.col(f"first_{phase}")
        serving = sql.coalesce(f"serving_{phase}", sql.lit(0))
        invoked, ok = sql.col(f"invoked_{phase}"), sql.col(f"ok_{phase}")
        # A span without a whole slot has nothing to be judged by.
        shares[f"availability_{phase}"] = sql.when(length > 0, serving / length)
        shares[f"ok_ratio_{phase}"] = sql.when(invoked > 0, ok / invoked)
    return shares
