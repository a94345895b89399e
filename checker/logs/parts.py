"""Operations on logs: their shapes, and what they sent and read; pure.

``send``, ``poll`` and ``txn`` hold parts in order: ``["send", key, value]``, answered with
``["send", key, [offset, value]]``, or as it was asked where nobody told the offset; and
``["poll"]``, answered with ``["poll", {key: [[offset, value], ...]}]``; asked as
``["poll", {key: offset}]`` it reads these logs from there on. A third item of that answer is
``{key: offset}``, the next offset that this consumer would read: it passed over all that lies
below. In a final read it is the end of the log as well, the high watermark as ListOffsets tells it
(a new leader's answers to fetches may know an older one, KIP-207), unless a fourth item,
``{key: offset}``, tells the end of the log behind a transaction that has been open longer than it
may. A ``txn`` is a transaction, whose consumer reads what is committed; it is ``ok`` once its
commit was acknowledged, ``fail`` once it certainly aborted. An ``abort`` is one that its client
never asks to be committed.

``assign`` gives a consumer its logs, as a list of keys, or as ``{key: offset}`` where it is told
from which offset to read; ``subscribe`` lets the group choose them. Values of a key are different.
Source: Jepsen's workload of logs, whose histories have this form.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from splitbrain.checker.models.model import is_list_of
from splitbrain.checker.transactions.micro_operations import hashable, kind_of
from splitbrain.contracts.log import ABORT, POLL, SEND, TXN
from splitbrain.contracts.words import counted
from splitbrain.history.edn_values import is_number, size_of
from splitbrain.history.identity import key_text
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown

ASSIGN: Final = "assign"
SUBSCRIBE: Final = "subscribe"
#: Operations that hold parts.
OF_PARTS: Final = (SEND, POLL, TXN, ABORT)
#: Operations of Jepsen's that tell nothing of a log: a client is closed, partitions are listed.
_IGNORED: Final = ("crash", "debug-topic-partitions")
_ANSWERED: Final = (2, 3, 4)
_PAIR: Final = 2


class Sent(NamedTuple):
    """One record that an operation sent."""

    key: str
    value: Hashable
    #: None: nobody told it.
    offset: int | None


class Polled(NamedTuple):
    """One log's part of the answer to a poll."""

    key: str
    #: Offset and value.
    records: list[tuple[int, Hashable]]
    #: Next offset that the consumer would read; None: nobody told it.
    position: int | None
    #: Offset from which it was asked to read; None: from where its consumer was.
    start: int | None = None
    #: End of the log, which it cannot come to: a transaction before it stays open.
    out_of_reach: int | None = None


def name_of(key: Any) -> str:
    """Return a key as text; JSON makes texts of the numbers that are keys of its objects."""
    return key if isinstance(key, str) else str(key_text(key))


def parts_of(operation: PairedOperation) -> Iterator[Sent | Polled]:
    """Return what an operation that makes sense sent and read, in its order."""
    asked = cast("Sequence[Any]", operation.argument)
    is_ok = operation.type == "ok"
    answered = cast("Sequence[Any]", operation.result) if is_ok else asked
    # Nobody who reads what is committed finds an aborted record at its offset.
    is_placed = is_ok and operation.f != ABORT
    for part, done in zip(asked, answered, strict=True):
        if part[0] == SEND or _function(part) == SEND:
            value, offset = part[2], None
            if is_placed and _tells_offset(value, done[2]):
                offset = _offset(done[2][0])
            yield Sent(name_of(part[1]), hashable(value), offset)
        elif is_ok:
            starts = _offsets_by_key(part[1:2])
            positions = _offsets_by_key(done[2:3])
            ends = _offsets_by_key(done[3:])
            read_by_key = {name_of(key): records for key, records in _items(done[1])}
            for name in {**starts, **positions, **read_by_key}:
                records = read_by_key.get(name, ())
                read = [
                    (offset if type(offset) is int else int(size_of(offset)), hashable(value))
                    for offset, value in records
                ]
                yield Polled(name, read, positions.get(name), starts.get(name), ends.get(name))


def asks_to_poll(operation: PairedOperation) -> bool:
    """Return whether an operation is asked to read."""
    return operation.f in OF_PARTS and any(_function(part) == POLL for part in operation.argument)


def starts_of(operation: PairedOperation) -> dict[str, int | None]:
    """Return the keys of an ``assign`` and the offsets to start from; None: nobody told it."""
    argument: Any = operation.argument
    if _is_map(argument):
        return _offsets_by_key([argument])
    return {name_of(key): None for key in argument or ()}


