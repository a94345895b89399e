"""Judges histories given as columns, in a process of its own so that its memory can be told.

``python -m bench.checker_child FILE... [--model NAME] [--limit-s S] [--repeats N]`` (and more, see
``main``) answers one JSON object per file: verdict, CPU seconds of the kernel, peak of memory.
Compiling and the import of libraries happen before the first measurement.
"""

import argparse
import gc
import json
import resource
import time
from pathlib import Path
from typing import Any

from bench.histories import HistoryOptions, generate
from bench.history_columns import HistoryColumns, columns_of, load
from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.column_history import judge_columns
from splitbrain.checker.linearizability.part.parts import Part, split
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.linearizability.portfolio import COMPILED
from splitbrain.checker.models.model import Call, KeyedModel
from splitbrain.checker.models.registry import add_own, model_named
from splitbrain.checker.verdict import merge

#: No check that took longer is repeated.
_REPEATED_S_MAX = 2.0


class CpuBudget:
    """Ends after so many seconds of this process's CPU, or beyond so much memory."""

    def __init__(self, limit_s: float, memory_mib: int) -> None:
        self._end = time.process_time() + limit_s
        self._memory_mib = memory_mib

    def exhausted(self) -> str | None:
        """``time`` or ``memory`` once one of them is used up."""
        if time.process_time() > self._end:
            return "time"
        return "memory" if peak_mib() > self._memory_mib else None


def peak_mib() -> int:
    """Peak of resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def judge(history: HistoryColumns, model: str, options: argparse.Namespace) -> dict[str, Any]:
    """Verdict and cost of one history."""
    answer: dict[str, Any] = {"name": history.name}
    judged = _from_operations if options.operations else _from_columns
    prepared = history.to_operations() if options.operations else history.to_kernel()
    gc.collect()
    seconds: list[float] = []
    for _ in range(options.repeats):
        budget = CpuBudget(options.limit_s, options.memory_mib)
        began = time.process_time()
        answer |= judged(prepared, model, budget)
        seconds.append(time.process_time() - began)
        if seconds[-1] > _REPEATED_S_MAX:
            break
    return answer | {"cpu_s": min(seconds), "peak_mib": peak_mib()}


def _from_columns(history: Any, model: str, budget: CpuBudget) -> dict[str, Any]:
    # The compiled search is measured, not the one that spares short checks its loading.
    parts = list(judge_columns(history, model_named(model), budget, compiled_first=COMPILED))
    return {
        "verdict": merge(part.verdict for part in parts),
        "algorithms": sorted({part.algorithm for part in parts}),
        "configurations": sum(part.configurations for part in parts),
    }


def _from_operations(operations: Any, model: str, budget: CpuBudget) -> dict[str, Any]:
    """Return the whole check, explanation included."""
    parts = split(operations, model_named(model))
    results = [check_part(part, model, budget) for part in parts]
    return {
        "verdict": merge(result.verdict for result in results),
        "algorithms": sorted({result.algorithm for result in results}),
        "configurations": sum(r.figures.get("configurations", 0) for r in results),
    }


def warm_up() -> None:
    """Have everything compiled or loaded before the first measurement."""
    for info in (0.0, 0.2):
        operations = generate(HistoryOptions(60, 4, info=info))
        history = columns_of("warm", operations, "cas-register").to_kernel()
        _from_columns(history, "cas-register", CpuBudget(60, 1 << 20))
        if not COMPILED:
            continue
        from splitbrain.checker.linearizability.portfolio import search_in_turns

        source = ObjectSource(Part(None, tuple(operations)), model_named("cas-register"))
        search_in_turns(source, CpuBudget(60, 1 << 20))
    operations = generate(HistoryOptions(60, 4, values=0, mix="register"))
    history = columns_of("warm", operations, "cas-register").to_kernel()
    _from_columns(history, "register", CpuBudget(60, 1 << 20))


class OwnRegister(KeyedModel):
    """A register with compare-and-set, told in a few lines."""

    name = "own-register"
    functions = frozenset({"read", "write", "cas"})

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Return the answer that the state gives, where there is one."""
        if call.f == "read":
            return not call.known or call.result == state, state
        if call.f == "write":
            return True, call.argument
        expected, new = call.argument
        matches = state == expected
        if call.known and matches != call.result[2]:
            return False, state
        return True, new if matches else state


def main() -> None:
    """Answer for every file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--limit-s", type=float, default=60.0)
    parser.add_argument("--memory-mib", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--operations", action="store_true", help="from operations, explained")
    options = parser.parse_args()
    add_own(OwnRegister.name, OwnRegister())
    warm_up()
    for path in options.files:
        history = load(path)
        print(json.dumps(judge(history, options.model or history.model, options)), flush=True)


if __name__ == "__main__":
    main()
