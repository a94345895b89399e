"""Reader of values in EDN, the notation of Jepsen's histories (edn-format.org); pure.

Lists and vectors become lists, ``nil`` None, whole numbers, texts, true and false as in JSON;
everything else becomes a type of ``history.edn_values``. Values behind ``#_`` are left out. Must
never evaluate anything.
"""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from splitbrain.history.edn_values import (
    CHARACTER_NAMES,
    EdnMap,
    EdnSet,
    Name,
    Number,
    Tagged,
    edn_text,
)
from splitbrain.history.json_problems import TOO_DEEP

#: White space of Java, and commas. Python's differs: U+0085 and the spaces at which no line may
#: break are none.
_BLANKS: Final = "".join(
    chr(code)
    for first, last in (
        (0x09, 0x0D), (0x1C, 0x20), (0x1680, 0x1680), (0x2000, 0x2006), (0x2008, 0x200A),
        (0x2028, 0x2029), (0x205F, 0x205F), (0x3000, 0x3000), (0x2C, 0x2C),
    )
    for code in range(first, last + 1)
)  # fmt: skip
_BLANK: Final = re.escape(_BLANKS)
_TOKEN = re.compile(
    rf"""[{_BLANK}]*+(?:;[^\n]*+[{_BLANK}]*+)*+        # blanks, commas, comments; all of them
    (?: (?P<open>\#\{{ | [\[({{])
      | (?P<close>[\])}}])
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<discard>\#_)
      | (?P<tag>\#[A-Za-z][^{_BLANK}()\[\]{{}}";]*)
      | (?P<character>\\[^{_BLANK}][^{_BLANK}()\[\]{{}}";]*)
      | (?P<atom>[^{_BLANK}()\[\]{{}}";]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}
_CHARACTERS: Final = {name: character for character, name in CHARACTER_NAMES.items()}
_CODE: Final = re.compile(r"u[0-9a-fA-F]{4}")
_DISCARD: Final = "#_"
#: Types for which Python's own equality is EDN's.
_HASHED: Final = frozenset({Name, str, int})
_CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
#: Longer whole numbers cost more than they can mean; Python refuses to read or print them.
_DIGITS_MAX = 1000
_CONSTANTS: dict[str, Any] = {"nil": None, "true": True, "false": False}
#: Without a needless leading 0, which Clojure would take for an octal number.
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)N?")
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?M?")
#: Keywords kept for reuse: most are the names of fields.
_KEYWORDS_MAX: Final = 1024
#: Characters that begin no name, and those in no name.
_NEVER_FIRST: Final = "#:'@^`~\\"
_NEVER_WITHIN: Final = frozenset("@^`~\\")
_RATIO: Final = re.compile(r"([+-]?(?:0|[1-9][0-9]*))/(0|[1-9][0-9]*)")
_SYMBOLIC: Final = {"##NaN": "nan", "##Inf": "inf", "##-Inf": "-inf"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


class EdnError(ValueError):
    """Text that is not EDN; says where, in characters from its start."""


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

    Few programs that go on with a value do without: ``depth_max`` is the greatest nesting.

    Raises:
        EdnError: a value is broken.
    """
    top = _Collection("", 0)
    opened = [top]
    position = 0
    length = len(text.rstrip(_BLANKS))
    while position < length:
        match = _TOKEN.match(text, position)
        if match is None:
            _refuse_rest(text, position)
            break
        position = match.end()
        kind = match.lastgroup
        found = match[kind or 0]
        current = opened[-1]
        if kind == "atom":
            # Nearly always nothing waits for it; a call for each would be a tenth of the time.
            take = current.add if current.prefixes else current.items.append
            take(_atom(found, match.start(kind)))
        elif kind == "string":
            current.add(_unescaped(found[1:-1]))
        elif kind == "open":
            # The text itself is the first open collection.
            if depth_max is not None and len(opened) > depth_max:
                raise EdnError(TOO_DEEP)
            opened.append(_Collection(found, match.start(kind)))
        elif kind == "close":
            if _CLOSES.get(current.opening) != found:
                raise EdnError(f"unexpected {found!r} at character {position - 1}")
            opened.pop()
            opened[-1].add(current.value())
        elif kind == "character":
            current.add(_character(found[1:], match.start(kind)))
        else:
            current.prefixes.append(found)
    if len(opened) > 1:
        raise EdnError(f"{opened[-1].opening!r} at character {opened[-1].position} is never closed")
    return top.whole()


class _Collection:
    """Collection of values while they are read; ``position`` is that of its opening token."""

    def __init__(self, opening: str, position: int) -> None:
        self.opening, self.position = opening, position
        self.items: list[Any] = []
        #: Tags and ``#_`` that wait for their value.
        self.prefixes: list[str] = []

    def add(self, value: Any) -> None:
        """Add the next value, or leave it out."""
        while self.prefixes:
            prefix = self.prefixes.pop()
            if prefix == _DISCARD:
                return
            _refuse_no_name(prefix[1:])
            value = Tagged(prefix[1:], value)
        self.items.append(value)

    def whole(self) -> list[Any]:
        """Return the values; raise EdnError where one is missing."""
        if self.prefixes:
            raise EdnError(f"nothing stands behind {self.prefixes[-1]}")
        return self.items

    def value(self) -> Any:
        """Return the closed collection; raise EdnError where it is none."""
        items = self.whole()
        if self.opening == "#{":
            self._refuse_equal(items, "the set", "an element")
            return EdnSet(tuple(items))
        if self.opening != "{":
            return items
        if len(items) % 2:
            raise EdnError(f"the map at character {self.position} has a key without a value")
        self._refuse_equal(items[::2], "the map", "a key")
        return EdnMap(tuple(zip(items[::2], items[1::2], strict=True)))

    def _refuse_equal(self, items: list[Any], where: str, thing: str) -> None:
        # Texts tell everything apart, but cost more than all the rest of a line.
        alike = items if _HASHED.issuperset(map(type, items)) else map(edn_text, items)
        if len(set(alike)) < len(items):
            raise EdnError(f"{where} at character {self.position} has {thing} twice")


def _refuse_rest(text: str, position: int) -> None:
    lines = text[position:].split("\n")
    if any(line.split(";", 1)[0].strip(_BLANKS) for line in lines):
        raise EdnError(f"unreadable text at character {position}")


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_unescape, text)
    try:
        # Java writes characters beyond 16 bits as two escapes.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise EdnError("half a character in a string") from error


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape not in _ESCAPES:
        raise EdnError(f"no escape in a string is written \\{escape}")
    return _ESCAPES[escape]


