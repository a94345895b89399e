"""Spark counts by what the workload declares of its functions, as the checkers do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.lost_commits import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.history.fault_windows import failovers_ns, longest_unavailability_ns
from splitbrain.history.functions import Functions
from splitbrain.spark_analysis.frames import open_tables
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs import availability, commits
from tests.declared_runs import QUEUE, TRANSACTIONS, as_queue, as_transaction, folder_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_MS = 1_000_000


@pytest.mark.parametrize(
    ("change", "functions"),
    [(as_queue, QUEUE), (as_transaction, TRANSACTIONS), (as_queue, None)],
)
def test_figures_of_declared_functions_equal_the_checkers(
    session: SparkSession,
    tmp_path: Path,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    functions: Functions | None,
) -> None:
    folder = folder_of(tmp_path / "run", change, functions, flaw="lost-commit")
    ingest(folder.root)
    tables = open_tables(session, [folder.root])
    record = load_run(folder.root)
    (gap,) = availability.longest_unavailability(tables.operations).collect()
    longest = longest_unavailability_ns(record.operations, record.functions)
    assert longest is not None
    assert gap["gap_ms"] == longest / _MS
    moved = availability.fault_windows(tables.operations, tables.faults).collect()
    expected = failovers_ns(record.windows, record.operations, record.functions)
    told = {row["index"]: row["failover_ms"] for row in moved if row["failover_ms"] is not None}
    assert told == {index: took / _MS for index, took in expected.items()}
    if functions is None:
        return
    result = check(
        Evidence(
            operations=tuple(record.operations),
            committed_logs=record.committed_logs,
            voters=len(record.node_names),
            functions=dict(record.functions),
        ),
        Unlimited(),
    )
    assert commits.acknowledged_writes(tables.operations).count() == result.figures["acknowledged"]
    (lost,) = commits.lost_commits(tables.operations, tables.committed, tables.logs).collect()
    assert lost["index"] == result.lists["lost"][0]["index"]
    assert commits.phantom_commits(tables.operations, tables.committed).count() == 0
