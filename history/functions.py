"""Effects of a workload's functions: which only read, which change state, which leave a record.

A workload declares them, ``plan.json`` keeps the declaration, and clients, checkers, vacuity rules
and figures use it. An undeclared function has no effect here. Source: design, sections 4 and 5.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import msgspec

#: reads: changes nothing, so that without an answer it certainly did nothing. changes: changes
#: state. records: changes state, and once acknowledged it has a record in the committed log.
Effect = Literal["reads", "changes", "records"]


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Shape of an ok result that reports a refusal: an observation, no change."""

    #: Place in a result that is a list; None: the result itself.
    place: int | None = None
    #: Values there that mean a refusal.
    values: tuple[Any, ...] = (False,)

    def covers(self, result: object) -> bool:
        """Return whether this result is a refusal."""
        if self.place is None:
            return self._says(result)
        if not isinstance(result, (list, tuple)):
            return False
        parts = cast("list[object] | tuple[object, ...]", result)
        return len(parts) > self.place and self._says(parts[self.place])

    def _says(self, word: object) -> bool:
        # To Python 0 is False, to a history it is not.
        return any(type(word) is type(value) and word == value for value in self.values)


class Function(msgspec.Struct, frozen=True, omit_defaults=True):
    """Effect of the operations of one function."""

    effect: Effect
    #: Refusing answers; None: an ok one always did it.
    refused: Refusal | None = None
    #: Reading parts ``[[f, key, value], ...]``: a transaction of these alone only reads as well.
    reading_parts: tuple[str, ...] = ()

    def effect_on(self, argument: object) -> Effect:
        """Return the effect of an operation with this argument."""
        if self.reading_parts and isinstance(argument, (list, tuple)):
            parts = cast("list[object] | tuple[object, ...]", argument)
            if all(self._only_reads(part) for part in parts):
                return "reads"
        return self.effect

    def _only_reads(self, part: object) -> bool:
        if not isinstance(part, (list, tuple)) or not part:
            return False
        return cast("list[object] | tuple[object, ...]", part)[0] in self.reading_parts


#: Functions of a workload, by name.
Functions = Mapping[str, Function]

READ: Final = Function("reads")
RECORD: Final = Function("records")
#: ``[expected, new, succeeded]``
COMPARE_AND_SET: Final = Function("records", Refusal(2, (False, None, 0)))
#: ``[number, created]``
CREATE: Final = Function("records", Refusal(1))
#: False where there was nothing to delete.
DELETE: Final = Function("records", Refusal())

#: Usual functions, for histories and run folders that declare none.
USUAL: Final[Functions] = {
    **dict.fromkeys(("read", "describe", "view"), READ),
    **dict.fromkeys(("write", "add", "put", "append", "remove"), RECORD),
    "cas": COMPARE_AND_SET,
    "create": CREATE,
    "delete": DELETE,
}


def only_reads(functions: Functions, f: str, argument: object) -> bool:
    """Return whether the operation is declared to change nothing."""
    function = functions.get(f)
    return function is not None and function.effect_on(argument) == "reads"


def was_refused(functions: Functions, f: str, result: object) -> bool:
    """Return whether the answer to a change is a refusal: an observation, no change.

    A compare-and-set met another value, a create found its object, a delete nothing.
    """
    function = functions.get(f)
    return function is not None and function.refused is not None and function.refused.covers(result)


def tells_refusals(functions: Functions, f: str) -> bool:
    """Return whether the answer to a change says that it was refused, and None does not say so."""
    function = functions.get(f)
    refused = None if function is None else function.refused
    return refused is not None and not refused.covers(None)


def effect_of(functions: Functions, f: str, argument: object, result: object) -> Effect | None:
    """Return the effect of an acknowledged operation, if declared; a refused change only read."""
    function = functions.get(f)
    if function is None:
        return None
    return "reads" if was_refused(functions, f, result) else function.effect_on(argument)
