"""Shapes that the values of an operation must have, whatever judges it; pure.

An answer that does not fit its request is never taken for "done": it belongs to another operation,
or means something that nobody here knows. Source: ``contracts.operations``; in foreign histories a
write may answer nothing.
"""

from typing import Any, cast

from splitbrain.history.records import PairedOperation

_ASKED = 2
_ANSWERED = 3


def wrong_shape(operation: PairedOperation) -> str | None:
    """Return the problem of an ``ok`` or ``info`` operation's values, as a clause, or None."""
    if operation.f != "cas":
        return None
    argument = operation.argument
    if _length(argument) != _ASKED:
        return f"it is asked {shown(argument)}, which is not a pair [expected, new]"
    answer = operation.result
    if answer is None:
        return None
    if _length(answer) not in (_ASKED, _ANSWERED) or not isinstance([*answer, True][2], bool):
        return f"it answers {shown(answer)}, which is no [expected, new, true or false]"
    if not is_same(argument, answer[:_ASKED]):
        return f"it is asked {shown(argument)} and answers {shown(answer)}"
    return None


def wrong_echo(operation: PairedOperation) -> str | None:
    """Return the problem of an answer that can only repeat its request, or be nothing; else None.

    For kinds that are answered with "done": ``write``, ``add``, ``enqueue``.
    """
    answer = operation.result
    if operation.type != "ok" or answer is None or is_same(operation.argument, answer):
        return None
    return f"it is asked {shown(operation.argument)} and answers {shown(answer)}"


def is_same(argument: object, answer: object) -> bool:
    """Return whether an answer repeats a value; stores may rewrite ``1`` as ``1.0``."""
    if isinstance(argument, bool) or isinstance(answer, bool):
        return argument is answer
    if isinstance(argument, (list, tuple)) and isinstance(answer, (list, tuple)):
        items, others = cast("list[Any]", argument), cast("list[Any]", answer)
        return len(items) == len(others) and all(map(is_same, items, others))
    if isinstance(argument, dict) and isinstance(answer, dict):
        items, others = cast("dict[Any, Any]", argument), cast("dict[Any, Any]", answer)
        same_keys = items.keys() == others.keys()
        return same_keys and all(is_same(items[key], others[key]) for key in items)
    # NaN equals itself here.
    return argument is answer or argument == answer or (argument != argument and answer != answer)  # noqa: PLR0124


def _length(value: object) -> int:
    if not isinstance(value, (list, tuple)):
        return -1
    return len(cast("list[object]", value))  # pyright: ignore[reportUnknownMemberType]


def shown(value: object) -> str:
    """Return at most 40 characters of a value, for a sentence."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
