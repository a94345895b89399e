"""Operations of a history that still grows, by the objects that they are about; pure.

A look at what is new would cost more with every second if it were one at everything. So a look is
at the objects that were touched lately, with all that ever happened to them: what is wrong there is
wrong in the whole history, for leaving objects out of transactions makes none of them worse. An
anomaly that leads over an object at rest is found when the run is over.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from splitbrain.history.identity import key_text
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event, PairedOperation

#: Time after which an object that nobody touches is at rest, ns.
_REST_NS: Final = 2_000_000_000


class Beginning:
    """A history up to a moment; times are those of its events."""

    def __init__(self) -> None:
        self._ended: list[PairedOperation] = []
        self._ended_on: defaultdict[str | None, list[PairedOperation]] = defaultdict(list)
        self._invoked: dict[int, Event] = {}
        self._open: list[PairedOperation] = []
        #: Objects touched by each lot of events, with the time of the last one.
        self._touched: deque[tuple[int, frozenset[str | None]]] = deque()

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
            objects = objects_of(operation)
            touched |= objects
            if operation.index in still_open:
                self._open.append(operation)
                continue
            self._ended.append(operation)
            for each in objects:
                self._ended_on[each].append(operation)
        now = events[-1].time
        self._touched.append((now, frozenset(touched)))
        while now - self._touched[0][0] > _REST_NS:
            self._touched.popleft()

    @property
    def operations(self) -> list[PairedOperation]:
        """Return all operations, in the order of their invocation."""
        return _in_order([*self._ended, *self._open])

    @property
    def lately(self) -> list[PairedOperation]:
        """Return the operations on objects touched lately, without the others' parts of them."""
        objects = frozenset[str | None]().union(*(touched for _, touched in self._touched))
        found = {
            operation.index: operation for each in objects for operation in self._ended_on[each]
        }
        return [_of(operation, objects) for operation in _in_order([*found.values(), *self._open])]


def objects_of(operation: PairedOperation) -> set[str | None]:
    """Return the keys that an operation is about; None where it has none."""
    steps = _steps(operation)
    if steps is None:
        return {operation.key}
    return {key_text(step[1]) for step in steps}


def _steps(operation: PairedOperation) -> list[list[Any]] | None:
    """Return a transaction's micro-operations; None for what is none."""
    argument: object = operation.argument
    if operation.f != "txn" or not isinstance(argument, list):
        return None
    steps = cast("list[Any]", argument)
    return steps if all(isinstance(step, list) and len(step) > 1 for step in steps) else None


def _of(operation: PairedOperation, objects: frozenset[str | None]) -> PairedOperation:
    """Return what an operation did to some objects."""
    steps = _steps(operation)
    if steps is None:
        return operation
    kept = [place for place, step in enumerate(steps) if key_text(step[1]) in objects]
    result = operation.result
    if len(kept) == len(steps) or not (result is None or len(result) == len(steps)):
        return operation
    return msgspec.structs.replace(
        operation,
        argument=[steps[place] for place in kept],
        result=None if result is None else [result[place] for place in kept],
    )


def _in_order(operations: Iterable[PairedOperation]) -> list[PairedOperation]:
    return sorted(operations, key=lambda operation: operation.index)
