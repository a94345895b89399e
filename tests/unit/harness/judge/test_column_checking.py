"""A history that is judged as columns comes out as the same history judged as operations."""

import re
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability import portfolio
from splitbrain.checker.linearizability.column_history import split_columns
from splitbrain.checker.models.model import KeyedModel
from splitbrain.checker.models.registry import MODELS, model_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.folder.own_models import make_known
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge import bare_judging, column_checking
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.judge.column_checking import ColumnCheck
from splitbrain.harness.pool.limits import Limits
from splitbrain.history.columns import columns_of
from splitbrain.history.pairing import events_of
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import wrong_shape
from tests.unit.checker.small_histories import history_of_unique_values, random_history

LIMITS = Limits(60, 2048, 2)
#: Figures of what it took, which is another thing.
COST = {"seconds", "memory-mib-max", "configurations"}


def write(path: Path, operations: list[PairedOperation]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(e) + b"\n" for e in events_of(operations)))
    return path


def told(results: Results) -> dict[str, Any]:
    shown = msgspec.to_builtins(results)
    for check in shown["checkers"]:
        check["figures"] = {k: v for k, v in check["figures"].items() if k not in COST}
    return shown


def judged_both_ways(path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> Results:
    """The results, after a look that columns were used, and that the other way gives the same."""
    seen: list[bool] = []
    run = ColumnCheck.run

    def watched(self: ColumnCheck) -> Any:
        seen.append(True)
        return run(self)

    monkeypatch.setattr(ColumnCheck, "run", watched)
    monkeypatch.setattr(bare_judging, "COLUMNS_FROM_BYTES", 0)
    columns = judge_history(path, model, None, LIMITS)
    assert seen, "the history was not judged as columns"
    monkeypatch.setattr(bare_judging, "COLUMNS_FROM_BYTES", 1 << 60)
    objects = judge_history(path, model, None, LIMITS)
    assert told(columns) == told(objects)
    return columns


@pytest.mark.parametrize("model", [*MODELS])
@pytest.mark.usefixtures("in_process")
def test_every_model_has_the_same_results_both_ways(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(f"both ways {model}")
    verdicts: set[str] = set()
    for number in range(60):
        operations: list[PairedOperation] = []
        for _ in range(random.randrange(1, 4)):
            operations += random_history(random, model)
        if model == "register" and number % 2:
            operations = history_of_unique_values(random, twice=0.2)
        placed = [
            msgspec.structs.replace(
                operation,
                key=f"k{random.randrange(3)}",
                process=place if operation.type == "info" else -1 - place,
                index=place,
                node=random.choice([None, "n1"]),
                error="timed-out" if operation.type == "info" else None,
            )
            for place, operation in enumerate(operations)
        ]
        if not placed:
            continue
        found = judged_both_ways(write(tmp_path / "h.jsonl", placed), model, monkeypatch)
        verdicts.add(found.verdict)
    assert {"valid", "invalid"} <= verdicts


@pytest.mark.parametrize("compiled_first", [True, False])
@pytest.mark.usefixtures("in_process")
def test_violations_in_several_keys_are_told_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled_first: bool
) -> None:
    monkeypatch.setattr(column_checking, "COMPILED_FROM", 0 if compiled_first else 1 << 60)
    monkeypatch.setattr(portfolio, "FIRST_TRY_CONFIGURATIONS_MAX", 20)
    for seed in range(4):
        options = HistoryOptions(300, 6, keys=4, info=0.1, violation=True, seed=seed)
        history = write(tmp_path / "h.jsonl", generate(options))
        found = judged_both_ways(history, "cas-register", monkeypatch)
        assert found.verdict is Verdict.INVALID


@pytest.mark.usefixtures("in_process")
def test_broken_files_are_refused_with_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write(tmp_path / "w", generate(HistoryOptions(40, 4, keys=2))).read_bytes()
    random = Random("broken both ways")
    lines = whole.splitlines(keepends=True)
    refused = 0
    for _ in range(150):
        broken = [*lines]
        place = random.randrange(len(lines))
        way = random.randrange(6)
        if way == 0:
            del broken[place]
        elif way == 1:
            broken[place] = broken[place][: random.randrange(len(lines[place]))]
        elif way == 2:
            broken[place] = broken[place].replace(b'"value":', b'"value":[', 1)
        elif way == 3:
            broken[place] = re.sub(rb'"f":"\w+"', b'"f":"cas"', broken[place])
        elif way == 4:
            broken[place] = re.sub(rb'"index":\d+', b'"index":-3', broken[place])
        else:
            broken[place] = re.sub(rb'"time":\d+', b'"time":3', broken[place])
        path = tmp_path / "h.jsonl"
        path.write_bytes(b"".join(broken))
        answers: list[object] = []
        for size in (0, 1 << 60):
            monkeypatch.setattr(bare_judging, "COLUMNS_FROM_BYTES", size)
            try:
                answers.append(told(judge_history(path, "cas-register", None, LIMITS)))
            except HarnessError as error:
                answers.append(str(error))
                refused += 1
        assert answers[0] == answers[1]
    assert refused > 100


def _checked(operations: list[PairedOperation], limits: Limits) -> Any:
    parts = split_columns(columns_of(operations), MODELS["cas-register"], wrong_shape)
    assert parts is not None
    return ColumnCheck(parts, "cas-register", limits, lambda: None, None).run()


HARD_MODEL = """
import time
from splitbrain.checker.models.register import CasRegister

class Slow(CasRegister):
    register_functions = None
    def step(self, state, call):
        if call.argument == "hang":
            time.sleep(600)
        if call.argument == "eat":
            self.eaten = bytearray(1 << 30)
            time.sleep(600)
        return super().step(state, call)
"""


def test_a_hard_part_does_not_take_the_easy_ones_along(tmp_path: Path) -> None:
    (tmp_path / "hard.py").write_text(HARD_MODEL)
    model = f"{tmp_path / 'hard.py'}:Slow"
    make_known(model)
    operations = generate(HistoryOptions(20_000, 8, keys=1000))
    for key, value in (("hangs", "hang"), ("eats", "eat")):
        last = operations[-1]
        assert last.end is not None
        operations.append(
            PairedOperation(
                last.index + 1, 9, "write", key, value, value, "ok", last.end, last.end + 1
            )
        )
    parts = split_columns(columns_of(operations), model_named(model), wrong_shape)
    assert parts is not None
    found = ColumnCheck(parts, model, Limits(2.0, 512, 2), lambda: None, None).run()
    assert (found.figures["parts"], found.figures["parts-unknown"]) == (1002, 2)
    assert {o["sentence"] for o in found.observations} == {
        "1 operations of key hangs are undecided: time budget of 2 s used up, stopped.",
        "1 operations of key eats are undecided: memory budget of 512 MiB used up, stopped.",
    }


def test_parts_of_a_chunk_that_dies_are_judged_one_by_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "chunk_that_dies.py").write_text(
        "import os\n"
        "from splitbrain.harness.judge.column_checking import judge_chunk\n"
        "def judge(chunk, budget):\n"
        "    if chunk.quick or 'k1' in chunk.parts.keys: os.kill(os.getpid(), 9)\n"
        "    return judge_chunk(chunk, budget)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(column_checking, "_CHUNK_FUNCTION", "chunk_that_dies:judge")
    operations = [
        msgspec.structs.replace(o, key=f"k{o.index % 3}")
        for o in generate(HistoryOptions(30, 2, values=0, mix="register"))
        if o.f == "write"
    ]
    found = _checked(operations, LIMITS)
    assert found.verdict is Verdict.UNKNOWN
    assert (found.figures["parts"], found.figures["parts-unknown"]) == (3, 1)
    assert "of key k1 are undecided: crashed: its worker was ended by signal 9" in found.reason


def test_a_judgement_that_is_given_up_leaves_its_parts_undecided() -> None:
    operations = generate(HistoryOptions(60, 3, keys=3))
    parts = split_columns(columns_of(operations), MODELS["cas-register"], wrong_shape)
    assert parts is not None
    found = ColumnCheck(parts, "cas-register", LIMITS, lambda: "interrupted", None).run()
    assert found.figures["parts-unknown"] == 3
    assert "are undecided: interrupted." in found.reason


def test_a_model_that_looks_at_more_than_columns_tell_is_given_operations() -> None:
    class ByProcess(KeyedModel):
        name = "by-process"
        functions = frozenset({"read", "write", "cas"})

        def partition(self, operation: PairedOperation) -> str | None:
            return str(operation.process)

        def step(self, state: Any, call: Any) -> tuple[bool, Any]:
            return True, state

    class ByKey(ByProcess):
        partition = KeyedModel.partition

    columns = columns_of(generate(HistoryOptions(20, 2)))
    assert split_columns(columns, ByProcess(), wrong_shape) is None
    assert split_columns(columns, ByKey(), wrong_shape) is not None
