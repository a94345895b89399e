"""Each anomaly in its smallest history, and none of that name in one that nearly shows it."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.registry import checker_named
from splitbrain.checker.transactions import commit_orders
from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.levels import ANOMALIES, LEVELS, Kind, levels_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.cases import CASES, ORDER_CASES, REGISTER_CASES, Case, t
from tests.unit.checker.transactions.row_cases import ROW_CASES, ROW_ORDER_CASES

EACH = [*CASES.items(), *REGISTER_CASES.items(), *ROW_CASES.items()]
ORDERS = [*ORDER_CASES.items(), *ROW_ORDER_CASES.items()]


def judged(
    operations: Sequence[PairedOperation], kind: Kind, level: str = "strict-serializable"
) -> CheckResult:
    numbered = []
    for index, operation in enumerate(operations):
        process = operation.process or 100 + index
        numbered.append(msgspec.structs.replace(operation, index=index, process=process))
    checker = checker_named(f"transactions:{kind}:{level}")
    return checker(Evidence(operations=tuple(numbered)), Unlimited())


def found(result: CheckResult) -> set[str]:
    return {finding["kind"] for finding in (*result.violations, *result.observations)}


@pytest.mark.parametrize(("name", "case"), [*EACH, *ORDERS])
def test_the_smallest_history_shows_the_anomaly(name: str, case: Case) -> None:
    result = judged(case.shows, case.kind, case.level)
    assert name in found(result)
    assert result.verdict is Verdict.INVALID
    assert result.figures[name] >= 1


@pytest.mark.parametrize(("name", "case"), [*EACH, *ORDERS])
def test_a_history_that_nearly_shows_it_does_not(name: str, case: Case) -> None:
    assert name not in found(judged(case.nearly, case.kind, case.level))


def test_every_anomaly_has_a_case() -> None:
    assert {name for name, _ in (*EACH, *ORDERS)} == set(ANOMALIES)


@pytest.mark.parametrize(("name", "case"), ORDERS)
def test_an_order_that_is_not_there_counts_against_each_level_that_implies_it(
    name: str, case: Case
) -> None:
    assert judged(case.nearly, case.kind, case.level).verdict is Verdict.VALID
    for level in map(LEVELS.__getitem__, levels_of(case.kind)):
        if level.forbids(name):
            assert judged(case.shows, case.kind, level.name).verdict is Verdict.INVALID


@pytest.mark.parametrize(("name", "case"), EACH)
def test_an_anomaly_counts_against_the_levels_that_forbid_it_alone(name: str, case: Case) -> None:
    for level in map(LEVELS.__getitem__, levels_of(case.kind)):
        result = judged(case.shows, case.kind, level.name)
        kinds = {violation["kind"] for violation in result.violations}
        assert (name in kinds) == (level.forbids(name) or name == "lost")


def test_a_stale_read_is_legal_under_plain_snapshot_isolation() -> None:
    history = CASES["G-single-realtime"].shows
    assert judged(history, "list-append", "snapshot-isolation").verdict is Verdict.VALID
    strong = judged(history, "list-append", "strong-snapshot-isolation")
    assert strong.verdict is Verdict.INVALID
    assert strong.reason.endswith(
        "Not strong parallel snapshot isolation or strong repeatable read (G-single-realtime); "
        "it may still be strong session serializable or strong read committed."
    )


def test_a_cycle_is_told_with_a_sentence_for_each_edge_and_what_proves_it() -> None:
    history = [t("append z 5, append x 1, append y 2"), t("r x [1], r z [5], r y []")]
    violation, vanished = judged(history, "list-append").violations
    assert vanished["kind"] == "observed-transaction-vanishes"
    assert violation["sentence"] == (
        "None of these 2 can be first: transaction 1 (process 101) read [] of key y, without 2, "
        "which transaction 0 (process 100) appended; and transaction 1 (process 101) read [5] of "
        "key z, which shows 5 by transaction 0 (process 100)."
    )
    assert [(edge["from"], edge["to"], edge["kind"]) for edge in violation["edges"]] == [
        (1, 0, "rw"),
        (0, 1, "wr"),
    ]
    # The key x has no part in it.
    assert [operation["text"] for operation in violation["operations"]] == [
        "txn r z [5], r y [] (index 1, process 101)",
        "txn append z 5, append y 2 (index 0, process 100)",
    ]


def test_real_time_through_others_is_one_edge() -> None:
    between = [t(f"append z {n}", 10 * n, 10 * n + 5) for n in range(1, 6)]
    history = [t("append x 1", 0, 5), *between, t("r x []", 60, 70)]
    (violation,) = judged(history, "list-append").violations
    assert [edge["kind"] for edge in violation["edges"]] == ["rw", "realtime"]


def test_an_open_transaction_that_nobody_read_from_need_not_have_happened() -> None:
    history = [t("append x 1, append y 1", outcome="info"), t("r x [], r y []", 200, 300)]
    assert judged(history, "list-append").verdict is Verdict.VALID
    seen = [*history, t("r x [1], r y []", 400, 500)]
    assert "G-single" in found(judged(seen, "list-append"))


def test_overwrites_are_never_claimed_of_registers() -> None:
    history = [
        t("r x 4, w x 3, w y 1"),
        t("r x 3, w x 4, w y 2"),
        t("r x 3, r y 2"),
    ]
    names = found(judged(history, "rw-register"))
    assert not any(name.startswith("G0") for name in names)
    assert "G1c" in names


#: Two that each read what the other one replaced, and writes whose order nobody saw.
OPEN_SKEW = [t("r x null, w y 1"), t("r y null, w x 1"), t("w x 2"), t("w y 2")]


def test_an_open_order_of_writes_that_is_no_serial_one_is_found_for_snapshots() -> None:
    assert judged(OPEN_SKEW, "rw-register", "snapshot-isolation").verdict is Verdict.VALID
    assert judged(OPEN_SKEW, "rw-register", "serializable").verdict is Verdict.INVALID


def test_without_the_solver_an_open_order_is_unknown_and_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pysat.solvers", None)
    result = judged(OPEN_SKEW, "rw-register", "snapshot-isolation")
    assert result.verdict is Verdict.UNKNOWN
    assert "the order of some writes stays open, of key y for one" in result.reason
    assert "python -m pip install 'splitbrain[sat]'" in result.reason


class EndsAfter:
    """A budget that is used up after so many looks at it."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def exhausted(self) -> str | None:
        self.looks -= 1
        return "looked at too often" if self.looks < 0 else None


