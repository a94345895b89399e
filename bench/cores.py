"""How large the cores of planted violations are, in both ways to relax, and whether they name it.

Stale reads among operations of ten clients, in histories whose every write has a new value and in
histories of five values. Kernel CPU seconds of the whole explanation.

    python -m bench.cores --seeds 20
"""

import argparse
import json
import time
from random import Random
from statistics import median
from typing import Any

from bench.histories import HistoryOptions, generate, with_stale_read
from splitbrain.checker.linearizability.contradictions.core import core_at_any_time, core_while_open
from splitbrain.checker.linearizability.contradictions.relations import Relations
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited

_MODEL = MODELS["cas-register"]
_CLIENTS = 10


def measure(values: int, operations: int, seed: int) -> dict[str, Any]:
    """Both cores of one planted stale read."""
    options = HistoryOptions(operations, _CLIENTS, values=values, mix="register", seed=seed)
    history = generate(options)
    spoiled = with_stale_read(Random(seed), history)
    (stale,) = (new for old, new in zip(history, spoiled, strict=True) if old != new)
    problem = Problem(spoiled, _MODEL)
    outcome = Search(problem, Unlimited()).run()
    assert outcome.verdict is Verdict.INVALID, "a planted violation was not found"
    last = spoiled[problem.place_by_rank[outcome.dead_ends[0].rank]]
    before = [o for o in spoiled if last.end is None or o.start <= last.end]
    began = time.process_time()
    while_open = core_while_open(before, last, _MODEL, Unlimited())
    sources = Relations(problem, _MODEL).sources(last, before)
    preferred = [*while_open.operations, *sources]
    at_any_time = core_at_any_time(before, last, _MODEL, Unlimited(), preferred)
    shown = at_any_time or while_open
    return {
        "values": values,
        "seed": seed,
        "while_open": len(while_open.operations),
        "at_any_time": None if at_any_time is None else len(at_any_time.operations),
        "minimal": shown.minimal,
        "named": stale in shown.operations,
        "cpu_s": round(time.process_time() - began, 3),
    }


def main() -> None:
    """Measure, print the table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--operations", type=int, default=400)
    arguments = parser.parse_args()
    print(f"{'values':>7}{'while open':>12}{'at any time':>24}{'named':>8}{'minimal':>9}{'CPU':>9}")
    summary: list[dict[str, Any]] = []
    for values in (0, 5):
        cores = [measure(values, arguments.operations, seed) for seed in range(arguments.seeds)]
        summary += cores
        sizes = [core["at_any_time"] for core in cores if core["at_any_time"] is not None]
        counts = f"{len(sizes)} of {len(cores)}" + (f", median {median(sizes):g}" if sizes else "")
        print(
            f"{values or 'new':>7}{median(core['while_open'] for core in cores):>12g}{counts:>24}"
            f"{sum(core['named'] for core in cores):>8}{sum(core['minimal'] for core in cores):>9}"
            f"{median(core['cpu_s'] for core in cores):>8.2f}s"
        )
    print(json.dumps({"operations": arguments.operations, "cores": summary}))


if __name__ == "__main__":
    main()
