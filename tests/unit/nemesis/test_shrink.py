"""Delta debugging, with oracles that say what a run would."""

from collections.abc import Callable, Sequence

import pytest

from splitbrain.contracts.budget import Unlimited
from splitbrain.nemesis.search import ddmin, simplest, split


class Oracle:
    """Says whether it is true of a candidate, and remembers what it was asked."""

    def __init__(self, fails: Callable[[Sequence[int]], bool]) -> None:
        self._fails = fails
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, candidates: Sequence[tuple[int, ...]]) -> int | None:
        for place, candidate in enumerate(candidates):
            self.asked.append(candidate)
            if self._fails(candidate):
                return place
        return None


class Tries:
    """A budget of questions that an oracle was asked."""

    def __init__(self, oracle: Oracle, tries_max: int) -> None:
        self._oracle = oracle
        self._tries_max = tries_max

    def exhausted(self) -> str | None:
        return "used up" if len(self._oracle.asked) >= self._tries_max else None


def needs(*wanted: int) -> Callable[[Sequence[int]], bool]:
    """It takes all of these."""
    return lambda candidate: all(one in candidate for one in wanted)


@pytest.mark.parametrize(
    "wanted", [(), (0,), (99,), (3, 4), (0, 99), (1, 50, 98), tuple(range(0, 100, 9))]
)
def test_exactly_what_it_takes_is_left(wanted: tuple[int, ...]) -> None:
    oracle = Oracle(needs(*wanted))
    shrunk = ddmin(range(100), oracle, Unlimited())
    assert shrunk.items == wanted
    assert shrunk.is_minimal
    assert shrunk.tries == len(oracle.asked)


def test_nothing_is_asked_twice() -> None:
    oracle = Oracle(needs(2, 3, 17, 31))
    ddmin(range(40), oracle, Unlimited())
    assert len(set(oracle.asked)) == len(oracle.asked)


def test_one_of_many_is_found_in_logarithmic_tries() -> None:
    oracle = Oracle(needs(777))
    assert ddmin(range(1024), oracle, Unlimited()).items == (777,)
    assert len(oracle.asked) <= 2 * 10 + 1


def test_whoever_is_not_monotonic_still_ends_where_nothing_can_go_alone() -> None:
    def fails(candidate: Sequence[int]) -> bool:
        return sum(candidate) % 3 == 0 and 5 in candidate

    shrunk = ddmin(range(10), Oracle(fails), Unlimited())
    left = shrunk.items
    assert fails(left)
    assert shrunk.is_minimal
    for gone in left:
        assert not fails([one for one in left if one != gone])


def test_items_of_which_nothing_can_go_are_all_left() -> None:
    oracle = Oracle(needs(*range(7)))
    assert ddmin(range(7), oracle, Unlimited()).items == tuple(range(7))


def test_an_empty_list_needs_no_question() -> None:
    oracle = Oracle(lambda _: True)
    shrunk = ddmin([], oracle, Unlimited())
    assert (shrunk.items, shrunk.tries, shrunk.is_minimal) == ((), 0, True)


def test_the_budget_ends_the_search_with_the_best_so_far() -> None:
    fails = needs(10, 90)
    whole = ddmin(range(100), Oracle(fails), Unlimited())
    for tries_max in range(whole.tries):
        oracle = Oracle(fails)
        shrunk = ddmin(range(100), oracle, Tries(oracle, tries_max))
        assert fails(shrunk.items)
        assert not shrunk.is_minimal


def test_things_that_cannot_be_hashed_are_shrunk_too() -> None:
    items = [{"number": number} for number in range(8)]
    shrunk = ddmin(
        items,
        lambda candidates: next(
            (place for place, one in enumerate(candidates) if {"number": 6} in one), None
        ),
        Unlimited(),
    )
    assert shrunk.items == ({"number": 6},)


def test_a_value_becomes_as_simple_as_it_may() -> None:
    def halves(value: int) -> list[int]:
        return [0, value // 2, value - 1] if value else []

    assert simplest(1000, halves, lambda value: value >= 37, Unlimited()) == 37
    assert simplest(1000, halves, lambda value: value >= 0, Unlimited()) == 0


def test_a_value_is_left_alone_once_the_budget_is_used_up() -> None:
    spent = Oracle(lambda _: True)
    assert simplest(8, lambda value: [value - 1], lambda _: True, Tries(spent, 0)) == 8


def test_parts_are_even_and_in_order() -> None:
    assert split((1, 2, 3, 4, 5), 2) == [(1, 2), (3, 4, 5)]
    assert split((1, 2, 3), 3) == [(1,), (2,), (3,)]
