"""Dependencies between transactions, key by key, spread over Spark's cores.

A transaction is sent to each key that it touches, with its micro-operations of that key alone, so a
Python worker holds one key at a time. The inference from its reads is the checker's
(``checker.transactions.by_key``).

An ``info`` transaction that a read of one key shows happened for its other keys, too. So keys that
such transactions touch are looked at first, for what they show of these alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from splitbrain.checker.findings import Poll, Undecided
from splitbrain.checker.transactions.by_key import (
    KeyFindings,
    findings_of,
    put_together,
    touching,
    with_keys,
)
from splitbrain.checker.transactions.check import check, lattice_sentence
from splitbrain.checker.transactions.levels import COMMIT_ORDERS, LEVELS, LOST, Kind, in_words
from splitbrain.checker.transactions.micro_operations import Sense, hashable
from splitbrain.checker.transactions.timed import Times
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.analysis.parts import KeyDependencies, TransactionsVerdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.words import counted
from splitbrain.history.columns import NEVER, NUMBER_BY_TYPE
from splitbrain.history.identity import operations_apart
from splitbrain.history.records import PairedOperation
from splitbrain.spark_analysis.frames import arrow_functions, conform, struct_type
from splitbrain.spark_analysis.schemas import table_of

#: Function of operations that are transactions.
TRANSACTION: Final = "txn"
#: Transactions of one key, without what they did to others.
_TOUCHES: Final = pa.schema(
    [
        ("run_id", pa.string()),
        ("touched", pa.string()),
        *((name, pa.int64()) for name in ("index", "process", "start_ns", "end_ns")),
        *((name, pa.string()) for name in ("type", "argument", "result", "problem")),
        ("final", pa.bool_()),
    ]
)
_TAKEN: Final = tuple({*_TOUCHES.names} - {"touched", "problem"})
_ROW: Final = table_of(KeyDependencies).schema.remove_metadata()
_TIMES: Final = ("index", "process", "start_ns", "end_ns", "type")
#: Keys whose edges are objects of Python's at a time.
_KEYS_AT_ONCE: Final = 1024
#: Whoever waits for Spark no longer ends its process.
_POLL: Final = Poll(Unlimited())
_NOTHING: Final = KeyFindings(0, [], [], [], [], [], [])
_JSON: Final = msgspec.json.Encoder(order="deterministic")


def key_dependencies(operations: DataFrame, kind: Kind) -> DataFrame:
    """Return the ``KeyDependencies`` of every key of every run.

    ``operations`` are of runs whose transactions are of this kind; others are left out.
    """
    # Taking transactions apart costs more than to keep what comes of it, on disk where it must be.
    touches = touches_of(operations, kind).localCheckpoint(eager=False)
    unanswered = touches.where(sql.col("type") == "info").select("run_id", "touched").distinct()
    asked = touches.join(unanswered, ["run_id", "touched"], "left_semi")
    seen = (
        _inferred(asked.withColumn("seen", sql.lit(False)), kind)
        .select("run_id", sql.explode("seen").alias("index"))
        .distinct()
        .withColumn("seen", sql.lit(True))
    )
    marked = touches.join(seen, ["run_id", "index"], "left").fillna(False, ["seen"])
    return conform(_inferred(marked, kind), table_of(KeyDependencies))


def touches_of(operations: DataFrame, kind: Kind) -> DataFrame:
    """Return a row for each transaction and key that it touches.

    One that makes no sense has one row, with its ``problem``.
    """
    transactions = operations.where(sql.col("f") == TRANSACTION).select(*_TAKEN)

    def taken_apart(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [touch for row in batch.to_pylist() for touch in _touches(row, kind)]
            yield pa.RecordBatch.from_pylist(rows, schema=_TOUCHES)

    with arrow_functions():
        return transactions.mapInArrow(taken_apart, from_arrow_schema(_TOUCHES))


def _touches(row: dict[str, Any], kind: Kind) -> Iterator[dict[str, Any]]:
    operation = _operation(row)
    problem = Sense(kind)(operation)
    if problem is not None:
        yield {**row, "touched": None, "problem": problem}
        return
    for key, part in touching(operation):
        # Whether a whole number is written with a decimal point makes no other key of it.
        same = int(key) if type(key) is float and key.is_integer() else key
        yield {
            **row,
            "touched": _JSON.encode(same).decode(),
            "argument": _JSON.encode(part.argument).decode(),
            "result": None if part.result is None else _JSON.encode(part.result).decode(),
        }


def _operation(row: dict[str, Any]) -> PairedOperation:
    argument, result = (
        None if row[name] is None else msgspec.json.decode(row[name])
        for name in ("argument", "result")
    )
    return PairedOperation(
        index=row["index"],
        process=row["process"],
        f=TRANSACTION,
        key=None,
        argument=argument,
        result=result,
        type=row["type"],
        start=row["start_ns"],
        end=row["end_ns"],
        final=row["final"],
    )


def _inferred(touches: DataFrame, kind: Kind) -> DataFrame:
    with arrow_functions():
        return touches.groupBy("run_id", "touched").applyInArrow(
            _inferring(kind), struct_type(table_of(KeyDependencies))
        )


def _inferring(kind: Kind) -> Callable[[pa.Table], pa.Table]:
    """Return the inference of one key's rows; Spark sends it to a Python worker."""

    def inferring(touches: pa.Table) -> pa.Table:
        rows = touches.sort_by("index").to_pylist()
        found, problem = _NOTHING, rows[0]["problem"]
        if problem is None:
            operations = [*operations_apart([_operation(row) for row in rows])[0]]
            try:
                found = findings_of(operations, kind, _POLL, [row["seen"] for row in rows])
            except Undecided as undecided:
                problem = str(undecided)
        else:
            problem = f"the transaction of index {rows[0]['index']}: {problem}"
        row = {
            "run_id": rows[0]["run_id"],
            "key": rows[0]["touched"],
            "transactions": len(rows),
            "problem": problem,
            **found._asdict(),
        }
        return pa.Table.from_pylist([row], schema=_ROW)

    return inferring


