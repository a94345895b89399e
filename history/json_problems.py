"""Problems found by a JSON decoder in words for users; pure.

The decoder's messages contain its own types and places such as ``$.faults[0].at_ms``. A message
that is not known here passes through unchanged, so that nothing is ever hidden.
"""

import re
from collections.abc import Collection
from typing import Any, cast

import msgspec

from splitbrain.contracts.errors import UNREADABLE

_PLACE = r"(?: - at `(?P<place>[^`]*)`)?"
_TYPES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "text",
}

#: The decoder gives up beyond its depth, and so do its callers.
TOO_DEEP = "it is nested too deeply"
#: Depth of the values of a history: their readers recurse, and Python ends that somewhere between
#: here and its decoder's limit.
DEPTH_MAX = 100
_NESTED = frozenset({list, dict})

#: Messages of the decoder, and our words; ``thing`` is their subject.
_KNOWN = (
    (rf"Object missing required field `(?P<name>[^`]*)`{_PLACE}", "{thing} has no field '{name}'"),
    (
        rf"Object contains unknown field `(?P<name>[^`]*)`{_PLACE}",
        "{thing} has an unknown field '{name}'",
    ),
    (
        rf"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`{_PLACE}",
        "{thing} must be {wanted}, not {got}",
    ),
    (rf"Invalid enum value (?P<value>.*?){_PLACE}", "{thing} cannot be {value}"),
    (
        rf"(?:(?:Number|Integer value) out of range|Expected `int` [<>]= -?\d{{19}}){_PLACE}",
        "it holds a number that is too large",
    ),
    (r"Input data was truncated", "it ends in the middle of a value"),
    (
        r"JSON is malformed: (?P<why>.*) \(byte (?P<byte>\d+)\)",
        "it is not valid JSON: {why} at byte {byte}",
    ),
    (
        r"'utf-8' codec can't decode byte (?P<byte>0x[0-9a-f]+) .*",
        "it is not UTF-8: it holds the byte {byte}",
    ),
    (r"maximum recursion depth exceeded.*", TOO_DEEP),
)


def in_words(error: Exception) -> str:
    """Return one clause about the refused input, without a full stop."""
    text = str(error)
    for pattern, sentence in _KNOWN:
        found = re.fullmatch(pattern, text, re.DOTALL)
        if found is None:
            continue
        parts = {name: part or "" for name, part in found.groupdict().items()}
        for name in ("wanted", "got"):
            if name in parts:
                parts[name] = _type(parts[name])
        place = parts.pop("place", "").removeprefix("$").removeprefix(".")
        return sentence.format(thing=place or "it", **parts)
    return text


def refuse_other_bytes(data: bytes) -> None:
    """Check every byte; the decoder ignores the names of fields that it leaves out.

    Raises:
        UnicodeDecodeError: the bytes are not UTF-8.
    """
    if not data.isascii():
        data.decode("utf-8")


def is_too_deep(value: object) -> bool:
    """Return whether a decoded value has more than ``DEPTH_MAX`` nested collections."""
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [inner for outer in level for inner in _nested_in(outer)]
        if not level:
            return False
    return True


def _nested_in(value: Any) -> list[Any]:
    """Return the collections in a collection; a set's read may hold very many other things."""
    if type(value) not in _NESTED:
        return []
    items = cast("Collection[Any]", value.values() if isinstance(value, dict) else value)
    return [] if _NESTED.isdisjoint(map(type, items)) else [x for x in items if type(x) in _NESTED]


def is_json(data: bytes) -> bool:
    """Return whether bytes are one whole value; a cut line is none."""
    try:
        msgspec.json.decode(data)
    except UNREADABLE:
        return False
    return True


def _type(names: str) -> str:
    return " or ".join(_TYPES.get(name.strip(), name.strip()) for name in names.split("|"))
