"""Answers of the members of a share group, and whether they make sense; pure.

Their words are ``contracts.share_groups``.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from splitbrain.checker.models.model import is_list_of
from splitbrain.checker.transactions.micro_operations import hashable
from splitbrain.contracts.log import POLL, SEND
from splitbrain.contracts.share_groups import (
    ACCEPT,
    ACQUIRE,
    DELIVERIES_MAX,
    EPOCHS,
    LEAVE,
    LOCK_MS,
    MEMBER,
    RECORDS,
    REJECT,
    RELEASE,
    SETTLE,
    SETTLED,
    UNANSWERED,
    UNCLEAR,
)
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

#: Of a log, the epochs that its leader claimed before and after it answered; None: nobody told it.
Epochs = tuple[int | None, int | None]
#: Log and offset of a record.
Place = tuple[str, int]

NS_PER_MS: Final = 1_000_000
_OF_RECORDS: Final = 3
_UNTOLD: Final[Epochs] = (None, None)


class Acquired(NamedTuple):
    """An answered ``acquire``."""

    operation: PairedOperation
    member: str
    #: Offset and value, by log.
    records: Mapping[str, Sequence[tuple[int, Hashable]]]
    epochs: Mapping[str, Epochs]
    unanswered: Collection[str]
    lock_ns: int


class Settlement(NamedTuple):
    """An answered ``settle``."""

    operation: PairedOperation
    member: str
    #: Whether it is accepted or rejected, and so never to be delivered again.
    is_for_good: bool
    settled: Mapping[str, Sequence[int]]
    unclear: Collection[str]
    epochs: Mapping[str, Epochs]


class Unheard:
    """Acquires that may have been given records of which nobody was told."""

    def __init__(self) -> None:
        self._open = 0
        self._ends: dict[str, list[int]] = {}

    def add(self, operation: PairedOperation, logs: Iterable[str] = ()) -> None:
        """Count an acquire without an answer, or one that had none of these logs' leaders."""
        # A final one asks again and again, and accepts what it is told before its end is lost.
        count = DELIVERIES_MAX if operation.final else 1
        if operation.end is None:
            self._open += count
            return
        for log in logs:
            self._ends.setdefault(log, []).extend([operation.end] * count)

    def sort(self) -> None:
        """Make ready to count, once all of them are added."""
        for ends in self._ends.values():
            ends.sort()

    def count(self, log: str, since: int) -> int:
        """Return how often records of a log may have been given so, from a moment on."""
        ends = self._ends.get(log, [])
        return self._open + len(ends) - bisect_left(ends, since)


def epochs_of(answer: Acquired | Settlement, log: str) -> Epochs:
    """Return the epochs of a log's leader."""
    return answer.epochs.get(log, _UNTOLD)


def one_epoch(answer: Acquired | Settlement, log: str) -> int | None:
    """Return the epoch of the leader that answered; None where another may have."""
    before, after = epochs_of(answer, log)
    return before if before == after else None


def acquired_of(operation: PairedOperation) -> Acquired:
    """Return what an ``acquire`` tells that was answered with records, or might have been."""
    answer = cast("Mapping[str, Any]", operation.result)
    records = {
        log: [(offset, hashable(value)) for offset, value, _ in given]
        for log, given in answer[RECORDS].items()
    }
    return Acquired(
        operation,
        answer[MEMBER],
        records,
        _all_epochs(answer),
        answer[UNANSWERED],
        answer[LOCK_MS] * NS_PER_MS,
    )


def settlement_of(operation: PairedOperation) -> Settlement:
    """Return what an answered ``settle`` tells."""
    answer = cast("Mapping[str, Any]", operation.result)
    return Settlement(
        operation,
        answer[MEMBER],
        operation.argument in (ACCEPT, REJECT),
        answer[SETTLED],
        answer[UNCLEAR],
        _all_epochs(answer),
    )


def problem_with(operation: PairedOperation) -> str | None:
    """Return why an operation makes no sense here, a clause; None where it does.

    Those of logs are others' to look at (``logs.parts.Sense``).
    """
    f, answer = operation.f, operation.result
    if f not in (ACQUIRE, SETTLE, LEAVE):
        known = f"{SEND}, {ACQUIRE}, {SETTLE}, {LEAVE}"
        return f"operations are {known} and {POLL}, and not {f}"
    if f == SETTLE and operation.argument not in (ACCEPT, RELEASE, REJECT):
        asked = shown(operation.argument)
        return f"a {SETTLE} is to {ACCEPT}, {RELEASE} or {REJECT}, and not to {asked}"
    if operation.type != "ok":
        return None
    if f == LEAVE:
        is_told = answer is None or isinstance(answer, str)
        return None if is_told else f"it answers the member that left, and not {shown(answer)}"
    if f == ACQUIRE and operation.final and answer is None:
        return None
    shape = _SETTLEMENT if f == SETTLE else _ACQUIRED
    words = ", ".join(shape)
    if _fits(answer, shape):
        return None
    return f"the answer of {f} tells {words}: {shown(answer)} does not"


def _all_epochs(answer: Mapping[str, Any]) -> Mapping[str, Epochs]:
    told: Mapping[str, Any] = answer[EPOCHS] or {}
    return {log: (pair[0], pair[1]) for log, pair in told.items() if pair is not None}


def _fits(answer: Any, shape: Mapping[str, Callable[[Any], bool]]) -> bool:
    if not isinstance(answer, Mapping):
        return False
    given = cast("Mapping[str, Any]", answer)
    return all(word in given and is_one(given[word]) for word, is_one in shape.items())


def _are_epochs(epochs: Any) -> bool:
    return epochs is None or _is_map(epochs, _is_pair_of_epochs)


def _is_pair_of_epochs(pair: Any) -> bool:
    if pair is None:
        return True
    return is_list_of(pair, 2) and all(each is None or type(each) is int for each in pair)


def _is_list_of_records(records: Any) -> bool:
    return _is_list(records, _is_record)


def _is_record(record: Any) -> bool:
    return is_list_of(record, _OF_RECORDS) and _is_offset(record[0]) and type(record[2]) is int


def _is_list_of_offsets(offsets: Any) -> bool:
    return _is_list(offsets, _is_offset)


def _is_offset(offset: Any) -> bool:
    return type(offset) is int and offset >= 0


def _is_name(told: Any) -> bool:
    return isinstance(told, str)


def _is_list(value: Any, is_item: Callable[[Any], bool]) -> bool:
    return isinstance(value, (list, tuple)) and all(map(is_item, cast("Sequence[Any]", value)))


def _is_map(value: Any, is_item: Callable[[Any], bool]) -> bool:
    if not isinstance(value, Mapping):
        return False
    items = cast("Mapping[Any, Any]", value).items()
    return all(isinstance(log, str) and is_item(item) for log, item in items)


#: Words of an answer, and whether what stands there makes sense.
_SETTLEMENT: Final[Mapping[str, Callable[[Any], bool]]] = {
    MEMBER: _is_name,
    SETTLED: lambda told: _is_map(told, _is_list_of_offsets),
    UNCLEAR: lambda told: _is_map(told, _is_list_of_offsets),
    EPOCHS: _are_epochs,
}
_ACQUIRED: Final[Mapping[str, Callable[[Any], bool]]] = {
    MEMBER: _is_name,
    RECORDS: lambda told: _is_map(told, _is_list_of_records),
    EPOCHS: _are_epochs,
    UNANSWERED: lambda told: _is_list(told, _is_name),
    LOCK_MS: lambda told: type(told) is int,
}
