"""Parts of a system have leaders and epochs of their own, and each epoch one leader."""

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.state_event import StateEvent
from tests.unit.checker.operations import role
from tests.unit.checker.test_split_brain import TWICE_LED, events, judged, kinds_or_verdict


def part(node: str, sequence: int, name: str, epoch: int, leader: int | None) -> StateEvent:
    detail = {"part": name, "epoch": epoch, "role": "follower", "leader": leader}
    return StateEvent(node, sequence, 0, "part", 0, time=sequence, detail=detail)


PARTS_WITH_ONE_LEADER = events(
    # An epoch of one part has nothing to do with that of another, nor with the roles.
    role("n1", 0, "leader", 3, 10, leader=1),
    part("n1", 1, "orders", 3, 2),
    part("n1", 2, "bills", 3, 3),
    part("n1", 3, "bills", 4, 1),
    part("n2", 0, "orders", 3, None),
    part("n2", 1, "bills", 3, 3),
)
PART_WITH_TWO_LEADERS = events(part("n1", 0, "orders", 3, 1), part("n2", 0, "orders", 3, 2))


def test_an_epoch_of_one_part_has_nothing_to_do_with_that_of_another() -> None:
    result = judged(state_events=PARTS_WITH_ONE_LEADER)
    assert result.verdict is Verdict.VALID
    assert result.figures["epochs-of-parts"] == 3
    assert result.reason.startswith(
        "The only epoch had one leader, as had each of 3 epochs of its parts; there are no"
    )


def test_two_leaders_of_a_part_are_named() -> None:
    result = judged(state_events=PART_WITH_TWO_LEADERS)
    assert kinds_or_verdict(result) == (TWICE_LED,)
    assert result.reason == "Epoch 3 of orders had several leaders: n1 took 1, n2 took 2."
