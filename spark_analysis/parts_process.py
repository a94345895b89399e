"""Parts of a run over Spark: ``python -m splitbrain.spark_analysis.parts_process REQUEST OWNER``.

For histories that no longer fit one process: the run is ingested batch by batch, and each part is
judged by the checker in a process of its own (``jobs.linearizability``). Of transactions each key
is looked at apart, and what all keys show is put together here (``jobs.transactions``). Answers a
``PartsRequest`` with a ``PartsAnswer``, see ``owned_process.answer``; verdicts on parts are stored
among the run's results.
"""

import sys
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.checker.transactions.levels import Kind
from splitbrain.contracts.analysis.parts import (
    NamedPart,
    PartCount,
    PartsAnswer,
    PartsRequest,
    PartVerdict,
)
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.frames import open_tables, struct_type
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs.linearizability import part_verdicts
from splitbrain.spark_analysis.jobs.transactions import judge_transactions
from splitbrain.spark_analysis.owned_process import answer
from splitbrain.spark_analysis.results import store_result
from splitbrain.spark_analysis.schemas import table_of
from splitbrain.spark_analysis.session import one_sentence, spark_session

#: Parts that are named, worst first.
EXAMPLES_MAX: Final = 20
_NEXT_STEP: Final = "The run itself is not affected; splitbrain check judges it in one process."


def answer_to(request: PartsRequest) -> PartsAnswer:
    """Judge the parts, in a session of its own; raises as ``judge_parts``."""
    failed = ("judge the parts with Spark", request.folder, _NEXT_STEP)
    with spark_session(application="splitbrain parts") as session, one_sentence(*failed):
        return judge_parts(session, Path(request.folder), request.models, request.transactions)


def judge_parts(
    session: SparkSession,
    run_folder: Path,
    models: Sequence[str],
    transactions: Sequence[tuple[Kind, str]] = (),
) -> PartsAnswer:
    """Judge every part of a run against each model, and store the verdicts.

    Args:
        session: does it.
        run_folder: the run's.
        models: built-in ones.
        transactions: kinds, each with the level that is asked for, which is of no commit order.

    Raises:
        HarnessError: the run cannot be read, or its results cannot be written.
        UsageError: there is no such built-in model.
    """
    ingested = ingest(run_folder)
    operations = open_tables(session, [run_folder]).operations
    judged = [judge_transactions(operations, kind, level) for kind, level in transactions]
    if not models:
        return PartsAnswer([], [], ingested.damage, judged)
    verdicts = reduce(DataFrame.unionByName, (part_verdicts(operations, model) for model in models))
    table = table_of(PartVerdict)
    # Stored in one piece, they would be judged in one, too.
    file = store_result(verdicts.repartition(1), table, RunFolder(run_folder))
    stored = session.read.schema(struct_type(table)).parquet(str(file.absolute()))
    counts = stored.groupBy("model", "verdict").agg(
        sql.count(sql.lit(1)).alias("parts"), sql.sum("operations").alias("operations")
    )
    worst = (
        stored.where(sql.col("verdict") != "valid")
        .orderBy(sql.col("verdict") != "invalid", "operations", "model", "key")
        .limit(EXAMPLES_MAX)
    )
    return PartsAnswer(
        counts=msgspec.convert(
            counts.orderBy("model", "verdict").toArrow().to_pylist(), list[PartCount]
        ),
        examples=msgspec.convert(worst.toArrow().to_pylist(), list[NamedPart]),
        damage=ingested.damage,
        transactions=judged,
    )


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:], PartsRequest, answer_to))
