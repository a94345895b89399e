"""Shapes of operations that the checkers of outcomes, which judge by no model, can read; pure.

Whoever reads a bare history refuses what is otherwise, with its line.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from splitbrain.checker.models.registry import MODELS
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown, wrong_echo

#: What is wrong with an operation, as a clause; None for nothing.
Problem = Callable[[PairedOperation], str | None]


def outcome_problem(checker: str) -> Problem:
    """Find operations that make no sense to a checker of outcomes; checkers of runs find none."""
    return _PROBLEMS.get(checker.partition(":")[0], lambda _operation: None)


def _as_models(*names: str) -> Problem:
    models = [MODELS[name] for name in names]

    def problem(operation: PairedOperation) -> str | None:
        for model in models:
            if operation.f in model.functions:
                return model.problem_with(operation)
        return None

    return problem


def _bank(operation: PairedOperation) -> str | None:
    if operation.f != "read" or operation.type != "ok" or isinstance(operation.result, Mapping):
        return None
    return f"the answer of a read is balances by account, and not {shown(operation.result)}"


def _queue(operation: PairedOperation) -> str | None:
    if operation.f == "enqueue" and operation.result is not False:
        return wrong_echo(operation)
    if operation.f == "drain" and not isinstance(
        operation.result, (list, tuple, AbstractSet, type(None))
    ):
        return f"the answer of a drain is a list of elements, and not {shown(operation.result)}"
    return None


def _sessions(operation: PairedOperation) -> str | None:
    return wrong_echo(operation) if operation.f in ("write", "add") else None


def _unique_ids(operation: PairedOperation) -> str | None:
    if operation.f != "generate" or operation.type != "ok" or operation.result is not None:
        return None
    return "it answers no id"


_PROBLEMS: Final[dict[str, Problem]] = {
    "set-full": _as_models("set"),
    "counter-bounds": _as_models("counter"),
    "bank": _bank,
    "queue-totals": _queue,
    "unique-ids": _unique_ids,
    "sessions": _sessions,
    "fencing": _as_models("fenced-register", "mutex"),
}
