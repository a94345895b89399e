"""Transactions judged key by key over Spark have the findings and verdicts of one process."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest
from pyspark.sql import SparkSession

from splitbrain.checker.findings import Poll
from splitbrain.checker.transactions.by_key import findings_of, touching
from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.levels import Kind
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.judge.part_verdicts import answer_lines, verdict_of
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.jobs.transactions import judge_transactions, key_dependencies
from splitbrain.spark_analysis.parts_process import judge_parts
from tests.spark.operation_frames import OperationFrames
from tests.synthetic_runs import write_run
from tests.unit.checker.transactions.small_transactions import (
    random_open_transactions,
    random_transactions,
    transaction,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

POLL = Poll(Unlimited())


@pytest.fixture
def frame_of(session: SparkSession, tmp_path: Path) -> OperationFrames:
    return OperationFrames(session, tmp_path)


def numbered(history: Sequence[PairedOperation]) -> list[PairedOperation]:
    return [msgspec.structs.replace(each, index=index) for index, each in enumerate(history)]


def expected(
    run_id: str, history: Sequence[PairedOperation], kind: Kind
) -> list[tuple[object, ...]]:
    """The inference of one process, key after key."""
    keys: dict[object, list[PairedOperation]] = {}
    for operation in history:
        for key, part in touching(operation):
            keys.setdefault(key, []).append(part)
    alone = [findings_of(each, kind, POLL) for each in keys.values()]
    seen = {index for each in alone for index in each.seen}
    return [
        (run_id, f'"{key}"', *findings_of(each, kind, POLL, [o.index in seen for o in each]))
        for key, each in keys.items()
    ]


@pytest.mark.parametrize("kind", ["list-append", "rw-register"])
def test_what_each_key_shows_is_what_one_process_finds(
    frame_of: OperationFrames, kind: Kind
) -> None:
    random = Random(f"spark {kind}")
    runs = {
        f"run-{number}": numbered(draw(random, kind))
        for number in range(60)
        for draw in (random_transactions if number % 2 else random_open_transactions,)
    }
    by_spark = key_dependencies(frame_of(runs), kind).drop("transactions", "problem").collect()
    found = [tuple(row) for row in by_spark]
    whole = [row for run_id, history in runs.items() for row in expected(run_id, history, kind)]
    assert sorted(found) == sorted(whole)
    assert any(row[-1] for row in whole), "no transaction without an answer was seen"


@pytest.mark.parametrize("kind", ["list-append", "rw-register"])
def test_a_verdict_is_that_of_one_process(frame_of: OperationFrames, kind: Kind) -> None:
    random = Random(f"spark verdict {kind}")
    words: Counter[str] = Counter()
    for _ in range(6):
        history = numbered(random_transactions(random, kind))
        whole = check(history, Unlimited(), kind, "serializable")
        judged = judge_transactions(frame_of({"a": history}), kind, "serializable")
        words[judged.verdict] += 1
        if judged.verdict == "unknown":
            assert "order of some writes" in judged.reason or "ever read" in judged.reason
        else:
            assert judged.verdict == whole.verdict.value
    assert words["invalid"]
    assert words["valid"]


def test_a_violation_is_told_as_the_checker_tells_it(frame_of: OperationFrames) -> None:
    skew = [
        transaction(0, [["r", "x", []], ["append", "y", 1]], 0, 9),
        transaction(1, [["r", "y", []], ["append", "x", 2]], 1, 9),
        transaction(2, [["r", "x", [2]], ["r", "y", [1]]], 20, 22),
    ]
    others = [
        transaction(3 + n, [["append", f"k{n}", n], ["r", f"k{n}", [n]]], 30 + n, 40 + n)
        for n in range(30)
    ]
    judged = judge_transactions(frame_of({"a": [*skew, *others]}), "list-append", "serializable")
    assert judged.verdict == "invalid"
    assert judged.anomalies == {"G2-item": 1}
    assert (judged.transactions, judged.keys) == (33, 32)
    assert "None of these 2 can be first" in judged.reason
    held = judge_transactions(
        frame_of({"a": [*skew, *others]}), "list-append", "snapshot-isolation"
    )
    assert held.verdict == "valid"


def test_a_run_folder_is_judged_by_its_plans_checkers(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = RunFolder(write_run(tmp_path / "run"))
    asked = [["r", "x", None], ["append", "y", 1]], [["r", "y", None], ["append", "x", 2]]
    told = [["r", "x", []], ["append", "y", 1]], [["r", "y", []], ["append", "x", 2]]
    lines = [
        {"index": 2 * done + n, "time": 10 * (2 * done + n), "process": n, "f": "txn"}
        | {"type": "ok" if done else "invoke", "value": values[n], "key": None}
        for done, values in enumerate((asked, told))
        for n in (0, 1)
    ]
    folder.history.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    answer = judge_parts(session, folder.root, [], [("list-append", "serializable")])
    (judged,) = answer.transactions
    assert (judged.verdict, judged.anomalies) == ("invalid", {"G2-item": 1})
    assert verdict_of(answer) is Verdict.INVALID
    said = answer_lines(answer)
    assert said[0] == "transactions:list-append:serializable: 2 transactions on 2 keys invalid"
    assert said[-1] == "INVALID, of transactions alone"
    why = {"transactions:list-append:serializable": "its manual says so"}
    assert verdict_of(answer, why) is Verdict.VALID


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([["r", "x", 7]], "a read of list-append answers a list, and not 7"),
        ([["append", "x", 1]], "1 is written to key 'x' a second time"),
        (
            [["push", "x", 5]],
            "the micro-operations of list-append are r and append, and not 'push'",
        ),
    ],
)
def test_a_transaction_that_makes_no_sense_leaves_the_run_unknown(
    frame_of: OperationFrames, parts: list[list[object]], says: str
) -> None:
    history = [
        transaction(0, [["append", "x", 1]], 0, 9),
        transaction(1, parts, 10, 19),
        transaction(2, [["r", "y", []]], 20, 29),
    ]
    judged = judge_transactions(frame_of({"a": history}), "list-append", "serializable")
    assert judged.verdict == "unknown"
    assert says in judged.reason
    assert "index 1" in judged.reason
