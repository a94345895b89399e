"""Values of EDN that JSON does not have, equal as EDN says; pure.

Lists, texts, whole numbers, true, false and nil are Python's own. The others are types of their
own, none of which msgspec encodes by itself, so that none can silently become something else. Each
has one text, ``edn_text``: two values are equal exactly if their texts are. Must never evaluate
anything. Sources: edn-format.org, "equality"; Clojure 1.11's ``=`` where that is silent: 1.0M is
1.00M, 0.0 is -0.0, and 1.0 is neither 1 nor 1.0M.
"""

import json
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, cast

#: Kinds of numbers; ``number`` is JSON's one kind, for which 1.0 is 1, ``float`` Python's own,
#: which models may use.
NumberKind = Literal["whole", "double", "decimal", "ratio", "number", "float"]
NameKind = Literal["keyword", "symbol", "character"]
#: Mark of each kind of name in a text; some characters have names, too.
_MARKS: Final = {"keyword": ":", "symbol": "'", "character": "\\"}
#: Characters with names.
CHARACTER_NAMES: Final = {"\n": "newline", " ": "space", "\t": "tab", "\r": "return"}
#: Different kinds of which numbers may be equal.
_ALIKE: Final = frozenset(
    pair
    for kind, other in (("number", "whole"), ("number", "float"), ("double", "float"))
    for pair in ((kind, other), (other, kind))
)
#: Kind of a sum: the first of these that was added up.
_PREVALENCE: Final[tuple[NumberKind, ...]] = (
    *("double", "number", "float", "decimal", "ratio", "whole"),
)


