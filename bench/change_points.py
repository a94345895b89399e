"""How often a change of level is found where there is none, and where one was planted.

Run as ``python -m bench.change_points [--series 1000] [--stepped 50] [--points 60] [--seed 1]``.
Series are drawn from three kinds of noise: normal, with heavy tails, and on few different values.
Printed is the share of series in which a change was found without one (beside the bound that is
promised), and with a step of one, two and three standard deviations in the middle how many were
found within two points of it, and in how many there was another one besides. The last line is one
JSON object.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from splitbrain.spark_analysis.change_points import SIGNIFICANCE, change_points

_NEAR_POINTS: Final = 2
_STEPS: Final = (1.0, 2.0, 3.0)

_Draw = Callable[[np.random.Generator, int], "np.ndarray"]

#: Kinds of noise, of a standard deviation of about one where they have one.
_NOISE: Final[dict[str, _Draw]] = {
    "normal": lambda draws, count: draws.normal(size=count),
    "heavy tails": lambda draws, count: draws.standard_t(2, size=count),
    "few values": lambda draws, count: draws.integers(-2, 3, size=count) / 1.4,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print; 1 where false alarms are more frequent than promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--stepped", type=int, default=50, help="series with a step, of each kind")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    began_s = time.process_time()
    rows = [
        _measured(
            name,
            draw,
            step,
            options.stepped if step else options.series,
            options.points,
            options.seed,
        )
        for name, draw in _NOISE.items()
        for step in (0.0, *_STEPS)
    ]
    print(f"{'noise':<12} {'step':>5} {'found':>8} {'near it':>8} {'others':>8}")
    for row in rows:
        print(
            f"{row['noise']:<12} {row['step']:>5} {row['found']:>8.2%} {row['near']:>8.2%} "
            f"{row['others']:>8.2%}"
        )
    took_s = round(time.process_time() - began_s, 1)
    alarms = sum(row["found"] for row in rows if not row["step"]) / len(_NOISE)
    count = options.series * len(_NOISE)
    # Three standard errors above the promise.
    bound = SIGNIFICANCE + 3 * (SIGNIFICANCE * (1 - SIGNIFICANCE) / count) ** 0.5
    print(f"False alarms: {alarms:.2%} of {count:,} series; promised: {SIGNIFICANCE:.0%} at most.")
    answer = {"points": options.points, "series": count, "false_alarms": alarms}
    print(json.dumps({**answer, "rows": rows, "processor_s": took_s}))
    return int(alarms > bound)


def _measured(
    noise: str, draw: _Draw, step: float, series: int, points: int, seed: int
) -> dict[str, Any]:
    draws = np.random.default_rng([seed, int(step * 10)])
    middle = points // 2
    found = near = others = 0
    for _ in range(series):
        values = draw(draws, points)
        values[middle:] += step
        places = [change.place for change in change_points(values.tolist())]
        close = [place for place in places if step and abs(place - middle) <= _NEAR_POINTS]
        found += bool(places)
        near += bool(close)
        others += len(places) > 1
    row = {"step": step, "found": found / series, "near": near / series, "others": others / series}
    return {"noise": noise, **row}


if __name__ == "__main__":
    sys.exit(main())
