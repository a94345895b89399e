"""Shortcuts that large histories take lead nowhere else than the long ways."""

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.graph import core_of, raised, ranks_of
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
