"""Values as both sides of the fuzz can compare them: each kind of value under a name of its own.

A plain value is None, or a tuple that begins with its kind. Equal plain values are the values that
nobody may tell apart, and no others are equal. Numbers of JSON are of one kind, so ``1`` is
``1.0``; those of EDN are of three (whole, double, exact decimal). Lists and vectors of EDN are of
one kind.
Sources: RFC 8259, sections 3 to 7; edn-format.org, "equality".
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

#: Deeper than any history, and than many programs can go.
_DEPTH_MAX = 500
#: More than many programs read or print.
_DIGITS_MAX = 4_000
#: None, or ``(kind, ...)``; hashable.
Plain = Any


class PlainError(ValueError):
    """A text that is not what its format asks for; says why in a few words."""


def boolean(value: bool) -> Plain:
    """True or false."""
    return ("boolean", value)


def text(value: str) -> Plain:
    """Return a string."""
    return ("text", value)


def number(digits: str, *, apart: bool = False) -> Plain:
    """A number of JSON: whole ones exact, others as the double that every reader makes of them.

    Args:
        digits: as it is written.
        apart: whether ``1`` and ``1.0`` are to be different.

    Raises:
        PlainError: it is beyond every double, or has very many digits.
    """
    if len(digits) > _DIGITS_MAX:
        raise PlainError("a number of very many digits")
    if is_whole(digits):
        return ("number", Fraction(int(digits)))
    double = float(digits)
    if math.isinf(double):
        raise PlainError("a number beyond every double")
    return ("double", Fraction(double)) if apart else ("number", Fraction(double))


def is_whole(digits: str) -> bool:
    """Whether a number of JSON is written without fraction and exponent."""
    return digits.lstrip("-").isdigit()


def double(digits: str) -> Plain:
    """Return a floating-point number of EDN; NaN equals itself, and no zero has a sign."""
    value = float(digits)
    return ("double", "NaN" if math.isnan(value) else 0.0 if value == 0 else value)


def decimal(digits: str) -> Plain:
    """Return an exact number of EDN."""
    return ("decimal", Decimal(digits))


def sequence(items: Iterable[Plain]) -> Plain:
    """Return a list of values, in order."""
    return ("list", tuple(items))


def unordered(items: list[Plain]) -> Plain:
    """Return a set.

    Raises:
        PlainError: it holds a value twice.
    """
    if len(set(items)) < len(items):
        raise PlainError("a set holds a value twice")
    return ("set", frozenset(items))


def mapping(pairs: Iterable[tuple[Plain, Plain]]) -> Plain:
    """Return a map; of equal keys the last one counts."""
    return ("map", frozenset(dict(pairs).items()))


def items_of(value: Plain) -> tuple[Plain, ...] | None:
    """Return the items of a list; None for any other value."""
    return value[1] if value is not None and value[0] == "list" else None


def refuse_deep(brackets: str) -> None:
    """Raise PlainError for a text, without its strings, whose brackets stand too deep."""
    depth = 0
    for letter in brackets:
        depth += (letter in "([{") - (letter in ")]}")
        if depth > _DEPTH_MAX:
            raise PlainError("nested too deeply")


def digits_of(value: Plain) -> int:
    """Digits of the longest whole number in it."""
    if value is None:
        return 0
    if value[0] in ("number", "whole"):
        return len(str(value[1]))
    return max(map(digits_of, _parts(value)), default=0)


def _parts(value: Plain) -> list[Plain]:
    if value is None or value[0] not in ("list", "set", "map", "tagged"):
        return []
    if value[0] == "map":
        return [part for pair in value[1] for part in pair]
    return list(value[1]) if value[0] != "tagged" else [value[2]]


def depth_of(value: Plain) -> int:
    """Depth of nested collections."""
    if value is None or value[0] not in ("list", "set", "map", "tagged"):
        return 0
    return 1 + max(map(depth_of, _parts(value)), default=0)
