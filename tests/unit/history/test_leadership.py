"""Reigns: one reading, in which every kind that ends a process ends a reign."""

import pytest

from splitbrain.contracts.fault import TRAITS_OF_OLD, FaultEvent, FaultPhase, FaultTraits
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.fault_windows import fault_windows
from splitbrain.history.leadership import Reign, overlaps, reigns

S = 1_000_000_000


def role(at: int, role_name: str, epoch: int, incarnation: int = 0, node: str = "n1") -> StateEvent:
    return StateEvent(node, at, incarnation, "role", epoch, role=role_name, time=at * S)


def fault(
    kind: str, times: dict[FaultPhase, int], traits: FaultTraits | None = None
) -> list[FaultEvent]:
    return [
        FaultEvent(at * S, 0, kind, phase, "leader", (NodeName("n1"),), traits=traits)
        for phase, at in times.items()
    ]


#: The leader is killed at 2 s and back at 9 s; another one leads meanwhile.
STORY = {
    "n1": [role(1, "leader", 1), role(9, "follower", 2, 1)],
    "n2": [role(4, "leader", 2, node="n2")],
}
KILLED: dict[FaultPhase, int] = {"invoked": 2, "verified": 2, "healing": 8, "removed": 9}
#: The same, and the successor leads before anyone has looked at the process.
SEEN_LATE: dict[FaultPhase, int] = {**KILLED, "verified": 5}


def test_a_reign_ends_with_the_next_role() -> None:
    (reign,) = reigns({"n1": [role(1, "leader", 1), role(4, "follower", 2)]})
    assert reign == Reign("n1", 1, 0, S, 4 * S)


def test_leading_again_in_a_later_epoch_is_a_second_reign() -> None:
    story = {"n1": [role(1, "leader", 1), role(4, "leader", 2)]}
    assert [reign.epoch for reign in reigns(story)] == [1, 2]


def test_a_reign_that_never_ended_and_one_never_stamped_say_so() -> None:
    unstamped = StateEvent("n2", 0, 0, "role", 2, role="leader", time=None)
    assert reigns({"n2": [unstamped], "n1": [role(1, "leader", 1)]}) == [
        Reign("n1", 1, 0, S, None),
        Reign("n2", 2, 0, None, None),
    ]


@pytest.mark.parametrize(
    "kind", [kind for kind, traits in TRAITS_OF_OLD.items() if traits.ends_process == "at-once"]
)
@pytest.mark.parametrize("times", [KILLED, SEEN_LATE])
def test_a_leader_killed_by_any_kind_leads_no_longer(
    kind: str, times: dict[FaultPhase, int]
) -> None:
    first, second = reigns(STORY, fault_windows(fault(kind, times)))
    assert (first.end, second.end) == (2 * S, None)
    assert overlaps([first, second], 10 * S) == []
    assert len(overlaps(reigns(STORY), 10 * S)) == 1


def test_a_reign_that_begins_on_the_way_of_a_kill_ends_where_it_began() -> None:
    story = {"n1": [role(3, "leader", 1), role(9, "follower", 2, 1)]}
    (reign,) = reigns(story, fault_windows(fault("kill", SEEN_LATE)))
    assert (reign.start, reign.end) == (3 * S, 3 * S)


def test_a_kind_that_is_met_for_the_first_time_tells_its_traits_itself() -> None:
    windows = fault_windows(fault("axe", KILLED, FaultTraits("at-once")))
    assert reigns(STORY, windows)[0].end == 2 * S
    assert reigns(STORY, fault_windows(fault("axe", KILLED)))[0].end == 9 * S


def test_a_kind_that_kills_later_ends_a_reign_by_its_heal_and_spares_the_next_life() -> None:
    first, _ = reigns(STORY, fault_windows(fault("cut-then-kill", KILLED)))
    assert first.end == 8 * S
    rolling = fault_windows(fault("rolling-restart", KILLED))
    again = {"n1": [role(0, "leader", 1), role(4, "leader", 2, 1)]}
    assert [reign.end for reign in reigns(again, rolling)] == [4 * S, None]


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("kill", {"invoked": 1, "not-bitten": 3, "healing": 8}),  # nobody saw it end
        ("rot-log", KILLED),  # which may go unread
        ("pause", KILLED),
    ],
)
def test_a_reign_lasts_where_nobody_saw_its_process_end(
    kind: str, times: dict[FaultPhase, int]
) -> None:
    assert reigns(STORY, fault_windows(fault(kind, times)))[0].end == 9 * S
