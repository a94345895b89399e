"""Micro-operations of transactions: their shape, and their columns; pure.

A transaction is an operation ``txn``; its argument is a list of ``["r", key, null]`` and
``["append", key, value]`` or ``["w", key, value]`` in order, its answer the same with the values
read in their places. A list that was never appended to is null or ``[]``, a register that was never
written is null. Written values are different within a key: a value tells its writer. Sources:
Jepsen's transactions; Kingsbury and Alvaro 2020, "Elle".
"""

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.models.model import freeze, is_list_of
from splitbrain.checker.transactions.levels import Kind
from splitbrain.checker.transactions.timed import Timed
from splitbrain.history.edn_values import Name
from splitbrain.history.list_texts import Beginnings
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown

#: Writing function of each kind.
WRITES: Final[dict[Kind, str]] = {"list-append": "append", "rw-register": "w"}
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Types whose values are equal only to values of the same type.
PLAIN: Final = frozenset({int, str})
#: Key and value of a write that certainly never happened before another one's.
_Written = dict[tuple[Hashable, Hashable], int]


def kind_of(function: Any) -> Any:
    """Return the name of a function as text, even if it was read as a keyword."""
    return function.text if type(function) is Name and function.kind == "keyword" else function


def hashable(value: Any) -> Hashable:
    """Return a value as a key of a map; equal values alone are equal."""
    return value if type(value) is int or type(value) is str else freeze(value)


def names_of(values: Sequence[Any]) -> Sequence[Any]:
    """Return values, or None, as keys of a map."""
    is_plain = {*map(type, values)} <= {*PLAIN, type(None)}
    return values if is_plain else [*map(hashable, values)]


def _is_list(value: object) -> bool:
    return type(value) is list


class Sense:
    """Finder of operations that make no sense as transactions of one kind.

    It remembers writes, so it is asked once about each operation of a history, failed ones too.
    """

    def __init__(self, kind: Kind) -> None:
        self._write = WRITES[kind]
        self._kind = kind
        self._lists = kind == "list-append"
        self._written: _Written = {}

    def __call__(self, operation: PairedOperation) -> str | None:
        """Return the problem of an operation, a clause; None for none."""
        if operation.f != "txn":
            return f"a transaction is a txn, and not {operation.f}"
        argument: object = operation.argument
        if not isinstance(argument, (list, tuple)):
            return f"the argument of a txn is a list, and not {shown(argument)}"
        parts = cast("Sequence[Any]", argument)
        for part in parts:
            problem = self._problem_of_part(part)
            if problem is not None:
                return problem
        if operation.type == "ok":
            problem = self._problem_of_answer(parts, operation.result)
            if problem is not None:
                return problem
        return self._repeated(parts, operation.index)

    def _problem_of_part(self, part: Any) -> str | None:
        if not (_is_list(part) and len(part) == 3) and not is_list_of(part, 3):
            return f"a micro-operation is [function, key, value], and not {shown(part)}"
        function = kind_of(part[0])
        if function == "r" or (function == self._write and part[2] is not None):
            return None
        if function == self._write:
            return f"{shown(part)} writes nothing, which a read could not tell from the beginning"
        return (
            f"the micro-operations of {self._kind} are r and {self._write}, "
            f"and not {shown(function)}"
        )

    def _problem_of_answer(self, parts: Sequence[Any], answer: object) -> str | None:
        if not is_list_of(answer, len(parts)):
            return f"it is asked {len(parts)} micro-operations and answers {shown(answer)}"
        for part, done in zip(parts, cast("Sequence[Any]", answer), strict=True):
            # Nearly always an answer repeats its question.
            if not _is_list(done) or len(done) != 3 or done[0] != part[0]:
                return f"it is asked {shown(part)} and answers {shown(done)}"
            if not is_repeated(part[1], done[1]):
                return f"it is asked {shown(part)} and answers {shown(done)}"
            if kind_of(part[0]) != "r":
                if not is_repeated(part[2], done[2]):
                    return f"it is asked {shown(part)} and answers {shown(done)}"
            elif self._lists and not _is_list(done[2]) and done[2] is not None:
                return f"a read of list-append answers a list, and not {shown(done[2])}"
        return None

    def _repeated(self, parts: Sequence[Any], index: int) -> str | None:
        written = self._written
        for function, key, value in parts:
            if function == "r" or kind_of(function) == "r":
                continue
            write = (hashable(key), hashable(value))
            first = written.get(write)
            if first is not None:
                return (
                    f"{shown(value)} is written to key {shown(key)} a second time (first by event "
                    f"{first}), so a read of it could not tell its writer"
                )
            written[write] = index
        return None


