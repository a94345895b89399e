"""A plain judgement of tiny histories: every order is tried.

An operation that was over before another began comes first; equal times are concurrent, but for
those of one process. One that was never answered may stand at any place from its beginning on, or
nowhere.
Source: Herlihy and Wing 1990; the models are told in docs/models-and-checkers.md.
"""

from collections.abc import Callable, Sequence
from typing import Any

from bench.reader_fuzz.plain_history import PlainOperation
from bench.reader_fuzz.plain_values import Plain, items_of

#: Whether an operation may happen in a state, and the state after it.
Step = Callable[[Any, PlainOperation], tuple[bool, Any]]

_PAIR = 2


def is_linearizable(
    operations: Sequence[PlainOperation], model: str, *, by_process: bool = True
) -> bool:
    """Whether each key's operations fit an order; at most a dozen of one key end in time.

    Args:
        operations: of a history.
        model: one of ``STEPS``.
        by_process: whether operations of one process at equal times have the order of their lines.
    """
    step, initial = STEPS[model]
    by_key: dict[Plain, list[PlainOperation]] = {}
    for operation in operations:
        if operation.type != "fail":
            by_key.setdefault(operation.key, []).append(operation)
    return all(_has_order(part, step, initial, by_process) for part in by_key.values())


def _has_order(part: list[PlainOperation], step: Step, initial: Any, by_process: bool) -> bool:
    tried: set[tuple[frozenset[int], Any]] = set()

    def fits(left: frozenset[int], state: Any) -> bool:
        if all(part[place].end is None for place in left):
            return True
        if (left, state) in tried:
            return False
        tried.add((left, state))
        for place in left:
            if any(_precedes(part, other, place, by_process) for other in left):
                continue
            may_happen, after = step(state, part[place])
            if may_happen and fits(left - {place}, after):
                return True
        return False

    return fits(frozenset(range(len(part))), initial)


def _precedes(part: list[PlainOperation], one: int, other: int, by_process: bool) -> bool:
    first, second = part[one], part[other]
    if first.end is None:
        return False
    # A process does one thing at a time, at equal times too.
    is_later = by_process and one < other and first.process == second.process
    return first.end < second.start or is_later


def _register(state: Any, operation: PlainOperation) -> tuple[bool, Any]:
    known = operation.type == "ok"
    if operation.f == "write":
        return True, operation.argument
    if operation.f == "read":
        return not known or operation.result == state, state
    if operation.f != "cas":
        # Of what no register knows nothing may happen.
        return False, state
    expected, new = items_of(operation.argument) or (None, None)
    answer = items_of(operation.result) if known else None
    done = answer is None or len(answer) == _PAIR or answer[_PAIR] == ("boolean", True)
    if not known:
        return True, new if state == expected else state
    return (state == expected) == done, new if done else state


def _set(state: Any, operation: PlainOperation) -> tuple[bool, Any]:
    known = operation.type == "ok"
    if operation.f == "add":
        return True, state | {operation.argument}
    if operation.f == "remove":
        return True, state - {operation.argument}
    if operation.f == "contains":
        return not known or operation.result == ("boolean", operation.argument in state), state
    shown = operation.result[1] if operation.result else ()
    return not known or frozenset(shown) == state, state


def _store(state: Any, operation: PlainOperation) -> tuple[bool, Any]:
    known, empty = operation.type == "ok", ("text", "")
    if operation.f == "get":
        return not known or (operation.result or empty) == state, state
    argument = operation.argument or empty
    return True, argument if operation.f == "put" else ("text", state[1] + argument[1])


#: The step and the first state of each model.
STEPS: dict[str, tuple[Step, Any]] = {
    "cas-register": (_register, None),
    "set": (_set, frozenset[Plain]()),
    "kv": (_store, ("text", "")),
}
#: Functions of each model.
FUNCTIONS: dict[str, frozenset[str]] = {
    "cas-register": frozenset({"read", "write", "cas"}),
    "set": frozenset({"add", "remove", "read", "contains"}),
    "kv": frozenset({"get", "put", "append"}),
}