@pytest.mark.parametrize("name", ["no-serial-order", "no-snapshot-order"])
def test_a_budget_that_ends_leaves_an_open_order_unknown(name: str) -> None:
    case = ORDER_CASES[name]
    seen: set[Verdict] = set()
    for looks in range(40):
        operations = tuple(msgspec.structs.replace(o, index=n) for n, o in enumerate(case.shows))
        verdict = check(operations, EndsAfter(looks), case.kind, case.level).verdict
        assert verdict is not Verdict.VALID
        seen.add(verdict)
    assert seen == {Verdict.UNKNOWN, Verdict.INVALID}


def test_unread_appends_on_one_cycle_leave_no_snapshots() -> None:
    """The two to z must be in some order, and then one of them would have seen the other's."""
    skew = [
        t("r x [], append y 1, append z 1"),
        t("r y [], append x 1, append z 2"),
    ]
    (violation,) = judged(skew, "list-append", "snapshot-isolation").violations
    told = re.sub(r"transaction (\d+) \(process \d+\)", r"T\1", violation["sentence"])
    assert told == (
        "No order of the writes that no read shows is left. If 1 of T0 came before 2 of T1 in key "
        "z, then T1 came behind T0 by that; T1 read [] of key y, without 1, which T0 appended: "
        "none of them can be first. If 2 of T1 came before 1 of T0 in key z, then T0 came behind "
        "T1 by that; T0 read [] of key x, without 1, which T1 appended: none of them can be first."
    )
    assert judged(skew, "list-append", "serializable").verdict is Verdict.INVALID
    assert judged(skew, "list-append", "read-committed").verdict is Verdict.VALID


def test_an_append_that_another_final_read_shows_is_not_lost() -> None:
    history = [
        t("append x 1", 0, 1),
        t("r x []", 2, 3, final=True),
        t("r x [1]", 4, 5, final=True),
    ]
    assert "lost" not in found(judged(history, "list-append"))


