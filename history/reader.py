"""Streams ``history.jsonl``, ours or foreign, into events.

A torn last line (no line feed, not JSON) is what a killed harness leaves: it is dropped and
reported in ``HistoryReader.torn_bytes``. Any other broken line is an error that names its number
and byte offset, or is skipped and counted where the caller asks for that. Lines of processes that
are no numbers (a nemesis) are left out. Missing ``index``, ``time`` and ``node`` are filled in:
the index counts events, a missing time is the index, so that the order of lines is the order of
events. Must never hold the whole file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from history.errors import HistoryError
from history.json_problems import in_words
from history.records import Event, EventType

_BLOCK_BYTES = 1 << 20


class BrokenLine(msgspec.Struct, frozen=True):
    """One line that could not be read."""

    #: From 1.
    line: int
    byte_offset: int
    problem: str


class _ForeignEvent(msgspec.Struct, frozen=True):
    """An event with everything optional that can be filled in."""

    process: int | str
    type: EventType
    f: str
    index: int | None = None
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
    """Iterates over the events of one JSONL history, once.

    Args:
        path: the file.
        skip_broken: skip broken lines, collecting them in ``broken``, instead of raising.

    Raises (while iterating):
        HistoryError: a broken line before the last, a file that cannot be opened, or a history
            in which only some lines have an index or a time.
    """

    def __init__(self, path: Path, *, skip_broken: bool = False) -> None:
        self._path = path
        self._skip_broken = skip_broken
        #: Length of the torn last line, None where the file ends with a whole one.
        self.torn_bytes: int | None = None
        #: Lines skipped, with ``skip_broken`` only.
        self.broken: list[BrokenLine] = []
        self._line = 0
        self._byte_offset = 0
        self._events = 0
        self._has_index: bool | None = None
        self._has_time: bool | None = None

    def __iter__(self) -> Iterator[Event]:
        try:
            with self._path.open("rb") as file:
                rest = b""
                while block := file.read(_BLOCK_BYTES):
                    whole, separator, rest = (rest + block).rpartition(b"\n")
                    if separator:
                        yield from self._decode(whole)
                if rest:
                    yield from self._decode_last(rest)
        except OSError as error:
            raise HistoryError(
                str(self._path),
                error.strerror or str(error),
                "Name a run folder or a history file that can be read",
            ) from error

    def _decode(self, whole: bytes) -> Iterator[Event]:
        """Decode lines without their last line feed; our own format at once, others singly."""
        lines = whole.count(b"\n") + 1
        if not self._is_foreign():
            try:
                events = _OWN_LINES.decode(b"[" + whole.replace(b"\n", b",") + b"]")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # told line by line below
            else:
                # A line that holds two objects would slip through the joined form.
                if len(events) == lines:
                    self._has_index = self._has_time = True
                    self._line += lines
                    self._byte_offset += len(whole) + 1
                    self._events += lines
                    yield from events
                    return
        for line in whole.split(b"\n"):
            event = self._decode_line(line)
            self._byte_offset += len(line) + 1
            if event is not None:
                yield event

    def _decode_last(self, line: bytes) -> Iterator[Event]:
        """The line without a line feed: torn unless it is whole JSON."""
        try:
            msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.torn_bytes = len(line)
            return
        event = self._decode_line(line)
        if event is not None:
            yield event

    def _is_foreign(self) -> bool:
        return self._has_index is False or self._has_time is False

    def _decode_line(self, line: bytes) -> Event | None:
        self._line += 1
        if not line.strip():
            return None
        try:
            event = self._fill_in(line)
        except (ValueError, RecursionError) as error:
            broken = BrokenLine(self._line, self._byte_offset, in_words(error))
            if not self._skip_broken:
                raise HistoryError(
                    f"{self._path}, line {broken.line} at byte {broken.byte_offset}",
                    broken.problem,
                    "Repair the line, or remove it with its whole operation",
                    line=broken.line,
                    byte_offset=broken.byte_offset,
                ) from error
            self.broken.append(broken)
            return None
        if event is not None:
            self._events += 1
        return event

    def _fill_in(self, line: bytes) -> Event | None:
        """One event, None for lines of other processes than clients."""
        foreign = _FOREIGN_LINE.decode(line)
        if isinstance(foreign.process, str):
            if not foreign.process.isdecimal():
                return None
            process = int(foreign.process)
        else:
            process = foreign.process
        self._has_index = _same_everywhere(self._has_index, foreign.index, "index")
        self._has_time = _same_everywhere(self._has_time, foreign.time, "time")
        index = self._events if foreign.index is None else foreign.index
        return Event(
            index=index,
            time=index if foreign.time is None else int(foreign.time),
            process=process,
            type=foreign.type,
            f=foreign.f,
            key=None if foreign.key is None else str(foreign.key),
            value=foreign.value,
            node=foreign.node,
            error=None if foreign.error is None else str(foreign.error),
            position=_position(foreign.position),
            final=foreign.final,
        )


def read_events(path: Path) -> Iterator[Event]:
    """Stream the events of a JSONL history; see ``HistoryReader`` for what is tolerated."""
    return iter(HistoryReader(path))


def _same_everywhere(known: bool | None, value: object, name: str) -> bool:
    present = value is not None
    if known is not None and known != present:
        raise ValueError(f"only some of the lines have a field {name!r}")
    return present


def _position(value: object) -> tuple[int, int] | None:
    """``[epoch, offset]``; a bare revision stands in epoch 0."""
    if value is None:
        return None
    if isinstance(value, int):
        return (0, value)
    return msgspec.convert(value, tuple[int, int])
