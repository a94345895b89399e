from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker import set_full, set_sightings
from splitbrain.checker.set_full import check
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.outcome_cases import add, read


def judged(*operations: PairedOperation) -> CheckResult:
    return check(operations, Unlimited())


def kinds(result: CheckResult) -> list[str]:
    return [violation["kind"] for violation in result.violations]


def test_sets_are_judged_apart_by_key() -> None:
    result = judged(
        add(1, 0, 5, key="a"),
        read([1], 6, 8, key="a"),
        add(2, 1, 5, key="b"),
        read([], 7, 9, key="b"),
    )
    assert [violation["key"] for violation in result.violations] == ["b"]


def test_violations_are_counted_in_full_and_named_in_part() -> None:
    result = judged(*(add(n, n, n + 1) for n in range(100)), read([], 200, 201))
    assert result.figures["lost"] == 100
    assert len(result.violations) == set_full.NAMED_MAX


# --- against definitions taken literally -----------------------------------------------------


def literal(operations: list[PairedOperation]) -> dict[str, int]:
    """Every element against every read, straight from the definitions."""
    adds = {o.argument: o for o in operations if o.f == "add"}
    reads = [o for o in operations if o.f == "read"]
    counts: dict[str, int] = dict.fromkeys(["lost", "stale", "phantom", "never-read"], 0)
    for element in {*adds, *(e for o in reads for e in o.result)}:
        showing = [o for o in reads if element in o.result]
        adding = adds.get(element)
        known = [o.end for o in showing if o.end is not None]
        if adding is not None and adding.type == "ok" and adding.end is not None:
            known.append(adding.end)
        unasked = adding is None or adding.type == "fail"
        early = adding is not None and any((o.end or 0) < adding.start for o in showing)
        counts["phantom"] += bool(showing) and (unasked or early)
        if not known or (adding is not None and adding.type == "fail"):
            continue
        due = [o for o in reads if o.start > min(known)]
        missing = [o for o in due if o not in showing]
        counts["never-read"] += not due and not showing
        lost = any(all((s.end or 0) < o.start for s in showing) for o in missing)
        counts["lost"] += lost
        counts["stale"] += bool(missing) and not lost
    return counts


def random_sets(random: Random) -> list[PairedOperation]:
    operations: list[PairedOperation] = []
    elements = list(range(6))
    for number in range(random.randint(3, 12)):
        start = random.randint(0, 20)
        end: int | None = start + random.randint(0, 6)
        fields: dict[str, Any] = {"index": number, "process": number}
        if random.random() < 0.5 and elements:
            kind = random.choice(("ok", "ok", "info", "fail"))
            end = None if kind == "info" else end
            operations.append(add(elements.pop(), start, end, outcome=kind, **fields))
        else:
            shown = [element for element in range(7) if random.random() < 0.6]
            operations.append(read(shown, start, end or 0, **fields))
    return operations


def counts_differ(random: Random, rounds: int) -> bool:
    for _ in range(rounds):
        operations = random_sets(random)
        figures = judged(*operations).figures
        expected = literal(operations)
        if {kind: figures[kind] for kind in expected} != expected:
            return True
    return False


def test_an_example_stands_with_its_own_kind_and_not_with_the_last_one_counted() -> None:
    result = judged(
        *(add(1, 0, 5), add(2, 0, 5)),
        *(read([1], 6, 8), read([2], 9, 10), read([2], 11, 12)),
    )
    assert kinds(result) == ["lost", "stale"]
    assert result.reason.startswith("1 of 2 acknowledged elements are lost: Element 1 of ")
    assert result.reason.endswith(" and from every later one. Also 1 stale.")


def test_the_linear_algorithm_agrees_with_the_definitions_taken_literally() -> None:
    assert not counts_differ(Random("set-full"), 3000)


def late_sights(*arguments: Any) -> Any:
    """They are still elements, but nobody returns to tell of them."""
    first, repeating = first_sights(*arguments)
    return {e: msgspec.structs.replace(seen, end=10_000) for e, seen in first.items()}, repeating


first_sights = set_sightings._first_sights


class CountsNothing(Counter[Any]):
    def update(self, *_: Any, **__: Any) -> None:
        pass


def new_of_next(kinds: Iterator[type[Counter[Any]]]) -> Counter[Any]:
    return next(kinds)()


#: The elements that are then called missing cannot be named, which is no point here.
UNNAMED = (set_full, "_missing", lambda *_, **__: {"sentence": ""})
MUTANTS: dict[str, Callable[[], list[tuple[Any, str, Any]]]] = {
    "last sights are forgotten": lambda: [(set_full, "last_sights", lambda *_: {})],
    "elements known by sight are forgotten": lambda: [
        (set_sightings, "_first_sights", late_sights)
    ],
    "equal times are in order": lambda: [
        (set_sightings, "bisect_right", lambda starts, known: sum(s < known for s in starts)),
        UNNAMED,
    ],
    # A sight by a read that was not due to show the element makes up for one that was.
    "early sights count": lambda: [
        (set_sightings, "Counter", partial(new_of_next, cycle([Counter, CountsNothing]))),
        UNNAMED,
    ],
    "presence is not judged": lambda: [(set_full, "_judge_presence", lambda *_: None)],
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_disagrees_with_the_definitions(
    monkeypatch: pytest.MonkeyPatch, mutant: str
) -> None:
    for replaced in MUTANTS[mutant]():
        monkeypatch.setattr(*replaced)
    assert counts_differ(Random("set-full"), 3000)
