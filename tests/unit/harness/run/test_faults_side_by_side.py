"""Several faults in force at once, faults that wait for an event, and what may not strike."""

from typing import Any

import pytest

from splitbrain.contracts.arms import Shape
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Awaited, Link
from splitbrain.contracts.names import NodeName
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.nemesis_driver import NemesisDriver
from splitbrain.nemesis.acts import (
    Act,
    Cut,
    Kill,
    LimitMemory,
    Pause,
    Restore,
    Resume,
    ShapeLinks,
    Start,
    Throttle,
    UnlimitMemory,
    UnshapeLinks,
    Unthrottle,
)
from splitbrain.nemesis.expectations import LinkIs, LinkShaped, NodeIs
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.holds import Holds
from tests.unit.harness.run.armed_world import ArmedWorld
from tests.unit.harness.run.driven import Driven, fault

N1, N2 = NodeName("n1"), NodeName("n2")
LINK = Link(N1, N2)
WHOLE = ["invoked", "verified", "healing", "removed", "resumed"]


def order(run: Driven) -> list[tuple[int, str]]:
    return [(event.index, event.phase) for event in run.events]


# --- what the others hold ---------------------------------------------------------------------


def healed(holds: Holds, fault_index: int, act: Act) -> tuple[Act, ...]:
    """Return the calls of an act that lets go, and that nothing is left to do."""
    parts = holds.admit(fault_index, act)
    holds.done(fault_index, act)
    return parts


def test_a_node_that_two_faults_hold_down_is_started_by_the_last_heal() -> None:
    holds = Holds()
    assert holds.admit(0, Kill((N1,))) == (Kill((N1,)),)
    assert holds.admit(1, Kill((N1, N2))) == (Kill((N1, N2)),)
    assert healed(holds, 0, Start((N1,))) == ()
    assert holds.is_down(N1)
    assert healed(holds, 1, Start((N1, N2))) == (Start((N1, N2)),)
    assert not holds.is_down(N1)


def test_what_is_let_go_is_held_until_that_is_done() -> None:
    holds = Holds()
    for act in (Kill((N1,)), Start((N1,))):
        holds.admit(0, act)
    assert holds.is_down(N1)
    assert holds.disturbs(1, NodeIs(N1, "running"), is_healed=True)
    holds.done(0, Start((N1,)))
    assert not holds.is_down(N1)


def test_a_link_that_two_faults_cut_opens_with_the_last_heal() -> None:
    holds = Holds()
    for index in (0, 1):
        holds.admit(index, Cut((LINK,)))
    assert healed(holds, 1, Restore((LINK,))) == ()
    assert holds.admit(0, Restore((LINK,))) == (Restore((LINK,)),)


def test_one_fault_that_cuts_again_and_again_holds_once() -> None:
    holds = Holds()
    for _ in range(3):
        holds.admit(0, Cut((LINK,)))
    assert holds.admit(0, Restore((LINK,))) == (Restore((LINK,)),)


def test_of_two_shapes_the_one_that_is_left_is_in_force_again() -> None:
    holds = Holds()
    lossy, late = ShapeLinks((LINK,), Shape(loss=0.5)), ShapeLinks((LINK,), Shape(delay_us=9_000))
    holds.admit(0, lossy)
    holds.admit(1, late)
    assert healed(holds, 1, UnshapeLinks((LINK,))) == (lossy,)
    assert holds.admit(0, UnshapeLinks((LINK,))) == (UnshapeLinks((LINK,)),)


def test_the_shape_of_who_came_last_is_the_one_to_be_seen() -> None:
    holds = Holds()
    lossy, late = Shape(loss=0.5), Shape(delay_us=9_000)
    holds.admit(0, ShapeLinks((LINK,), lossy))
    assert not holds.disturbs(0, LinkShaped(LINK, lossy), is_healed=False)
    holds.admit(1, ShapeLinks((LINK,), late))
    assert holds.disturbs(0, LinkShaped(LINK, lossy), is_healed=False)
    assert not holds.disturbs(1, LinkShaped(LINK, late), is_healed=False)
    assert holds.disturbs(1, LinkShaped(LINK, None), is_healed=True)


