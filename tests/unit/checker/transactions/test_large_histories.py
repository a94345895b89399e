"""Shortcuts that large histories take lead nowhere else than the long ways."""

from random import Random
from typing import Any

import msgspec
import networkx as nx
import numpy as np
import pytest

from bench.transaction_histories import snapshot_rows
from splitbrain.checker.transactions import graph
from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.graph import (
    Edge,
    after_of,
    components,
    components_of,
    core_of,
    led_to,
    raised,
    ranks_of,
    successors_of,
)
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.transactions.small_transactions import random_transactions, transaction


def test_places_leave_out_no_edge_of_a_cycle() -> None:
    random = Random(1)
    with_cycle = 0
    for _ in range(500):
        count = random.randint(1, 12)
        pairs = [random.choices(range(count), k=2) for _ in range(random.randint(0, 14))]
        source, target = (
            np.array([p[n] for p in pairs if p[0] != p[1]], dtype=np.int64) for n in (0, 1)
        )
        places = np.array(random.choices(range(20), k=count), dtype=np.int64)
        settled = random.random() < 0.5 and raised(places, source, target)
        after: dict[int, list[int]] = {}
        for one, other in zip(source.tolist(), target.tolist(), strict=True):
            after.setdefault(one, []).append(other)
        ranks = ranks_of(after, lambda: None)
        ends = zip(source.tolist(), target.tolist(), strict=True)
        on_cycle = np.array([ranks[one] == ranks[other] for one, other in ends], dtype=bool)
        kept = core_of(source, target, places)
        assert not (on_cycle & ~kept).any()
        assert not (settled and kept.any())
        with_cycle += bool(on_cycle.any())
    assert 100 < with_cycle < 400


@pytest.mark.parametrize("kind", ["list-append", "rw-register"])
def test_micro_operations_of_another_shape_are_judged_alike(kind: Any) -> None:
    """Tuples are taken apart one by one."""
    random = Random(2)
    for _ in range(100):
        history = random_transactions(random, kind)
        odd = [
            msgspec.structs.replace(operation, argument=tuple(map(tuple, operation.argument)))
            for operation in history
        ]
        assert check(history, Unlimited(), kind) == check(odd, Unlimited(), kind)


@pytest.mark.parametrize("stale", [False, True])
def test_one_stale_read_among_thousands_is_found(*, stale: bool) -> None:
    history = []
    for number in range(3000):
        key, seen = number // 50, list(range(number // 50 * 50, number))
        if stale and number == 2030:
            seen.pop()
        parts = [["r", key, seen], ["append", key, number]]
        history.append(transaction(number, parts, 10 * number, 10 * number + 15, process=number))
    result = check(history, Unlimited(), "list-append")
    assert result.verdict is (Verdict.INVALID if stale else Verdict.VALID)
    if stale:
        indexes = {o["index"] for v in result.violations for o in v["operations"]}
        assert indexes <= set(range(2025, 2035))


def drawn_edges(random: Random) -> list[Edge]:
    count = random.randint(1, 14)
    pairs = [random.choices(range(count), k=2) for _ in range(random.randint(0, 24))]
    return [Edge(one, other, 0, number) for number, (one, other) in enumerate(pairs)]


@pytest.mark.parametrize("bits", [2, 4096])
def test_nodes_lead_where_their_edges_lead(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_BITS", bits)
    random = Random(3)
    leading = 0
    for _ in range(300):
        edges = drawn_edges(random)
        known = nx.DiGraph((edge.source, edge.target) for edge in edges)
        every = {(one, other) for one in known for other in known if one != other}
        asked = {pair for pair in every if random.random() < 0.7} | {(98, 99)}
        wanted = {(a, b) for a, b in asked if a in known and b in nx.descendants(known, a)}
        assert led_to(successors_of(edges), asked, lambda *_: None) == wanted
        leading += len(wanted)
    assert leading > 1000


def test_no_more_nodes_are_looked_for_than_steps_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_BITS", 1)
    monkeypatch.setattr(graph, "_STEPS_MAX", 0)
    edges = [Edge(0, 1, 0, 0), Edge(1, 2, 0, 0)]
    assert len(led_to(successors_of(edges), {(0, 1), (0, 2)}, lambda *_: None)) == 1


def gathered(component: dict[int, int]) -> set[frozenset[int]]:
    numbers = component.values()
    return {frozenset(node for node, its in component.items() if its == n) for n in numbers}


def test_components_need_no_proofs() -> None:
    random = Random(4)
    for _ in range(200):
        edges = drawn_edges(random)
        source, target = (np.array([e[n] for e in edges], dtype=np.int64) for n in (0, 1))
        found = components_of(after_of(source, target), lambda: None)
        told = components(successors_of(edges), lambda: None)
        assert gathered(found) == gathered(told)


def test_rows_that_snapshots_show_are_no_serial_order_and_all_that_snapshots_promise() -> None:
    history = snapshot_rows(400, 1)
    of_levels = {
        level: check(history, Unlimited(), "rows", level)
        for level in ("serializable", "snapshot-isolation")
    }
    assert of_levels["snapshot-isolation"].verdict is Verdict.VALID
    assert of_levels["serializable"].verdict is Verdict.INVALID
    assert {v["kind"] for v in of_levels["serializable"].violations} <= {"G2", "G2-item"}
