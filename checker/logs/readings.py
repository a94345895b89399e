"""Sends, sightings and passes of each log of a history; pure.

A consumer that was assigned a log reads on from where it is: what lies between two offsets that it
read one after the other, or below the position that it told, it passed over. Where a group chooses
its logs it may have been given another place between two polls, so nothing follows from that.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from splitbrain.checker.logs.parts import (
    ASSIGN,
    OF_PARTS,
    SUBSCRIBE,
    Polled,
    Sent,
    asks_to_poll,
    parts_of,
    starts_of,
)
from splitbrain.contracts.log import ABORT
from splitbrain.history.records import PairedOperation


class Sighting(NamedTuple):
    """One record in one answer."""

    offset: int
    value: Hashable
    operation: PairedOperation


class Pass(NamedTuple):
    """Offsets from ``first`` up to ``end``, without it, that a consumer passed and did not read."""

    first: int
    end: int
    operation: PairedOperation


class Send:
    """One record that was sent to a log."""

    __slots__ = ("offset", "operation", "places", "sightings", "value")

    def __init__(self, value: Hashable, operation: PairedOperation, offset: int | None) -> None:
        self.value = value
        self.operation = operation
        #: As it was acknowledged; None: nobody told it.
        self.offset = offset
        self.sightings: list[Sighting] = []
        #: Offsets at which it was acknowledged or read, each with the first who ended and told it.
        self.places: dict[int, PairedOperation] = {}

    @property
    def is_acknowledged(self) -> bool:
        """Whether its operation was ``ok``: of a transaction, its commit."""
        return self.operation.type == "ok" and self.operation.f != ABORT

    @property
    def is_void(self) -> bool:
        """Whether it is certainly nowhere: it failed, or was never to be committed."""
        return self.operation.type == "fail" or self.operation.f == ABORT


class Log:
    """All that a history tells of one log."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.sends: dict[Hashable, Send] = {}
        #: Of values that nobody sent.
        self.strangers: list[Sighting] = []
        self.passes: list[Pass] = []
        #: Ends of the log that final reads told, each with the offset from which on all was read.
        self.ends: list[Pass] = []
        #: Final reads that a transaction stopped: who, where, and the end of the log.
        self.stopped: list[tuple[PairedOperation, int, int]] = []
        #: Steps of consumers back: who, to which offset, and the next one before that.
        self.steps_back: list[tuple[PairedOperation, int, int]] = []

    def note_end(self, final: PairedOperation, start: int, end: int, beyond: int | None) -> None:
        """Note where a final read came to, and the end where that lies beyond."""
        if beyond is None:
            self.ends.append(Pass(start, end, final))
        else:
            self.stopped.append((final, end, beyond))


class _Consumer:
    """One process' places in its logs."""

    def __init__(self) -> None:
        self.is_subscribed = False
        #: Next offset of each log; None: it may be anywhere.
        self.places: dict[str, int | None] = {}
        #: Offset of each log from which on it has passed everything.
        self.starts: dict[str, int] = {}


def logs_of(
    operations: Sequence[PairedOperation], poll: Callable[[int], None]
) -> tuple[list[Log], list[PairedOperation]]:
    """Return the logs of a history, and its operations that hold parts; in order of invocation."""
    reader = _Reader(poll)
    held: list[PairedOperation] = []
    polled: list[list[Polled]] = []
    for operation in operations:
        polls: list[Polled] = []
        if operation.f in OF_PARTS:
            held.append(operation)
            polls = reader.note_sends(operation)
        polled.append(polls)
    # A value may be read before the line on its send, so all sends are known first.
    for operation, polls in zip(operations, polled, strict=True):
        reader.follow(operation, polls)
    return [*reader.logs.values()], held


class _Reader:
    def __init__(self, poll: Callable[[int], None]) -> None:
        self.logs: dict[str, Log] = {}
        self._consumers: dict[int, _Consumer] = {}
        self._poll = poll

    def _log(self, key: str) -> Log:
        log = self.logs.get(key)
        if log is None:
            log = self.logs[key] = Log(key)
        return log

    def note_sends(self, operation: PairedOperation) -> list[Polled]:
        """Note what an operation sent, and return what it read."""
        polled: list[Polled] = []
        for part in parts_of(operation):
            self._poll(1)
            if isinstance(part, Sent):
                self._log(part.key).sends[part.value] = Send(part.value, operation, part.offset)
            else:
                polled.append(part)
        return polled

    def follow(self, operation: PairedOperation, polled: Sequence[Polled]) -> None:
        """Let a process' consumer go on."""
        if not polled and operation.f in OF_PARTS and operation.type == "ok":
            return
        consumer = self._consumers.get(operation.process)
        if consumer is None:
            consumer = self._consumers[operation.process] = _Consumer()
        if operation.f in (ASSIGN, SUBSCRIBE):
            consumer.is_subscribed = operation.f == SUBSCRIBE
            starts = starts_of(operation) if operation.f == ASSIGN else {}
            is_known = operation.type == "ok"
            consumer.places = {key: start if is_known else None for key, start in starts.items()}
            consumer.starts = {
                key: start for key, start in consumer.places.items() if start is not None
            }
        elif polled:
            for part in polled:
                self._read(consumer, part, operation)
        elif asks_to_poll(operation):
            # It may have read something that nobody told, or been put back where it was.
            consumer.places = dict.fromkeys(consumer.places)
            consumer.starts = {}

    def _read(self, consumer: _Consumer, polled: Polled, operation: PairedOperation) -> None:
        log = self._log(polled.key)
        sends = log.sends
        if polled.start is not None:
            consumer.places[polled.key] = consumer.starts[polled.key] = polled.start
        is_followed = not consumer.is_subscribed
        place = consumer.places.get(polled.key) if is_followed else None
        self._poll(1 + len(polled.records))
        for offset, value in polled.records:
            sighting = Sighting(offset, value, operation)
            send = sends.get(value)
            (log.strangers if send is None else send.sightings).append(sighting)
            if is_followed:
                # Nearly always the next one.
                if offset != place:
                    if place is None:
                        consumer.starts.setdefault(polled.key, offset)
                    elif offset < place:
                        log.steps_back.append((operation, offset, place))
                    else:
                        log.passes.append(Pass(place, offset, operation))
                place = offset + 1
        if polled.position is not None and not consumer.is_subscribed:
            if place is not None and polled.position < place:
                log.steps_back.append((operation, polled.position, place))
            elif place is not None and polled.position > place:
                log.passes.append(Pass(place, polled.position, operation))
            place = polled.position
            consumer.starts.setdefault(polled.key, place)
        consumer.places[polled.key] = place
        if operation.final and polled.position is not None:
            start = consumer.starts.get(polled.key, polled.position)
            log.note_end(operation, start, polled.position, polled.out_of_reach)
