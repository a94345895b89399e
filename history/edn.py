"""Reads values in EDN, the notation of Jepsen's histories (edn-format.org); pure.

Keywords become strings without their colon, lists and vectors become lists, maps become
dicts, sets become lists, ``nil`` becomes None; a tagged element is read as its value alone.
Must never evaluate anything.
"""

import re
from typing import Any

from history.json_problems import TOO_DEEP

_TOKEN = re.compile(
    r"""[\s,]*(?:;[^\n]*[\s,]*)*            # blanks, commas, comments
    (?: (?P<open>\#\{ | [\[({])
      | (?P<close>[\])}])
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<tag>\#[A-Za-z_][^\s,()\[\]{}";]*)
      | (?P<atom>[^\s,()\[\]{}";]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
#: Longer whole numbers cost more than they can mean; Python refuses to read or print them.
_DIGITS_MAX = 1000
_CONSTANTS: dict[str, Any] = {"nil": None, "true": True, "false": False}
_INTEGER = re.compile(r"[+-]?\d+N?")
_DECIMAL = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?M?")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


class EdnError(ValueError):
    """The text is not EDN; says where, in characters from its start."""


def parse(text: str, depth_max: int | None = None) -> Any:
    """Read the one value that the text holds.

    Raises:
        EdnError: the text holds no value, more than one, or a broken one.
    """
    values = parse_all(text, depth_max)
    if len(values) != 1:
        raise EdnError(f"expected one value, found {len(values)}")
    return values[0]


def parse_all(text: str, depth_max: int | None = None) -> list[Any]:
    """Read every value at the top level of the text, without recursion.

    Args:
        text: the values.
        depth_max: collections that may stand inside each other; None: any number. Few programs
            that go on with a value do without recursion.

    Raises:
        EdnError: a value is broken.
    """
    top: list[Any] = []
    # Opened collections: (their opening token, position, items so far).
    stack: list[tuple[str, int, list[Any]]] = []
    items = top
    position = 0
    length = len(text.rstrip().rstrip(","))
    while position < length:
        match = _TOKEN.match(text, position)
        if match is None:
            if _is_blank(text[position:]):
                break
            raise EdnError(f"unreadable text at character {position}")
        position = match.end()
        if opening := match["open"]:
            if len(stack) == depth_max:
                raise EdnError(TOO_DEEP)
            stack.append((opening, match.start("open"), []))
            items = stack[-1][2]
        elif closing := match["close"]:
            if not stack or _CLOSES[stack[-1][0]] != closing:
                raise EdnError(f"unexpected {closing!r} at character {position - 1}")
            opened = stack.pop()
            items = stack[-1][2] if stack else top
            items.append(_collection(opened))
        elif (string := match["string"]) is not None:
            items.append(_unescaped(string[1:-1]))
        elif (atom := match["atom"]) is not None:
            items.append(_atom(atom, match.start("atom")))
        # A tag says how to read the next element; the element itself is enough here.
    if stack:
        raise EdnError(f"{stack[-1][0]!r} at character {stack[-1][1]} is never closed")
    return top


def _is_blank(text: str) -> bool:
    return all(not line.split(";", 1)[0].strip(" \t\r,") for line in text.split("\n"))


def _collection(opened: tuple[str, int, list[Any]]) -> list[Any] | dict[Any, Any]:
    opening, position, items = opened
    if opening != "{":
        return items
    if len(items) % 2:
        raise EdnError(f"the map at character {position} has a key without a value")
    try:
        return dict(zip(items[::2], items[1::2], strict=True))
    except TypeError as error:
        raise EdnError(f"the map at character {position} has a collection as key") from error


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_unescape, text)
    try:
        # Java writes what lies beyond 16 bits as two escapes.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise EdnError("half a character in a string") from error


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)


def _atom(atom: str, position: int) -> str | float | bool | None:
    if atom in _CONSTANTS:
        return _CONSTANTS[atom]
    if atom[0] == ":":
        return atom[1:]
    if _INTEGER.fullmatch(atom):
        if len(atom) > _DIGITS_MAX:
            raise EdnError(f"a number of {len(atom):,} digits at character {position}")
        return int(atom.rstrip("N"))
    if _DECIMAL.fullmatch(atom):
        return float(atom.rstrip("M"))
    if atom[0] == "\\" and len(atom) == 2:
        return atom[1]
    if atom[0].isdigit():
        raise EdnError(f"unreadable number {atom!r} at character {position}")
    return atom
