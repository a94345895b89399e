"""Identity of keys and values in histories of any origin; its only definition.

Keys are texts everywhere, in columns and tables too: ``key_text`` gives different keys different
texts. Values are Python's own, so that models may compare them with ``==``, as their authors would
do it anyway. Python takes ``True``, ``1`` and ``1.0`` for one, and a name of EDN would be its own
text: where a history holds two values that would so become one, ``ValuesApart`` puts types of
``history.edn_values`` in their places, and nowhere else. JSON has one kind of number, so there 1.0
is 1. Pure; must never make two values of a history one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, cast

import msgspec

from splitbrain.history.edn_values import EdnMap, EdnSet, Name, Number, Tagged, edn_text
from splitbrain.history.records import PairedOperation

#: Texts, or their beginnings, that could also be the text of a key that is no text.
_AMBIGUOUS: Final = re.compile(r"""["':\\#\[{]|-?\d[\d.e+/-]*M?\Z|(?:true|false)\Z""")
#: Types whose values are equal only to values of the same type.
PLAIN: Final = frozenset({int, str, type(None)})
_EDN: Final = frozenset({Name, Number, Tagged, EdnSet, EdnMap})
_NUMBERS: Final = frozenset({bool, int, float})
_COLLECTIONS: Final = frozenset({list, dict, EdnSet, EdnMap})
#: Kinds that answer whether it was done, or is so.
_YES_OR_NO: Final = frozenset({"acquire", "contains", "delete", "enqueue", "release"})
#: Kinds whose answer repeats the argument, and may end with whether it was done.
_REPEATING: Final = frozenset({"cas", "create", "write"})
#: Kind that concatenates values, where a name must not become a text.
PUTTING_TOGETHER: Final = "append"


def key_text(key: Any) -> str | None:
    """Return the text of a key, equal for equal keys alone; None for none.

    A text stays as it is unless it could be read as something else (``1``, ``true``, ``:x``): then
    it stands in quotation marks. Everything else is written in EDN, a symbol behind a ``'``.

    Raises:
        RecursionError: the key is nested too deeply.
        ValueError: it is a number that is too long to be printed.
    """
    if isinstance(key, str):
        return edn_text(key) if _AMBIGUOUS.match(key) else key
    return None if key is None else edn_text(key)


class ValuesApart:
    """Stand-ins for the values of one history, so that different ones are different to Python.

    Args:
        things: all values of the history; those answers that are some, see ``is_value``.
        putting_together: whether texts are concatenated in it.
        one_kind_of_number: 1.0 is 1, as in JSON; values of EDN are apart in any case.
    """

    def __init__(
        self,
        things: Iterable[Any],
        *,
        putting_together: Callable[[], bool] = lambda: False,
        one_kind_of_number: bool = True,
    ) -> None:
        self._one_kind = one_kind_of_number
        #: Kinds of names and texts that are written alike.
        self._kinds_by_text: dict[str, set[str]] = {}
        self._truths: set[bool] = set()
        self._whole: set[int] = set()
        self._floats: set[float] = set()
        everything = list(things)
        types = _types_of(everything)
        self._is_edn = not types.isdisjoint(_EDN)
        self._names_stay = self._is_edn and putting_together()
        if may_be_one(types):
            for leaf in _leaves(everything):
                self._note(leaf)
        changes_numbers = not self._truths.isdisjoint(self._whole | self._floats)
        #: Whether no value needs a stand-in.
        self.is_plain = one_kind_of_number and not (self._is_edn or changes_numbers)

    @property
    def mixes_numbers(self) -> bool:
        """Whether the history holds a number of JSON both with and without a decimal point."""
        return not self._is_edn and not self._whole.isdisjoint(self._floats)

    def of(self, value: object) -> Any:
        """Return the stand-in for one value."""
        if self.is_plain:
            return value
        change = self._CHANGES.get(type(value))
        return value if change is None else change(self, value)

    def _note(self, leaf: Any) -> None:
        if type(leaf) is bool:
            self._truths.add(leaf)
        elif type(leaf) is int:
            self._whole.add(leaf)
        elif type(leaf) is float:
            self._floats.add(leaf)
        elif type(leaf) is str:
            self._kinds_by_text.setdefault(leaf, set()).add("text")
        elif type(leaf) is Name:
            self._kinds_by_text.setdefault(leaf.text, set()).add(leaf.kind)

    def _is_truth(self, number: Any) -> bool:
        return number in self._truths

    def _int(self, value: int) -> Any:
        if not self._is_truth(value):
            return value
        return Number("whole" if self._is_edn or not self._one_kind else "number", value)

    def _float(self, value: float) -> Any:
        if not self._one_kind:
            return Number("double", value)
        return Number("number", value) if self._is_truth(value) else value

    def _number(self, value: Number) -> Any:
        """Return the stand-in of a number of JSON, apart from truths; those of EDN stay."""
        if value.kind == "number" and not self._one_kind:
            return Number("double" if type(value.value) is float else "whole", value.value)
        return value

    def _name(self, value: Name) -> Any:
        alone = len(self._kinds_by_text.get(value.text, ())) == 1
        return value.text if alone and not self._names_stay else value

    def _map(self, value: EdnMap) -> Any:
        pairs = [(self.of(key), self.of(item)) for key, item in value.items()]
        if all(type(key) is str for key, _ in pairs):
            return dict(pairs)
        return EdnMap(tuple(pairs))

    def _set(self, value: EdnSet) -> Any:
        return EdnSet(tuple(map(self.of, value)))

    def _list(self, value: list[Any]) -> Any:
        return [*map(self.of, value)]

    def _dict(self, value: dict[str, Any]) -> Any:
        return {key: self.of(item) for key, item in value.items()}

    _CHANGES: Final[dict[type, Callable[["ValuesApart", Any], Any]]] = {
        int: _int,
        float: _float,
        Number: _number,
        Name: _name,
        EdnMap: _map,
        EdnSet: _set,
        list: _list,
        dict: _dict,
    }


