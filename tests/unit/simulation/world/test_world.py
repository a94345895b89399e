import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NodeCrashed, ViolationError
from tests.unit.simulation.world.empty_worlds import empty_world

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
