"""On planted violations of every model: does the explanation point at the operation that lies?

Where an answer was changed, several operations can be equally to blame: a read that lies about one
write contradicts the next read as well, and either of the two could be the liar. So the core must
name the liar in most histories, not in all; how often is counted, with a floor.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random
from typing import Any

import pytest

from bench.histories import HistoryOptions, generate, with_stale_read
from splitbrain.checker.explanation import from_data
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.small_histories import history_with_a_lie

#: Operations of a history, and histories per model.
SIZE = 20
PLANTED = 40
#: Of so many the core names the liar at least, is minimal, and asks nothing of the others' times.
NAMED_MIN = 38
MINIMAL_MIN = 38
AT_ANY_TIME_MIN = 30
#: A value that comes and goes is often true: more of its lies are lies at their time alone.
AT_ANY_TIME_MIN_OF = {"topics": 25}


#: Index of a liar, and the violation.
Explained = tuple[int, dict[str, Any]]


def _explained(model: str) -> Iterator[Explained]:
    random = Random(f"quality {model}")
    while True:
        history, liar = history_with_a_lie(random, model, SIZE)
        result = check(history, model, Unlimited())
        if liar is not None and result.verdict is Verdict.INVALID:
            yield liar, result.violations[0]


@cache
def _known(model: str) -> tuple[list[Explained], Iterator[Explained]]:
    """Those found by an earlier test, and where more come from."""
    return [], _explained(model)


def explained(model: str, count: int) -> list[Explained]:
    """Planted lies that left no order."""
    found, more = _known(model)
    found.extend(islice(more, max(0, count - len(found))))
    return found[:count]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_core_names_the_operation_that_lies(model: str) -> None:
    planted = explained(model, PLANTED)
    named = sum(
        liar in [member["index"] for member in violation["core"]] for liar, violation in planted
    )
    minimal = sum(violation["core_minimal"] for _, violation in planted)
    at_any_time = sum(violation["core_at_any_time"] for _, violation in planted)
    assert named >= NAMED_MIN, f"{named} of {PLANTED}"
    assert minimal >= MINIMAL_MIN, f"{minimal} of {PLANTED}"
    floor = AT_ANY_TIME_MIN_OF.get(model, AT_ANY_TIME_MIN)
    assert at_any_time >= floor, f"{at_any_time} of {PLANTED}"


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_explanation_is_whole(model: str) -> None:
    for _, violation in explained(model, 10):
        json.dumps(violation)
        sentence = violation["sentence"]
        assert re.fullmatch(r".+ by process \d+ \(index \d+\) has no place: .+\.", sentence), (
            sentence
        )
        assert not re.search(r"PairedOperation|Call\(|\bor or\b|  |, ,|\(\)", sentence), sentence
        graph = from_data(violation["graph"])
        indices = {member["index"] for member in violation["core"]}
        assert indices <= set(graph.nodes)
        # The answer's source is shown beside the core.
        sources = {source["index"] for source in violation["sources"]}
        assert not sources or sources & set(graph.nodes)
        # The orders that came furthest, where the search kept them.
        for order in violation["longest_orders"]:
            assert order["length"] >= violation["placed"]
            assert len(order["last"]) == min(20, order["length"])


@pytest.mark.parametrize("values", [0, 5], ids=["unique-values", "5-values"])
def test_the_core_of_a_stale_read_among_many_operations_names_it(values: int) -> None:
    free = 0
    for seed in range(20):
        history = generate(HistoryOptions(400, 10, values=values, mix="register", seed=seed))
        spoiled = with_stale_read(Random(seed), history)
        (stale,) = (new for old, new in zip(history, spoiled, strict=True) if old != new)
        (violation,) = check(spoiled, "cas-register", Unlimited()).violations
        assert violation["core_minimal"]
        assert violation["core_size"] <= 12
        assert stale.index in [member["index"] for member in violation["core"]]
        free += violation["core_at_any_time"]
    # Where values repeat, nearly each write of one would have to be a member.
    assert free == 20 if values == 0 else free < 10
