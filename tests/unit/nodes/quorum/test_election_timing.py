from typing import Any

import pytest

from splitbrain.nodes.quorum.election_timing import ElectionTiming
from splitbrain.nodes.quorum.settings import QuorumSettings

SETTINGS = QuorumSettings(
    election_timeout_ms_min=200,
    election_timeout_ms_max=400,
    election_back_off_ms_max=100,
    retry_back_off_ms=20,
)
MS = 1_000


class Fixed:
    """A random source of one value."""

    def __init__(self, value: float) -> None:
        self._value = value

    def random(self) -> float:
        return self._value


def timing(value: float) -> ElectionTiming:
    return ElectionTiming(SETTINGS, Fixed(value))


@pytest.mark.parametrize(("value", "expected_ms"), [(0.0, 200), (0.5, 300), (0.75, 350)])
def test_an_election_timeout_lies_between_its_bounds(value: float, expected_ms: int) -> None:
    assert timing(value).election_timeout() == expected_ms * MS
    assert timing(value).yield_time() == expected_ms * MS // 2


def test_the_back_off_doubles_with_each_defeat_up_to_its_bound() -> None:
    waits = timing(0.5)
    assert [waits.back_off_after_defeat() for _ in range(4)] == [
        20 * MS, 40 * MS, 50 * MS, 50 * MS,
    ]  # fmt: skip
    waits.forget_defeats()
    assert waits.back_off_after_defeat() == 20 * MS


@pytest.mark.parametrize(
    ("position", "expected_ms"), [(0, 0), (1, 20), (2, 40), (3, 80), (None, 10)]
)
def test_a_successor_waits_the_longer_the_later_it_is_named(
    position: int | None, expected_ms: int
) -> None:
    assert timing(0.5).succession_delay(position) == expected_ms * MS


def test_settings_at_their_bounds_are_taken() -> None:
    QuorumSettings(
        fetch_timeout_ms=2,
        election_timeout_ms_min=1,
        election_timeout_ms_max=1,
        request_timeout_ms=1,
        retry_back_off_ms=1,
        fetch_max_wait_ms=1,
        fetch_max_bytes=1,
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"fetch_timeout_ms": 0},
        {"election_timeout_ms_min": 501},
        {"fetch_max_wait_ms": 500},
        {"retry_back_off_ms": -1},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        QuorumSettings(**wrong)


def test_check_quorum_waits_one_and_a_half_fetch_timeouts() -> None:
    assert QuorumSettings(fetch_timeout_ms=300).check_quorum_timeout_ms == 450
