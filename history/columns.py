"""Columns of operations as numbers, for histories too long to make an object of each operation.

Kinds, keys, nodes, errors and values are codes into tables of distinct ones. Values share a code
only if nobody can tell them apart: ``1``, ``1.0`` and ``true`` have three. Nothing is lost:
``operations`` returns the input of ``columns_of``.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import count
from typing import Any, Final, Protocol, Self, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from splitbrain.history.json_problems import is_too_deep
from splitbrain.history.records import EventType, PairedOperation

Integers = NDArray[np.int64]
Codes = NDArray[np.int32]

#: End of an operation that was never answered.
NEVER: Final = np.iinfo(np.int64).max
#: Code of an unknown result.
UNKNOWN: Final = -1
#: Outcomes by their number in a column.
OUTCOMES: Final = ("ok", "fail", "info")
#: Types of events by their number in a column.
EVENT_TYPES: Final[tuple[EventType, ...]] = (*OUTCOMES, "invoke")
OK, FAIL, INFO = range(len(OUTCOMES))
INVOKE: Final = len(OUTCOMES)
NUMBER_BY_TYPE: Final = {"ok": OK, "fail": FAIL, "info": INFO, "invoke": INVOKE}
#: Code of None among the values, the errors and the keys.
NOTHING: Final = 0
#: Types whose values are equal only to values of the same type.
_PLAIN: Final = frozenset({int, str, type(None)})
#: Columns of which a choice of operations keeps the entries unchanged.
_AS_THEY_ARE: Final = (
    *("indexes", "processes", "starts", "ends", "outcomes", "kinds", "nodes", "errors", "finals"),
)
#: Error of an operation without end in the file.
NEVER_COMPLETED: Final = "never-completed"


class Positions(msgspec.Struct, frozen=True):
    """Positions that a system returned; one entry per operation."""

    #: Whether there is a position; the other two mean nothing without.
    known: NDArray[np.bool_]
    epochs: Integers
    offsets: Integers


class OperationColumns(msgspec.Struct, frozen=True):
    """History in the order of the invocations."""

    #: Index of the invocation event.
    indexes: Integers
    processes: Integers
    #: Nanoseconds.
    starts: Integers
    #: Nanoseconds; ``NEVER`` for an operation without answer.
    ends: Integers
    #: Places in ``OUTCOMES``.
    outcomes: NDArray[np.int8]
    #: Places in ``kind_names``, ``key_names``, ``node_names``, ``error_names``, ``values`` twice.
    kinds: Codes
    keys: Codes
    nodes: Codes
    errors: Codes
    arguments: Codes
    #: ``UNKNOWN`` where the operation is not ``ok``.
    results: Codes
    kind_names: tuple[str, ...]
    #: None comes first, as in those below.
    key_names: tuple[str | None, ...]
    node_names: tuple[str | None, ...]
    error_names: tuple[str | None, ...]
    values: Sequence[Any]
    #: Whether every value is a text, a whole number or None, so that different codes are different
    #: values to everyone.
    flat: bool
    finals: NDArray[np.bool_]
    #: None if no operation has one.
    positions: Positions | None = None
    #: Whether JSON numbers with and without a decimal point occur, see ``history.identity``.
    mixes_numbers: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    def operation(self, place: int) -> PairedOperation:
        """Return one operation as an object."""
        outcome = OUTCOMES[int(self.outcomes[place])]
        end = int(self.ends[place])
        return PairedOperation(
            index=int(self.indexes[place]),
            process=int(self.processes[place]),
            f=self.kind_names[int(self.kinds[place])],
            key=self.key_names[int(self.keys[place])],
            argument=self.values[int(self.arguments[place])],
            result=self.values[int(self.results[place])] if outcome == "ok" else None,
            type=outcome,
            start=int(self.starts[place]),
            end=None if end == NEVER else end,
            node=self.node_names[int(self.nodes[place])],
            error=self.error_names[int(self.errors[place])],
            position=self._position(place),
            final=bool(self.finals[place]),
        )

    def operations(self) -> list[PairedOperation]:
        """Return all operations as objects."""
        return [self.operation(place) for place in range(len(self))]

    def taken(self, places: Integers) -> "OperationColumns":
        """Return the operations at these places, in this order, with the used table entries."""
        arguments, results = self.arguments[places], self.results[places]
        used = np.zeros(len(self.values), dtype=bool)
        used[arguments] = used[results[results != UNKNOWN]] = used[NOTHING] = True
        number = np.cumsum(used, dtype=np.int32) - np.int32(1)
        keys = self.keys[places]
        met = np.zeros(len(self.key_names), dtype=bool)
        met[keys] = met[NOTHING] = True
        positions = self.positions
        as_they_are: dict[str, Any] = {name: getattr(self, name)[places] for name in _AS_THEY_ARE}
        return msgspec.structs.replace(
            self,
            **as_they_are,
            keys=(np.cumsum(met, dtype=np.int32) - np.int32(1))[keys],
            arguments=number[arguments],
            results=np.where(results == UNKNOWN, results, number[results]),
            key_names=tuple(self.key_names[n] for n in np.flatnonzero(met).tolist()),
            values=tuple(self.values[n] for n in np.flatnonzero(used).tolist()),
            positions=None
            if positions is None
            else Positions(
                positions.known[places], positions.epochs[places], positions.offsets[places]
            ),
        )

    def _position(self, place: int) -> tuple[int, int] | None:
        positions = self.positions
        if positions is None or not positions.known[place]:
            return None
        return int(positions.epochs[place]), int(positions.offsets[place])


class ValueNumbering(Protocol):
    """Numbering of the values of events; see ``Numbering``, whose values are distinct."""

    def codes(self, things: Sequence[Any]) -> Codes:
        """Return the number of each."""
        ...

    def taken_in(self, others: Self) -> Codes:
        """Return the numbers here of what another has, by their numbers there."""
        ...

    @property
    def flat(self) -> bool:
        """Whether different numbers are different values to everyone."""
        ...

    @property
    def is_odd(self) -> bool:
        """Return whether something is for readers of objects."""
        ...

    @property
    def things(self) -> Sequence[Any]:
        """Return the values by number."""
        ...


class ColumnOperations(Sequence[PairedOperation]):
    """Operations of columns, each of which is made when it is asked for first."""

    def __init__(self, columns: OperationColumns) -> None:
        self.columns = columns
        #: Those that were asked for; one of a history with violations is asked for often.
        self._made: dict[int, PairedOperation] = {}

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, place: int) -> PairedOperation: ...
    @overload
    def __getitem__(self, place: slice) -> list[PairedOperation]: ...
    def __getitem__(self, place: int | slice) -> Any:
        """Return one operation, or several."""
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        if place not in self._made:
            self._made[place] = self.columns.operation(place)
        return self._made[place]


class Numbering:
    """Distinct things by number, in the order in which they were first seen.

    ``first`` has number 0, ``NOTHING``, whether it is seen or not.
    """

    def __init__(self, *first: Hashable) -> None:
        # A new thing gets the next number without a call into Python.
        self._numbers: defaultdict[Hashable, int] = defaultdict(count(len(first)).__next__)
        self._numbers.update({thing: place for place, thing in enumerate(first)})
        #: Things by number for which a hashable text stands.
        self._originals: dict[int, Any] = {}

    def codes(self, things: Sequence[Any]) -> Codes:
        """Return the number of each."""
        if things and things.count(None) == len(things):
            return np.full(len(things), self.of(None), dtype=np.int32)
        if _PLAIN.issuperset(map(type, things)):
            return self.codes_of_texts(things)
        known = len(self._numbers)
        codes = self.codes_of_texts(
            [thing if type(thing) in _PLAIN else (repr(thing),) for thing in things]
        )
        if len(self._numbers) > known:
            for place in np.flatnonzero(codes >= known).tolist():
                if type(things[place]) not in _PLAIN:
                    self._originals.setdefault(int(codes[place]), things[place])
        return codes

    def codes_of_texts(self, texts: Sequence[Hashable]) -> Codes:
        """Return the number of each, for things of one type that hash."""
        return np.fromiter(map(self._numbers.__getitem__, texts), dtype=np.int32, count=len(texts))

    def of(self, thing: Any) -> int:
        """Return the number of one thing."""
        if type(thing) in _PLAIN:
            return self._numbers[thing]
        # The text distinguishes it from everything equal, such as 1 from true.
        number = self._numbers[(repr(thing),)]
        if number not in self._originals:
            self._originals[number] = thing
        return number

    def taken_in(self, others: Self) -> Codes:
        """Return the numbers here of what another has, by their numbers there."""
        return self.codes(others.things)

    def __getstate__(self) -> tuple[dict[Hashable, int], dict[int, Any]]:
        """Return the state for another process, without the counter."""
        return dict(self._numbers), self._originals

    def __setstate__(self, state: tuple[dict[Hashable, int], dict[int, Any]]) -> None:
        numbers, self._originals = state
        self._numbers = defaultdict(count(len(numbers)).__next__)
        self._numbers.update(numbers)

    @property
    def flat(self) -> bool:
        """Whether everything is a text, a whole number or None."""
        return not self._originals

    @property
    def is_odd(self) -> bool:
        """Return whether something is nested deeper than its readers can go."""
        return any(map(is_too_deep, self._originals.values()))

    @property
    def things(self) -> tuple[Any, ...]:
        """Return the things by number."""
        things: list[Any] = list(self._numbers)
        for number, original in self._originals.items():
            things[number] = original
        return tuple(things)


def columns_of(operations: Sequence[PairedOperation]) -> OperationColumns:
    """Return the columns of operations given as objects."""
    kinds, keys, nodes = Numbering(), Numbering(None), Numbering(None)
    errors, values = Numbering(None), Numbering(None)
    return OperationColumns(
        indexes=_column(np.int64, (o.index for o in operations)),
        processes=_column(np.int64, (o.process for o in operations)),
        starts=_column(np.int64, (o.start for o in operations)),
        ends=_column(np.int64, (NEVER if o.end is None else o.end for o in operations)),
        outcomes=_column(np.int8, (NUMBER_BY_TYPE[o.type] for o in operations)),
        kinds=kinds.codes([o.f for o in operations]),
        keys=keys.codes([o.key for o in operations]),
        nodes=nodes.codes([o.node for o in operations]),
        errors=errors.codes([o.error for o in operations]),
        arguments=values.codes([o.argument for o in operations]),
        results=_column(
            np.int32, (values.of(o.result) if o.type == "ok" else UNKNOWN for o in operations)
        ),
        kind_names=kinds.things,
        key_names=keys.things,
        node_names=nodes.things,
        error_names=errors.things,
        values=values.things,
        flat=values.flat,
        finals=_column(np.bool_, (o.final for o in operations)),
        positions=positions_of([o.position for o in operations]),
    )


def positions_of(positions: Sequence[tuple[int, int] | None]) -> Positions | None:
    """Return positions as columns; None where there is none.

    Raises:
        OverflowError: a number is beyond any that a system counts up to.
    """
    if not any(positions):
        return None
    pairs = np.array([position or (0, 0) for position in positions], dtype=np.int64)
    return Positions(
        _column(np.bool_, (p is not None for p in positions)), pairs[:, 0], pairs[:, 1]
    )


def _column(kind: Any, numbers: Iterable[int]) -> NDArray[Any]:
    return np.fromiter(numbers, dtype=kind)