#: Sentence of the last violation that a level of commit orders finds; T0 stands for transaction 0.
SENTENCES = {
    "observed-transaction-vanishes": (
        "monotonic-atomic-view",
        [t("w x 1, w y 1"), t("r x 1, r y null")],
        (
            "T1 read nothing of key y, with T0 in sight, which wrote 1 to it "
            "(T1 read 1 of key x by T0)."
        ),
    ),
    "fractured-read": (
        "read-atomic",
        [t("w x 1, w y 1"), t("w x 2, w y 2"), t("r x 1, r y 2")],
        (
            "None of these 2 can be first: T1 came before T0, for T2 read 1 of key x by T0, with "
            "T1 in sight, which wrote 2 to it (T2 read 2 of key y by T1); and T0 came before T1, "
            "for T2 read 2 of key y by T1, with T0 in sight, which wrote 1 to it (T2 read 1 of key "
            "x by T0)."
        ),
    ),
    "causality-violation": (
        "causal",
        [
            t("w x 1", 0, 1, process=7),
            t("w y 1", 2, 3, process=7),
            t("r y 1, w z 1"),
            t("r z 1, r x null"),
        ],
        (
            "T3 read nothing of key x, with T0 in sight, which wrote 1 to it (T1 came after T0 in "
            "the same process; T2 read 1 of key y by T1; T3 read 1 of key z by T2)."
        ),
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_missing_commit_order_is_told_with_whom_was_in_sight_and_how(name: str) -> None:
    level, history, sentence = SENTENCES[name]
    violation = judged(history, "rw-register", level).violations[-1]
    told = re.sub(r"[Tt]ransaction (\d+) \(process \d+\)", r"T\1", violation["sentence"])
    assert (violation["kind"], told) == (name, sentence)
    shown = " ".join(operation["text"] for operation in violation["operations"])
    assert all(f"index {index}" in shown for index in range(len(history)))


def test_a_stronger_level_forbids_what_a_weaker_one_does() -> None:
    for level in LEVELS.values():
        for weaker in filter(level.implies, LEVELS.values()):
            assert all(level.forbids(name) for name in ANOMALIES if weaker.forbids(name))


def test_levels_of_commit_orders_stand_below_those_that_promise_the_order_of_processes() -> None:
    causal = LEVELS["causal"]
    assert causal.implies(LEVELS["read-atomic"])
    assert LEVELS["read-atomic"].implies(LEVELS["monotonic-atomic-view"])
    assert LEVELS["monotonic-atomic-view"].implies(LEVELS["strong-session-read-committed"])
    assert LEVELS["strong-session-parallel-snapshot-isolation"].implies(causal)
    assert not LEVELS["serializable"].implies(LEVELS["monotonic-atomic-view"])
    assert not causal.implies(LEVELS["parallel-snapshot-isolation"])


def test_where_nothing_was_read_nothing_is_proven() -> None:
    result = judged([t("append x 1")], "list-append")
    assert result.verdict is Verdict.UNKNOWN


def test_many_readers_of_many_unread_writes_cost_a_line_each() -> None:
    from splitbrain.checker.transactions.dependencies import RW, Edges

    edges = Edges(2000)
    edges.fan([(n, 0) for n in range(1000)], RW, list(range(500, 1500)))
    assert len(edges.columns()[0]) < 8000


def reached(edges: Any) -> set[tuple[int, int]]:
    """Pairs of real nodes that an edge, and then stations, lead between."""
    source, target, _, _ = edges.columns()
    after: dict[int, list[int]] = {}
    for one, other in zip(source.tolist(), target.tolist(), strict=True):
        after.setdefault(one, []).append(other)
    found: set[tuple[int, int]] = set()
    for start in range(60):
        ahead = list(after.get(start, ()))
        while ahead:
            node = ahead.pop()
            if node < 60:
                found.add((start, node))
            else:
                ahead += after.get(node, ())
    return found


def test_stations_lead_to_everybody_but_oneself() -> None:
    from splitbrain.checker.transactions.dependencies import RW, Edges

    edges = Edges(60)
    edges.fan([(n, 0) for n in range(40)], RW, list(range(30, 60)))
    assert reached(edges) == {(s, t) for s in range(40) for t in range(30, 60) if s != t}


def test_a_level_that_was_looked_at_in_part_is_said_to_be_neither_left_nor_ruled_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = [
        t("append x 1"),
        t("r x [1], append y 1"),
        t("r y [1], r x []"),
    ]
    assert "causality-violation" in found(judged(history, "list-append"))
    monkeypatch.setattr(commit_orders, "_PAST_MAX", 0)
    unasked = judged(history, "list-append")
    assert "causality-violation" not in found(unasked)
    assert "causal" not in unasked.reason.partition("it may still be")[2]
    assert "causality-violation" in found(judged(history, "list-append", "causal"))
