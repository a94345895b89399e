"""Damaged and unfinished runs are taken as far as they go, and a column says what is wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from tests.lake_runs import content_of, make_run, rows_of, the_run, write_results

#: Far beyond 64 bits.
HUGE = 10**30
Damage = Callable[[Path], object]


def replace(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def edit_plan(root: Path, **fields: Any) -> None:
    plan = RunFolder(root).plan
    plan.write_text(json.dumps({**json.loads(plan.read_bytes()), **fields}))


def remove_evidence(root: Path) -> None:
    shutil.rmtree(root / "nodes")
    RunFolder(root).history.unlink()


def of_file(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    """Change the lines of a file."""
    return lambda root: replace(root / name, change)


def without(name: str) -> Damage:
    return lambda root: (root / name).unlink()


def with_bytes(name: str, content: bytes) -> Damage:
    return lambda root: (root / name).write_bytes(content)


def folder_for_a_history(root: Path) -> None:
    RunFolder(root).history.unlink()
    RunFolder(root).history.mkdir()


def seal_longer(root: Path) -> None:
    length = RunFolder(root).history.stat().st_size + 1
    sealed = {"history.jsonl": {"length_bytes": length, "digest": "0" * 32}}
    (root / "manifest.json").write_text(json.dumps(sealed))


GOES_ON_AFTER_ITS_INFO = b"""\
{"index":0,"time":1,"process":1,"type":"invoke","f":"write","value":1}
{"index":1,"time":2,"process":1,"type":"info","f":"write","value":1}
{"index":2,"time":3,"process":1,"type":"invoke","f":"write","value":2}
"""
LATE_FAULT = f'{{"time":{HUGE},"index":9,"kind":"kill","phase":"invoked","target":"n1"}}\n'.encode()
HISTORY, FAULTS, RESULTS, PLAN = "history.jsonl", "faults.jsonl", "results.json", "plan.json"
LOG = "nodes/n2/log.jsonl"

#: Damage to the run folder, the kind it is marked with, and its state.
CASES: dict[str, tuple[Damage, str, str]] = {
    "torn history": (
        of_file(HISTORY, lambda lines: [*lines[:-1], lines[-1][:9]]),
        *("history-torn", "damaged"),
    ),
    "history broken in the middle": (
        of_file(HISTORY, lambda lines: [*lines[:30], b"{]\n", *lines[30:]]),
        *("history-broken", "damaged"),
    ),
    "history of a process that goes on after its info": (
        with_bytes(HISTORY, GOES_ON_AFTER_ITS_INFO),
        *("history-broken", "damaged"),
    ),
    "history of binary noise": (
        with_bytes(HISTORY, bytes(range(256)) * 9 + b"\n"),
        *("history-broken", "damaged"),
    ),
    "no history": (without(HISTORY), "no-history", "partial"),
    "folder for a history": (folder_for_a_history, "history-broken", "damaged"),
    "no faults": (without(FAULTS), "no-faults", "partial"),
    "broken fault line": (
        of_file(FAULTS, lambda lines: [b"garbage\n", *lines]),
        *("lines-broken", "damaged"),
    ),
    "fault at a time beyond 64 bits": (
        of_file(FAULTS, lambda lines: [LATE_FAULT, *lines]),
        *("lines-broken", "damaged"),
    ),
    "no node": (
        lambda root: (root / "nodes" / "n2").rename(root / "elsewhere"),
        *("no-node", "partial"),
    ),
    "no log": (without(LOG), "no-log", "partial"),
    "log that stops before its end": (
        of_file(LOG, lambda lines: lines[:-1]),
        *("log-cut", "damaged"),
    ),
    "garbage for results": (
        with_bytes(RESULTS, b"\xff\x00 no results"),
        *("results-unreadable", "damaged"),
    ),
    "results of another shape": (
        with_bytes(RESULTS, b'{"verdict": 7, "checkers": {}}'),
        *("results-unreadable", "damaged"),
    ),
    "no results": (without(RESULTS), "no-results", "partial"),
    "no plan": (without(PLAN), "no-plan", "partial"),
    "garbage for a plan": (with_bytes(PLAN, b"[" * 100_000), "plan-unreadable", "damaged"),
    "plan of a later layout": (
        lambda root: edit_plan(root, schema=99),
        *("plan-unreadable", "damaged"),
    ),
    "history cut at a line's end after the run": (seal_longer, "changed-since", "damaged"),
    "harness that died": (with_bytes("manifest.json", b"{}"), "unsealed", "partial"),
    "results alone, as a suite keeps them": (remove_evidence, "pruned", "pruned"),
}


@pytest.mark.parametrize("case", CASES)
def test_damage_is_marked_and_the_rest_is_taken(
    tmp_path: Path, store: LocalStore, case: str
) -> None:
    do, kind, state = CASES[case]
    root = make_run(tmp_path / "run")
    whole = make_run(tmp_path / "whole", seed=8)
    do(root)
    report = ingest_runs(store, [root, whole])

    (row,) = [row for row in rows_of(store, "runs") if row["name"] == "run"]
    assert row["damage_kinds"] == [kind]
    assert row["state"] == state
    assert row["damage"]
    assert all(sentence.endswith(".") for sentence in row["damage"])
    (told,) = [run for run in report.new if run.run_id == row["run_id"]]
    assert (told.state, list(told.damage)) == (state, row["damage"])
    # A damaged run costs no other one anything.
    (other,) = [row for row in rows_of(store, "runs") if row["name"] == "whole"]
    assert (other["state"], other["damage_kinds"]) == ("whole", [])
    # Nor itself what is not concerned.
    lost = {"no-faults": "faults", "no-results": "verdicts", "results-unreadable": "verdicts"}
    spared = {"faults", "verdicts", "metrics"} - {lost.get(kind)}
    assert spared <= content_of(store)[row["run_id"]].keys()
    assert ingest_runs(store, [root, whole]).commits == []


def test_torn_history_gives_the_operations_before_it(tmp_path: Path, store: LocalStore) -> None:
    whole, torn = make_run(tmp_path / "whole"), make_run(tmp_path / "torn", rate=1.0)
    replace(RunFolder(torn).history, lambda lines: [*lines[:40], lines[40][:9]])
    ingest_runs(store, [whole, torn])
    by_run = {row["name"]: row["run_id"] for row in rows_of(store, "runs")}

    def operations(name: str) -> dict[int, dict[str, Any]]:
        found = [row for row in rows_of(store, "operations") if row["run_id"] == by_run[name]]
        return {row.pop("index"): {**row, "run_id": ""} for row in found}

    complete, part = operations("whole"), operations("torn")
    assert part.keys() <= complete.keys()
    ended = {index: row for index, row in part.items() if row["end_ns"] is not None}
    assert len(ended) > 5
    assert all(complete[index] == row for index, row in ended.items())
    cut_off = [row for index, row in part.items() if index not in ended]
    assert {row["type"] for row in cut_off} <= {"info"}


def test_row_that_fits_no_column_costs_no_other_row(tmp_path: Path, store: LocalStore) -> None:
    root = make_run(tmp_path / "run")
    rows = len(root.joinpath("nodes", "n1", "state_events.jsonl").read_bytes().splitlines())
    replace(
        root / "nodes" / "n1" / "state_events.jsonl",
        lambda lines: [
            lines[0].replace(b'"epoch":0', f'"epoch":{HUGE}'.encode()),
            *lines[1:],
        ],
    )
    ingest_runs(store, [root])
    found = [row for row in rows_of(store, "state_events") if row["node"] == "n1"]
    assert len(found) == rows - 1
    assert the_run(store)["damage"] == ["1 line of n1/state_events.jsonl is broken and left out."]


def test_plan_of_wild_values_is_a_row_all_the_same(tmp_path: Path, store: LocalStore) -> None:
    root = make_run(tmp_path / "run")
    edit_plan(root, seed=HUGE, system="../../etc", nodes=["n1", "n" * 300])
    ingest_runs(store, [root])
    row = the_run(store)
    assert (row["seed"], row["nodes"], row["state"]) == (None, ["n1"], "whole")
    assert row["operations"] > 0


@pytest.mark.parametrize("name", ["../../..", "a\0b", "", "/etc"])
def test_a_plan_whose_nodes_lead_out_of_the_run_folder_is_not_believed(
    tmp_path: Path, store: LocalStore, name: str
) -> None:
    root = make_run(tmp_path / "run")
    edit_plan(root, nodes=["n1", name])
    ingest_runs(store, [root])
    row = the_run(store)
    assert (row["nodes"], row["state"]) == (["n1", "n2", "n3"], "damaged")
    assert row["operations"] > 0


def test_open_run_is_marked_and_read_again_when_it_is_over(
    tmp_path: Path, store: LocalStore
) -> None:
    root = make_run(tmp_path / "run")
    RunFolder(root).results.unlink()
    history = RunFolder(root).history
    whole = history.read_bytes()
    history.write_bytes(whole[: len(whole) // 2])
    ingest_runs(store, [root], is_open=lambda _run: True)
    first = the_run(store)
    assert (first["state"], first["outcome"]) == ("open", "none")
    assert first["operations"] > 0
    # Nothing has changed but that it is over: it died.
    assert len(ingest_runs(store, [root]).changed) == 1
    assert the_run(store)["state"] == "damaged"
    history.write_bytes(whole)
    write_results(root)
    assert len(ingest_runs(store, [root]).changed) == 1
    last = the_run(store)
    assert (last["state"], last["outcome"]) == ("whole", "valid")
    assert last["operations"] > first["operations"]