def judge_transactions(operations: DataFrame, kind: Kind, level: str) -> TransactionsVerdict:
    """Judge the transactions of one run by a level that is of no commit order.

    The findings of all keys, and the times of all transactions, are held here as numbers.
    """
    txns = operations.where(sql.col("f") == TRANSACTION)
    timed = _times(txns.select(*_TIMES).orderBy("index").toArrow())
    found = key_dependencies(operations, kind).orderBy("key").toArrow()
    anomalies: Counter[str] = Counter()

    def told(verdict: Verdict, reason: str) -> TransactionsVerdict:
        count, keys = len(timed.indexes), len(found)
        return TransactionsVerdict(
            kind, level, verdict.value, reason, count, keys, dict(sorted(anomalies.items()))
        )

    problems = [problem for problem in found["problem"].to_pylist() if problem]
    if problems:
        return told(Verdict.UNKNOWN, f"Not finished: {problems[0]}.")
    together = put_together(timed, _findings(found), kind, LEVELS[level], _POLL)
    anomalies = together.anomalies
    rests_on = [found["key"][number].as_py() for number in together.keys]
    lattice = lattice_sentence([*anomalies], COMMIT_ORDERS)
    if any(map(LEVELS[level].forbids, anomalies)) or anomalies[LOST]:
        few = _of_keys(operations, kind, rests_on)
        shown = check(few, Unlimited(), kind, level)
        counts = "; ".join(f"{count:,} {name}" for name, count in anomalies.items())
        reason = shown.reason if shown.verdict is Verdict.INVALID else f"{counts}. {lattice}"
        return told(Verdict.INVALID, reason)
    if not sum(found["reads"].to_pylist()):
        return told(Verdict.UNKNOWN, "Nothing was ever read, so there is nothing to judge.")
    if together.undecided is not None:
        return told(Verdict.UNKNOWN, together.undecided)
    what = counted(len(timed.indexes), "transaction")
    reason = f"{what}: no anomaly that {in_words(level)} rules out. {lattice}"
    return told(Verdict.VALID, reason)


def _times(rows: pa.Table) -> Times:
    """Return the times of transactions, whose rows are in the order of their invocations."""
    outcomes = map(NUMBER_BY_TYPE.__getitem__, rows["type"].to_pylist())
    return Times(
        rows["index"].to_numpy(),
        rows["process"].to_numpy(),
        rows["start_ns"].to_numpy(),
        pc.fill_null(rows["end_ns"], NEVER).to_numpy(),
        np.fromiter(outcomes, dtype=np.int8, count=len(rows)),
    )


def _findings(rows: pa.Table) -> Iterator[KeyFindings]:
    """Yield what each key shows, one after the other."""
    for batch in rows.select(KeyFindings._fields).to_batches(max_chunksize=_KEYS_AT_ONCE):
        for row in batch.to_pylist():
            yield KeyFindings(**row)


def _of_keys(operations: DataFrame, kind: Kind, keys: Sequence[str]) -> list[PairedOperation]:
    """Return the transactions of one run that touch some keys, as far as they do."""
    touches = touches_of(operations, kind).where(sql.col("touched").isin(*keys))
    touching = touches.select("run_id", "index").distinct()
    rows = operations.join(touching, ["run_id", "index"], "left_semi").select(*_TAKEN)
    found = [_operation(row) for row in rows.orderBy("index").toArrow().to_pylist()]
    names = {hashable(msgspec.json.decode(key)) for key in keys}
    return with_keys(operations_apart(found)[0], names)
