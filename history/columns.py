"""Operations as columns of numbers: for histories that are too long to make an object of each.

Kinds, keys and values are codes into tables of distinct ones; values that are equal in Python have
one code, as they are one value to a model. What only explains (node, error, position) is left out:
it is read with ``history.importers`` once there is something to explain.

``read_columns`` reads our own JSON lines and tables straight into columns. It knows the way of a
file without fault only and gives None for any other, which is then read by ``history.importers``,
where faults are told. Must never guess.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from history.formats import guess_format
from history.opening import opened
from history.records import EventType, PairedOperation

Integers = NDArray[np.int64]
Codes = NDArray[np.int32]

#: End of an operation that was never answered.
NEVER: Final = np.iinfo(np.int64).max
#: Code of a result that nobody knows.
UNKNOWN: Final = -1
#: Outcomes by their number in a column.
OUTCOMES: Final = ("ok", "fail", "info")
OK, FAIL, INFO = range(len(OUTCOMES))
_INVOKE: Final = len(OUTCOMES)
_NUMBER_BY_TYPE: Final = {"ok": OK, "fail": FAIL, "info": INFO, "invoke": _INVOKE}
_BLOCK_BYTES: Final = 1 << 20


class OperationColumns(msgspec.Struct, frozen=True):
    """One history, in the order of the invocations."""

    #: Index of the invocation event.
    indexes: Integers
    processes: Integers
    #: Nanoseconds.
    starts: Integers
    #: Nanoseconds; ``NEVER`` for an operation without answer.
    ends: Integers
    #: Places in ``OUTCOMES``.
    outcomes: NDArray[np.int8]
    #: Places in ``kind_names``, ``key_names``, ``values`` and ``values``.
    kinds: Codes
    keys: Codes
    arguments: Codes
    #: ``UNKNOWN`` where the operation is not ``ok``.
    results: Codes
    kind_names: tuple[str, ...]
    key_names: tuple[str | None, ...]
    values: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.starts)

    def operation(self, place: int) -> PairedOperation:
        """One operation, without what the columns leave out."""
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
        )


class Numbering:
    """Distinct things by number, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        #: Number to the thing itself, where something hashable stands for it.
        self._originals: dict[int, Any] = {}

    def codes(self, things: Sequence[Any]) -> list[int]:
        """The number of each; equal things have one number."""
        numbers = self._numbers
        number = numbers.setdefault
        try:
            return [number(thing, len(numbers)) for thing in things]
        except TypeError:
            return [self.of(thing) for thing in things]

    def of(self, thing: Any) -> int:
        """The number of one thing."""
        try:
            return self._numbers.setdefault(thing, len(self._numbers))
        except TypeError:
            number = self._numbers.setdefault(_hashable(thing), len(self._numbers))
            self._originals.setdefault(number, thing)
            return number

    @property
    def things(self) -> tuple[Any, ...]:
        """The things by number."""
        things: list[Any] = list(self._numbers)
        for number, original in self._originals.items():
            things[number] = original
        return tuple(things)


def _hashable(value: Any) -> Hashable:
    """What stands for a list or dict among the known ones; no plain value is equal to it."""
    if isinstance(value, list):
        return tuple(_hashable(item) for item in cast("list[Any]", value))
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return frozenset((key, _hashable(item)) for key, item in items)
    return cast("Hashable", value)


def columns_of(operations: Sequence[PairedOperation]) -> OperationColumns:
    """The columns of operations that are there as objects."""
    kinds, keys, values = Numbering(), Numbering(), Numbering()
    return OperationColumns(
        indexes=_column(np.int64, (o.index for o in operations)),
        processes=_column(np.int64, (o.process for o in operations)),
        starts=_column(np.int64, (o.start for o in operations)),
        ends=_column(np.int64, (NEVER if o.end is None else o.end for o in operations)),
        outcomes=_column(np.int8, (_NUMBER_BY_TYPE[o.type] for o in operations)),
        kinds=_column(np.int32, kinds.codes([o.f for o in operations])),
        keys=_column(np.int32, keys.codes([o.key for o in operations])),
        arguments=_column(np.int32, values.codes([o.argument for o in operations])),
        results=_column(
            np.int32, (values.of(o.result) if o.type == "ok" else UNKNOWN for o in operations)
        ),
        kind_names=kinds.things,
        key_names=keys.things,
        values=values.things,
    )


def _column(kind: Any, numbers: Iterable[int]) -> NDArray[Any]:
    return np.fromiter(numbers, dtype=kind)


