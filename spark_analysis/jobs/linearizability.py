"""Linearizability, part by part, spread over Spark's cores; the verdict is the checker's.

A part is what the model judges apart, within a run. Parts are dealt to slots by size: in the order
of size, each goes to the slot that its share of all operations before it falls into. A part larger
than a slot's fair share has a slot of its own; small ones are packed; large parts come first.
Operations are sorted on Spark's side, on disk where they must be, so a Python worker holds one part
at a time.

A part is judged in a child process (``spark_analysis.part_process``) with a budget that it polls; a
part that hangs, crashes or eats memory is ``unknown`` and harms no other.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from splitbrain.checker.linearizability.part.parts import undecided_part
from splitbrain.checker.models.model import KeyedModel, Model
from splitbrain.checker.models.registry import MODELS, model_named
from splitbrain.contracts.analysis.parts import PartVerdict
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import UsageError
from splitbrain.spark_analysis.frames import arrow_functions, conform, struct_type
from splitbrain.spark_analysis.part_judging import COLUMNS, stream_of
from splitbrain.spark_analysis.part_process import ChildFailed, PartProcess
from splitbrain.spark_analysis.schemas import table_of

#: Slots per core: enough to even out costs beyond size, few enough to start quickly.
SLOTS_A_CORE: Final = 4
_JUDGE: Final = f"{PACKAGE}.spark_analysis.part_judging"


def part_verdicts(
    operations: DataFrame,
    model_name: str,
    *,
    time_budget_s: float = 60.0,
    memory_budget_mib: int = 1024,
    slots: int | None = None,
    judge: str = _JUDGE,
) -> DataFrame:
    """Return the ``PartVerdict`` of every part of every run.

    A part with an operation that makes no sense to the model is ``unknown``.

    Args:
        operations: of runs that the model fits.
        model_name: a built-in model: workers do not have a user's own.
        time_budget_s: for each part.
        memory_budget_mib: for each part, resident.
        slots: Spark partitions that parts are dealt to; None: ``SLOTS_A_CORE`` for each core.
        judge: module whose process judges, see ``PartProcess``; another one in tests.

    Raises:
        UsageError: no such built-in model, or it splits a history neither by key nor not at all.
    """
    model = model_named(model_name)
    if model_name not in MODELS:
        raise UsageError(
            f"Spark's workers do not have the model {model_name!r}",
            "Judge the runs one by one with splitbrain check",
        )
    by_key = _splits_by_key(model)
    part = sql.col("key") if by_key else sql.lit(None).cast("string")
    is_judged = (sql.col("type") != "fail") & ~sql.col("f").isin(*sorted(model.unjudged_functions))
    judged = operations.where(is_judged).select("run_id", part.alias("part"), *COLUMNS)
    count = slots or SLOTS_A_CORE * operations.sparkSession.sparkContext.defaultParallelism
    dealt = _slots_of(judged, count).withColumnsRenamed({"run_id": "of_run", "part": "of_part"})
    same = (judged["run_id"] == dealt["of_run"]) & judged["part"].eqNullSafe(dealt["of_part"])
    in_order = (
        judged.join(dealt, same)
        .drop("of_run", "of_part")
        .repartitionById(count, sql.col("slot"))
        .sortWithinPartitions(sql.desc("size"), "run_id", "part")
        .drop("size", "slot")
    )
    judging = _judging(model_name, time_budget_s, memory_budget_mib, judge)
    with arrow_functions():
        verdicts = in_order.mapInArrow(judging, struct_type(table_of(PartVerdict)))
    return conform(verdicts, table_of(PartVerdict))


def _splits_by_key(model: Model) -> bool:
    """Return whether the model's parts are keys; else each run is one part."""
    partition = type(model).partition
    if partition is KeyedModel.partition:
        return True
    if partition is Model.partition:
        return False
    raise UsageError(
        f"the model {model.name!r} splits histories in a way that the job does not know",
        "Judge the runs one by one with splitbrain check",
    )


def _slots_of(judged: DataFrame, count: int) -> DataFrame:
    """Return run, part, size and slot of every part; slot 0 has the largest."""
    sizes = judged.groupBy("run_id", "part").agg(sql.count(sql.lit(1)).alias("size"))
    # One row per part: few beside the operations, so a single task sorts them.
    by_size = Window.orderBy(sql.desc("size"), "run_id", "part")
    before = sql.sum("size").over(by_size.rowsBetween(Window.unboundedPreceding, -1))
    total = sql.sum("size").over(Window.partitionBy())
    slot = sql.floor(sql.coalesce(before, sql.lit(0)) * count / total)
    return sizes.withColumn("slot", slot.cast("int"))


def _judging(
    model_name: str, time_budget_s: float, memory_budget_mib: int, judge: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the judgement of a slot's rows; Spark sends it to a Python worker."""

    def judging(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        process = PartProcess(judge, time_budget_s, memory_budget_mib)
        try:
            for run_id, key, rows in _parts(batches):
                yield _verdict(process, run_id, key, rows, model_name)
        finally:
            process.close()

    return judging


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, str | None, pa.Table]]:
    """Yield run, key and operations of each part; rows come sorted by run and key."""
    held: list[pa.RecordBatch] = []
    name: tuple[str, str | None] | None = None
    for batch in batches:
        for found, piece in _pieces(batch):
            if name is not None and found != name:
                yield *name, pa.Table.from_batches(held)
                held = []
            name = found
            held.append(piece)
    if name is not None:
        yield *name, pa.Table.from_batches(held)


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, str | None], pa.RecordBatch]]:
    runs, parts = batch.column("run_id"), batch.column("part")
    begin = 0
    while begin < batch.num_rows:
        name = (runs[begin].as_py(), parts[begin].as_py())
        end = _end_of_run(begin, batch.num_rows, name, runs, parts)
        yield name, batch.slice(begin, end - begin).select(COLUMNS)
        begin = end


def _end_of_run(begin: int, end: int, name: tuple[str, str | None], runs: Any, parts: Any) -> int:
    """Return one past the last row of this name; its rows stand together.

    Doubles its steps, then halves them: rows are many, names few.
    """
    step = 1
    while begin + step < end and (runs[begin + step].as_py(), parts[begin + step].as_py()) == name:
        begin, step = begin + step, step * 2
    end = min(end, begin + step)
    while begin + 1 < end:
        middle = (begin + end) // 2
        if (runs[middle].as_py(), parts[middle].as_py()) == name:
            begin = middle
        else:
            end = middle
    return end


def _verdict(
    process: PartProcess, run_id: str, key: str | None, rows: pa.Table, model_name: str
) -> pa.RecordBatch:
    started = time.monotonic()
    try:
        verdict, algorithm, reason = process.ask((stream_of(rows), key, model_name))
    except ChildFailed as failure:
        undecided = undecided_part(key, rows.num_rows, str(failure), {})
        verdict, algorithm, reason = (
            undecided.verdict.value,
            undecided.algorithm,
            undecided.reason,
        )
    row = {
        "run_id": run_id,
        "key": key,
        "model": model_name,
        "verdict": verdict,
        "algorithm": algorithm,
        "reason": reason,
        "operations": rows.num_rows,
        "seconds": time.monotonic() - started,
    }
    return pa.RecordBatch.from_pylist([row], schema=table_of(PartVerdict).schema.remove_metadata())
