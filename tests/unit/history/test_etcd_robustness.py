"""Records of etcd's robustness tests, as operations on registers."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.etcd_records import Value, plain_text
from splitbrain.history.importers import load
from splitbrain.history.records import PairedOperation

LONG = "a value of more than nineteen bytes"


def put(key: str, value: str, lease: int = 0) -> dict[str, Any]:
    content = {"Key": key, "Value": {"Value": value}, "LeaseID": lease}
    return {"Type": "put-operation", "Put": content}


def delete(key: str) -> dict[str, Any]:
    return {"Type": "delete-operation", "Delete": {"Key": key}}


def get(key: str) -> dict[str, Any]:
    return {"Type": "range-operation", "Range": {"Start": key}}


def txn(
    *steps: dict[str, Any],
    only_if: tuple[str, int] | None = None,
    otherwise: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    conditions = [{"Key": only_if[0], "ExpectedRevision": only_if[1]}] if only_if else None
    branches = {"OperationsOnSuccess": list(steps), "OperationsOnFailure": otherwise}
    return {"Type": "txn", "Txn": {"Conditions": conditions, **branches}}


def span(start: str, end: str = "", limit: int = 0, revision: int = 0) -> dict[str, Any]:
    content = {"Start": start, "End": end, "Limit": limit, "Revision": revision}
    return {"Type": "range", "Range": content}


def found(*pairs: tuple[str, str, int], count: int | None = None) -> dict[str, Any]:
    kvs = [{"Key": k, "Value": {"Value": v}, "ModRevision": r} for k, v, r in pairs]
    return {"KVs": kvs, "Count": len(kvs) if count is None else count}


def done(revision: int, *results: dict[str, Any], failure: bool = False) -> dict[str, Any]:
    return {"Txn": {"Failure": failure, "Results": list(results)}, "Revision": revision}


TIMED_OUT = {"Error": "context deadline exceeded"}


def recorded(folder: Path, *steps: tuple[dict[str, Any], dict[str, Any]]) -> Path:
    """One client does one after the other; an error retires it."""
    path = folder / "operations.json"
    client, lines = 1, list[str]()
    for place, (request, output) in enumerate(steps):
        is_open = "Error" in output
        line = {"ClientId": client, "Input": request, "Call": 10 * place, "Output": output}
        lines.append(json.dumps({**line, "Return": 0 if is_open else 10 * place + 5}) + "\n")
        client += is_open
    path.write_text("".join(lines))
    return path


def shown(operations: list[PairedOperation]) -> list[tuple[str, str | None, Any, str]]:
    return [
        (one.f, one.key, one.result if one.f == "read" else one.argument, one.type)
        for one in operations
    ]


def test_puts_deletes_and_reads_are_those_of_registers(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        (txn(put("k", "a")), done(2)),
        (span("k"), {"Range": found(("k", "a", 2)), "Revision": 2}),
        (txn(delete("k")), done(3)),
        (span("k"), {"Range": found(), "Revision": 3}),
    )
    history = load(path)
    assert history.format == "etcd-robustness"
    assert shown(history.operations) == [
        ("write", "k", "a", "ok"),
        ("read", "k", "a", "ok"),
        ("write", "k", None, "ok"),
        ("read", "k", None, "ok"),
    ]


def test_a_revision_stands_for_the_value_that_it_gave(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        (txn(put("k", "a"), only_if=("k", 0)), done(2)),
        (txn(put("k", "b"), only_if=("k", 2)), done(3)),
        (txn(put("k", "c"), only_if=("k", 3)), TIMED_OUT),
        (txn(put("k", "d"), only_if=("k", 9)), done(4)),
    )
    assert shown(load(path).operations) == [
        ("cas", "k", [None, "a"], "ok"),
        ("cas", "k", ["a", "b"], "ok"),
        ("cas", "k", ["b", "c"], "info"),
        ("write", "k", "d", "ok"),
    ]


def test_a_refused_transaction_is_what_its_other_branch_read(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        (txn(put("k", "a")), done(2)),
        (
            txn(put("k", "b"), only_if=("k", 7), otherwise=[get("k")]),
            done(2, found(("k", "a", 2)), failure=True),
        ),
    )
    assert shown(load(path).operations)[1:] == [("read", "k", "a", "ok")]


def test_of_a_transaction_without_answer_either_branch_may_have_happened(tmp_path: Path) -> None:
    path = recorded(
        tmp_path, (txn(put("k", "a"), only_if=("k", 7), otherwise=[put("k", "b")]), TIMED_OUT)
    )
    history = load(path)
    assert shown(history.operations) == [("write", "k", "a", "info"), ("write", "k", "b", "info")]
    assert len({one.process for one in history.operations}) == 2


def test_a_range_is_taken_apart_by_key_with_those_that_are_absent(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        (txn(put("a", "1"), put("b", "2"), put("z", "3")), done(2)),
        (txn(delete("b")), done(3)),
        (span("a", "c"), {"Range": found(("a", "1", 2)), "Revision": 3}),
        (span("a", "\0", limit=1), {"Range": found(("a", "1", 2), count=2), "Revision": 3}),
    )
    assert shown(load(path).operations)[4:] == [
        ("read", "a", "1", "ok"),
        ("read", "b", None, "ok"),
        ("read", "a", "1", "ok"),
    ]


def test_a_lease_may_end_at_any_time(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        (txn(put("k", "a", lease=5)), done(2)),
        ({"Type": "leaseRevoke", "LeaseRevoke": {"LeaseID": 5}}, {"Revision": 3}),
        (span("k"), {"Range": found(), "Revision": 3}),
    )
    history = load(path)
    assert shown(history.operations)[:2] == [
        ("write", "k", "a", "ok"),
        ("write", "k", None, "info"),
    ]
    assert check(history.operations, "cas-register", Unlimited()).verdict is Verdict.VALID
    assert "a leaseRevoke (1)" in history.notes[0]


def test_what_shows_nothing_of_a_register_is_left_out_and_told(tmp_path: Path) -> None:
    path = recorded(
        tmp_path,
        (span("k", revision=2), {"Range": found(("k", "a", 2)), "Revision": 9}),
        (span("k"), {"Range": found(), "Revision": -1}),
        ({"Type": "compact", "Compact": {"Revision": 1}}, {"Revision": 9}),
        (span("k"), TIMED_OUT),
    )
    history = load(path)
    assert history.operations == []
    assert history.notes == (
        (
            "Left out, for it shows nothing of a register: a compact (1), a read of the past (2), "
            "a read without an answer (1)."
        ),
    )


def test_long_values_are_alike_as_text_and_as_hash() -> None:
    # FNV-1a of 32 bits, as Go's hash/fnv gives it for "foobar": 0xbf9cf968.
    assert plain_text(Value("", 0xBF9CF968)) == "#bf9cf968"
    assert plain_text(Value("short")) == "short"
    assert plain_text(Value(LONG)).startswith("#")
    assert plain_text(Value(LONG)) != plain_text(Value(LONG + "."))


@pytest.mark.parametrize(("seen", "verdict"), [("a", Verdict.VALID), ("z", Verdict.INVALID)])
def test_a_report_folder_is_judged_as_one_history(
    tmp_path: Path, seen: str, verdict: Verdict
) -> None:
    first, second = tmp_path / "client-1", tmp_path / "client-2"
    first.mkdir()
    second.mkdir()
    recorded(first, (txn(put("k", "a")), done(2)))
    line = {"ClientId": 2, "Input": span("k"), "Call": 20, "Return": 25}
    output = {"Range": found(("k", seen, 2)), "Revision": 2}
    (second / "operations.json").write_text(json.dumps({**line, "Output": output}))
    history = load(tmp_path)
    assert history.format == "etcd-robustness"
    assert check(history.operations, "register", Unlimited()).verdict is verdict