def is_repeated(asked: Any, answered: Any) -> bool:
    """Return whether an answer has a name or value as it was asked."""
    if type(asked) is type(answered) and type(asked) in (int, str):
        return asked == answered
    return is_same(asked, answered)


class Write(NamedTuple):
    """One write; ``txn`` is a place in ``Table.operations``."""

    txn: int
    #: Place among the micro-operations of its transaction.
    place: int
    key: int
    value: Any


class Read(NamedTuple):
    """One answered read."""

    txn: int
    place: int
    key: int
    #: List, or value of a register; as it was answered, a list never null.
    value: Any
    #: Whether its transaction had not written the key before.
    external: bool


class Writes:
    """Writes of a history as columns, failed ones too; a number gives a ``Write``."""

    def __init__(self, txns: Numbers, places: Numbers, keys: Numbers, values: list[Any]) -> None:
        self.txns, self.places, self.keys, self.values = txns, places, keys, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> Write:
        txn, place, key = self.txns[number], self.places[number], self.keys[number]
        return Write(int(txn), int(place), int(key), self.values[number])

    def __iter__(self) -> Iterator[Write]:
        return map(self.__getitem__, range(len(self)))


class Reads:
    """Answered reads of a history as columns; a number gives a ``Read``."""

    def __init__(
        self, txns: Numbers, places: Numbers, keys: Numbers, values: Sequence[Any]
    ) -> None:
        self.txns, self.places, self.keys, self.values = txns, places, keys, values
        self.external: Flags = np.ones(len(values), dtype=bool)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> Read:
        txn, place, key = int(self.txns[number]), int(self.places[number]), int(self.keys[number])
        return Read(txn, place, key, self.values[number], bool(self.external[number]))

    @property
    def are_empty(self) -> Flags:
        """Return which ones show nothing: null or an empty list."""
        values = self.values
        if isinstance(values, Beginnings):
            return values.lengths == 0
        return np.array([value is None or value == [] for value in values], dtype=bool)

    def __iter__(self) -> Iterator[Read]:
        return map(self.__getitem__, range(len(self)))


class Groups:
    """Places of a column by the number that stands there, ascending within a number."""

    def __init__(self, numbers: Numbers, count: int) -> None:
        narrow = numbers.astype(np.uint16) if count <= 1 << 16 else numbers
        #: Places, those of the same number one behind the other.
        self.order: Numbers = np.argsort(narrow, kind="stable")
        self.begins: Numbers = np.concatenate(([0], np.cumsum(np.bincount(numbers, None, count))))

    def of(self, number: int) -> Numbers:
        """Return the places at which a number stands."""
        return self.order[self.begins[number] : self.begins[number + 1]]


class Table(Timed):
    """Micro-operations of a history."""

    def __init__(self, operations: Sequence[PairedOperation], keys: Sequence[Any]) -> None:
        super().__init__(operations)
        #: Keys by number.
        self.keys = keys
        nothing = np.zeros(0, dtype=np.int64)
        self.writes = Writes(nothing, nothing, nothing, [])
        self.reads = Reads(nothing, nothing, nothing, [])
        #: Reads of a key and later writes to it within one transaction.
        self.read_then_written = (nothing, nothing)
        #: Writes of one transaction to one key, each with the next one.
        self.successive = (nothing, nothing)
        #: Reads that contradict what their own transaction saw or did before, each with the
        #: sentence's end.
        self.internal: list[tuple[int, str]] = []
        #: Transactions of which a read of a key shows a write that is not in this table.
        self.seen_elsewhere: Flags = np.zeros(len(operations), dtype=bool)

    @cached_property
    def writes_by_key(self) -> Groups:
        """Writes of each key."""
        return Groups(self.writes.keys, len(self.keys))

    @cached_property
    def reads_by_key(self) -> Groups:
        """Reads of each key."""
        return Groups(self.reads.keys, len(self.keys))

    def writers(self, key: int) -> dict[Hashable, int]:
        """Return the write of each value of a key."""
        numbers: list[int] = self.writes_by_key.of(key).tolist()
        return dict(zip(map(self._written.__getitem__, numbers), numbers, strict=True))

    @cached_property
    def _written(self) -> Sequence[Any]:
        return names_of(self.writes.values)

    @cached_property
    def last_writes(self) -> Numbers:
        """Last write of each write's transaction to its key."""
        last = np.arange(len(self.writes))
        first, second = self.successive
        # The later ones are settled before the earlier ones ask.
        for one, other in zip(first[::-1].tolist(), second[::-1].tolist(), strict=True):
            last[one] = last[other]
        return last