def read_columns(path: Path) -> OperationColumns | None:
    """Our own JSON lines, packed or not, or a table; None for what is not plain and whole.

    Raises:
        HistoryError: the file cannot be opened, or looks like no format.
    """
    found = guess_format(path)
    if found == "jsonl":
        return _read_lines(path)
    if found == "parquet":
        # Half a second that lines need not wait.
        from history.table_columns import read_table_columns

        return read_table_columns(path)
    return None


class _Line(msgspec.Struct, gc=False):
    """One event, as much of it as the columns hold."""

    index: int
    time: int
    process: int
    type: EventType
    f: str
    key: str | None = None
    value: Any = None


class _Events:
    """Columns of events, as they grow block by block."""

    def __init__(self) -> None:
        self.kinds, self.keys, self.values = Numbering(), Numbering(), Numbering()
        self._blocks: list[tuple[NDArray[Any], ...]] = []

    def add(self, lines: Sequence[_Line]) -> None:
        """Events of one block."""
        self._blocks.append(
            (
                np.array([line.index for line in lines], dtype=np.int64),
                np.array([line.time for line in lines], dtype=np.int64),
                np.array([line.process for line in lines], dtype=np.int64),
                np.array([_NUMBER_BY_TYPE[line.type] for line in lines], dtype=np.int8),
                np.array(self.kinds.codes([line.f for line in lines]), dtype=np.int32),
                np.array(self.keys.codes([line.key for line in lines]), dtype=np.int32),
                np.array(self.values.codes([line.value for line in lines]), dtype=np.int32),
            )
        )

    def whole(self) -> list[NDArray[Any]]:
        """The columns: index, time, process, type, kind, key, value."""
        return [np.concatenate(parts) for parts in zip(*self._blocks, strict=True)]


def _read_lines(path: Path) -> OperationColumns | None:
    decode: Callable[[bytes], list[_Line]] = msgspec.json.Decoder(list[_Line]).decode
    events = _Events()
    with opened(path) as file:
        rest = b""
        while block := file.read(_BLOCK_BYTES):
            whole, separator, rest = (rest + block).rpartition(b"\n")
            if not separator:
                return None
            try:
                lines = decode(b"[" + whole.replace(b"\n", b",") + b"]")
                if len(lines) != whole.count(b"\n") + 1:
                    return None
                events.add(lines)
            except (ValueError, OverflowError, RecursionError):
                return None
    return None if rest else _paired(events)


def _paired(events: _Events) -> OperationColumns | None:
    """Operations of events; None where they break the rules of a history."""
    index, time, process, type_, kind, key, value = events.whole()
    if len(index) == 0 or np.any(index[1:] <= index[:-1]):
        return None
    # Each process's events beside each other, in their order.
    order = np.argsort(process, kind="stable")
    same = process[order][1:] == process[order][:-1]
    earlier, later = order[:-1], order[1:]
    invoked = type_ == _INVOKE
    follows = np.zeros(len(index), dtype=bool)
    follows[later] = same
    # Before an invocation stands nothing, or an answer that leaves the process alive.
    unfit = invoked[later] & same & ((type_[earlier] == _INVOKE) | (type_[earlier] == INFO))
    # Before a completion stands its invocation.
    completes = ~invoked[later] & same & invoked[earlier]
    if np.any(unfit) or np.count_nonzero(completes) != np.count_nonzero(~invoked):
        return None
    asked, answered = earlier[completes], later[completes]
    without_key = events.keys.of(None)
    other = (key[answered] != key[asked]) & (key[answered] != without_key)
    if np.any((kind[answered] != kind[asked]) | other | (time[answered] < time[asked])):
        return None
    outcomes = np.full(len(index), INFO, dtype=np.int8)
    ends = np.full(len(index), NEVER, dtype=np.int64)
    results = np.full(len(index), UNKNOWN, dtype=np.int32)
    outcomes[asked] = type_[answered]
    known = type_[answered] != INFO
    ends[asked[known]] = time[answered[known]]
    succeeded = type_[answered] == OK
    results[asked[succeeded]] = value[answered[succeeded]]
    return OperationColumns(
        indexes=index[invoked],
        processes=process[invoked],
        starts=time[invoked],
        ends=ends[invoked],
        outcomes=outcomes[invoked],
        kinds=kind[invoked],
        keys=key[invoked],
        arguments=value[invoked],
        results=results[invoked],
        kind_names=events.kinds.things,
        key_names=events.keys.things,
        values=events.values.things,
    )
