"""INV-09: a leader commits up to a record of an earlier epoch.

Written by hand in the form in which `splitbrain shrink --save-test` saves tests: with two kills the
planted bug shows in seeds 0 to 11 alike, so that this world outlives small changes of the nodes'
steps.
"""

import pytest

from splitbrain.harness.campaign.sweep.regression import replays

SCENARIO = r"""
{
  "system": "kraft",
  "seed": 0,
  "bugs": ["prior-epoch-commit"],
  "load": {"clients": 2, "kept": []},
  "faults": [
    {
      "index": 0,
      "kind": "kill",
      "target": "there",
      "when": {"on": "commits"},
      "duration_us": 1000,
      "draw": 0
    },
    {
      "index": 1,
      "kind": "kill",
      "target": "leader",
      "when": {"on": "commits", "count": 2},
      "duration_us": 1000,
      "draw": 1
    }
  ],
  "load_us": 1500000
}
"""


def test_inv_09_holds_without_the_planted_bug() -> None:
    assert replays(SCENARIO, bugs=()) == ()


@pytest.mark.planted("prior-epoch-commit")
def test_inv_09_fails_with_the_planted_bug() -> None:
    assert "INV-09" in replays(SCENARIO)
