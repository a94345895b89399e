"""Changes of level: found where they were planted, and not where there is only noise."""

import random

import pytest

from splitbrain.spark_analysis.change_points import SIGNIFICANCE, change_points


def noise(seed: int, count: int, level: float = 100.0, spread: float = 5.0) -> list[float]:
    draws = random.Random(seed)
    return [draws.gauss(level, spread) for _ in range(count)]


def places_of(series: list[float]) -> list[int]:
    return [found.place for found in change_points(series)]


@pytest.mark.parametrize(
    ("series", "places"),
    [
        ([*noise(1, 30), *noise(2, 20, level=120.0)], [30]),
        ([*noise(11, 25), *noise(12, 25, level=130.0), *noise(13, 25, level=80.0)], [25, 50]),
        # A level that came and went.
        ([*noise(1, 40), *noise(2, 10, level=130.0), *noise(3, 40)], [40, 50]),
    ],
)
def test_planted_steps_are_found_where_they_are(series: list[float], places: list[int]) -> None:
    assert places_of(series) == pytest.approx(places, abs=1)
    # Also on another scale, and from another level.
    assert places_of([3 * value - 1000 for value in series]) == places_of(series)
    assert change_points(series) == change_points(series)


def test_a_step_is_told_with_its_levels() -> None:
    (found,) = change_points([*noise(1, 30), *noise(2, 20, level=120.0)])
    assert found.before == pytest.approx(100.0, abs=3)
    assert found.after == pytest.approx(120.0, abs=4)
    assert found.p_value <= SIGNIFICANCE


def test_noise_has_no_change() -> None:
    alarms = sum(bool(change_points(noise(seed, 40))) for seed in range(100))
    # One in a hundred is expected; six or more come with a chance of 0.05 %.
    assert alarms <= 5


def test_one_outlier_is_no_change() -> None:
    for place in (0, 17, 39):
        series = noise(4, 40)
        series[place] *= 1000
        assert change_points(series) == []


def test_heavy_tails_and_equal_values_are_no_change() -> None:
    draws = random.Random(5)
    assert change_points([draws.paretovariate(1.0) for _ in range(80)]) == []
    for count in (0, 1, 9, 10, 60):
        assert change_points([3.0] * count) == []


def test_the_shortest_series_that_can_change() -> None:
    assert places_of([1.0, 2, 3, 4, 5, 11, 12, 13, 14, 15]) == [5]
    assert change_points([1.0, 2, 3, 4, 11, 12, 13, 14, 15]) == []


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        change_points([1.0] * 10 + [float("nan")])
