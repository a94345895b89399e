"""Parts judged on Spark get the checker's verdicts, and a hostile part takes none along."""

import json
import random
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.part.parts import split
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import MODELS, add_own, model_named
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.errors import UsageError
from splitbrain.history.importers import load
from splitbrain.history.records import PairedOperation
from splitbrain.spark_analysis.jobs.linearizability import part_verdicts
from tests.spark.operation_frames import OperationFrames
from tests.unit.checker.small_histories import random_history
from tests.unit.checker.small_operations import OBJECTS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CORPUS = Path(__file__).parents[1] / "corpus" / "histories"
HOSTILE = "tests.spark.hostile_judge"


@pytest.fixture
def frame_of(session: SparkSession, tmp_path: Path) -> OperationFrames:
    return OperationFrames(session, tmp_path)


def expected(
    runs: dict[str, list[PairedOperation]], model: str
) -> dict[tuple[str, str | None], tuple[str, str, str, int]]:
    """The checker's own word, part after part, in this process."""
    results = {
        (run_id, part.key): check_part(part, model, Unlimited())
        for run_id, operations in runs.items()
        for part in split(operations, model_named(model))
    }
    return {
        name: (one.verdict.value, one.algorithm, one.reason, one.operations)
        for name, one in results.items()
    }


def found(
    frame_of: OperationFrames, runs: dict[str, list[PairedOperation]], model: str
) -> dict[tuple[str, str | None], tuple[str, str, str, int]]:
    rows = part_verdicts(frame_of(runs), model).collect()
    result = {
        (row.run_id, row.key): (row.verdict, row.algorithm, row.reason, row.operations)
        for row in rows
    }
    assert len(result) == len(rows)
    assert {row.model for row in rows} <= {model}
    return result


def under_key(operations: list[PairedOperation], key: str) -> list[PairedOperation]:
    return [msgspec.structs.replace(one, key=key) for one in operations]


#: One whose parts are keys, one that is a whole, and one with a search of its own. The corpus has
#: more.
IN_THE_GATE = ("cas-register", "fifo-queue", "set")


@pytest.mark.parametrize(
    "model",
    [
        model if model in IN_THE_GATE else pytest.param(model, marks=pytest.mark.nightly)
        for model in sorted(OBJECTS.keys() & MODELS.keys())
    ],
)
def test_verdicts_on_random_runs_are_the_checkers(frame_of: OperationFrames, model: str) -> None:
    draw = random.Random(f"spread {model}")
    runs = {f"run-{number}": random_history(draw, model) for number in range(40)}
    by_spark = found(frame_of, runs, model)
    assert by_spark == expected(runs, model)
    assert {verdict for verdict, *_ in by_spark.values()} == {"valid", "invalid"}


def test_every_key_of_every_run_is_a_part(frame_of: OperationFrames) -> None:
    draw = random.Random(5)
    runs: dict[str, list[PairedOperation]] = {}
    for run in range(5):
        operations: list[PairedOperation] = []
        for key in range(12):
            operations += under_key(random_history(draw, "cas-register", 3 + key * 2), f"k{key}")
        runs[f"run-{run}"] = operations
    by_spark = found(frame_of, runs, "cas-register")
    assert by_spark == expected(runs, "cas-register")
    assert len(by_spark) >= 50


def test_the_corpus_gets_its_verdicts(frame_of: OperationFrames) -> None:
    verdicts = json.loads((CORPUS / "verdicts.json").read_text())
    for model in sorted({entry["model"] for entry in verdicts.values()}):
        runs = {
            name: list(load(CORPUS / name).operations)
            for name, entry in verdicts.items()
            if entry["model"] == model
        }
        by_spark = found(frame_of, runs, model)
        assert by_spark == expected(runs, model)
        for name in runs:
            words = {word for (run, _), (word, *_) in by_spark.items() if run == name}
            worst = next(w for w in ("invalid", "unknown", "valid") if w in words or w == "valid")
            assert worst == verdicts[name]["verdict"], name