def types_in(operations: Sequence[PairedOperation]) -> set[type]:
    """Return the types in all values of the operations; of a history that grows, of the new ones.

    Where ``may_be_one`` of all of them is false, ``operations_apart`` has nothing to change.
    """
    return _types_of(_values_of(operations))


def may_be_one(types: set[type]) -> bool:
    """Return whether different values of these types may be one to Python."""
    return not types.isdisjoint(_EDN) or len(types & _NUMBERS) > 1


def _types_of(things: Sequence[Any]) -> set[type]:
    """Return the types in all values.

    A history may hold a hundred million elements, so nothing is done for each but in C.
    """
    types = set(map(type, things))
    level = _collections(things) if not types.isdisjoint(_COLLECTIONS) else []
    while level:
        found = set(map(type, _contents(level)))
        types |= found
        level = [] if found.isdisjoint(_COLLECTIONS) else _collections(_contents(level))
    return types


def _leaves(things: Sequence[Any]) -> Iterator[Any]:
    level: Iterable[Any] = things
    while level:
        yield from (thing for thing in level if type(thing) not in _COLLECTIONS)
        level = [*_contents(_collections(level))]


def _collections(things: Iterable[Any]) -> list[Any]:
    return [thing for thing in things if type(thing) in _COLLECTIONS]


def _contents(collections: Sequence[Any]) -> Iterator[Any]:
    # Lists alone need no look at each.
    if {list}.issuperset(map(type, collections)):
        return chain.from_iterable(collections)
    return chain.from_iterable(map(_within, collections))


def _within(collection: Any) -> Iterable[Any]:
    if type(collection) is dict:
        return cast("dict[str, Any]", collection).values()
    if type(collection) is EdnMap:
        return chain.from_iterable(collection.items())
    return collection


def _values_of(operations: Sequence[PairedOperation]) -> list[Any]:
    values = [operation.argument for operation in operations]
    values += [
        operation.result
        for operation in operations
        # The cheap tests come first, for there may be millions of operations.
        if operation.f not in _REPEATING
        and (operation.f not in _YES_OR_NO or is_value(operation.f, operation.result))
    ]
    return values


def is_value(f: str, answer: object) -> bool:
    """Return whether an answer says more than its argument and whether it was done."""
    return f not in _REPEATING and not (type(answer) is bool and f in _YES_OR_NO)


def operations_apart(
    operations: Sequence[PairedOperation], *, one_kind_of_number: bool = True
) -> tuple[Sequence[PairedOperation], bool]:
    """Return operations with values that Python tells apart, and whether they mix numbers.

    They are all of a history, or of a part that is judged apart.
    """
    apart = ValuesApart(
        _values_of(operations),
        putting_together=lambda: any(o.f == PUTTING_TOGETHER for o in operations),
        one_kind_of_number=one_kind_of_number,
    )
    if apart.is_plain:
        return operations, apart.mixes_numbers
    changed = [
        msgspec.structs.replace(
            operation, argument=apart.of(operation.argument), result=apart.of(operation.result)
        )
        for operation in operations
    ]
    return changed, apart.mixes_numbers


def is_edn(value: object) -> bool:
    """Return whether a value is of a type that JSON does not have."""
    return type(value) in _EDN


def operation_as_json(operation: PairedOperation) -> Any:
    """Return an operation as maps and lists, for people."""
    return msgspec.to_builtins(operation, enc_hook=stand_in)


def stand_in(thing: Any) -> Any:
    """Return the text of a value that JSON does not have; a hook of msgspec's encoders."""
    if type(thing) is Number:
        return thing.value if type(thing.value) in (int, float) else repr(thing)
    if type(thing) is EdnSet:
        return list(thing)
    if type(thing) is EdnMap:
        return {key_text(key) or edn_text(key): item for key, item in thing.items()}
    # Also results of models: a sum of ratios, a state of a user's own type.
    return str(thing)