def test_what_is_down_is_neither_frozen_nor_thawed() -> None:
    holds = Holds()
    holds.admit(0, Kill((N1,)))
    assert holds.admit(1, Pause((N1, N2))) == (Pause((N2,)),)
    assert holds.admit(1, Resume((N1, N2))) == (Resume((N2,)),)


@pytest.mark.parametrize(
    ("limit", "lift"),
    [
        (Throttle((N1, N2), 0.05), Unthrottle((N1, N2))),
        (LimitMemory((N1, N2), 64), UnlimitMemory((N1, N2))),
    ],
)
def test_a_limit_is_lifted_though_another_fault_holds_the_node_down(limit: Act, lift: Act) -> None:
    holds = Holds()
    holds.admit(0, limit)
    holds.admit(1, Kill((N1,)))
    assert holds.admit(0, lift) == (lift,)


def test_a_start_of_what_nobody_holds_is_done() -> None:
    assert Holds().admit(0, Start((N1,))) == (Start((N1,)),)


def test_what_others_hold_is_not_looked_for() -> None:
    holds = Holds()
    holds.admit(0, Cut((LINK,)))
    open_, cut = LinkIs(LINK, True), LinkIs(LINK, False)
    assert holds.disturbs(1, open_, is_healed=True)
    assert not holds.disturbs(0, open_, is_healed=True)
    assert not holds.disturbs(1, cut, is_healed=False)
    holds.admit(0, Pause((N1,)))
    assert holds.disturbs(1, NodeIs(N1, "running"), is_healed=True)


# --- side by side -----------------------------------------------------------------------------


def test_faults_whose_windows_overlap_are_in_force_at_once() -> None:
    run = Driven(
        [fault("partition", "n5", 1000, 60_000), fault("kill", "n4", 1001, 60_000, index=1)]
    )
    assert run.failure is None
    assert run.phases(0)[:2] == run.phases(1)[:2] == ["invoked", "verified"]
    assert run.phases(0)[-1] == run.phases(1)[-1] == "resumed"
    told = order(run)
    assert max(told.index((0, "invoked")), told.index((1, "invoked"))) < min(
        told.index((0, "removed")), told.index((1, "removed"))
    )
    assert any("beside fault" in (event.evidence or "") for event in run.events)


def test_faults_whose_windows_do_not_overlap_never_do() -> None:
    run = Driven([fault("kill", "n5", 1000, 2000), fault("kill", "n4", 3000, 2000, index=1)])
    assert order(run) == [(0, phase) for phase in WHOLE] + [(1, phase) for phase in WHOLE]


def test_a_fault_of_a_node_that_is_down_does_not_strike() -> None:
    run = Driven([fault("kill", "n5", 1000, 600_000), fault("pause", "n5", 200_000, 1000, index=1)])
    assert run.phases(1) == ["not-applicable"]
    assert run.evidence("not-applicable", 1) == "n5 down already"


def test_a_node_has_one_fault_of_its_disk_at_a_time() -> None:
    run = Driven(
        [fault("full-disk", "n5", 1000, 600_000), fault("disk-stall", "n5", 200_000, 1000, index=1)]
    )
    assert "another fault of the disk of n5" in run.evidence("not-applicable", 1)


def test_a_majority_is_never_made_to_forget() -> None:
    schedule = [
        fault("wipe", f"n{number}", number * 100_000, 2000, index=number - 1)
        for number in (1, 2, 3)
    ]
    run = Driven(schedule)
    assert run.phases(1) == WHOLE
    assert "n1, n2, n3 would have forgotten, a majority" in run.evidence("not-applicable", 2)
    lifted: dict[str, Any] = {"options": {BEYOND_PROMISE: True}}
    beyond = Driven([fault("restore", "n1", **lifted)])
    assert beyond.phases() == WHOLE
    assert Driven([fault("restore", "n1")]).phases() == ["not-applicable"]


