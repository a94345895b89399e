"""Reader of ``history.jsonl``, ours or foreign, as a stream of events; never the whole file.

A torn last line (no line feed, not JSON) is left by a killed harness: it is dropped and reported.
Any other broken line is an error that names its number and byte offset, or is left out and counted
where the caller asks for that. Lines of the nemesis are left out; other processes with a name get a
number. A missing index counts events, and stands for a missing time, so that the order of lines is
the order of events.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import Int64
from splitbrain.history.errors import BrokenLines
from splitbrain.history.identity import key_text
from splitbrain.history.json_problems import TOO_DEEP, is_json, is_too_deep, refuse_other_bytes
from splitbrain.history.opening import opened
from splitbrain.history.raw_operations import ProcessNumbers, is_nemesis, whole_number
from splitbrain.history.records import Event, EventType

_BLOCK_BYTES = 1 << 20


class _ForeignEvent(msgspec.Struct, frozen=True):
    """Event with all fields optional that can be filled in."""

    process: int | float | str
    type: EventType
    f: str
    index: Int64 | None = None
    time: int | float | None = None
    key: Any = None
    value: Any = None
    node: str | None = None
    error: Any = None
    position: Any = None
    final: bool = False


_OWN_LINES = msgspec.json.Decoder(list[Event])
_FOREIGN_LINE = msgspec.json.Decoder(_ForeignEvent)


class HistoryReader:
    """Iterator over the events of one JSONL history, once.

    Args:
        path: the file, packed with gzip or not.
        lines: collects broken lines; by default the first one is an error.
        singly: decode line by line, so that ``line`` and ``line_offset`` belong to the event given
            out last. Ten times slower.

    Raises (while iterating):
        HistoryError: a broken line before the last, a file that cannot be read, or a history
            in which only some lines have an index or a time.
    """

    def __init__(
        self, path: Path, *, lines: BrokenLines | None = None, singly: bool = False
    ) -> None:
        self._path, self._singly = path, singly
        self._broken = BrokenLines(path) if lines is None else lines
        #: Number of the line read last, from 1, and its start.
        self.line = 0
        self.line_offset = 0
        self._byte_offset = 0
        self._events = 0
        self._has_index: bool | None = None
        self._has_time: bool | None = None
        self.processes = ProcessNumbers()

    @property
    def torn_bytes(self) -> int | None:
        """Length of the torn last line, None where the file ends with a whole one."""
        return self._broken.torn_bytes

    def __iter__(self) -> Iterator[Event]:
        with opened(self._path) as file:
            rest = b""
            while block := file.read(_BLOCK_BYTES):
                # A line may be longer than a block; joining each time would be quadratic.
                parts = [rest, block]
                while b"\n" not in parts[-1] and (more := file.read(_BLOCK_BYTES)):
                    parts.append(more)
                whole, separator, rest = b"".join(parts).rpartition(b"\n")
                if separator:
                    yield from self._decode(whole)
            if rest.strip():
                yield from self._decode_last(rest)

    def _decode(self, whole: bytes) -> Iterator[Event]:
        """Decode lines without their last line feed; our own format at once, others singly."""
        lines = whole.count(b"\n") + 1
        if not (self._singly or self._is_foreign()):
            events = self._own(whole)
            # A line that holds two objects would slip through the joined form.
            if len(events) == lines:
                self._has_index = self._has_time = True
                self.line += lines
                self._byte_offset += len(whole) + 1
                self._events += lines
                yield from _with_key_texts(events)
                return
        for line in whole.split(b"\n"):
            event = self._decode_line(line)
            if event is not None:
                yield event

    def _own(self, whole: bytes) -> Sequence[Event]:
        """Return the events of lines of our own format; none if they must be read line by line."""
        try:
            events = _OWN_LINES.decode(b"[" + whole.replace(b"\n", b",") + b"]")
            refuse_other_bytes(whole)
            if events:
                self.processes.of(min(event.process for event in events))
        except (*UNREADABLE, ValueError):
            return ()
        return () if any(is_too_deep(event.value) for event in events) else events

    def _decode_last(self, line: bytes) -> Iterator[Event]:
        """Decode the line without a line feed: torn unless it is whole JSON."""
        if not is_json(line):
            self._broken.tear(len(line))
            return
        event = self._decode_line(line)
        if event is not None:
            yield event

    def _is_foreign(self) -> bool:
        return self._has_index is False or self._has_time is False

    def _decode_line(self, line: bytes) -> Event | None:
        self.line += 1
        self.line_offset = self._byte_offset
        self._byte_offset += len(line) + 1
        if not line.strip():
            return None
        try:
            event = self._fill_in(line)
        except (ValueError, RecursionError) as error:
            self._broken.add_error(self.line, self.line_offset, error)
            return None
        if event is not None:
            self._events += 1
        return event

    def _fill_in(self, line: bytes) -> Event | None:
        """Return one event, None for lines of the nemesis."""
        foreign = _FOREIGN_LINE.decode(line)
        refuse_other_bytes(line)
        if is_nemesis(foreign.process):
            return None
        if is_too_deep(foreign.key) or is_too_deep(foreign.value):
            raise ValueError(TOO_DEEP)
        self._has_index = _same_everywhere(self._has_index, foreign.index, "index")
        self._has_time = _same_everywhere(self._has_time, foreign.time, "time")
        index = self._events if foreign.index is None else foreign.index
        return Event(
            index=index,
            time=index if foreign.time is None else whole_number(foreign.time, "time"),
            process=self.processes.of(foreign.process),
            type=foreign.type,
            f=foreign.f,
            key=key_text(foreign.key),
            value=foreign.value,
            node=foreign.node,
            error=None if foreign.error is None else str(foreign.error),
            position=_position(foreign.position),
            final=foreign.final,
        )


def _with_key_texts(events: Sequence[Event]) -> Sequence[Event]:
    """Return events with distinct texts for keys, whose texts are as in the file."""
    keys = {event.key for event in events}
    changed = {key: text for key in keys if (text := key_text(key)) != key}
    if not changed:
        return events
    return [
        msgspec.structs.replace(event, key=changed[event.key]) if event.key in changed else event
        for event in events
    ]


def _same_everywhere(known: bool | None, value: object, name: str) -> bool:
    present = value is not None
    if known is not None and known != present:
        raise ValueError(f"only some of the lines have a field {name!r}")
    return present


def _position(value: object) -> tuple[int, int] | None:
    """Return ``[epoch, offset]``; a bare revision stands in epoch 0."""
    if value is None:
        return None
    if isinstance(value, int):
        value = (0, value)
    return msgspec.convert(value, tuple[Int64, Int64])
