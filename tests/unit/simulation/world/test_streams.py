import pytest

from splitbrain.simulation.world.streams import Streams


def test_the_numbers_of_a_seed_never_change() -> None:
    """Whatever the version of Python and the interpreter's hash seed: these stand in replays."""
    streams = Streams(7, "world")
    assert [streams.between("disk", 0, 999_999) for _ in range(6)] == [
        924104, 773399, 931734, 631248, 407768, 774466,
    ]  # fmt: skip
    assert [streams.between("network", 0, 999_999) for _ in range(3)] == [85088, 420677, 331549]
    assert [streams.chance("c", 0.3) for _ in range(8)] == [
        True, False, True, False, True, False, True, True,
    ]  # fmt: skip
    assert [streams.pick("p", "abcde") for _ in range(8)] == list("eeeaecad")
    assert streams.stream("x").random() == 0.4586017233530082


def test_more_draws_for_one_purpose_do_not_shift_another() -> None:
    plain, busy = Streams(3), Streams(3)
    for _ in range(100):
        busy.stream("disk").random()
    assert plain.stream("network").random() == busy.stream("network").random()


def test_purposes_seeds_and_uses_have_different_numbers() -> None:
    firsts = [
        Streams(3, "world").stream("disk").random(),
        Streams(3, "world").stream("network").random(),
        Streams(4, "world").stream("disk").random(),
        Streams(3, "swarm").stream("disk").random(),
    ]
    assert len(set(firsts)) == len(firsts)


def test_a_purpose_keeps_its_stream() -> None:
    streams = Streams(1)
    assert streams.stream("a") is streams.stream("a")


def test_integers_include_both_bounds_and_nothing_else() -> None:
    streams = Streams(5)
    assert {streams.between("dice", 1, 6) for _ in range(300)} == {1, 2, 3, 4, 5, 6}
    assert streams.between("dice", 9, 9) == 9


def test_no_chance_draws_nothing() -> None:
    silent, plain = Streams(2), Streams(2)
    assert not silent.chance("c", 0.0)
    assert silent.stream("c").random() == plain.stream("c").random()


def test_certainty_always_happens() -> None:
    streams = Streams(2)
    assert all(streams.chance("c", 1.0) for _ in range(50))


def test_nothing_to_pick_from_is_an_error() -> None:
    with pytest.raises(IndexError):
        Streams(1).pick("p", [])
