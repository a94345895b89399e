r"""EDN as plain values, read letter by letter and by recursion.

Source: edn-format.org; what Clojure prints besides (``##NaN``, ``\u0041`` in strings) as its own
reader takes it.
"""

import re
import unicodedata
from typing import Final

from bench.reader_fuzz.plain_values import (
    Plain,
    PlainError,
    boolean,
    decimal,
    double,
    mapping,
    sequence,
    text,
    unordered,
)

#: Deeper than any history.
_DEPTH_MAX: Final = 200
#: Numbers of more digits mean nothing that a history could.
_LETTERS_MAX: Final = 4_000
#: ``Character.isWhitespace`` of Java: all separators of Unicode but those at which no line may
#: break, and the controls from tab to carriage return and from U+001C to U+001F; and the comma.
_BLANK: Final = "," + "".join(
    letter
    for letter in map(chr, range(0x3001))
    if letter in "\t\n\v\f\r\x1c\x1d\x1e\x1f"
    or (unicodedata.category(letter) in ("Zs", "Zl", "Zp") and letter not in "\xa0\u2007\u202f")
)
_ENDS_ATOM: Final = _BLANK + '()[]{}";'
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_ESCAPES: Final = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_CHARACTERS: Final = {
    "newline": "\n",
    "return": "\r",
    "space": " ",
    "tab": "\t",
    "formfeed": "\f",
    "backspace": "\b",
}
_WHOLE: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)N?")
_BROKEN: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?M?")
_NAME: Final = re.compile(r"[^\d#:'@^`~\\][^@^`~\\]*")
_NAMED: Final = {"##NaN": "nan", "##Inf": "inf", "##-Inf": "-inf"}


class _Text:
    """A text and a place in it."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.place = 0

        self.depth = 0

    def look(self, length: int = 1) -> str:
        return self.content[self.place : self.place + length]

    def take(self) -> str:
        if self.place == len(self.content):
            raise PlainError("it ends too early")
        self.place += 1
        return self.content[self.place - 1]

    def skip(self) -> None:
        """Go on behind blanks, comments and what is discarded."""
        while True:
            if self.look() and self.look() in _BLANK:
                self.place += 1
            elif self.look() == ";":
                end = self.content.find("\n", self.place)
                self.place = len(self.content) if end < 0 else end
            elif self.look(2) == "#_":
                self.place += 2
                _value(self)
            else:
                return


def read_edn(content: str) -> list[Plain]:
    """Every value of a text.

    Raises:
        PlainError: it is no EDN.
    """
    reading = _Text(content)
    values: list[Plain] = []
    reading.skip()
    while reading.look():
        values.append(_value(reading))
        reading.skip()
    return values


def _value(reading: _Text) -> Plain:
    reading.skip()
    first = reading.take()
    if first in _CLOSING:
        items = _items(reading, _CLOSING[first])
        return _map(items) if first == "{" else sequence(items)
    if first == '"':
        return text(_joined(_string(reading)))
    if first == "\\":
        return ("character", _character(reading))
    if first == "#" and reading.look() == "{":
        reading.take()
        return unordered(_items(reading, "}"))
    if first in _ENDS_ATOM:
        raise PlainError(f"{first!r} at an odd place")
    atom = first
    while reading.look() and reading.look() not in _ENDS_ATOM:
        atom += reading.take()
    if first == "#" and atom not in _NAMED:
        if not atom[1:2].isalpha():
            raise PlainError("a tag that begins with no letter")
        return ("tagged", _name(atom[1:]), _value(reading))
    return _atom(atom)


def _items(reading: _Text, closing: str) -> list[Plain]:
    items: list[Plain] = []
    reading.depth += 1
    if reading.depth > _DEPTH_MAX:
        raise PlainError("nested too deeply")
    reading.skip()
    while reading.look() != closing:
        items.append(_value(reading))
        reading.skip()
    reading.take()
    reading.depth -= 1
    return items


def _map(items: list[Plain]) -> Plain:
    if len(items) % 2:
        raise PlainError("a key without a value")
    if len(set(items[::2])) < len(items) // 2:
        raise PlainError("a map holds a key twice")
    return mapping(zip(items[::2], items[1::2], strict=True))


def _string(reading: _Text) -> str:
    content = ""
    while (letter := reading.take()) != '"':
        if letter == "\\":
            letter = reading.take()
            letter = _unicode(reading) if letter == "u" else _ESCAPES.get(letter, "")
            if not letter:
                raise PlainError("an unknown escape")
        content += letter
    return content


def _unicode(reading: _Text) -> str:
    digits = "".join(reading.take() for _ in range(4))
    if re.fullmatch(r"[0-9a-fA-F]{4}", digits) is None:
        raise PlainError("an escape without four digits")
    return chr(int(digits, 16))


def _joined(content: str) -> str:
    """Return the text with halves of characters put together, as Java writes them."""
    try:
        return content.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise PlainError("half a character") from error


def _character(reading: _Text) -> str:
    name = reading.take()
    while reading.look() and reading.look() not in _ENDS_ATOM:
        name += reading.take()
    if len(name) == 1:
        return name
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if re.fullmatch(r"u[0-9a-fA-F]{4}", name):
        return _joined(chr(int(name[1:], 16)))
    raise PlainError("an unknown character")


def _atom(atom: str) -> Plain:
    if atom in ("nil", "true", "false"):
        return None if atom == "nil" else boolean(atom == "true")
    if atom in _NAMED:
        return double(_NAMED[atom])
    if len(atom) > _LETTERS_MAX:
        raise PlainError("a very long name or number")
    if _WHOLE.fullmatch(atom):
        return ("whole", int(atom.rstrip("N")))
    if _BROKEN.fullmatch(atom):
        return decimal(atom[:-1]) if atom.endswith("M") else double(atom)
    if atom.startswith(":"):
        return ("keyword", _name(atom[1:], first_free=True))
    return ("symbol", _name(atom))


def _name(name: str, *, first_free: bool = False) -> str:
    """Return the name of a symbol, a tag or a keyword; only the last may begin with a digit."""
    checked = f"x{name}" if first_free and name and name[0] not in ":#'@^`~\\" else name
    is_odd = any(unicodedata.category(letter)[0] in "CZ" for letter in name)
    if _NAME.fullmatch(checked) is None or re.match(r"[+.-][0-9]", checked) or is_odd:
        raise PlainError(f"{name!r} is no name")
    return name
