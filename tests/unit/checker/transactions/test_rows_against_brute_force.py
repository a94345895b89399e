"""The checker of transactions on rows against an oracle that knows the definitions alone."""

from random import Random

import pytest

from splitbrain.checker.transactions import row_search
from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.levels import levels_of
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.brute_force_rows import is_of_level
from tests.unit.checker.transactions.row_cases import RARE_ROWS
from tests.unit.checker.transactions.small_rows import named, random_row_transactions
from tests.unit.checker.transactions.test_against_brute_force import HISTORIES

JUDGED = sorted(name for name in levels_of("rows") if not name.endswith("read-uncommitted"))
#: Levels that look at anti-dependencies of predicates.
SEARCHED = [name for name in JUDGED if name.endswith(("serializable", "snapshot-isolation"))]


@pytest.mark.parametrize("level", [name for name in JUDGED if name not in SEARCHED])
def test_a_verdict_is_what_the_definition_says(level: str) -> None:
    agree_with_brute_force(level, range(HISTORIES))


@pytest.mark.parametrize("level", SEARCHED)
def test_choices_are_left_for_the_solver(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And verdicts are right: few of small histories need it, most decide themselves."""
    found: list[int] = []
    opened = row_search.RowSearch.open_graph

    def counted(search: row_search.RowSearch, of: row_search.Level) -> object:
        graph = opened(search, of)
        found.append(graph is not None)
        return graph

    monkeypatch.setattr(row_search.RowSearch, "open_graph", counted)
    done = 0
    while done < 4 * HISTORIES or (sum(found) < 5 and done < 10 * HISTORIES):
        agree_with_brute_force(level, range(done, done + HISTORIES))
        done += HISTORIES
    assert sum(found) >= 5


@pytest.mark.parametrize(("level", "history"), RARE_ROWS)
def test_a_rare_history_is_what_the_definition_says(
    level: str, history: list[PairedOperation]
) -> None:
    expected = Verdict.VALID if is_of_level(history, level) else Verdict.INVALID
    assert check(history, Unlimited(), "rows", level).verdict is expected


def agree_with_brute_force(level: str, numbers: range) -> None:
    """Judge the histories of these numbers; those of odd ones violate the level."""
    for number in numbers:
        random = Random(f"rows {level} {number}")
        expected = number % 2 == 0
        history = drawn_rows(random, level, wanted=expected)
        verdict = check(history, Unlimited(), "rows", level).verdict
        assert verdict is (Verdict.VALID if expected else Verdict.INVALID), (number, named(history))


def drawn_rows(random: Random, level: str, *, wanted: bool) -> list[PairedOperation]:
    """Draw histories until one with a range is of a level, or is not, as wanted."""
    while True:
        history = random_row_transactions(random)
        ranges = [f for o in history if o.type == "ok" for f, _, _ in o.result if f == "range"]
        if ranges and is_of_level(history, level) == wanted:
            return history
