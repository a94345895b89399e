"""Cells of an object, each with one value at a time, and what operations testify of them; pure.

A register is one cell, a set one for each element, a lock is one that holds its holder. Each
operation of a model becomes *facts*: it shows a value of a cell, denies one, sets one, or asked to
set one and certainly did not. Must never take an open operation for one that happened, nor one
that failed for one that did.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from splitbrain.checker.anomalies.account import asks, is_refusal
from splitbrain.checker.explanation import precedes
from splitbrain.checker.models.element_set import ElementSet
from splitbrain.checker.models.locks import FencedRegister, Mutex
from splitbrain.checker.models.model import Model, freeze, text_of
from splitbrain.checker.models.register import CasRegister, KeyValue, MultiRegister, Register
from splitbrain.checker.models.topics import Topics
from splitbrain.history.records import PairedOperation

#: shows, denies: by the answer. sets: did, or where it is open may have done. missed: certainly
#: did not.
What = Literal["shows", "denies", "sets", "missed"]


class Fact(NamedTuple):
    """Testimony of one operation about one cell."""

    what: What
    cell: Hashable
    value: Hashable


_ONE: Final = "value"
_FREE: Final = ()


def _register(o: PairedOperation, _elements: Sequence[Hashable]) -> Iterator[Fact]:
    if o.f in ("read", "write"):
        value = freeze(o.result if o.f == "read" else o.argument)
        yield Fact("shows" if o.f == "read" else "sets", _ONE, value)
        return
    expected, new = (freeze(value) for value in o.argument)
    if is_refusal(o):
        yield Fact("denies", _ONE, expected)
        yield Fact("missed", _ONE, new)
        return
    yield Fact("shows", _ONE, expected)
    if expected != new:
        yield Fact("sets", _ONE, new)


def _text(o: PairedOperation, _elements: Sequence[Hashable]) -> Iterator[Fact]:
    value = (o.result if o.f == "get" else o.argument) or ""
    yield Fact("shows" if o.f == "get" else "sets", _ONE, value)


def _set(o: PairedOperation, elements: Sequence[Hashable]) -> Iterator[Fact]:
    if o.f == "read":
        shown = frozenset(freeze(element) for element in o.result or ())
        yield from (Fact("shows", element, element in shown) for element in elements)
    elif (element := freeze(o.argument)) in elements:
        if o.f == "contains":
            yield Fact("shows", element, bool(o.result))
        else:
            yield Fact("sets", element, o.f == "add")


def _lock(o: PairedOperation, _elements: Sequence[Hashable]) -> Iterator[Fact]:
    held = (freeze(o.argument),)
    before, after = (_FREE, held) if o.f == "acquire" else (held, _FREE)
    if is_refusal(o):
        yield Fact("denies", _ONE, before)
        return
    yield Fact("shows", _ONE, before)
    yield Fact("sets", _ONE, after)


def _fenced(o: PairedOperation, _elements: Sequence[Hashable]) -> Iterator[Fact]:
    if o.f == "read":
        yield Fact("shows", _ONE, freeze(o.result))
    else:
        yield Fact("missed" if is_refusal(o) else "sets", _ONE, freeze(o.argument[1]))


def _topic(o: PairedOperation, _elements: Sequence[Hashable]) -> Iterator[Fact]:
    if o.f == "describe":
        yield Fact("shows", _ONE, freeze(o.result))
    elif is_refusal(o):
        yield Fact("denies" if o.f == "create" else "shows", _ONE, None)
    else:
        yield Fact("shows" if o.f == "create" else "denies", _ONE, None)
        yield Fact("sets", _ONE, freeze(o.argument) if o.f == "create" else None)


def _transaction(o: PairedOperation, _elements: Sequence[Hashable]) -> Iterator[Fact]:
    parts = o.result if o.type == "ok" else o.argument
    written: dict[Hashable, Hashable] = {}
    for f, name, value in cast("Sequence[Any]", parts):
        cell = freeze(name)
        # Keywords of EDN print as their text.
        if str(f).lstrip(":") in ("w", "write"):
            written[cell] = freeze(value)
        elif cell not in written:
            yield Fact("shows", cell, freeze(value))
    yield from (Fact("sets", cell, value) for cell, value in written.items())


class Reading(NamedTuple):
    """Reading of the operations of a model as facts; every cell begins with ``initial``."""

    facts: Callable[[PairedOperation, Sequence[Hashable]], Iterator[Fact]]
    initial: Hashable = None
    #: Whether answers hold values; those of a lock only grant and refuse.
    answers: bool = True


#: By the class itself: a user's model that derives from one may mean something else.
READINGS: Final[dict[type[Model], Reading]] = {
    Register: Reading(_register),
    CasRegister: Reading(_register),
    MultiRegister: Reading(_transaction),
    KeyValue: Reading(_text, ""),
    ElementSet: Reading(_set, initial=False),
    Mutex: Reading(_lock, _FREE, answers=False),
    FencedRegister: Reading(_fenced),
    Topics: Reading(_topic),
}


class Testimony(NamedTuple):
    """Operation and the value that it shows, denies or sets."""

    operation: PairedOperation
    value: Hashable


class Cell:
    """Everything that a part's operations testify of one cell."""

    def __init__(self, name: Hashable, initial: Hashable) -> None:
        self.name = name
        self.initial = initial
        self.sights: list[Testimony] = []
        self.sights_of: dict[Hashable, list[PairedOperation]] = {}
        self.denials: list[Testimony] = []
        #: Acknowledged ones, and the value that each set, by index.
        self.effects: list[Testimony] = []
        self.set_by: dict[int, Hashable] = {}
        #: Acknowledged and open operations that set a value.
        self.setters: dict[Hashable, list[PairedOperation]] = {}
        #: Those that asked for a value and certainly did not set it.
        self.missed: dict[Hashable, list[PairedOperation]] = {}

    def take(self, operation: PairedOperation, what: What, value: Hashable) -> None:
        """Add a fact; open and failed operations answered nothing."""
        if operation.type == "fail" and what == "sets":
            what = "missed"
        if what == "missed":
            self.missed.setdefault(value, []).append(operation)
        elif what == "sets":
            self.setters.setdefault(value, []).append(operation)
            if operation.type == "ok":
                self.effects.append(Testimony(operation, value))
                self.set_by[operation.index] = value
        elif operation.type == "ok" and what == "shows":
            self.sights.append(Testimony(operation, value))
            self.sights_of.setdefault(value, []).append(operation)
        elif operation.type == "ok":
            self.denials.append(Testimony(operation, value))

    def shown(self, answer: PairedOperation, value: Hashable) -> str:
        """Return the words for a value in an answer, to be put behind its request."""
        if self.initial is False:
            if answer.f == "contains":
                return f" with {str(value).lower()}"
            return f" {'with' if value else 'without'} {text_of(self.name)}"
        of_one = "" if self.name == _ONE else f" for {text_of(self.name)}"
        how = " with" if asks(answer) else ", which found"
        return f"{how} {text_of(value)}{of_one}"

    def changed_by(self, operation: PairedOperation, value: Hashable) -> bool:
        """Return whether an operation that was shown a value also set another one."""
        return self.set_by.get(operation.index, value) != value

    def is_effect(self, testimony: Testimony) -> bool:
        """Return whether a testimony is that of having set the value."""
        return (
            testimony.operation.index in self.set_by
            and self.set_by[testimony.operation.index] == testimony.value
        )

    def possible_setters(self, value: Hashable, answer: PairedOperation) -> list[PairedOperation]:
        """Return what may have set a value before an answer was given, the last to return first."""
        found = [
            setter
            for setter in self.setters.get(value, ())
            if setter.index != answer.index and not precedes(answer, setter)
        ]
        return sorted(found, key=lambda o: (o.end is not None, -(o.end or 0)))

    def is_over(self, setter: PairedOperation, value: Hashable, moment: PairedOperation) -> bool:
        """Return whether a setter of a value certainly took effect before an operation began.

        One that alone can set a value did so before anybody was shown that.
        """
        if precedes(setter, moment):
            return True
        is_alone = len(self.setters[value]) == 1 and value != self.initial
        return is_alone and any(precedes(o, moment) for o in self.sights_of.get(value, ()))

    def is_older(
        self, setters: Sequence[PairedOperation], value: Hashable, other: Hashable
    ) -> bool:
        """Return whether setters of a value took effect before anything set another value."""
        others = [] if other == self.initial else self.setters.get(other, [])
        return bool(others) and all(
            self.is_over(setter, value, later) for setter in setters for later in others
        )

    def is_replaced(
        self, value: Hashable, by: Testimony, setters: Sequence[PairedOperation]
    ) -> bool:
        """Return whether a value certainly was no longer there once another one had been.

        ``by`` is an effect or a sight of the other one; ``setters`` are ``possible_setters`` of the
        value, none of which may then have set it again.
        """
        later = [by.operation]
        if by.value != self.initial:
            # Where all that set the other value began later, it came later.
            later = self.setters.get(by.value) or later
        return all(
            self.is_over(setter, value, by.operation)
            or all(self.is_over(setter, value, other) for other in later)
            for setter in setters
        )


def cells_of(
    operations: Iterable[PairedOperation], reading: Reading, elements: Sequence[Hashable]
) -> dict[Hashable, Cell]:
    """Return the cells that operations speak of; of a set those of some elements alone."""
    cells: dict[Hashable, Cell] = {}
    for operation in operations:
        for what, name, value in reading.facts(operation, elements):
            cell = cells.get(name)
            if cell is None:
                cell = cells[name] = Cell(name, reading.initial)
            cell.take(operation, what, value)
    return cells
