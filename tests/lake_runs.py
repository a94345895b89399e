"""Run folders for lakes, small and quick to make, and what a lake holds of them, without Spark."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.lake.snapshot import read_snapshot
from splitbrain.spark_analysis.lake.store import Store
from splitbrain.spark_analysis.schemas import LAKE_TABLES, SEEDS, SWEEPS
from tests.synthetic_runs import NODES, Flaw, SyntheticRun

#: Rows of one run by table, each in the order of its text.
Content = dict[str, list[str]]


def make_run(
    root: Path,
    *,
    seed: int = 7,
    flaw: Flaw | None = None,
    verdict: str = "valid",
    operations_per_second: int = 3,
    **plan: Any,
) -> Path:
    """A whole, judged run; further arguments are fields of its plan."""
    root.mkdir(parents=True)
    SyntheticRun(root, seed=seed, flaw=flaw, operations_per_second=operations_per_second).write()
    folder = RunFolder(root)
    content = json.loads(folder.plan.read_bytes())
    folder.plan.write_text(json.dumps({**content, **plan}))
    samples = [
        {"time": at, "node": node, "status": "running", "memory_bytes": 5, "system": {"lag": 1.5}}
        for at in (1, 2)
        for node in NODES
    ]
    folder.metrics.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    # A run of before there were seals: each test damages it as it likes.
    (root / "manifest.json").unlink(missing_ok=True)
    write_results(root, verdict)
    return root


def write_results(root: Path, verdict: str = "valid", **fields: Any) -> None:
    """Judge a run by decree."""
    violation = {"kind": "stale-read", "sentence": "An old value was read."}
    invalid = verdict == "invalid"
    checker = {
        "checker": "linearizability:cas-register",
        "verdict": verdict,
        "reason": "As decreed.",
        "figures": {"operations": 3},
        "violations": [violation] if invalid else [],
        "observations": [],
    }
    met = {"kind": "kill", "role": "leader", "phase": "settled", "workload": "register"}
    results = {
        "schema": 1,
        "verdict": verdict,
        "exit_code": int(invalid),
        "checkers": [checker],
        "vacuous": [],
        "coverage": [{**met, "faults": 2, "bitten": 1}],
    }
    RunFolder(root).results.write_text(json.dumps({**results, **fields}))


def content_of(store: Store) -> dict[str, Content]:
    """Run id to all its rows that count, as a reader of the commits finds them."""
    snapshot = read_snapshot(store)
    found: dict[str, Content] = {run_id: {} for run_id in snapshot.runs}
    for live in snapshot.files():
        with store.reading(live.file.name) as path:
            rows = pq.ParquetFile(path).read().to_pylist()
        for row in rows:
            if row["run_id"] not in live.superseded:
                of_table = found[row["run_id"]].setdefault(live.file.table, [])
                of_table.append(json.dumps(row, sort_keys=True, default=str))
    return {
        run_id: {table: sorted(rows) for table, rows in tables.items()}
        for run_id, tables in found.items()
    }


def rows_of(store: Store, table: str) -> list[dict[str, Any]]:
    """The rows of one table that count."""
    found: list[dict[str, Any]] = []
    for live in read_snapshot(store).files(table):
        with store.reading(live.file.name) as path:
            rows = pq.ParquetFile(path).read().to_pylist()
        found += [row for row in rows if row["run_id"] not in live.superseded]
    return found


def the_run(store: Store) -> dict[str, Any]:
    """The only row of ``runs``."""
    (row,) = rows_of(store, "runs")
    return row


def tables_with_rows(content: Content) -> set[str]:
    """Names of the tables in which a run has rows."""
    return {table for table, rows in content.items() if rows}


def all_tables() -> set[str]:
    """Names of all tables that a run has rows in."""
    return {table.name for table in LAKE_TABLES if table not in (SWEEPS, SEEDS)}


def names_of(store: Store, folders: Iterable[str] = ("commits", "tables")) -> set[str]:
    """Names of all files of a lake."""
    return {file.name for folder in folders for file in store.files(folder)}