def _character(name: str, position: int) -> Name:
    if _CODE.fullmatch(name):
        return Name("character", chr(int(name[1:], 16)))
    found = _CHARACTERS.get(name, name)
    if len(found) != 1:
        raise EdnError(f"unreadable character \\{name} at character {position}")
    return Name("character", found)


def _atom(atom: str, position: int) -> Any:
    if atom[0] == ":" and len(atom) > 1:
        return _keyword(atom)
    if atom in _CONSTANTS:
        return _CONSTANTS[atom]
    if _INTEGER.fullmatch(atom):
        _refuse_long(len(atom), position)
        return int(atom.rstrip("N"))
    if ratio := _RATIO.fullmatch(atom):
        _refuse_long(len(atom), position)
        return _ratio(int(ratio[1]), int(ratio[2]), position)
    if _DECIMAL.fullmatch(atom):
        return _decimal(atom, position) if atom[-1] == "M" else Number("double", float(atom))
    if atom in _SYMBOLIC:
        return Number("double", float(_SYMBOLIC[atom]))
    if atom[0].isdigit():
        raise EdnError(f"unreadable number {atom!r} at character {position}")
    if atom == ":":
        raise EdnError(f"unreadable text {atom!r} at character {position}")
    _refuse_no_name(atom)
    return Name("symbol", atom)


@lru_cache(_KEYWORDS_MAX)
def _keyword(atom: str) -> Name:
    # A keyword may begin like a number.
    _refuse_no_name(f"x{atom[1:]}" if atom[1] not in _NEVER_FIRST else atom[1:])
    return Name("keyword", atom[1:])


def _refuse_no_name(name: str) -> None:
    """Refuse a text that is no name of EDN, such as one in which a bit was flipped."""
    is_signed_number = name[0] in "+-." and name[1:2].isdigit()
    is_odd = name[0] in _NEVER_FIRST or not _NEVER_WITHIN.isdisjoint(name)
    if is_odd or is_signed_number or not name.isprintable():
        raise EdnError(f"unreadable text {name!r}")


def _ratio(numerator: int, denominator: int, position: int) -> Any:
    if not denominator:
        raise EdnError(f"a ratio by 0 at character {position}")
    ratio = Fraction(numerator, denominator)
    return int(ratio) if ratio.denominator == 1 else Number("ratio", ratio)


def _decimal(atom: str, position: int) -> Number:
    number = Decimal(atom[:-1])
    exponent = number.as_tuple().exponent
    _refuse_long(len(atom) + abs(exponent if isinstance(exponent, int) else 0), position)
    return Number("decimal", Fraction(number))


def _refuse_long(digits: int, position: int) -> None:
    if digits > _DIGITS_MAX:
        raise EdnError(f"a number of {digits:,} digits at character {position}")
