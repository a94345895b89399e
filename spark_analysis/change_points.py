"""Search for lasting changes of level in a series of figures: E-divisive, on ranks.

The divergence between two stretches of a series is the energy distance of Székely and Rizzo; the
split that makes it greatest counts where a permutation test finds that chance rarely does as well,
and both sides are then searched in turn. It assumes no distribution. The figures are replaced by
their ranks first: one run that was ten times as slow is an outlier and no change of level.

The permutations come from a generator of fixed seed: equal series have equal changes. The share of
series without a change in which one is found is ``SIGNIFICANCE`` at most: the first test is exact,
further ones follow only where it found something, and each of the two has half the significance of
the one before it. Figures: ``python -m bench.change_points``.

Sources: Matteson and James, A Nonparametric Approach for Multiple Change Point Analysis of
Multivariate Data (JASA 2014); Daly et al., The Use of Change Point Detection to Identify Software
Performance Regressions in a Continuous Integration System (ICPE 2020); docs/decisions/0018.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Probability of a false first change in a series.
SIGNIFICANCE: Final = 0.01
#: Points on either side of a change.
SIDE_MIN: Final = 5
#: Permutations per test; the least p is 1 / (this + 1).
PERMUTATIONS: Final = 999
_SEED: Final = 20_140_107

_Floats = NDArray[np.float64]


class ChangePoint(NamedTuple):
    """Change of level."""

    #: Place of the first value of the new level.
    place: int
    #: Medians of the stretches before and after it, up to the next changes.
    before: float
    after: float
    #: Share of shuffled series that divide as well.
    p_value: float


def change_points(
    values: Sequence[float], *, significance: float = SIGNIFICANCE, side_min: int = SIDE_MIN
) -> list[ChangePoint]:
    """Return the changes of level in a series, in order.

    Args:
        values: finite, in the order of time; the cost grows with the square of their number.
        significance: share of series without a change in which one may be found.
        side_min: values on either side of a change, at least 2.

    Raises:
        ValueError: a value is not finite.
    """
    series = np.asarray(values, dtype=np.float64)
    if not np.isfinite(series).all():
        message = "a series with a value that is not finite has no levels"
        raise ValueError(message)
    random = np.random.default_rng(_SEED)
    found: dict[int, float] = {}
    stretches = [(0, len(series), significance)]
    while stretches:
        begin, end, chance_max = stretches.pop()
        if end - begin < 2 * side_min:
            continue
        distances = _distances(_ranks(series[begin:end]))
        split, divergence = _best_split(distances, side_min)
        p_value = _chance(distances, divergence, side_min, chance_max, random)
        if p_value <= chance_max:
            found[begin + split] = p_value
            half = chance_max / 2
            stretches += [(begin + split, end, half), (begin, begin + split, half)]
    edges = [0, *sorted(found), len(series)]
    return [
        ChangePoint(
            index,
            float(np.median(series[before:index])),
            float(np.median(series[index:after])),
            found[index],
        )
        for before, index, after in zip(edges, edges[1:], edges[2:], strict=False)
    ]


def _ranks(values: _Floats) -> _Floats:
    """Return the ranks; equal values share the middle of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[places]


def _distances(ranks: _Floats) -> _Floats:
    return np.abs(ranks[:, None] - ranks[None, :])


def _best_split(distances: _Floats, side_min: int) -> tuple[int, float]:
    """Return the split with the greatest divergence, and the divergence.

    The second stretch may end before the series does, so that a level that came and went is not
    hidden by later values (the paper's kappa).
    """
    count = len(distances)
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = distances.cumsum(axis=0).cumsum(axis=1)
    splits = np.arange(side_min, count - side_min + 1)[:, None]
    ends = np.arange(2 * side_min, count + 1)[None, :]
    lengths = ends - splits
    fits = lengths >= side_min
    safe = np.where(fits, lengths, side_min)
    first = sums[splits, splits]
    crossing = sums[splits, ends] - first
    second = sums[ends, ends] - 2 * sums[splits, ends] + first
    energy = (
        2 * crossing / (splits * safe)
        - first / (splits * (splits - 1))
        - second / (safe * (safe - 1))
    )
    divergence = np.where(fits, energy * splits * safe / (splits + safe), -np.inf)
    best: Any = np.unravel_index(int(divergence.argmax()), divergence.shape)
    return int(splits[best[0], 0]), float(divergence[best])


def _chance(
    distances: _Floats,
    divergence: float,
    side_min: int,
    chance_max: float,
    random: np.random.Generator,
) -> float:
    """Return the share of shuffled series that divide as well; stop early where it is too large."""
    as_good = 1
    for _ in range(PERMUTATIONS):
        order = random.permutation(len(distances))
        shuffled = distances[np.ix_(order, order)]
        as_good += _best_split(shuffled, side_min)[1] >= divergence * (1 - 1e-12)
        if as_good > chance_max * (PERMUTATIONS + 1):
            return 1.0
    return as_good / (PERMUTATIONS + 1)
