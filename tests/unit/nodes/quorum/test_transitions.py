from pathlib import Path

import pytest

from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.identifiers import Epoch
from splitbrain.nodes.quorum.transitions import TRANSITIONS, EpochChange, RoleName, check_transition

PAIRS = [(before, after) for before in RoleName for after in RoleName]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_only_what_the_table_names_is_allowed(before: RoleName, after: RoleName) -> None:
    rule = TRANSITIONS.get((before, after))
    steps = {
        EpochChange.SAME: [0],
        EpochChange.NEXT: [1],
        EpochChange.HIGHER: [1, 2],
        EpochChange.SAME_OR_HIGHER: [0, 1, 2],
    }
    allowed = steps[rule[0]] if rule else []
    for step in (-1, 0, 1, 2):
        if step in allowed:
            check_transition(before, after, Epoch(5), Epoch(5 + step))
        else:
            with pytest.raises(InvariantViolation, match="INV-20"):
                check_transition(before, after, Epoch(5), Epoch(5 + step))


def test_only_a_candidate_becomes_leader_and_a_leader_never_does_again_in_its_epoch() -> None:
    into_leader = [before for before, after in TRANSITIONS if after is RoleName.LEADER]
    assert into_leader == [RoleName.CANDIDATE]
    assert TRANSITIONS[RoleName.PROSPECTIVE, RoleName.CANDIDATE][0] is EpochChange.NEXT
    into_candidate = [before for before, after in TRANSITIONS if after is RoleName.CANDIDATE]
    assert into_candidate == [RoleName.PROSPECTIVE]


def test_the_document_shows_the_table() -> None:
    document = Path(__file__).parents[4] / "docs" / "invariants.md"
    text = document.read_text(encoding="utf-8")
    for (before, after), (change, reason) in TRANSITIONS.items():
        assert f"| {before} | {after} | {change} | {reason} |" in text
