from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.simulation.kraft.timers import LifeTimers, NodeClock
from tests.unit.simulation.kraft.unwatched_worlds import SECOND_US, Quorum

DRIFTS_PPM = st.integers(-200_000, 200_000)


@given(drift_ppm=DRIFTS_PPM, now=st.integers(0, 10**12), delay_us=st.integers(0, 10**9))
def test_a_delay_has_passed_on_the_node_s_clock_when_it_ends_and_not_one_step_earlier(
    drift_ppm: int, now: int, delay_us: int
) -> None:
    class _Now:
        """As much of a world as a clock needs."""

    world = _Now()
    world.now = now  # type: ignore[attr-defined]
    clock = NodeClock(world, drift_ppm)  # type: ignore[arg-type]
    began = clock.now()
    true_us = clock.true_delay(delay_us)
    world.now = now + true_us  # type: ignore[attr-defined]
    assert clock.now() >= began + delay_us
    # At most what one microsecond of either clock is worth too late.
    assert clock.now() <= began + delay_us + 2


@pytest.mark.parametrize("drift_ppm", [-20_000, 0, 20_000])
def test_timers_ring_by_the_node_s_own_clock(drift_ppm: int) -> None:
    world = Quorum().world
    clock = NodeClock(world, drift_ppm)
    timers = LifeTimers(world, clock, lambda action: action())
    rung: list[tuple[int, int]] = []
    timers.call_later(SECOND_US, lambda: rung.append((world.now, int(timers.now()))))
    world.run(2 * SECOND_US)
    assert rung[0][0] == pytest.approx(SECOND_US * 1_000_000 / (1_000_000 + drift_ppm), abs=1)
    assert rung[0][1] in {SECOND_US, SECOND_US + 1}


def test_soon_is_after_all_that_is_due_already() -> None:
    world = Quorum().world
    timers = LifeTimers(world, NodeClock(world, 0), lambda action: action())
    order: list[str] = []
    timers.call_later(0, lambda: order.append("asked for first"))
    timers.call_soon(lambda: order.append("soon"))
    assert order == []
    world.run(0)
    assert order == ["asked for first", "soon"]


def test_a_cancelled_timer_does_not_ring() -> None:
    world = Quorum().world
    rung: list[int] = []
    timers = LifeTimers(world, NodeClock(world, 0), lambda action: action())
    timers.call_later(5, lambda: rung.append(5)).cancel()
    world.run(10)
    assert rung == []


def test_an_action_goes_through_the_life_s_gate() -> None:
    world = Quorum().world
    gate: list[object] = []
    timers = LifeTimers(world, NodeClock(world, 0), gate.append)
    timers.call_later(5, lambda: None)
    timers.call_soon(lambda: None)
    world.run(10)
    assert len(gate) == 2


def test_the_wall_clock_jumps_and_the_other_one_does_not() -> None:
    world = Quorum().world
    clock = NodeClock(world, 0)
    wall_ms, now = clock.wall_clock_ms(), clock.now()
    clock.jump(-7 * SECOND_US)
    clock.jump(2 * SECOND_US)
    assert (clock.wall_clock_ms() - wall_ms, clock.now()) == (-5_000, now)
    world.run(3 * SECOND_US)
    assert clock.wall_clock_ms() - wall_ms == -2_000


def test_a_timer_cancelled_while_its_node_was_frozen_does_not_ring_later() -> None:
    """Its action waits in the frozen node's backlog, behind what cancels it."""
    world = Quorum().world
    backlog: list[Callable[[], None]] = []
    timers = LifeTimers(world, NodeClock(world, 0), backlog.append)
    rung: list[str] = []
    timer = timers.call_later(10, lambda: rung.append("late"))
    world.run(20)
    assert len(backlog) == 1
    timer.cancel()
    backlog[0]()
    assert rung == []
