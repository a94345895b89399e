"""Random share groups: none that keeps its promise is accused, and most that err are."""

import pytest

from splitbrain.checker.share_groups.check import check
from splitbrain.checker.share_groups.readings import problem_with
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.share_world import World
from tests.unit.checker.transform_histories import kinds_and_verdict


def test_a_share_group_that_keeps_its_promise_is_not_accused() -> None:
    valid = exhausted = 0
    for seed in range(400):
        operations = World(seed).run().operations
        found = check(operations, Unlimited())
        assert found.verdict is not Verdict.INVALID, (seed, found.reason)
        valid += found.verdict is Verdict.VALID
        exhausted += found.figures["maybe-exhausted"]
    # Nearly all of them are judged in full, and some have records that were given up unseen.
    assert valid > 350
    assert exhausted > 0


def test_a_leader_that_does_not_know_its_successor_is_stale_and_nothing_worse() -> None:
    stale = 0
    for seed in range(100):
        found, _ = kinds_and_verdict(check, World(seed, is_late=True).run().operations)
        assert found <= {"stale-delivery"}, (seed, found)
        stale += bool(found)
    assert stale > 50


@pytest.mark.parametrize(
    ("defect", "kinds"),
    [
        ("not-on-disk", {"redelivered"}),
        ("lock-ignored", {"two-holders"}),
        ("record-skipped", {"lost-record"}),
        ("value-mixed", {"phantom-record"}),
    ],
)
def test_a_share_group_that_errs_is_found(defect: str, kinds: set[str]) -> None:
    struck = invalid = 0
    for seed in range(100):
        world = World(seed, defect).run()
        found, _ = kinds_and_verdict(check, world.operations)
        struck += world.struck > 0
        invalid += bool(found & kinds)
        assert found <= kinds, (seed, found)
    assert struck > 60
    assert invalid > 0.8 * struck


@pytest.mark.parametrize("seed", range(5))
def test_its_operations_make_sense(seed: int) -> None:
    ours = [each for each in World(seed).run().operations if each.f not in ("send", "poll")]
    assert [problem_with(each) for each in ours] == [None] * len(ours)
