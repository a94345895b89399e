"""Micro-operations of transactions: their shape, and their columns; pure.

A transaction is an operation ``txn``; its argument is a list of ``["r", key, null]`` and
``["append", key, value]`` or ``["w", key, value]`` in order, its answer the same with the values
read in their places. A list that was never appended to is null or ``[]``, a register that was never
written is null. Written values are different within a key: a value tells its writer. Sources:
Jepsen's transactions; Kingsbury and Alvaro 2020, "Elle".
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple, cast

from splitbrain.checker.models.model import freeze, is_list_of
from splitbrain.checker.transactions.levels import Kind
from splitbrain.history.edn_values import Name
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown

#: Writing function of each kind.
WRITES: Final[dict[Kind, str]] = {"list-append": "append", "rw-register": "w"}
#: Key and value of a write that certainly never happened before another one's.
_Written = dict[tuple[Hashable, Hashable], int]


def kind_of(function: Any) -> Any:
    """Return the name of a function as text, even if it was read as a keyword."""
    return function.text if type(function) is Name and function.kind == "keyword" else function


def hashable(value: Any) -> Hashable:
    """Return a value as a key of a map; equal values alone are equal."""
    return value if type(value) is int or type(value) is str else freeze(value)


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
            if not _is_repeated(part[1], done[1]):
                return f"it is asked {shown(part)} and answers {shown(done)}"
            if kind_of(part[0]) != "r":
                if not _is_repeated(part[2], done[2]):
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


def _is_repeated(asked: Any, answered: Any) -> bool:
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


class Table(NamedTuple):
    """Micro-operations of a history."""

    #: Transactions in the order of their invocations, failed ones too.
    operations: Sequence[PairedOperation]
    writes: list[Write]
    reads: list[Read]
    #: Keys by number.
    keys: list[Any]
    #: Write of each value, by the number of its key.
    writers: list[dict[Hashable, int]]
    #: Reads of a key and later writes to it within one transaction, as places in the lists above.
    read_then_written: list[tuple[int, int]]
    #: Reads that contradict what their own transaction saw or did before, each with the sentence's
    #: end.
    internal: list[tuple[int, str]]


def table_of(operations: Sequence[PairedOperation], kind: Kind, poll: Callable[[], None]) -> Table:
    """Take transactions apart; every one of them makes ``Sense``."""
    builder = _Builder(operations, kind)
    for txn in range(len(operations)):
        poll()
        builder.add(txn)
    return builder.table


class _Seen:
    """State of one key within one transaction."""

    __slots__ = ("own", "reads", "value", "written")

    def __init__(self) -> None:
        #: Value that the last read showed; None before the first.
        self.value: Any = None
        self.reads: list[int] = []
        #: Values written since the last read.
        self.own: list[Any] = []
        self.written = False


class _Builder:
    def __init__(self, operations: Sequence[PairedOperation], kind: Kind) -> None:
        self.table = Table(operations, [], [], [], [], [], [])
        self._is_list = kind == "list-append"
        self._numbers: dict[Hashable, int] = {}

    def add(self, txn: int) -> None:
        """Add the micro-operations of one transaction."""
        operation = self.table.operations[txn]
        answered = operation.type == "ok"
        parts = operation.result if answered else operation.argument
        writes, reads, writers = self.table.writes, self.table.reads, self.table.writers
        numbers = self._numbers
        seen: dict[int, _Seen] = {}
        for place, (function, called, told) in enumerate(parts):
            name = hashable(called)
            key = numbers.get(name, -1)
            if key < 0:
                key = numbers[name] = len(numbers)
                self.table.keys.append(name)
                writers.append({})
            before = seen.get(key)
            if function != "r" and kind_of(function) != "r":
                writers[key][hashable(told)] = len(writes)
                if before is None:
                    before = seen[key] = _Seen()
                for read in before.reads:
                    self.table.read_then_written.append((read, len(writes)))
                before.own.append(told)
                before.written = True
                writes.append(Write(txn, place, key, told))
            elif answered:
                value: Any = [] if told is None and self._is_list else told
                external = before is None or not before.written
                if before is None:
                    before = seen[key] = _Seen()
                else:
                    self._compare(before, value)
                before.value = value
                before.own = []
                before.reads.append(len(reads))
                reads.append(Read(txn, place, key, value, external))

    def _compare(self, before: _Seen, value: Any) -> None:
        own = before.own
        if not self._is_list:
            due = own[-1] if own else before.value
            if value != due:
                told = f"although it had {'written' if own else 'read'} {shown(due)} before"
                self.table.internal.append((len(self.table.reads), told))
            return
        if before.reads:
            due = [*before.value, *own]
            if value != due:
                told = f"although {shown(due)} was due after what it had read and appended before"
                self.table.internal.append((len(self.table.reads), told))
        elif value[len(value) - len(own) :] != own or len(value) < len(own):
            told = f"which does not end with {shown(own)}, appended by itself before"
            self.table.internal.append((len(self.table.reads), told))
