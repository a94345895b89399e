"""Split of a history into parts that are judged apart, and the join of their results.

Parts and results cross process borders: the harness judges each part in a worker that it can kill.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from splitbrain.checker.anomalies.names import rank_of
from splitbrain.checker.findings import of_key
from splitbrain.checker.linearizability.part.outcome import EXACT, PRECONDITIONS
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import MODELS, models_with
from splitbrain.checker.verdict import CheckResult, Verdict, merge
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation

#: Violations and unknown parts described in a joined result.
PARTS_NAMED_MAX = 20


class Part(msgspec.Struct, frozen=True):
    """Operations of one object, in the order of their invocation, without ``fail``."""

    #: Key, None where the history is one part.
    key: str | None
    operations: tuple[PairedOperation, ...]
    #: Changes that certainly did not happen: for the name of a violation alone.
    failed: tuple[PairedOperation, ...] = ()


class PartResult(msgspec.Struct, frozen=True):
    """Verdict on one part; JSON-ready."""

    key: str | None
    verdict: Verdict
    #: Decides alone why the verdict can be trusted.
    algorithm: str
    reason: str
    #: Their number.
    operations: int
    #: Configurations, memo entries, width, open operations.
    figures: dict[str, int] = {}
    #: See ``checker.linearizability.contradictions.violation``.
    violation: dict[str, Any] | None = None


def valid_part(
    key: str | None, operations: int, algorithm: str, figures: dict[str, int]
) -> PartResult:
    """Return the result of a part that has an order."""
    all_of = "The only operation" if operations == 1 else f"All {operations:,} operations"
    fit = "fits" if operations == 1 else "fit one order"
    reason = f"{all_of}{of_key(key)} {fit}."
    return PartResult(key, Verdict.VALID, algorithm, reason, operations, figures)


def undecided_part(
    key: str | None, operations: int, reason: str | None, figures: dict[str, int]
) -> PartResult:
    """Return the result of a part that nobody knows an answer for."""
    why = f"{operations:,} operations{of_key(key)} are undecided: {reason or 'no reason given'}."
    return PartResult(key, Verdict.UNKNOWN, EXACT, why, operations, figures)


def split(operations: Iterable[PairedOperation], model: Model) -> list[Part]:
    """Split a history into parts, those with most operations first.

    Raises:
        UsageError: an operation is of a kind that the model does not know, or makes no sense to it.
    """
    by_key: dict[str | None, list[PairedOperation]] = {}
    judged: list[PairedOperation] = []
    failed: dict[str | None, list[PairedOperation]] = {}
    for operation in operations:
        if operation.type == "fail":
            if is_failed_change(operation, model):
                failed.setdefault(model.partition(operation), []).append(operation)
        elif operation.f not in model.unjudged_functions:
            judged.append(operation)
    for operation in judged:
        if operation.f not in model.functions:
            raise UsageError(
                f"the model {model.name!r} knows no operation {operation.f!r} "
                f"(index {operation.index}, key {operation.key})",
                _fitting_models({operation.f for operation in judged}),
            )
        problem = model.problem_with(operation)
        if problem is not None:
            raise UsageError(
                f"the model {model.name!r} cannot judge {operation.f} of index "
                f"{operation.index}: {problem}",
                "Judge the history with the model that it was recorded for",
            )
        by_key.setdefault(model.partition(operation), []).append(operation)
    parts = [
        Part(key, tuple(sorted(members, key=_invocation_order)), tuple(failed.get(key, ())))
        for key, members in by_key.items()
    ]
    return sorted(parts, key=lambda part: -len(part.operations))


def is_failed_change(operation: PairedOperation, model: Model) -> bool:
    """Return whether a failed operation asked for a change that makes sense to the model."""
    is_change = operation.f in model.functions - model.pure_functions
    return is_change and model.problem_with(operation) is None


def _fitting_models(functions: AbstractSet[str]) -> str:
    fitting = models_with(functions)
    if fitting:
        return f"Choose --model {' or '.join(fitting)}, which knows all operations of the history."
    named = ", ".join(f"{name} ({', '.join(sorted(MODELS[name].functions))})" for name in MODELS)
    return f"No --model knows all operations of the history; there are {named}."


def _invocation_order(operation: PairedOperation) -> tuple[int, int]:
    return operation.start, operation.index


def combine(results: Sequence[PartResult], model_name: str) -> CheckResult:
    """Join the results of all parts: the worst verdict, and its evidence."""
    invalid = [result for result in results if result.verdict is Verdict.INVALID]
    unknown = [result for result in results if result.verdict is Verdict.UNKNOWN]
    total = sum(result.operations for result in results)
    algorithms = {result.algorithm for result in results}
    undecided = None
    if unknown:
        undecided = _of_parts(len(unknown), len(results)) + f" undecided: {unknown[0].reason}"
    # Those that are described; among them the name decides which one speaks for all.
    named = sorted(invalid, key=lambda result: result.operations)[:PARTS_NAMED_MAX]
    named.sort(key=_telling)
    if invalid:
        first = named[0]
        reason = _of_parts(len(invalid), len(results)) + f" cannot be ordered: {first.reason}"
    elif undecided is not None:
        reason = undecided
    else:
        which = "The only operation" if total == 1 else f"All {total:,} operations"
        reason = f"{which} can be put in one order."
        if len(results) > 1:
            reason = (
                f"{which} of {_parts(len(results))} can be put in one order each; "
                "a part is what is done to one key."
            )
    return CheckResult(
        checker=f"linearizability:{model_name}",
        verdict=merge(result.verdict for result in results),
        reason=reason,
        figures={
            "parts": len(results),
            "operations": total,
            "parts-invalid": len(invalid),
            "parts-unknown": len(unknown),
            "configurations": sum(result.figures.get("configurations", 0) for result in results),
            "algorithms": sorted(algorithms),
            "preconditions": [
                f"{name}: {PRECONDITIONS[name]}"
                for name in sorted(algorithms)
                if name in PRECONDITIONS and name != EXACT
            ],
        },
        violations=tuple(result.violation for result in named if result.violation is not None),
        observations=tuple(
            {"kind": "undecided-part", "key": result.key, "sentence": result.reason}
            for result in unknown[:PARTS_NAMED_MAX]
        ),
        undecided=undecided,
    )


def _telling(result: PartResult) -> tuple[int, bool, int]:
    """Return the rank of a violation: its name, whether anything was acknowledged, its size."""
    violation = result.violation or {}
    acknowledged = any(step["verb"] == "acknowledged" for step in violation.get("steps", ()))
    size = int(violation.get("core_size", 0))
    return rank_of(str(violation.get("anomaly", ""))), not acknowledged, size


def _parts(count: int) -> str:
    return counted(count, "part")


def _of_parts(count: int, total: int) -> str:
    return f"{count:,} of {_parts(total)}"
