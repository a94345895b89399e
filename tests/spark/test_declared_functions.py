"""Spark counts by what the workload declares of its functions, as the checkers do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.lost_commits import check
from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.history.fault_windows import failovers_ns, longest_unavailability_ns
from splitbrain.history.functions import Functions
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.frames import open_tables
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.jobs import availability, commits
from splitbrain.spark_analysis.jobs.duplicates import duplicates
from tests.declared_runs import QUEUE, TRANSACTIONS, as_queue, as_transaction, edited, folder_of
from tests.synthetic_runs import seal, write_run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_MS = 1_000_000


@pytest.mark.parametrize(
    ("change", "functions"),
    [
        (as_queue, QUEUE),
        pytest.param(as_transaction, TRANSACTIONS, marks=pytest.mark.nightly),
        (as_queue, None),
    ],
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


@pytest.mark.parametrize("has_positions", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_logs_in_a_form_of_their_own_are_compared_as_the_adapter_says(
    session: SparkSession, tmp_path: Path, has_positions: bool
) -> None:
    """A compare-and-set stands in the logs as the write that came of it."""
    folder = RunFolder(write_run(tmp_path / "run", operations_per_second=30, flaw="lost-commit"))

    def as_write(line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "f": "write", "value": line["value"][1]} if line["f"] == "cas" else line

    for node in folder.node_names():
        edited(folder.committed_log(node), as_write)
    if not has_positions:
        edited(folder.history, lambda line: {**line, "position": None})
    plan = json.loads(folder.plan.read_text())
    folder.plan.write_text(json.dumps({**plan, "record_forms": {"cas": {"f": "write", "part": 1}}}))
    seal(folder)
    ingest(folder.root)
    tables = open_tables(session, [folder.root])
    record = load_run(folder.root)
    assert record.plan is not None
    evidence = Evidence(
        operations=tuple(record.operations),
        committed_logs=record.committed_logs,
        voters=len(record.node_names),
        functions=dict(record.functions),
        record_forms=record.plan.record_forms,
    )
    lost = commits.lost_commits(tables.operations, tables.committed, tables.logs).collect()
    assert lost
    told = check(evidence, Unlimited()).lists["lost"]
    assert [row["index"] for row in lost] == [one["index"] for one in told]
    assert {row["f"] for row in lost} <= {"write", "cas"}
    assert commits.phantom_commits(tables.operations, tables.committed).isEmpty()
    assert duplicates(tables.operations, tables.committed).isEmpty()
    # As they were asked for, none of the compare-and-sets is in any log.
    asked = tables.operations.drop("recorded_f", "recorded_value").withColumns(
        {"recorded_f": sql.lit(None), "recorded_value": sql.lit(None)}
    )
    believed = commits.lost_commits(asked, tables.committed, tables.logs).collect()
    assert {row["f"] for row in believed} >= {"cas"}
