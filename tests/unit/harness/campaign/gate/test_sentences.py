"""Words of the gate for figures and for changes."""

import math

import pytest

from splitbrain.contracts.figure import Unit
from splitbrain.harness.campaign.gate.sentences import change_text, value_text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (0.333, "33.3 % worse"),
        (-0.016, "1.6 % better"),
        (0.0, "no worse"),
        (-0.0001, "no worse"),
        (math.inf, "worse than none"),
    ],
)
def test_a_change_says_how_much_worse_it_is(change: float, said: str) -> None:
    assert change_text(change) == said


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(1.0, "share", "100 %"), (0.98765, "share", "98.77 %"), (1.0, "count", "1")],
)
def test_a_share_is_a_percentage_and_a_count_is_not(value: float, unit: Unit, said: str) -> None:
    assert value_text(value, unit) == said
