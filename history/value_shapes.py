"""What the values of an operation must look like, whatever it is judged by; pure.

Source: ``contracts.operations``: a compare-and-set is asked ``[expected, new]`` and answers
``[expected, new, succeeded]``.
"""

from typing import Any, cast

from history.records import PairedOperation

_ASKED = 2
_ANSWERED = 3


def wrong_shape(operation: PairedOperation) -> str | None:
    """What is wrong with the values of an ``ok`` or ``info`` operation, as a clause, or None."""
    if operation.f != "cas":
        return None
    if _length(operation.argument) != _ASKED:
        return f"it is asked {_shown(operation.argument)}, which is no pair [expected, new]"
    answer = operation.result
    if answer is None or _length(answer) == _ASKED:
        return None
    if _length(answer) != _ANSWERED or not isinstance(cast("list[Any]", answer)[2], bool):
        return f"it answers {_shown(answer)}, which is no [expected, new, true or false]"
    return None


def _length(value: object) -> int:
    return len(cast("list[object]", value)) if isinstance(value, list) else -1


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
