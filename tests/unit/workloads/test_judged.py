"""Workloads on a service in memory: the right one is valid, and each mutant turns a judge red."""

from collections.abc import Sequence

import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.names import can_judge, transactions_level
from splitbrain.checker.registry import checker_named
from splitbrain.checker.transactions.levels import ANOMALIES, LEVELS, anomalies_of, levels_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from splitbrain.workloads import rows, transactions
from splitbrain.workloads.workload import Workload, workload
from tests.unit.workloads.memory_service import (
    GrantsTwice,
    LosesUpdates,
    ReadsOldCopies,
    RepeatsIds,
    Service,
    TakesAnyToken,
    TearsChanges,
    TearsReads,
    history_of,
)

NAMES = (
    *("bank", "counter", "kv", "lease", "list-append", "long-fork", "multi-register", "mutex"),
    *("rows", "rw-register", "sessions", "unique-ids"),
)
OPERATIONS_PER_SLOT = 40
SLOTS = 10


def made(name: str) -> Workload:
    return workload(name, seed=3, slots=SLOTS, readers=frozenset(), options={})


def history(name: str, kind: type[Service]) -> tuple[PairedOperation, ...]:
    return tuple(history_of(made(name), kind, SLOTS, OPERATIONS_PER_SLOT))


def judged(name: str, kind: type[Service]) -> Sequence[CheckResult]:
    evidence = Evidence(history(name, kind), functions=dict(made(name).functions))
    judges = [judge for judge in made(name).checkers if can_judge(judge, ())]
    return [checker_named(judge)(evidence, Unlimited()) for judge in judges]


@pytest.mark.parametrize("name", NAMES)
def test_a_correct_service_is_valid(name: str) -> None:
    found = judged(name, Service)
    assert {(result.verdict, result.undecided) for result in found} == {("valid", None)}


@pytest.mark.parametrize(
    ("name", "mutant", "kinds"),
    [
        ("counter", LosesUpdates, {"not-linearizable", "too-low"}),
        ("kv", ReadsOldCopies, {"not-linearizable"}),
        ("bank", LosesUpdates, {"wrong-total"}),
        ("bank", TearsChanges, {"wrong-total"}),
        ("bank", TearsReads, {"wrong-total"}),
        ("kv", LosesUpdates, {"not-linearizable"}),
        ("list-append", LosesUpdates, {*ANOMALIES}),
        ("list-append", TearsReads, {"G-single", "G-nonadjacent", "G2-item"}),
        ("rw-register", LosesUpdates, {"lost-update", "G-single", "G2-item", "cyclic-versions"}),
        ("long-fork", TearsReads, {"long-fork", "G-nonadjacent", "G2-item"}),
        ("rows", LosesUpdates, {*anomalies_of("rows")}),
        ("rows", TearsReads, {"G-single-predicate", "G-nonadjacent-predicate", "G-single", "G2"}),
        ("multi-register", TearsChanges, {"not-linearizable"}),
        ("multi-register", TearsReads, {"not-linearizable"}),
        ("mutex", GrantsTwice, {"not-linearizable"}),
        ("mutex", LosesUpdates, {"not-linearizable"}),
        ("lease", TakesAnyToken, {"lower-token-accepted"}),
        ("unique-ids", RepeatsIds, {"duplicated"}),
        ("sessions", ReadsOldCopies, {"monotonic-reads", "read-your-writes"}),
    ],
)
def test_a_broken_promise_is_seen(name: str, mutant: type[Service], kinds: set[str]) -> None:
    found = judged(name, mutant)
    assert {result.verdict for result in found} == {"invalid"}
    assert {violation["kind"] for result in found for violation in result.violations} <= kinds


def test_a_workload_of_transactions_has_each_level_that_is_judged() -> None:
    assert {*transactions.LEVELS} == {*LEVELS}
    for level in transactions.LEVELS:
        (judge, _) = transactions.checkers_of("list-append", level)
        assert transactions_level(judge) == ("list-append", level)


def test_the_workload_of_rows_has_each_level_that_rows_are_judged_by() -> None:
    assert {*rows.ROW_LEVELS} == {*levels_of("rows")}
    for level in rows.ROW_LEVELS:
        (judge, _) = transactions.checkers_of("rows", level)
        assert transactions_level(judge) == ("rows", level)


def test_leases_run_out_under_holders_that_go_on_believing() -> None:
    (fencing,) = judged("lease", Service)
    assert fencing.figures["refused"] > 0
    assert fencing.figures["two-believed-holders"] > 0
    assert fencing.figures["token-repeated"] == 0


def test_transfers_and_locks_are_refused_now_and_then() -> None:
    for name, f in (("bank", "transfer"), ("mutex", "acquire"), ("mutex", "release")):
        functions = made(name).functions
        refused = functions[f].refused
        assert refused is not None
        found = [o for o in history(name, Service) if o.type == "ok"]
        answers = [refused.covers(o.result) for o in found if o.f == f]
        assert 0.05 < sum(answers) / len(answers) < 0.95
