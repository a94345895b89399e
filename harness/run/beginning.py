"""Operations of a history that still grows, by the objects that they are about; pure.

A look at what is new would cost more with every second if it were one at everything. So a look is
at the objects that were touched lately, with all that ever happened to them: what is wrong there is
wrong in the whole history, for leaving objects out of transactions makes none of them worse. An
anomaly that leads over an object at rest is found when the run is over.

So that a look costs no more than what is new, an object is at rest, too, once thousands of
operations have ended that were about others.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, cast

import msgspec

from splitbrain.history.identity import key_text, may_be_one, types_in
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event, PairedOperation

#: Time after which an object that nobody touches is at rest, ns.
_REST_NS: Final = 1_000_000_000
#: Operations after which it is, whatever the time; those that are new do not count.
_REST_OPERATIONS: Final = 4_000
#: Operations whose objects are put at rest together.
_LOT_OPERATIONS: Final = 500


class _Placed(NamedTuple):
    operation: PairedOperation
    #: Key of each micro-operation, or that of the whole.
    keys: tuple[str | None, ...]


class _Lot(NamedTuple):
    """Objects that a number of operations touched."""

    time: int
    keys: set[str | None]
    operations_count: int


class Beginning:
    """A history up to a moment; times are those of its events."""

    def __init__(self) -> None:
        self._ended: list[_Placed] = []
        self._ended_on: defaultdict[str | None, list[_Placed]] = defaultdict(list)
        self._invoked: dict[int, Event] = {}
        self._open: list[_Placed] = []
        #: Types in all values so far.
        self._types: set[type] = set()
        #: Texts of keys that are numbers or texts themselves.
        self._texts: dict[int | str, str | None] = {}
        self._touched: deque[_Lot] = deque()
        #: Operations in those lots.
        self._recent = 0

    def take(self, events: Sequence[Event]) -> None:
        """Take the next events, at least one.

        Raises:
            PairingError: they break the rules of a history.
        """
        before = sorted(self._invoked.values(), key=lambda event: event.index)
        operations = pair([*before, *events])
        for event in events:
            if event.type == "invoke":
                self._invoked[event.process] = event
            else:
                del self._invoked[event.process]
        self._types |= types_in(operations)
        placed = [_Placed(operation, self._keys_of(operation)) for operation in operations]
        still_open = {event.index for event in self._invoked.values()}
        self._open = [each for each in placed if each.operation.index in still_open]
        ended = [each for each in placed if each.operation.index not in still_open]
        self._ended += ended
        for each in ended:
            for key in set(each.keys):
                self._ended_on[key].append(each)
        self._touch(ended, events[-1].time)

    def _touch(self, ended: Sequence[_Placed], now: int) -> None:
        """Put objects at rest that are by now, and note those that were touched."""
        lots = self._touched
        while lots and (now - lots[0].time > _REST_NS or self._recent > _REST_OPERATIONS):
            self._recent -= lots.popleft().operations_count
        self._recent += len(ended)
        for first in range(0, len(ended), _LOT_OPERATIONS):
            lot = ended[first : first + _LOT_OPERATIONS]
            lots.append(_Lot(now, _keys_in(lot), len(lot)))
        lots.append(_Lot(now, _keys_in(self._open), 0))

    @property
    def may_be_one(self) -> bool:
        """Whether different values may be one to Python, see ``history.identity``."""
        return may_be_one(self._types)

    @property
    def operations(self) -> list[PairedOperation]:
        """Return all operations, in the order of their invocation."""
        return _in_order(placed.operation for placed in (*self._ended, *self._open))

    @property
    def lately(self) -> list[PairedOperation]:
        """Return the operations on objects touched lately, without the others' parts of them."""
        keys = set[str | None]().union(*(lot.keys for lot in self._touched))
        found = {id(placed): placed for key in keys for placed in self._ended_on[key]}
        return _in_order(_of(placed, keys) for placed in (*found.values(), *self._open))

    def _keys_of(self, operation: PairedOperation) -> tuple[str | None, ...]:
        """Return the key of each of a transaction's micro-operations, else the operation's."""
        argument: object = operation.argument
        if operation.f != "txn" or not isinstance(argument, list):
            return (operation.key,)
        keys: list[str | None] = []
        for step in cast("list[Any]", argument):
            parts = cast("list[Any]", step) if isinstance(step, list) else []
            if len(parts) <= 1:
                return (operation.key,)
            keys.append(self._text_of(parts[1]))
        return tuple(keys)

    def _text_of(self, key: Any) -> str | None:
        if type(key) is not int and type(key) is not str:
            return key_text(key)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = key_text(key)
        return text


def _keys_in(lot: Iterable[_Placed]) -> set[str | None]:
    return set(chain.from_iterable(placed.keys for placed in lot))


def _of(placed: _Placed, keys: set[str | None]) -> PairedOperation:
    """Return what an operation did to some objects."""
    operation, own = placed
    if keys.issuperset(own):
        return operation
    kept = [place for place, key in enumerate(own) if key in keys]
    result = operation.result
    if result is not None and len(result) != len(own):
        # No answer to what was asked: whoever judges it has to see it as it is.
        return operation
    return msgspec.structs.replace(
        operation,
        argument=[operation.argument[place] for place in kept],
        result=None if result is None else [result[place] for place in kept],
    )


def _in_order(operations: Iterable[PairedOperation]) -> list[PairedOperation]:
    return sorted(operations, key=lambda operation: operation.index)
