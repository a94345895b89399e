import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NodeCrashed, ViolationError
from splitbrain.simulation.world.world import ACTIONS_AT_ONCE_MAX, SPINNING, Pending, Scheduler
from tests.unit.simulation.world.empty_worlds import empty_world


def noting(scheduler: Scheduler, notes: list[tuple[int, str]], name: str):  # noqa: ANN201
    return lambda: notes.append((scheduler.now, name))


def test_equal_times_run_in_the_order_of_asking() -> None:
    scheduler, notes = Scheduler(), []
    for name, delay_us in (("late", 7), ("a", 5), ("b", 5), ("now", 0), ("c", 5)):
        scheduler.after(delay_us, noting(scheduler, notes, name))
    scheduler.run(10)
    assert notes == [(0, "now"), (5, "a"), (5, "b"), (5, "c"), (7, "late")]


def test_what_is_asked_for_now_comes_after_all_that_is_due_now() -> None:
    scheduler, notes = Scheduler(), []

    def first() -> None:
        scheduler.after(0, noting(scheduler, notes, "asked for meanwhile"))
        notes.append((scheduler.now, "first"))

    scheduler.after(3, first)
    scheduler.after(3, noting(scheduler, notes, "second"))
    scheduler.run(3)
    assert [name for _, name in notes] == ["first", "second", "asked for meanwhile"]


def test_a_negative_delay_is_none() -> None:
    scheduler, notes = Scheduler(), []
    scheduler.run(50)
    scheduler.after(-20, noting(scheduler, notes, "past"))
    scheduler.run(50)
    assert notes == [(50, "past")]


def test_what_was_cancelled_does_not_happen_and_is_no_step() -> None:
    scheduler, notes = Scheduler(), []
    kept = scheduler.after(1, noting(scheduler, notes, "kept"))
    dropped = scheduler.after(1, noting(scheduler, notes, "dropped"))
    dropped.cancel()
    scheduler.run(2)
    # Too late, and harmless.
    kept.cancel()
    dropped.cancel()
    assert notes == [(1, "kept")]
    assert scheduler.step == 1


def test_an_action_may_cancel_another_of_the_same_instant() -> None:
    scheduler, notes = Scheduler(), []
    pending: list[Pending] = []

    def cancel_others() -> None:
        for each in pending:
            each.cancel()

    scheduler.after(4, cancel_others)
    pending.append(scheduler.after(4, noting(scheduler, notes, "dropped")))
    scheduler.run(4)
    assert notes == []


def test_the_clock_shows_the_end_of_the_run_and_never_goes_back() -> None:
    scheduler = Scheduler()
    assert scheduler.run(40) is False
    assert scheduler.now == 40
    scheduler.run(30)
    assert scheduler.now == 40


def test_the_bound_of_a_run_is_included_and_what_lies_beyond_waits() -> None:
    scheduler, notes = Scheduler(), []
    scheduler.after(10, noting(scheduler, notes, "at"))
    scheduler.after(11, noting(scheduler, notes, "beyond"))
    scheduler.run(10)
    assert notes == [(10, "at")]
    scheduler.run(11)
    assert notes == [(10, "at"), (11, "beyond")]


def test_a_run_that_is_stopped_leaves_the_clock_where_it_is() -> None:
    scheduler, notes = Scheduler(), []
    for delay_us in (2, 4, 6):
        scheduler.after(delay_us, noting(scheduler, notes, "one"))
    assert scheduler.run(100, stop=lambda: len(notes) == 2) is True
    assert (scheduler.now, scheduler.step) == (4, 2)
    assert scheduler.run(100, stop=lambda: False) is False
    assert len(notes) == 3


def test_an_instant_that_does_not_end_is_a_violation() -> None:
    scheduler = Scheduler()

    def again() -> None:
        scheduler.after(0, again)

    scheduler.after(9, again)
    with pytest.raises(ViolationError) as caught:
        scheduler.run(10)
    assert caught.value.invariant == SPINNING == "INV-30"
    assert scheduler.now == 9


def test_many_steps_that_take_time_are_no_violation() -> None:
    scheduler = Scheduler()
    left = [ACTIONS_AT_ONCE_MAX + 5]

    def again() -> None:
        left[0] -= 1
        if left[0]:
            scheduler.after(1, again)

    scheduler.after(0, again)
    scheduler.run(ACTIONS_AT_ONCE_MAX * 2)
    assert left == [0]


def test_an_error_in_an_action_loses_no_later_one() -> None:
    scheduler, notes = Scheduler(), []

    def fail() -> None:
        raise RuntimeError("planted")

    scheduler.after(1, fail)
    scheduler.after(1, noting(scheduler, notes, "next"))
    with pytest.raises(RuntimeError, match="planted"):
        scheduler.run(5)
    scheduler.run(5)
    assert notes == [(1, "next")]


N1 = NodeName("n1")


def test_the_trace_hash_depends_on_what_was_absorbed_and_when() -> None:
    def hashed(*absorbed: tuple[int, bytes]) -> str:
        world = empty_world()
        for time, content in absorbed:
            world.run(time)
            world.absorb(content)
        return world.trace_hash

    assert hashed((5, b"a"), (9, b"b")) == hashed((5, b"a"), (9, b"b"))
    different = [hashed(), hashed((5, b"a")), hashed((6, b"a")), hashed((5, b"b"))]
    assert len(set(different)) == len(different)
    assert len(hashed()) == 32


def test_a_happening_is_told_to_those_who_wait_for_it() -> None:
    world, told = empty_world(), []
    world.watch("strikes", lambda node, name: told.append((node, name)))
    world.happened(N1, "strikes")
    world.happened(N1, "something else")
    assert told == [(N1, "strikes")]
    world.forget_watchers()
    world.happened(N1, "strikes")
    assert len(told) == 1


def test_a_crash_at_a_happening_reaches_the_node_that_caused_it() -> None:
    world = empty_world()

    def kill(node: NodeName, name: str) -> None:
        raise NodeCrashed(f"{node} at {name}")

    world.watch("strikes", kill)
    with pytest.raises(NodeCrashed):
        world.happened(N1, "strikes")


def test_a_crash_is_no_error_that_a_node_could_take_for_its_own() -> None:
    assert not issubclass(NodeCrashed, Exception)


def test_the_story_is_kept_only_on_request() -> None:
    silent, telling = empty_world(), empty_world(is_recording=True)
    assert silent.record("a") == -1
    silent.amend(-1, "b")
    assert silent.story == []
    assert telling.record("a") == 0
    assert telling.record("b") == 1
    telling.amend(0, "c")
    telling.amend(-1, "nowhere")
    assert telling.story == ["c", "b"]


def test_a_violation_says_when_it_was_seen() -> None:
    world = empty_world()
    world.after(7, lambda: None)
    world.run(7)
    violation = world.violation(ViolationError("INV-01", "two leaders", N1))
    assert (violation.invariant, violation.problem) == ("INV-01", "two leaders")
    assert (violation.time_us, violation.step, violation.node) == (7, 1, N1)


def test_worlds_of_one_seed_draw_the_same_and_share_nothing() -> None:
    first, second = empty_world(seed=4), empty_world(seed=4)
    drawn = [first.between("disk", 0, 10**6) for _ in range(5)]
    assert [second.between("disk", 0, 10**6) for _ in range(5)] == drawn
    assert empty_world(seed=5).between("disk", 0, 10**6) != drawn[0]
    assert first.stream("disk") is not second.stream("disk")
