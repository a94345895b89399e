"""Reader of JSON lines into columns, whole files or ranges, so that processes may share a file.

Ranges are read apart, each with numbers of its own for kinds, keys and values; ``joined`` makes the
events of them that one reader would have made. Gives None for files that are not plain and whole,
as ``history.column_reader`` does. Must never guess.
"""

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from splitbrain.history.columns import (
    NUMBER_BY_TYPE,
    Numbering,
    Positions,
    ValueNumbering,
    positions_of,
)
from splitbrain.history.event_columns import EventColumns
from splitbrain.history.identity import key_text
from splitbrain.history.json_problems import refuse_other_bytes
from splitbrain.history.opening import is_packed, opened
from splitbrain.history.records import Event
from splitbrain.history.transaction_values import TransactionEvent, TransactionNumbering

_BLOCK_BYTES: Final = 1 << 20
#: Columns that mean the same in every range, and those of codes into a table.
_NUMBERS: Final = ("index", "time", "process", "type", "final")
_TABLE_OF: Final = {
    "kind": "kinds",
    "key": "keys",
    "value": "values",
    "node": "nodes",
    "error": "errors",
}


class LineRange(NamedTuple):
    """Range of whole lines in a file that is not packed."""

    path: Path
    #: Bytes; each stands behind a line feed, or at an end of the file.
    start: int
    end: int
    are_transactions: bool = False


def line_ranges(path: Path, count: int, *, are_transactions: bool = False) -> list[LineRange]:
    """Divide a file into at most so many ranges of about equal size; none if it is packed.

    Raises:
        HistoryError: the file cannot be opened.
    """
    if is_packed(path):
        return []
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        bounds = [0]
        for number in range(1, count):
            file.seek(max(bounds[-1], size * number // count))
            file.readline()
            bounds.append(file.tell())
    bounds.append(size)
    return [
        LineRange(path, start, end, are_transactions)
        for start, end in pairwise(bounds)
        if start < end
    ]


def read_range(lines: LineRange) -> EventColumns | None:
    """Read the events of one range.

    Raises:
        HistoryError: the file cannot be opened.
    """
    with opened(lines.path) as file:
        file.seek(lines.start)
        return _read(file, lines.end - lines.start, are_transactions=lines.are_transactions)


def read_lines(path: Path, *, are_transactions: bool = False) -> EventColumns | None:
    """Read the events of a whole file, packed or not; values may all be transactions.

    Raises:
        HistoryError: the file cannot be opened.
    """
    with opened(path) as file:
        return _read(file, None, are_transactions=are_transactions)


def joined(ranges: Sequence[EventColumns]) -> EventColumns:
    """Join the events of consecutive ranges, at least one; the first one's tables grow."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(events, name) for events in ranges]) for name in _NUMBERS
    }
    first, *others = ranges
    for name, table in _TABLE_OF.items():
        numbering: ValueNumbering = getattr(first, table)
        parts = [getattr(first, name)]
        for events in others:
            new = numbering.taken_in(getattr(events, table))
            parts.append(new[getattr(events, name)])
        columns[name] = np.concatenate(parts)
        columns[table] = numbering
    blocks = [(len(events.index), events.positions) for events in ranges]
    return EventColumns(**columns, positions=_whole_positions(blocks))


def _read(file: IO[bytes], size: int | None, *, are_transactions: bool) -> EventColumns | None:
    """Read the events of so many bytes; None: of all."""
    event, values = (
        (TransactionEvent, TransactionNumbering()) if are_transactions else (Event, Numbering(None))
    )
    decode: Callable[[bytes], list[Event]] = msgspec.json.Decoder(list[event]).decode
    events = _Events(values)
    rest = b""
    left = size
    while block := file.read(_BLOCK_BYTES if left is None else min(_BLOCK_BYTES, left)):
        left = None if left is None else left - len(block)
        whole, separator, rest = (rest + block).rpartition(b"\n")
        if not separator:
            return None
        try:
            refuse_other_bytes(whole)
            lines = decode(b"[" + whole.replace(b"\n", b",") + b"]")
            if len(lines) != whole.count(b"\n") + 1:
                return None
            events.add(lines)
        except (ValueError, OverflowError, RecursionError):
            return None
    if rest.strip() or events.is_empty or events.values.is_odd:
        return None
    return events.whole()


class _Events:
    """Columns of events, as they grow block by block."""

    def __init__(self, values: ValueNumbering) -> None:
        self.values = values
        self.kinds, self.keys = Numbering(), Numbering(None)
        self.nodes, self.errors = Numbering(None), Numbering(None)
        self._blocks: list[tuple[NDArray[Any], ...]] = []
        #: Positions, by block; None for a block without any.
        self._positions: list[Positions | None] = []

    @property
    def is_empty(self) -> bool:
        """Return whether there was no line."""
        return not self._blocks

    def add(self, lines: Sequence[Event]) -> None:
        """Add the events of one block."""
        self._blocks.append(
            (
                np.array([line.index for line in lines], dtype=np.int64),
                np.array([line.time for line in lines], dtype=np.int64),
                np.array([line.process for line in lines], dtype=np.int64),
                np.array([NUMBER_BY_TYPE[line.type] for line in lines], dtype=np.int8),
                self.kinds.codes([line.f for line in lines]),
                self.keys.codes([line.key for line in lines]),
                self.values.codes([line.value for line in lines]),
                self.nodes.codes([line.node or None for line in lines]),
                self.errors.codes([line.error for line in lines]),
                np.array([line.final for line in lines], dtype=bool),
            )
        )
        self._positions.append(positions_of([line.position for line in lines]))

    def _key_texts(self) -> Numbering:
        texts = Numbering()
        texts.codes([key_text(key) for key in self.keys.things])
        return texts

    def whole(self) -> EventColumns:
        """Return the columns of all blocks."""
        sizes = [len(block[0]) for block in self._blocks]
        return EventColumns(
            *(np.concatenate(parts) for parts in zip(*self._blocks, strict=True)),
            kinds=self.kinds,
            keys=self._key_texts(),
            nodes=self.nodes,
            errors=self.errors,
            values=self.values,
            positions=_whole_positions([*zip(sizes, self._positions, strict=True)]),
        )


def _whole_positions(blocks: Sequence[tuple[int, Positions | None]]) -> Positions | None:
    if all(positions is None for _, positions in blocks):
        return None
    kinds = (bool, np.int64, np.int64)
    filled = [
        Positions(*(np.zeros(size, dtype=kind) for kind in kinds)) if known is None else known
        for size, known in blocks
    ]
    names = ("known", "epochs", "offsets")
    return Positions(*(np.concatenate([getattr(part, name) for part in filled]) for name in names))