def test_hostile_parts_are_unknown_and_take_none_along(frame_of: OperationFrames) -> None:
    draw = random.Random(8)
    keys = ["hangs", "eats", "crashes", "raises", *(f"k{number}" for number in range(6))]
    runs = {"a": [one for key in keys for one in under_key(random_history(draw, "register"), key)]}
    # One slot: what is judged after a hostile part is judged by the same worker.
    rows = part_verdicts(
        frame_of(runs),
        "register",
        time_budget_s=10.0,
        memory_budget_mib=800,
        slots=1,
        judge=HOSTILE,
    ).collect()

    reasons = {row.key: row.reason for row in rows if row.key in keys[:4]}
    assert {row.verdict for row in rows if row.key in reasons} == {"unknown"}
    assert "time budget of 10 s used up, stopped" in reasons["hangs"]
    assert "memory budget of 800 MiB used up, stopped" in reasons["eats"]
    assert "ended with code 7 (the ground opened)" in reasons["crashes"]
    assert "crashed: ValueError: no such thing" in reasons["raises"]
    sound = {(row.run_id, row.key): row.verdict for row in rows if row.key not in reasons}
    assert sound == {
        name: verdict
        for name, (verdict, *_) in expected(runs, "register").items()
        if name[1] not in reasons
    }
    assert len(sound) == 6
    assert next(row.seconds for row in rows if row.key == "hangs") >= 12.0


def test_a_budget_that_ends_is_polled(frame_of: OperationFrames) -> None:
    # Twenty concurrent additions and an impossible answer: no search ends in no time.
    operations = [
        PairedOperation(n, n, "enqueue", None, n, None, "ok", n, 1000 + n) for n in range(20)
    ]
    operations += [
        PairedOperation(100 + n, 100 + n, "dequeue", None, None, 19 - n % 3, "ok", 10, 2000)
        for n in range(10)
    ]
    (row,) = part_verdicts(frame_of({"run": operations}), "fifo-queue", time_budget_s=0.0).collect()
    assert row.verdict == "unknown"
    assert "time budget of 0 s used up" in row.reason


def test_parts_are_dealt_by_size(frame_of: OperationFrames) -> None:
    """A large part shares its slot with none, and none is left out."""
    from pyspark.sql import functions as sql

    from splitbrain.spark_analysis.jobs.linearizability import _slots_of

    sizes = {"large": 5000, "half": 1200, **{f"k{number}": 10 for number in range(100)}}
    read = PairedOperation(0, 0, "read", None, None, None, "ok", 0, 1)
    runs = {"run": [one for key, size in sizes.items() for one in under_key([read] * size, key)]}
    judged = frame_of(runs).withColumn("part", sql.col("key"))
    slots = {row.part: row.slot for row in _slots_of(judged, 8).collect()}
    assert slots.keys() == sizes.keys()
    small = {slot for key, slot in slots.items() if key.startswith("k")}
    assert slots["large"] == 0 < slots["half"] < min(small)
    assert max(small) == 7
    assert len(small) <= 2


def test_an_operation_that_the_model_does_not_know_is_unknown(frame_of: OperationFrames) -> None:
    runs = {"run": [PairedOperation(0, 0, "write", "r", 1, None, "ok", 0, 1)]}
    (row,) = part_verdicts(frame_of(runs), "counter").collect()
    assert (row.verdict, row.operations) == ("unknown", 1)
    assert "knows no operation 'write'" in row.reason


def test_nothing_to_judge_is_no_part(frame_of: OperationFrames) -> None:
    failed = PairedOperation(0, 0, "write", "r", 1, None, "fail", 0, 1)
    assert part_verdicts(frame_of({"run": [failed]}), "register").isEmpty()


class ByNode(Model):
    name = "by-node"

    def partition(self, operation: PairedOperation) -> str | None:
        return operation.node


def test_a_users_own_model_is_refused_before_any_worker_misses_it(
    frame_of: OperationFrames,
) -> None:
    add_own("by-node", ByNode())
    with pytest.raises(UsageError, match="workers do not have the model 'by-node'"):
        part_verdicts(frame_of({}), "by-node")


def test_models_that_split_otherwise_are_refused(
    frame_of: OperationFrames, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = frame_of({})
    for model in MODELS:
        part_verdicts(nothing, model)
    monkeypatch.setitem(MODELS, "by-node", ByNode())
    with pytest.raises(UsageError, match="splits histories in a way"):
        part_verdicts(frame_of({}), "by-node")
