"""How soon seeds find each planted bug, and who sees it.

Run as ``python -m bench.planted [--bugs A,B] [--seeds-max 40] [--ranges 5] [--first 0]
[--jobs J] [--quick]`` for simulated worlds; ``--runtime docker [--tries 3] [--controls 1]
[--runs-folder PATH]`` takes the plans of ``bench.planted_containers`` instead.
For each bug and each of several disjoint ranges of seeds it counts how many seeds are tried until

- anything at all finds it: invariants, liveness, checkers of outcomes;
- the checkers of outcomes alone find it, with every invariant muted;
- linearizability alone finds it: of registers, or of sets in worlds with that workload.

"-": nothing within the range. Printed are the medians over the ranges; which finding was most
frequent; totals by class, and findings per hour of processor time. The correct code runs over the
same seeds, and any alarm there makes the exit code 1. The counts are the same on every machine,
the times are not. The last line is one JSON object.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import msgspec

from bench import planted_containers
from splitbrain.checker.names import linearizability_model
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, simulated_system
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.run.world.recovery import LIVENESS
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.systems.kraft.planted_bugs import planted_bugs

#: Everything that watches, but for what cannot be muted: a world that spins, or a defect.
_MUTED: Final = frozenset({*(kind.id for kind in INVARIANTS), *LIVENESS})
_SOON: Final = 15
_SECONDS_PER_HOUR: Final = 3_600
_CORRECT: Final = "(correct code)"
_SET_CHECKER: Final = "set-full"
_ROW: Final = "{:32} {:10} {:>10} {:>9} {:>16}  {}"


class Order(msgspec.Struct, frozen=True):
    """One range of seeds for one bug."""

    bug: str
    first_seed: int
    seeds_max: int
    #: Whether the runs with muted invariants are left out.
    is_quick: bool


class RangeResult(msgspec.Struct, frozen=True, kw_only=True):
    """How many seeds of a range it took; None: more than there are."""

    bug: str
    everything: int | None
    outcomes: int | None
    linearizability: int | None
    #: First thing that found it, and its seed.
    found_by: str | None = None
    seed: int | None = None
    #: Seeds that were run with everything watching, and their processor time in seconds.
    runs: int = 0
    cpu_s: float = 0.0


class BugResult(msgspec.Struct, frozen=True, kw_only=True):
    """All ranges of one bug."""

    bug: str
    kind: str
    #: Medians; None: more than half of the ranges found nothing.
    everything: float | None
    outcomes: float | None
    linearizability: float | None
    #: Ranges that found it at all.
    found_ranges: int
    ranges: int
    found_by: dict[str, int]
    #: One for each range that found it.
    seeds: tuple[int, ...]
    runs: int
    cpu_s: float

    @property
    def is_found(self) -> bool:
        """Whether any range found it."""
        return self.found_ranges > 0


def search(order: Order) -> RangeResult:
    """Try the seeds of a range until everybody has found the bug, or none is left."""
    trial = SimOptions(system=DEFAULT_SYSTEM, bugs=() if order.bug == _CORRECT else (order.bug,))
    system = simulated_system(DEFAULT_SYSTEM)
    everything = outcomes = linearizability = found_by = found_at = None
    runs, cpu_s = 0, 0.0
    for count in range(1, order.seeds_max + 1):
        seed = order.first_seed + count - 1
        scenario = draw(seed, trial)
        if everything is None:
            began_s = time.process_time()
            findings = judged(simulate(scenario, system)).failed_by
            cpu_s += time.process_time() - began_s
            runs += 1
            if findings:
                everything, found_by, found_at = count, findings[0], seed
        is_muted_due = order.bug != _CORRECT and not order.is_quick
        if is_muted_due and (outcomes is None or linearizability is None):
            checks = judged(simulate(scenario, system, muted=_MUTED)).checks
            against = [check.checker for check in checks if check.verdict is Verdict.INVALID]
            if against and outcomes is None:
                outcomes = count
            if linearizability is None and any(map(_is_linearizability, against)):
                linearizability = count
        elif everything is not None:
            break
    return RangeResult(
        bug=order.bug,
        everything=everything,
        outcomes=outcomes,
        linearizability=linearizability,
        found_by=found_by,
        seed=found_at,
        runs=runs,
        cpu_s=cpu_s,
    )


def _is_linearizability(checker: str) -> bool:
    return linearizability_model(checker) is not None or checker == _SET_CHECKER


def results_of(orders: Sequence[Order], jobs: int) -> Iterator[RangeResult]:
    """Yield the results in the order of the orders, with so many processes."""
    if jobs == 1:
        yield from map(search, orders)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(search, orders)


def gathered(results: Sequence[RangeResult], kind: str, seeds_max: int) -> BugResult:
    """Return the ranges of one bug as one result."""

    def median(of: Callable[[RangeResult], int | None]) -> float | None:
        # A bug not found within a range took longer than the range; so does their median, then.
        counts = [of(result) or seeds_max + 1 for result in results]
        middle = statistics.median(counts)
        return middle if middle <= seeds_max else None

    finders = Counter(result.found_by for result in results if result.found_by is not None)
    return BugResult(
        bug=results[0].bug,
        kind=kind,
        everything=median(lambda result: result.everything),
        outcomes=median(lambda result: result.outcomes),
        linearizability=median(lambda result: result.linearizability),
        found_ranges=sum(finders.values()),
        ranges=len(results),
        found_by=dict(finders.most_common()),
        seeds=tuple(result.seed for result in results if result.seed is not None),
        runs=sum(result.runs for result in results),
        cpu_s=sum(result.cpu_s for result in results),
    )


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bugs", default="", help="comma-separated; all by default")
    parser.add_argument("--seeds-max", type=int, default=40, help="seeds of a range")
    parser.add_argument("--ranges", type=int, default=5, help="disjoint ranges for each bug")
    parser.add_argument("--first", type=int, default=0, help="first seed of the first range")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--quick", action="store_true", help="leave the runs with muted invariants out"
    )
    parser.add_argument("--runtime", default=SIMULATED, choices=(SIMULATED, "docker", "local"))
    parser.add_argument("--tries", type=int, default=3, help="real runtimes: runs of each plan")
    parser.add_argument("--controls", type=int, default=1, help="the same without the bug")
    parser.add_argument("--runs-folder", type=Path, default=None)
    return parser.parse_args()


def chosen_bugs(names: str) -> list[str]:
    """Return the bugs of a comma-separated list; by default those that nodes with registers have.

    Raises:
        SystemExit: there is no such bug.
    """
    every = planted_bugs()
    bugs = [name for name in names.split(",") if name]
    unknown = [name for name in bugs if name not in every]
    if unknown:
        raise SystemExit(f"there is no planted bug {unknown[0]!r}; there are: {', '.join(every)}")
    return bugs or [name for name, bug in every.items() if bug.state_machine is None]


def main() -> int:
    """Search and print; 1 where the correct code alarms."""
    options = arguments()
    bugs = chosen_bugs(options.bugs)
    if options.runtime != SIMULATED:
        return planted_containers.run_or_refuse(
            planted_containers.Wanted(
                runtime=options.runtime,
                bugs=tuple(name for name in options.bugs.split(",") if name),
                tries=options.tries,
                controls=options.controls,
                first_seed=options.first,
                runs_folder=options.runs_folder,
            )
        )
    orders = [
        Order(bug, options.first + number * options.seeds_max, options.seeds_max, options.quick)
        for bug in (*bugs, _CORRECT)
        for number in range(options.ranges)
    ]
    print(_ROW.format("bug", "class", "everything", "outcomes", "linearizability", "found by"))
    results: list[BugResult] = []
    pending: list[RangeResult] = []
    for result in results_of(orders, options.jobs):
        pending.append(result)
        if len(pending) < options.ranges:
            continue
        kind = planted_bugs()[result.bug].kind if result.bug in planted_bugs() else ""
        results.append(gathered(pending, kind, options.seeds_max))
        pending = []
        if result.bug in planted_bugs():
            print(_line(results[-1]), flush=True)
    control = results.pop()
    return _summarised(results, control, options.seeds_max)


def _line(result: BugResult) -> str:
    if not result.found_by:
        by = "nobody"
    else:
        by = ", ".join(f"{name} ({count})" for name, count in result.found_by.items())
    return _ROW.format(
        result.bug,
        result.kind,
        _count(result.everything),
        _count(result.outcomes),
        _count(result.linearizability),
        by,
    )


def _count(median: float | None) -> str:
    return "-" if median is None else f"{median:g}"


def _summarised(bugs: Sequence[BugResult], control: BugResult, seeds_max: int) -> int:
    """Return the totals and the JSON line; 1 where the correct code alarms."""
    safety = [bug for bug in bugs if bug.kind != "liveness"]
    liveness = [bug for bug in bugs if bug.kind == "liveness"]
    soon = sum(bug.everything is not None and bug.everything <= _SOON for bug in safety)
    cpu_s = sum(bug.cpu_s for bug in bugs)
    findings = sum(bug.found_ranges for bug in bugs)
    per_hour = findings * _SECONDS_PER_HOUR / cpu_s if cpu_s else 0.0
    if safety:
        print(
            f"found {sum(bug.is_found for bug in safety)} of {len(safety)} invariant and outcome"
            f" bugs; {100 * soon // len(safety)} % within {_SOON} seeds at the median"
        )
    if liveness:
        print(f"found {sum(bug.is_found for bug in liveness)} of {len(liveness)} liveness bugs")
    for name, of in _WATCHERS.items():
        print(f"  {name}: {sum(of(bug) is not None for bug in bugs)} of {len(bugs)} at the median")
    print(f"{findings} findings in {cpu_s:,.0f} s of processor time, {per_hour:,.0f} an hour")
    alarms = control.found_ranges
    if alarms:
        print(f"THE CORRECT CODE ALARMS: {control.found_by}, seeds {list(control.seeds)}")
    else:
        print(f"the correct code: no alarm in {control.runs} seeds")
    summary = {
        "bench": "planted",
        "seeds_max": seeds_max,
        "ranges": control.ranges,
        "safety_bugs": len(safety),
        "safety_found": sum(bug.is_found for bug in safety),
        "safety_soon": soon,
        "soon_seeds": _SOON,
        "liveness_bugs": len(liveness),
        "liveness_found": sum(bug.is_found for bug in liveness),
        "findings_per_cpu_hour": round(per_hour),
        "control_seeds": control.runs,
        "control_alarms": alarms,
        "bugs": {
            bug.bug: {
                "class": bug.kind,
                "everything": bug.everything,
                "outcomes": bug.outcomes,
                "linearizability": bug.linearizability,
                "found_by": bug.found_by,
                "seeds": list(bug.seeds),
            }
            for bug in bugs
        },
    }
    print(json.dumps(summary))
    return 1 if alarms else 0


_WATCHERS: Final[dict[str, Callable[[BugResult], float | None]]] = {
    "everything": lambda result: result.everything,
    "checkers of outcomes alone": lambda result: result.outcomes,
    "linearizability alone": lambda result: result.linearizability,
}


if __name__ == "__main__":
    sys.exit(main())
