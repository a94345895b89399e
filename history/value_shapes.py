"""What the values of an operation must look like, whatever it is judged by; pure.

Source: ``contracts.operations``: a compare-and-set is asked ``[expected, new]`` and answers
``[expected, new, succeeded]``.
"""

from typing import Any, cast

from history.records import PairedOperation

_ASKED = 2
_ANSWERED = 3


def wrong_shape(operation: PairedOperation) -> str | None:
    """What is wrong with the operation's values, in one clause that names it; None if nothing."""
    if operation.f != "cas":
        return None
    who = f"the cas of process {operation.process}, event {operation.index},"
    if operation.type != "fail" and _length(operation.argument) != _ASKED:
        return f"{who} is asked {_shown(operation.argument)}, which is no pair [expected, new]"
    if operation.type != "ok" or operation.result is None:
        return None
    answer = operation.result
    if _length(answer) == _ASKED:
        return None
    if _length(answer) != _ANSWERED or not isinstance(cast("list[Any]", answer)[2], bool):
        return f"{who} answers {_shown(answer)}, which is no [expected, new, true or false]"
    return None


def _length(value: object) -> int:
    return len(cast("list[object]", value)) if isinstance(value, list) else -1


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
