"""Operations of a history that still grows, by the objects that they are about; pure.

A look at what is new would cost more with every second if it were one at everything. So a look is
at the objects that were touched lately, with all that ever happened to them: what is wrong there is
wrong in the whole history, for leaving objects out of transactions makes none of them worse. An
anomaly that leads over an object at rest is found when the run is over.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from splitbrain.history.identity import key_text
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event, PairedOperation

#: Time after which an object that nobody touches is at rest, ns.
_REST_NS: Final = 1_000_000_000


class _Placed(NamedTuple):
    operation: PairedOperation
    #: Key of each micro-operation, or that of the whole.
    keys: tuple[str | None, ...]


class Beginning:
    """A history up to a moment; times are those of its events."""

    def __init__(self) -> None:
        self._ended: list[_Placed] = []
        self._ended_on: defaultdict[str | None, list[_Placed]] = defaultdict(list)
        self._invoked: dict[int, Event] = {}
        self._open: list[_Placed] = []
        #: Keys touched by each lot of events, with the time of the last one.
        self._touched: deque[tuple[int, set[str | None]]] = deque()

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
        still_open = {event.index for event in self._invoked.values()}
        self._open = []
        touched: set[str | None] = set()
        for operation in operations:
            placed = _Placed(operation, _keys_of(operation))
            touched.update(placed.keys)
            if operation.index in still_open:
                self._open.append(placed)
                continue
            self._ended.append(placed)
            for key in set(placed.keys):
                self._ended_on[key].append(placed)
        now = events[-1].time
        self._touched.append((now, touched))
        while now - self._touched[0][0] > _REST_NS:
            self._touched.popleft()

    @property
    def operations(self) -> list[PairedOperation]:
        """Return all operations, in the order of their invocation."""
        return _in_order(placed.operation for placed in (*self._ended, *self._open))

    @property
    def lately(self) -> list[PairedOperation]:
        """Return the operations on objects touched lately, without the others' parts of them."""
        keys = set[str | None]().union(*(touched for _, touched in self._touched))
        found = {id(placed): placed for key in keys for placed in self._ended_on[key]}
        return _in_order(_of(placed, keys) for placed in (*found.values(), *self._open))


def _keys_of(operation: PairedOperation) -> tuple[str | None, ...]:
    """Return the key of each of a transaction's micro-operations, else that of the operation."""
    argument: object = operation.argument
    if operation.f != "txn" or not isinstance(argument, list):
        return (operation.key,)
    steps = cast("list[Any]", argument)
    if not all(isinstance(step, list) and len(cast("list[Any]", step)) > 1 for step in steps):
        return (operation.key,)
    return tuple(key_text(step[1]) for step in steps)


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
