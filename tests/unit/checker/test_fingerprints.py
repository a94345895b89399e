"""Violations that a fingerprint tells apart, and others; the corpus' violations have few."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.fingerprints import (
    VERSION,
    VERSION_OF_NAMES,
    Fingerprint,
    fingerprint_of,
    is_fingerprint,
)
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.lost_commits import check as check_lost_commits
from splitbrain.checker.set_full import check as check_set_full
from splitbrain.checker.split_brain import check as check_split_brain
from splitbrain.checker.unique_ids import check as check_unique_ids
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.importers import load
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import logs, operation, record, role

CORPUS = Path(__file__).parents[2] / "corpus" / "histories"
VERDICTS: dict[str, dict[str, str]] = json.loads((CORPUS / "verdicts.json").read_text())


def named(result: CheckResult) -> Fingerprint:
    fingerprint = fingerprint_of(result)
    assert fingerprint is not None
    return fingerprint


def linearizability(*operations: PairedOperation) -> Fingerprint:
    return named(check(list(operations), "cas-register", Unlimited()))


def invalid(checker: str, **found: Any) -> Fingerprint:
    return named(CheckResult(checker, Verdict.INVALID, "", violations=(found,)))


def test_what_is_not_invalid_has_none() -> None:
    assert fingerprint_of(CheckResult("set-full", Verdict.VALID, "")) is None
    assert fingerprint_of(CheckResult("set-full", Verdict.UNKNOWN, "")) is None


def test_a_violation_that_nobody_described_is_known_by_its_checker() -> None:
    told = [named(CheckResult(name, Verdict.INVALID, "")).text for name in ("bank", "sessions")]
    assert len(set(told)) == 2


def test_it_has_its_form_and_its_version() -> None:
    text = invalid("bank", kind="negative").text
    assert is_fingerprint(text)
    assert text.startswith(f"f{VERSION}-")
    assert not is_fingerprint(text[:-1])
    assert not is_fingerprint(text.upper())


def test_a_stale_read_is_one_failure_wherever_and_whenever() -> None:
    first = linearizability(
        operation("write", 1, start=0, end=1),
        operation("write", 2, start=2, end=3),
        operation("read", None, 1, start=4, end=5),
    )
    second = linearizability(
        operation("write", 70, start=100, end=150, key="other", process=4, node="n2"),
        operation("write", 80, start=200, end=250, key="other", process=4, node="n3"),
        operation("read", None, 70, start=300, end=350, key="other", process=9, node="n1"),
    )
    assert first == second
    assert first.shape == "read:ok, write:ok; a^b b<a"


def test_another_order_another_outcome_and_another_kind_are_other_failures() -> None:
    stale = linearizability(
        operation("write", 1, start=0, end=1),
        operation("write", 2, start=2, end=3),
        operation("read", None, 1, start=4, end=5),
    )
    going_back = linearizability(
        operation("write", 1, start=0, end=1),
        operation("write", 2, start=2, end=None),
        operation("read", None, 2, start=4, end=5),
        operation("read", None, 1, start=6, end=7),
    )
    from_nowhere = linearizability(operation("read", None, 9, start=4, end=5))
    refused = linearizability(
        operation("write", 1, start=0, end=1),
        operation("cas", [1, 2], [1, 2, False], start=2, end=3),
    )
    assert len({one.text for one in (stale, going_back, from_nowhere, refused)}) == 4


def older(result: CheckResult) -> CheckResult:
    """The result as a version of before the names had it."""
    names = ("anomaly", "steps", "account")
    stripped = tuple(
        {name: value for name, value in found.items() if name not in names}
        for found in result.violations
    )
    return CheckResult(result.checker, result.verdict, result.reason, violations=stripped)


def test_the_name_of_an_anomaly_is_part_of_it_and_older_results_are_met_again() -> None:
    read = operation("read", None, 2, start=4, end=5)
    failed = operation("write", 2, start=0, end=1, outcome="fail")
    dirty = check([failed, read], "cas-register", Unlimited())
    phantom = check([read], "cas-register", Unlimited())
    assert named(dirty).shape == named(phantom).shape
    assert named(dirty).text != named(phantom).text
    assert named(dirty).sentence == "linearizability:cas-register, dirty read: read:ok"
    assert named(dirty).text.startswith(f"f{VERSION_OF_NAMES}-")
    assert is_fingerprint(named(dirty).text)
    before = named(older(dirty))
    assert before == named(older(phantom)), "they had one fingerprint"
    assert before.text.startswith(f"f{VERSION}-")
    assert before.before_names is None
    assert named(dirty).before_names == before.text
    assert named(dirty).is_among({before.text})
    assert named(dirty).is_among({named(dirty).text})
    assert not named(dirty).is_among({named(phantom).text})


def test_what_has_no_name_of_its_own_keeps_its_fingerprint() -> None:
    found = {"kind": "not-linearizable", "core": [{"f": "read", "type": "ok", "index": 1}]}
    unnamed = invalid("linearizability:kv", **found, anomaly="not linearizable")
    assert unnamed == invalid("linearizability:kv", **found)
    assert unnamed.name == "not linearizable"
    lost = named(check_set_full(
        (
            operation("add", 1, start=0, end=1),
            operation("read", None, [], start=2, end=3),
        ),
        Unlimited(),
    ))  # fmt: skip
    assert (lost.text, lost.name) == ("f1-5f245c331dbe", "lost write")


def planted() -> dict[str, Fingerprint]:
    """One violation of each kind that these checkers know."""
    added = operation("add", 1, start=0, end=1, position=(1, 0))
    wrote = operation("write", 1, start=0, end=1, position=(1, 0))
    budget = Unlimited()

    def split(**fields: Any) -> CheckResult:
        return check_split_brain(Evidence(**fields), budget)

    two_logs = {
        **logs(record(0, 1, "write", 1), nodes=1),
        "n2": logs(record(0, 1, "write", 2), nodes=2)["n2"],
    }
    return {
        "set element lost": named(
            check_set_full((added, operation("read", None, [], start=2, end=3)), budget)
        ),
        "commit lost": named(
            check_lost_commits(
                Evidence((wrote,), committed_logs=logs(record(1, 1, "write", 5)), voters=3), budget
            )
        ),
        "two leaders": named(
            split(
                operations=(),
                state_events={
                    "n1": (role("n1", 0, "leader", 1, 5),),
                    "n2": (role("n2", 0, "leader", 1, 6),),
                },
            )
        ),
        "logs differ": named(split(operations=(), committed_logs=two_logs)),
        "success without record": named(
            split(operations=(wrote,), committed_logs=logs(record(1, 1, "write", 5)))
        ),
        "same id twice": named(
            check_unique_ids(
                (
                    operation("generate", None, 7, start=0, end=1),
                    operation("generate", None, 7, start=2, end=3),
                ),
                budget,
            )
        ),
    }


def test_the_violations_of_different_checkers_are_different_failures() -> None:
    found = planted()
    assert len({one.text for one in found.values()}) == len(found), found


def test_a_traceback_is_known_by_its_exception_and_where_it_arose() -> None:
    def traceback(exception: str, function: str, line: int = 3) -> str:
        text = f'Traceback:\n  File "a.py", line {line}, in {function}\n    x()\n{exception}'
        return invalid("node-health", kind="traceback", text=text).text

    assert traceback("ValueError: 7", "step") == traceback("ValueError: 8", "step", line=99)
    assert traceback("ValueError: 7", "step") != traceback("KeyError: 7", "step")
    assert traceback("ValueError: 7", "step") != traceback("ValueError: 7", "flush")


def test_of_many_violations_the_smallest_of_the_most_telling_kind_counts() -> None:
    def found(*kinds_and_operations: tuple[str, Sequence[str]]) -> str:
        violations = tuple(
            {"kind": kind, "operations": [{"f": f, "type": "ok"} for f in operations]}
            for kind, operations in kinds_and_operations
        )
        return named(CheckResult("x", Verdict.INVALID, "", violations=violations)).text

    assert found(("lost", ["add", "read"]), ("lost", ["add"]), ("stale", [])) == found(
        ("lost", ["add"]), ("lost", ["add", "read"])
    )
    assert found(("lost", ["add"])) != found(("stale", ["add"]))


@pytest.mark.parametrize("size", [7, 30, 39])
def test_a_core_without_a_circle_is_known_by_its_kinds(size: int) -> None:
    core = [{"f": "write", "type": "ok", "index": n, "start": n, "end": n} for n in range(size)]
    core.append({"f": "read", "type": "ok", "index": size, "start": size, "end": size})
    one = invalid("x", kind="not-linearizable", core=core, core_size=len(core))
    assert one.shape == "read:ok, write:ok"


#: Fingerprint of each violation of the corpus; a change here is a new ``VERSION``.
SHAPES = {
    "acknowledged-write-lost-at-failover.jsonl": "cas:ok, write:ok; a^b b<a",
    "append-is-lost.edn": "append:ok, get:ok",
    "equal-times-within-a-process-are-ordered.jsonl": "read:ok, write:ok; a^b b<a",
    "etcd-overwritten-value-comes-back.json": "read:ok, read:ok; a<b b^a",
    "failed-write-is-seen.jsonl": "read:ok",
    "foreign-without-index-node-and-time.jsonl": "read:ok",
    "independent-keys-answer-of-another.edn": "read:ok",
    "kv-get-misses-an-append.txt": "append:ok, get:ok; a<b b^a",
    "packed.jsonl.gz": "cas:refused, write:ok; a^b b<a",
    "reads-go-back.jsonl": "read:ok, read:ok, write:ok; a<b b^c c~a",
    "refused-cas-had-the-value.log": "cas:refused, write:ok; a^b b<a",
    "refused-cas-saw-the-value.jsonl": "cas:refused, write:ok; a^b b<a",
    "set-read-misses-an-element.jsonl": "add:ok, read:ok",
    "stale-read-on-isolated-leader.jsonl": "read:ok, write:ok; a^b b<a",
    "table-with-a-stale-read.parquet": "cas:ok, read:ok; a<b b^a",
    "timed-out-write-takes-effect-twice.jsonl": "read:ok, read:ok, write:info; a<b b^c c~a",
    "two-cas-from-one-value.jsonl": "cas:ok, cas:ok; a^b b^a",
}


def test_the_corpus_has_the_shapes_that_it_had() -> None:
    assert set(SHAPES) == {name for name, one in VERDICTS.items() if one["verdict"] == "invalid"}


@pytest.mark.parametrize("name", SHAPES)
def test_a_violation_of_the_corpus_has_its_shape(name: str) -> None:
    result = check(load(CORPUS / name).operations, VERDICTS[name]["model"], Unlimited())
    assert named(result).shape == SHAPES[name]
