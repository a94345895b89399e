"""Reads files straight into columns: JSON lines, EDN and kv files, packed or not, and tables.

Knows the way of a file without fault only and gives None for any other, which is then read by
``history.importers``, where faults are told. Must never guess.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from history.columns import (
    NUMBER_BY_TYPE,
    Numbering,
    OperationColumns,
    Positions,
    positions_of,
)
from history.event_columns import EventColumns, paired_columns
from history.formats import guess_format, known_format
from history.opening import opened
from history.records import Event

_BLOCK_BYTES: Final = 1 << 20


def read_columns(path: Path, history_format: str | None = None) -> OperationColumns | None:
    """The columns of a file or a table; None for what is not plain and whole.

    Args:
        path: a file, or a folder of Parquet files.
        history_format: one of ``history.formats.FORMATS``; guessed where None.

    Raises:
        HistoryError: the file cannot be opened, or looks like no format.
        UsageError: there is no such format.
    """
    found = known_format(history_format) if history_format else guess_format(path)
    if path.is_dir() and found != "parquet":
        return None
    if found == "jsonl":
        return _read_lines(path)
    if found in ("edn", "kv"):
        from history.edn_columns import read_edn_columns

        return read_edn_columns(path, is_kv=found == "kv")
    if found == "parquet":
        # Half a second that lines need not wait.
        from history.table_columns import read_table_columns

        return read_table_columns(path)
    return None


class _Events:
    """Columns of events, as they grow block by block."""

    def __init__(self) -> None:
        self.kinds, self.keys = Numbering(), Numbering(None)
        self.nodes, self.errors, self.values = (Numbering(None) for _ in range(3))
        self._blocks: list[tuple[NDArray[Any], ...]] = []
        #: Positions, by block; None for a block without any.
        self._positions: list[Positions | None] = []

    def add(self, lines: Sequence[Event]) -> None:
        """Events of one block."""
        self._blocks.append(
            (
                np.array([line.index for line in lines], dtype=np.int64),
                np.array([line.time for line in lines], dtype=np.int64),
                np.array([line.process for line in lines], dtype=np.int64),
                np.array([NUMBER_BY_TYPE[line.type] for line in lines], dtype=np.int8),
                self.kinds.codes([line.f for line in lines]),
                self.keys.codes([line.key for line in lines]),
                self.values.codes([line.value for line in lines]),
                self.nodes.codes([line.node for line in lines]),
                self.errors.codes([line.error for line in lines]),
                np.array([line.final for line in lines], dtype=bool),
            )
        )
        self._positions.append(positions_of([line.position for line in lines]))

    def whole(self) -> EventColumns:
        """The columns of all blocks."""
        return EventColumns(
            *(np.concatenate(parts) for parts in zip(*self._blocks, strict=True)),
            kinds=self.kinds,
            keys=self.keys,
            nodes=self.nodes,
            errors=self.errors,
            values=self.values,
            positions=self._whole_positions(),
        )

    def _whole_positions(self) -> Positions | None:
        if not any(self._positions):
            return None
        blocks = [
            Positions(*(np.zeros(len(block[0]), dtype=kind) for kind in (bool, np.int64, np.int64)))
            if positions is None
            else positions
            for block, positions in zip(self._blocks, self._positions, strict=True)
        ]
        return Positions(
            np.concatenate([positions.known for positions in blocks]),
            np.concatenate([positions.epochs for positions in blocks]),
            np.concatenate([positions.offsets for positions in blocks]),
        )


def _read_lines(path: Path) -> OperationColumns | None:
    decode: Callable[[bytes], list[Event]] = msgspec.json.Decoder(list[Event]).decode
    events = _Events()
    with opened(path) as file:
        rest = b""
        while block := file.read(_BLOCK_BYTES):
            whole, separator, rest = (rest + block).rpartition(b"\n")
            if not separator:
                return None
            try:
                lines = decode(b"[" + whole.replace(b"\n", b",") + b"]")
                if len(lines) != whole.count(b"\n") + 1:
                    return None
                events.add(lines)
            except (ValueError, OverflowError, RecursionError):
                return None
    return None if rest else paired_columns(events.whole())
