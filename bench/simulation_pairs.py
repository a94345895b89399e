"""Speed of simulated worlds beside that of another checkout, paired on one machine.

``python -m bench.simulation_pairs OTHER [--seeds 0:20] [--state-machine metadata] [--rounds 3]``
has a process in each of two checkouts, this one and ``OTHER``, run and judge the world of each seed
in turn, one process at a time and every other time the other one first, so that what else the
machine does hits both alike. A seed's time is the least of its rounds, of ``time.process_time``;
the figure is the median over the seeds of the other's time by ours. Ends with 1 if the trace of a
seed differs. ``OTHER`` needs a ``.venv``, which may be a link to ours. The last line is one JSON
object. How fast one checkout is alone: ``bench.simulation``.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from splitbrain.history.seeds import read_seeds

_HERE: Final = Path(__file__).parents[1]
#: Run in either checkout: a line with a seed in, a line with seconds and trace hash out. Each world
#: has a copy of the process, so that none is helped by what an earlier round has left in memory.
_CHILD: Final = """
import gc, os, sys, time
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.judge.simulated_outcomes import judged
options = SimOptions(state_machine=sys.argv[1])
judged(run(draw(0, options)))  # imports and warms up
for line in iter(sys.stdin.readline, ""):
    scenario = draw(int(line), options)
    gc.collect()
    if not (child := os.fork()):
        began_s = time.process_time()
        done = judged(run(scenario))
        print(time.process_time() - began_s, done.outcome.trace_hash, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


class Side:
    """A process that runs worlds in one checkout."""

    def __init__(self, checkout: Path, state_machine: str) -> None:
        self._process = subprocess.Popen(
            [checkout / ".venv/bin/python", "-P", "-c", _CHILD, state_machine],
            cwd=checkout,
            env={"PYTHONPATH": str(checkout)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, seed: int) -> tuple[float, str]:
        """Return the processor time of a seed's world, seconds, and its trace hash."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(seed, file=self._process.stdin, flush=True)
        seconds, trace_hash = self._process.stdout.readline().split()
        return float(seconds), trace_hash

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measured(sides: Sequence[Side], seed: int, rounds: int) -> tuple[list[float], bool]:
    """Return each side's least time for a seed's world, and whether all traces are equal."""
    times: list[list[float]] = [[] for _ in sides]
    hashes: set[str] = set()
    for turn in range(rounds):
        order = range(len(sides)) if turn % 2 else reversed(range(len(sides)))
        for place in order:
            seconds, trace_hash = sides[place].run(seed)
            times[place].append(seconds)
            hashes.add(trace_hash)
    return [min(of_side) for of_side in times], len(hashes) == 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the other checkout, such as one of before")
    parser.add_argument("--seeds", type=read_seeds, default=range(20))
    parser.add_argument("--state-machine", default="metadata")
    parser.add_argument("--rounds", type=int, default=3, help="of each seed")
    options = parser.parse_args(arguments)
    sides = [Side(place.absolute(), options.state_machine) for place in (options.other, _HERE)]
    times: list[list[float]] = []
    differing: list[int] = []
    for seed in options.seeds:
        least, is_equal = measured(sides, seed, options.rounds)
        times.append(least)
        differing += [] if is_equal else [seed]
    for side in sides:
        side.close()
    ratios = sorted(other / ours for other, ours in times)
    rates = [60 * len(times) / sum(of_side) for of_side in zip(*times, strict=True)]
    print(
        f"{options.state_machine}, {len(times)} seeds, {options.rounds} rounds: "
        f"{rates[1]:,.0f} seeds a minute and core, the other checkout {rates[0]:,.0f}; "
        f"a seed is {statistics.median(ratios):.2f} times as fast at the median, "
        f"{ratios[0]:.2f} to {ratios[-1]:.2f}; "
        f"traces {'differ: ' + ', '.join(map(str, differing)) if differing else 'are equal'}"
    )
    facts = {
        "bench": "simulation_pairs",
        "python": platform.python_version(),
        "state_machine": options.state_machine,
        "seeds": len(times),
        "rounds": options.rounds,
        "seeds_a_minute_and_core": [round(rate, 1) for rate in rates],
        "ratio_median": round(statistics.median(ratios), 3),
        "differing": differing,
    }
    print(json.dumps(facts))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