class Name:
    """Keyword, symbol or character, equal to no text; ``text`` is without its mark."""

    __slots__ = ("_hash", "kind", "text")

    def __init__(self, kind: NameKind, text: str) -> None:
        self.kind: NameKind = kind
        self.text = text
        self._hash = hash((kind, text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and (self.kind, self.text) == (other.kind, other.text)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        text = self.text
        if self.kind == "character":
            text = CHARACTER_NAMES.get(text, text)
        return _MARKS[self.kind] + text

    def __reduce__(self) -> tuple[type["Name"], tuple[NameKind, str]]:
        # Texts hash otherwise in another process.
        return Name, (self.kind, self.text)


class Tagged:
    """Value with a tag, such as ``#inst "2026-11-22"``, different from the value without it."""

    __slots__ = ("tag", "value")

    def __init__(self, tag: str, value: Any) -> None:
        self.tag = tag
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tagged) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"#{self.tag} {edn_text(self.value)}"


class EdnSet(AbstractSet[Any]):
    """Set of any values, no two of them equal."""

    __slots__ = ("_items",)

    def __init__(self, items: tuple[Any, ...]) -> None:
        self._items = items

    def __contains__(self, item: object) -> bool:
        return edn_text(item) in map(edn_text, self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EdnSet) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return "#{" + " ".join(sorted(map(edn_text, self._items))) + "}"


class EdnMap(Mapping[Any, Any]):
    """Map with any values as keys, no two of them equal."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: tuple[tuple[Any, Any], ...]) -> None:
        self._pairs = pairs

    def __getitem__(self, key: Any) -> Any:
        text = edn_text(key)
        for known, value in self._pairs:
            if edn_text(known) == text:
                return value
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in self._pairs])

    def __len__(self) -> int:
        return len(self._pairs)

    def items(self) -> Any:
        """Return keys and values in their order."""
        return self._pairs

    def values(self) -> Any:
        """Return the values in the order of their keys."""
        return [value for _, value in self._pairs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EdnMap) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        pairs_text = sorted((edn_text(key), edn_text(value)) for key, value in self._pairs)
        return "{" + ", ".join(f"{key} {value}" for key, value in pairs_text) + "}"


def _counted(calculate: Callable[[Any, Any], Any]) -> Callable[["Number", object], Any]:
    """Make a calculation on numbers of any kinds, in both orders of its sides."""

    def calculated(self: "Number", other: object) -> Any:
        parts = _parts(other)
        if parts is None:
            return NotImplemented
        kind, value = parts
        found: NumberKind = min((self.kind, kind), key=_PREVALENCE.index)
        return Number(found, calculate(self.value, value))

    return calculated


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[["Number", object], bool]:
    def compared(self: "Number", other: object) -> bool:
        parts = _parts(other)
        return NotImplemented if parts is None else compare(self.value, parts[1])

    return compared


class Number:
    """Number that is equal to numbers of its own kind alone, never to true or false.

    Python's own numbers are equal across kinds, and True is 1: this one stands for them where a
    history holds both. It calculates as they do. A double's value is a ``float``, that of decimals
    and ratios a ``Fraction``.
    """

    __slots__ = ("kind", "value")

    def __init__(self, kind: NumberKind, value: Any) -> None:
        self.kind: NumberKind = kind
        # Clojure's -0.0 is 0.0.
        self.value = value + 0.0 if kind == "double" else value

    def __eq__(self, other: object) -> bool:
        parts = _parts(other)
        if parts is None:
            return NotImplemented
        kind, value = parts
        alike = self.kind == kind or (self.kind, kind) in _ALIKE
        return alike and (self.value == value or (_is_nan(self.value) and _is_nan(value)))

    def __hash__(self) -> int:
        return 0 if _is_nan(self.value) else hash(self.value)

    def __repr__(self) -> str:
        if self.kind == "double":
            return _double_text(self.value)
        if self.kind == "decimal":
            return _decimal_text(self.value) + "M"
        return edn_text(self.value) if self.kind == "number" else str(self.value)

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Pretend to be int or float to models that ask for whole numbers or floats."""
        return int if type(self.value) is int else float if type(self.value) is float else Number

    def __reduce__(self) -> tuple[Callable[..., "Number"], tuple[Any, ...]]:
        return Number, (self.kind, self.value)

    __add__ = _counted(operator.add)
    __radd__ = _counted(lambda right, left: left + right)
    __sub__ = _counted(operator.sub)
    __rsub__ = _counted(lambda right, left: left - right)
    __mul__ = _counted(operator.mul)
    __rmul__ = _counted(lambda right, left: left * right)
    __floordiv__ = _counted(lambda left, right: left // right)
    __rfloordiv__ = _counted(lambda right, left: left // right)
    __mod__ = _counted(operator.mod)
    __rmod__ = _counted(lambda right, left: left % right)
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)

    def __neg__(self) -> "Number":
        return Number(self.kind, -self.value)

    def __abs__(self) -> "Number":
        return Number(self.kind, abs(self.value))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)


def is_number(value: object) -> bool:
    """Return whether a value is a number of any kind; true and false are none."""
    return type(value) in (int, float, Number)


def edn_text(value: object) -> str:
    """Return the one text of a value of JSON or EDN; values are equal exactly if their texts are.

    JSON's numbers are of one kind: 1.0 is ``1``. A double of EDN is a ``Number``.

    Raises:
        RecursionError: it is nested too deeply.
    """
    if value is None:
        return "nil"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return str(int(value)) if value.is_integer() else repr(value)
    if type(value) is list or type(value) is tuple:
        return "[" + " ".join(map(edn_text, cast("list[object]", value))) + "]"
    if type(value) is dict:
        return repr(EdnMap(tuple(cast("dict[object, object]", value).items())))
    return repr(value)


def size_of(number: Any) -> Any:
    """Return a number without its kind, for sums and comparisons by size."""
    return number.value if type(number) is Number else number


def _is_nan(value: object) -> bool:
    """Return whether the value is NaN, equal only to NaN of its kind."""
    return type(value) is float and math.isnan(value)


def _parts(number: object) -> tuple[NumberKind, Any] | None:
    if type(number) is Number:
        return number.kind, number.value
    if type(number) is int:
        return "whole", number
    return ("float", number) if type(number) is float else None


def _double_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "##NaN" if _is_nan(value) else "##Inf" if value > 0 else "##-Inf"


def _decimal_text(value: Fraction) -> str:
    """Return the digits of a fraction whose denominator divides a power of ten."""
    places = 0
    while value.denominator != 1:
        value *= 10
        places += 1
    return str(Decimal((int(value < 0), tuple(map(int, str(abs(value.numerator)))), -places)))
