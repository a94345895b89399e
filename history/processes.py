"""Times and processes of foreign files as the whole numbers that they are here; pure.

A time that is a fraction is refused: cut to a whole number it would make everything concurrent. A
process may have a name, which gets a number below zero; a name in digits is that number. The
nemesis, ``nemesis`` or ``:nemesis``, is no client. Must never take two processes for one.
"""

import re
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Final

#: Times and process numbers beyond these fit into no column and come from no clock.
NUMBER_MAX: Final = 2**63 - 1
#: Whole numbers up to here are exact where a file writes them with a point.
EXACT_MAX: Final = 2**53
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,18}")
#: Names told singly.
_TOLD_MAX: Final = 10


class FractionError(ValueError):
    """A time with a fraction, or one that was rounded: order needs exact ones."""

    next_step: Final = (
        "Write all times as whole numbers of one small unit, such as nanoseconds, "
        "or leave all of them out: the order of the lines stands in for them"
    )


def whole_number(value: object, name: str) -> int:
    """A number without fraction, however the file writes it: ``7``, ``7.0``, ``7e3``.

    Raises:
        FractionError: a time has a fraction, or is too long to be exact with a point.
        ValueError: it is no number, or too large for any clock; another one than a time as above.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ValueError(f"its {name} is no number")  # noqa: TRY004 (a broken line, as any other)
    if isinstance(value, float | Decimal) and not isfinite(value):
        raise ValueError(f"its {name} is no finite number")
    if abs(value) > NUMBER_MAX:
        raise ValueError(f"its {name} is too large")
    number = int(value)
    if number != value or (isinstance(value, float) and abs(value) > EXACT_MAX):
        why = "is no whole number" if number != value else "is rounded"
        refusal = FractionError if name == "time" else ValueError
        raise refusal(f"its {name} is {value}, which {why}")
    return number


def is_nemesis(process: object) -> bool:
    """Whether a process is the one that makes the faults."""
    return isinstance(process, str) and process.removeprefix(":") == "nemesis"


class ProcessNumbers:
    """The numbers of one history's processes; the names among them count down from -1."""

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._has_negative = False

    def of(self, process: object) -> int:
        """The number of a process that is no nemesis.

        Raises:
            ValueError: it is neither a name nor a whole number, or one that a name could have.
        """
        name = process.removeprefix(":") if isinstance(process, str) else None
        if name is not None and not _DIGITS.fullmatch(name):
            number = self._by_name.setdefault(name, -1 - len(self._by_name))
        else:
            number = whole_number(process if name is None else int(name), "process")
            self._has_negative |= number < 0
        if self._has_negative and self._by_name:
            raise ValueError("some processes have names, and others a number below zero")
        return number

    @property
    def notes(self) -> tuple[str, ...]:
        """The numbers given to named processes, in one sentence; empty where none has a name."""
        if not self._by_name:
            return ()
        told = [f"{number} is {name}" for name, number in [*self._by_name.items()][:_TOLD_MAX]]
        more = len(self._by_name) - len(told)
        rest = f", and so on for {more:,} more" if more else ""
        return (f"Processes with a name have a number below zero: {', '.join(told)}{rest}.",)