class Sense:
    """Finder of operations that make no sense on a log.

    It remembers what was sent, so it is asked once about each operation of a history, failed ones
    too.
    """

    def __init__(self) -> None:
        self._sent: dict[tuple[str, Hashable], int] = {}

    def __call__(self, operation: PairedOperation) -> str | None:
        """Return the problem of an operation, a clause; None for none."""
        argument: Any = operation.argument
        if operation.f in (ASSIGN, SUBSCRIBE):
            return _problem_of_keys(operation.f, argument)
        if operation.f in _IGNORED:
            return None
        if operation.f not in OF_PARTS:
            known = ", ".join((*OF_PARTS, ASSIGN))
            return f"operations on a log are {known} and {SUBSCRIBE}, and not {operation.f}"
        if not _is_list(argument):
            return f"the argument of a {operation.f} is a list of parts, and not {shown(argument)}"
        parts = cast("Sequence[Any]", argument)
        problems = [_problem_of_part(part) for part in parts]
        if operation.type == "ok" and not any(problems):
            answer: Any = operation.result
            if not is_list_of(answer, len(parts)):
                asked = counted(len(parts), "part")
                return f"it is asked {asked} and answers {shown(answer)}"
            problems = [*map(_problem_of_answer, parts, answer)]
        problem = next(filter(None, problems), None)
        return problem or self._repeated(parts, operation.index)

    def _repeated(self, parts: Sequence[Any], index: int) -> str | None:
        for part in parts:
            if _function(part) == SEND:
                record = name_of(part[1]), hashable(part[2])
                first = self._sent.get(record)
                if first is not None:
                    return (
                        f"{shown(part[2])} is sent to {shown(part[1])} a second time (first by "
                        f"event {first}), so a read of it could not tell its sender"
                    )
                self._sent[record] = index
        return None


def _problem_of_keys(f: str, argument: Any) -> str | None:
    if f == ASSIGN and _is_map(argument):
        return _problem_of_starts([argument])
    if _is_list(argument):
        return None
    return f"the argument of {f} is a list of keys, and not {shown(argument)}"


def _problem_of_starts(given: Sequence[Any]) -> str | None:
    if not given:
        return None
    if len(given) > 1 or not _is_map(given[0]):
        return f"a poll is asked for offsets by key, and not {shown(given[0])}"
    wrong = [offset for _, offset in _items(given[0]) if not _is_offset(offset)]
    return f"{shown(wrong[0])} is no offset to read from" if wrong else None


def _problem_of_part(part: Any) -> str | None:
    if not _is_list(part) or not part:
        return f'a part is ["send", key, value] or ["poll"], and not {shown(part)}'
    items = cast("Sequence[Any]", part)
    function = _function(items)
    if function == POLL:
        return _problem_of_starts(items[1:])
    if function != SEND or len(items) != 3:
        return f'a part is ["send", key, value] or ["poll"], and not {shown(part)}'
    if items[2] is None:
        return f"{shown(part)} sends nothing"
    return None


def _problem_of_answer(part: Sequence[Any], done: Any) -> str | None:
    wrong = f"it is asked {shown(part)} and answers {shown(done)}"
    if not _is_list(done) or _function(done) != _function(part):
        return wrong
    answer = cast("Sequence[Any]", done)
    if _function(part) == SEND:
        if not is_list_of(answer, 3) or not is_same(part[1], answer[1]):
            return wrong
        is_told = _tells_offset(part[2], answer[2])
        return None if is_told or is_same(part[2], answer[2]) else wrong
    if len(answer) not in _ANSWERED or not _is_map(answer[1]):
        return wrong
    for _, records in _items(answer[1]):
        if not _is_list(records):
            return f"a poll answers lists of [offset, value], and not {shown(records)}"
        for record in cast("Sequence[Any]", records):
            if not is_list_of(record, 2) or not _is_offset(record[0]):
                return f"a record is [offset, value], and not {shown(record)}"
    return next(filter(None, map(_problem_of_offsets, answer[2:])), None)


def _problem_of_offsets(given: Any) -> str | None:
    if not _is_map(given):
        return f"the positions of a consumer are offsets by key, and not {shown(given)}"
    wrong = [position for _, position in _items(given) if not _is_offset(position)]
    return f"{shown(wrong[0])} is no offset" if wrong else None


def _function(part: Any) -> Any:
    return kind_of(part[0]) if part else None


def _tells_offset(value: Any, answer: Any) -> bool:
    """Return whether ``[offset, value]`` answers a value; null for an offset tells none."""
    # Nearly always all three are plain.
    if type(value) is int and _is_list(answer):
        items = cast("Sequence[Any]", answer)
        if len(items) == _PAIR and type(items[0]) is int and type(items[1]) is int:
            return items[1] == value and items[0] >= 0
    if not is_list_of(answer, 2) or not is_same(value, answer[1]):
        return False
    return answer[0] is None or _is_offset(answer[0])


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _is_map(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_offset(value: Any) -> bool:
    if not is_number(value):
        return False
    size = size_of(value)
    return (type(size) is int or (type(size) is float and size.is_integer())) and size >= 0


def _offset(value: Any) -> int | None:
    return None if value is None else int(size_of(value))


def _offsets_by_key(given: Sequence[Any]) -> dict[str, int | None]:
    """Return the offsets of a part's map, which may be missing."""
    return {name_of(key): _offset(at) for mapping in given for key, at in _items(mapping)}


def _items(mapping: Any) -> Iterator[tuple[Any, Any]]:
    return iter(cast("Mapping[Any, Any]", mapping).items())
