"""How small the failures of planted bugs become: ``splitbrain shrink``, bug by bug.

Run as ``python -m bench.shrinking [--bugs A,B] [--seeds-per-bug K] [--within N] [--seconds S]
[--jobs J]``. For each bug the first K seeds below N that fail are shrunk; sizes and replays do not
depend on the machine, seconds do. The last line is one JSON object.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec

from bench.planted import chosen_bugs
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.campaign.shrinking.description import Size, size_of
from splitbrain.harness.campaign.shrinking.exact_oracle import (
    ExactOracle,
    failure_of,
    finding_of,
    replay_for,
)
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.nemesis.search import SearchBudget
from splitbrain.nemesis.shrinking import shrink

_REPLAYS_MAX = 5_000
_ROW = "{:32} {:>9}  {:16} {:>9} {:>11} {:>9} {:>8} {:>6}  {}"


class Shrunk(msgspec.Struct, frozen=True):
    """One failure that was shrunk."""

    bug: str
    seed: int
    failed_by: str
    before: Size
    after: Size
    replays: int
    seconds: float
    is_minimal: bool


class Order(msgspec.Struct, frozen=True):
    """Shrink the failures of one bug."""

    bug: str
    seeds_per_bug: int
    within: int
    seconds_max: float


def shrunk_of(order: Order) -> list[Shrunk]:
    """Find failures of a bug and shrink them."""
    trial = SimOptions(system=DEFAULT_SYSTEM, bugs=(order.bug,))
    shrunk: list[Shrunk] = []
    for seed in range(order.within):
        scenario = draw(seed, trial)
        first = judged(run(scenario))
        failure = failure_of(first)
        if failure is None:
            continue
        began_s = time.monotonic()
        budget = SearchBudget(_REPLAYS_MAX, order.seconds_max, time.monotonic)
        finding = finding_of(first)
        oracle = ExactOracle(replay_for(failure), budget)
        oracle.saw(scenario, finding)
        done = shrink(scenario, oracle, budget)
        shrunk.append(
            Shrunk(
                bug=order.bug,
                seed=seed,
                failed_by=failure.invariant or ", ".join(failure.checkers),
                before=size_of(scenario, finding.happened),
                after=size_of(done.plan, oracle.happened),
                replays=budget.tries,
                seconds=round(time.monotonic() - began_s, 1),
                is_minimal=done.is_minimal,
            )
        )
        if len(shrunk) == order.seeds_per_bug:
            break
    return shrunk


def results_of(orders: Sequence[Order], jobs: int) -> Iterator[list[Shrunk]]:
    """Yield the results in the order of the bugs, with so many processes."""
    if jobs == 1:
        yield from map(shrunk_of, orders)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(shrunk_of, orders)


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bugs", default="", help="comma-separated; all by default")
    parser.add_argument("--seeds-per-bug", type=int, default=3)
    parser.add_argument("--within", type=int, default=60, help="seeds that are tried for each bug")
    parser.add_argument("--seconds", type=float, default=120.0, help="what one search may take")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser.parse_args()


def main() -> int:
    """Shrink and print."""
    options = arguments()
    orders = [
        Order(bug, options.seeds_per_bug, options.within, options.seconds)
        for bug in chosen_bugs(options.bugs)
    ]
    print(
        _ROW.format(
            "bug", "seed", "found by", "faults", "operations", "nodes", "replays", "s", "minimal"
        )
    )
    shrunk: list[Shrunk] = []
    missed: list[str] = []
    for order, failures in zip(orders, results_of(orders, options.jobs), strict=True):
        if not failures:
            missed.append(order.bug)
            print(f"{order.bug:32} not found in {order.within} seeds", flush=True)
        for failure in failures:
            print(_line(failure), flush=True)
        shrunk += failures
    return _summarised(shrunk, missed)


def _line(failure: Shrunk) -> str:
    before, after = failure.before, failure.after
    return _ROW.format(
        failure.bug,
        failure.seed,
        failure.failed_by,
        f"{before.faults} -> {after.faults}",
        f"{before.operations} -> {after.operations}",
        f"{before.nodes} -> {after.nodes}",
        failure.replays,
        failure.seconds,
        "yes" if failure.is_minimal else "no",
    )


def _summarised(shrunk: Sequence[Shrunk], missed: Sequence[str]) -> int:
    """Return the medians, and the JSON line; 1 where nothing was found."""
    if not shrunk:
        print(json.dumps({"bench": "shrinking", "shrunk": 0, "missed": list(missed)}))
        return 1

    bugs = list(dict.fromkeys(failure.bug for failure in shrunk))

    def median(of: Callable[[Shrunk], float]) -> float:
        """Over the bugs, of each one's median, so that none counts more than another."""
        return statistics.median(
            statistics.median(of(failure) for failure in shrunk if failure.bug == bug)
            for bug in bugs
        )

    summary = {
        "bench": "shrinking",
        "bugs": len(bugs),
        "missed": list(missed),
        "shrunk": len(shrunk),
        "minimal": sum(failure.is_minimal for failure in shrunk),
        "faults_before_median": median(lambda failure: failure.before.faults),
        "faults_after_median": median(lambda failure: failure.after.faults),
        "faults_after_max": max(failure.after.faults for failure in shrunk),
        "operations_before_median": median(lambda failure: failure.before.operations or 0),
        "operations_after_median": median(lambda failure: failure.after.operations or 0),
        "operations_after_max": max(failure.after.operations or 0 for failure in shrunk),
        "replays_median": median(lambda failure: failure.replays),
        "seconds_median": median(lambda failure: failure.seconds),
    }
    print(
        f"median over {len(bugs)} bugs ({len(shrunk)} failures): "
        f"faults {summary['faults_before_median']:g} -> {summary['faults_after_median']:g}, "
        f"operations {summary['operations_before_median']:g} -> "
        f"{summary['operations_after_median']:g}, {summary['replays_median']:g} replays, "
        f"{summary['seconds_median']:g} s"
    )
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
