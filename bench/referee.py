"""Porcupine as referee: ``python -m bench.referee --histories 10000 [--seed 1] [--limit-s 1]``.

Generates histories of up to 200 operations, with and without ``info``, of few and of unique
values, about half of them spoiled in one answer, and compares Porcupine's verdict with that of
every algorithm of ours: the search in Python, the compiled search, rule 7 depth first and in a
sweep, the kernels on columns (zones among them) and the whole check. Histories that Porcupine
leaves undecided at the limit are counted apart. Prints every disagreement; the last line is
one JSON object; the exit code is 1 if there was any.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from random import Random

import msgspec

from bench import peer
from bench.histories import HistoryOptions, generate
from bench.history_columns import HistoryColumns, columns_of
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.column_history import judge_columns
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.linearizability.portfolio import COMPILED
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation

_BATCH = 500
_MODEL = "cas-register"
#: Configurations after which our search in Python is left out of the comparison.
_CONFIGURATIONS_MAX = 200_000


def random_history(random: Random, seed: int) -> list[PairedOperation]:
    """Return a history of up to 200 operations, often spoiled in one answer."""
    options = HistoryOptions(
        operations=random.randint(5, 200),
        clients=random.randint(2, 8),
        values=random.choice((2, 3, 5, 0)),
        mix=random.choice(("cas", "cas", "register")),
        info=random.choice((0.0, 0.0, 0.05, 0.2)),
        seed=seed,
    )
    operations = generate(options)
    return _spoiled(random, operations) if random.random() < 0.75 else operations


def _spoiled(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    answers = [n for n, o in enumerate(operations) if o.type == "ok" and o.f != "write"]
    if not answers:
        return operations
    place = random.choice(answers)
    operation = operations[place]
    if operation.f == "cas":
        result = [*operation.argument, not operation.result[2]]
    else:
        result = random.choice([o.result for o in operations if o.f == "read"])
    spoiled = list(operations)
    spoiled[place] = msgspec.structs.replace(operation, result=result)
    return spoiled


def our_verdicts(
    operations: Sequence[PairedOperation], columns: HistoryColumns
) -> dict[str, Verdict]:
    """Return each of our algorithms' verdict; those that did not decide are left out."""
    model = model_named(_MODEL)
    verdicts = {"check": check(operations, _MODEL, Unlimited()).verdict}
    prepared = columns.to_kernel()
    for name, compiled_first in (("columns", False), ("columns-compiled", COMPILED)):
        (part,) = judge_columns(prepared, model, Unlimited(), compiled_first=compiled_first)
        verdicts[name] = part.verdict
    outcome = Search(Problem(operations, model), Unlimited(), _CONFIGURATIONS_MAX).run()
    verdicts["search"] = outcome.verdict
    if COMPILED:
        verdicts |= _compiled_verdicts(operations, model)
    return {name: v for name, v in verdicts.items() if v is not Verdict.UNKNOWN}


def _compiled_verdicts(operations: Sequence[PairedOperation], model: Model) -> dict[str, Verdict]:
    """Return the verdicts of rule 7 and of the sweep alone, which a portfolio seldom asks here."""
    from splitbrain.checker.linearizability.kernel.compiled_search import CompiledSearch

    source = ObjectSource(Part(None, tuple(operations)), model)
    verdicts: dict[str, Verdict] = {}
    for name, by_rank in (("depth-rule-7", False), ("sweep-rule-7", True)):
        search = CompiledSearch(
            source.columns,
            source.compiled,
            Unlimited(),
            _CONFIGURATIONS_MAX,
            guided=True,
            by_rank=by_rank,
        )
        verdicts[name] = search.run().verdict
    return verdicts


def main() -> int:
    """Compare until there are enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=1.0)
    options = parser.parse_args()
    if not peer.is_built():
        parser.error("there is no Go to build Porcupine with")
    random = Random(f"referee {options.seed}")
    counts: Counter[str] = Counter()
    seed = 0
    while seed < options.histories:
        batch: list[tuple[list[PairedOperation], HistoryColumns]] = []
        for _ in range(min(_BATCH, options.histories - seed)):
            operations = random_history(random, options.seed * 1_000_000 + seed)
            batch.append((operations, columns_of(f"history {seed}", operations, _MODEL)))
            seed += 1
        answers = peer.ask([columns for _, columns in batch], options.limit_s, 8192)
        for (operations, columns), answer in zip(batch, answers, strict=True):
            counts[f"porcupine-{answer.verdict}"] += 1
            counts["with-info"] += any(o.type == "info" for o in operations)
            for name, verdict in our_verdicts(operations, columns).items():
                counts[f"{name}-decided"] += 1
                if answer.verdict not in ("unknown", verdict):
                    counts["disagreements"] += 1
                    print(f"{answer.name}: {name} says {verdict}, Porcupine {answer.verdict}")
        print(f"{seed:,} histories: {dict(counts)}", flush=True)
    print(json.dumps({"bench": "referee", "histories": seed, **counts}))
    return 1 if counts["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main())