def test_one_fault_that_cannot_be_healed_ends_the_run_and_the_others_are_healed() -> None:
    run = Driven(
        [fault("partition", "n5", 1000, 60_000), fault("kill", "n4", 1001, 60_000, index=1)],
        deaf=["restore"],
    )
    assert "could not heal the fault 0 (partition:n5)" in str(run.failure)
    assert run.stop.is_set()
    assert run.world.calls.count("heal_all") == 1
    assert set(run.world.states.values()) == {"running"}


# --- pinned to events -------------------------------------------------------------------------


def test_a_fault_waits_for_the_leaders_commits_in_an_epoch_and_strikes_there() -> None:
    when = Awaited("leads", epoch=2)
    run = Driven(
        [fault("kill", "there", 0, 2000, when=when), fault("kill", "leader", 1000, 20_000, index=1)]
    )
    # Killing the first leader brings the second epoch, and with it the other fault.
    assert run.phases(0)[0] == "invoked"
    (first,) = [actual for actual in run.actual if actual.index == 0]
    assert (first.target, first.nodes) == ("there", ("n2",))


def test_what_does_not_happen_in_time_is_not_applicable() -> None:
    run = Driven([fault("kill", "there", 0, when=Awaited("truncates", timeout_us=100_000))])
    assert run.phases() == ["not-applicable"]
    assert run.evidence("not-applicable") == "'truncates' once did not happen within 0.1 s"


@pytest.mark.parametrize("target", ["laggard", "follower"])
def test_the_laggard_is_the_node_whose_log_ends_first(target: str) -> None:
    run = Driven(
        [fault("partition", "n3", 1000, 20_000), fault("kill", target, 12_000, 2000, index=1)]
    )
    hit = [actual.nodes for actual in run.actual if actual.index == 1]
    if target == "laggard":
        assert hit == [("n3",)]


def test_no_fault_takes_hold_of_a_node_while_another_one_says_that_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drivers: list[NemesisDriver] = []
    is_alone: list[bool] = []
    begin, expect, back = NemesisDriver.__init__, DownNodes.expect, DownNodes.back

    def kept(driver: NemesisDriver, **given: Any) -> None:
        begin(driver, **given)
        drivers.append(driver)

    def told(tell: Any, down: DownNodes, nodes: Any) -> None:
        is_alone.append(drivers[-1]._deciding.locked())
        tell(down, nodes)

    monkeypatch.setattr(NemesisDriver, "__init__", kept)
    monkeypatch.setattr(DownNodes, "expect", lambda down, nodes: told(expect, down, nodes))
    monkeypatch.setattr(DownNodes, "back", lambda down, nodes: told(back, down, nodes))
    run = Driven([fault("kill", "n5", 1000, 2000)])
    assert run.phases() == WHOLE
    assert is_alone
    assert all(is_alone)


# --- one at a time ----------------------------------------------------------------------------


def struck_at(run: Driven, index: int) -> int:
    return next(e.time for e in run.events if (e.index, e.phase) == (index, "invoked"))


def test_a_fault_waits_until_the_node_of_the_one_before_has_caught_up() -> None:
    def ran(**more: Any) -> Driven:
        first = fault("pause", "n5", duration_ms=300)
        return Driven([first, fault("kill", "n4", at_ms=1310, index=1, **more)])

    at_once, waiting = ran(), ran(when=Awaited("recovered"))
    assert at_once.phases(1) == waiting.phases(1) == WHOLE
    # The world gives it one record more than it misses for each step of 60 ms.
    assert struck_at(waiting, 1) - struck_at(at_once, 1) >= 2 * 60_000_000


def test_a_fault_does_not_strike_while_a_node_is_not_back() -> None:
    class Sick(ArmedWorld):
        def recovered(self) -> None:
            raise HarnessError("wait for recovery", "the nodes", "n2 is out of an ISR", "Wait")

    run = Driven([fault("kill", "n4", when=Awaited("recovered"))], load_s=20.0, kind=Sick)
    assert run.phases() == ["not-applicable"]
    assert "the load was over" in run.evidence("not-applicable")
    assert "n2 is out of an ISR" in run.evidence("not-applicable")
