"""JSON as plain values, by the standard library's reader with each of its liberties taken back.

Source: RFC 8259. ``NaN`` and ``Infinity`` are no JSON, and numbers keep their digits until it is
known what they are: the time of an event is exact, a value is a double.
"""

import json
import re
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, cast

from bench.reader_fuzz.plain_values import (
    Plain,
    PlainError,
    boolean,
    is_whole,
    mapping,
    number,
    refuse_deep,
    sequence,
    text,
)


class Number(NamedTuple):
    """A number as it is written."""

    digits: str

    @property
    def exact(self) -> Fraction:
        """Its value, to the last digit."""
        return Fraction(self.digits)


class Members(NamedTuple):
    """An object as it is written, repeated names included."""

    pairs: list[tuple[str, Any]]

    def get(self, name: str) -> Any:
        """Return the member of that name, the last of several; None where there is none."""
        return dict(self.pairs).get(name)

    @property
    def repeats(self) -> bool:
        """Whether a name stands there twice."""
        return len(dict(self.pairs)) < len(self.pairs)


def read_json(line: bytes) -> Any:
    """Return the value of a line: ``Members``, ``Number``, lists, texts, booleans and None.

    Raises:
        PlainError: it is not valid JSON.
    """
    try:
        found = json.loads(
            line.decode("utf-8"),
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse,
            object_pairs_hook=Members,
        )
    except (ValueError, RecursionError) as error:
        raise PlainError(f"no JSON: {error}") from error
    refuse_deep(re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line).decode())
    return found


def _refuse(name: str) -> NoReturn:
    raise PlainError(f"{name} is not valid JSON")


def plain_of(value: Any, *, apart: bool = False) -> Plain:
    """Return a value that ``read_json`` gave as a plain one.

    Args:
        value: what was read.
        apart: see ``plain_values.number``.

    Raises:
        PlainError: a number is beyond every double, or a text holds half a character.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return boolean(value)
    if isinstance(value, Number):
        return number(value.digits, apart=apart)
    if isinstance(value, Members):
        return mapping((text(name), plain_of(part, apart=apart)) for name, part in value.pairs)
    if isinstance(value, list):
        return sequence(plain_of(item, apart=apart) for item in cast("list[Any]", value))
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PlainError("half a character") from error
    return text(value)


def has_doubles(value: Any) -> bool:
    """Whether a number in what ``read_json`` gave is written with a fraction or an exponent."""
    if isinstance(value, Number):
        return not is_whole(value.digits)
    if isinstance(value, Members):
        return any(has_doubles(part) for _, part in value.pairs)
    return isinstance(value, list) and any(map(has_doubles, cast("list[Any]", value)))
