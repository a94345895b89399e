"""Reads files straight into columns: our own JSON lines, packed or not, and tables.

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
    INFO,
    INVOKE,
    NEVER,
    NEVER_COMPLETED,
    NOTHING,
    NUMBER_BY_TYPE,
    OK,
    UNKNOWN,
    Numbering,
    OperationColumns,
    Positions,
    positions_of,
)
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
    if found == "jsonl" and not path.is_dir():
        return _read_lines(path)
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
                np.array(self.kinds.codes([line.f for line in lines]), dtype=np.int32),
                np.array(self.keys.codes([line.key for line in lines]), dtype=np.int32),
                np.array(self.values.codes([line.value for line in lines]), dtype=np.int32),
                np.array(self.nodes.codes([line.node for line in lines]), dtype=np.int32),
                np.array(self.errors.codes([line.error for line in lines]), dtype=np.int32),
                np.array([line.final for line in lines], dtype=bool),
            )
        )
        self._positions.append(positions_of([line.position for line in lines]))

    def whole(self) -> list[NDArray[Any]]:
        """The columns: index, time, process, type, kind, key, value, node, error, final."""
        return [np.concatenate(parts) for parts in zip(*self._blocks, strict=True)]

    def positions(self) -> Positions | None:
        """Positions by event; None where no event has one."""
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
    return None if rest else _paired(events)


def _paired(events: _Events) -> OperationColumns | None:
    """Operations of events; None where they break the rules of a history."""
    index, time, process, type_, kind, key, value, node, error, final = events.whole()
    if len(index) == 0 or index[0] < 0 or np.any(index[1:] <= index[:-1]):
        return None
    # Each process's events beside each other, in their order.
    order = np.argsort(process, kind="stable")
    same = process[order][1:] == process[order][:-1]
    earlier, later = order[:-1], order[1:]
    invoked = type_ == INVOKE
    follows = np.zeros(len(index), dtype=bool)
    follows[later] = same
    # Before an invocation stands nothing, or an answer that leaves the process alive.
    unfit = invoked[later] & same & ((type_[earlier] == INVOKE) | (type_[earlier] == INFO))
    # Before a completion stands its invocation.
    completes = ~invoked[later] & same & invoked[earlier]
    if np.any(unfit) or np.count_nonzero(completes) != np.count_nonzero(~invoked):
        return None
    asked, answered = earlier[completes], later[completes]
    other = (key[answered] != key[asked]) & (key[answered] != NOTHING)
    if np.any((kind[answered] != kind[asked]) | other | (time[answered] < time[asked])):
        return None
    outcomes = np.full(len(index), INFO, dtype=np.int8)
    ends = np.full(len(index), NEVER, dtype=np.int64)
    results = np.full(len(index), UNKNOWN, dtype=np.int32)
    outcomes[asked] = type_[answered]
    errors = np.full(len(index), events.errors.of(NEVER_COMPLETED), dtype=np.int32)
    errors[asked] = error[answered]
    # Who answered is who was asked, unless the answer says otherwise.
    nodes, finals = node.copy(), final.copy()
    nodes[asked] = np.where(node[answered] == NOTHING, node[asked], node[answered])
    finals[asked] |= final[answered]
    known = type_[answered] != INFO
    ends[asked[known]] = time[answered[known]]
    succeeded = type_[answered] == OK
    results[asked[succeeded]] = value[answered[succeeded]]
    return OperationColumns(
        indexes=index[invoked],
        processes=process[invoked],
        starts=time[invoked],
        ends=ends[invoked],
        outcomes=outcomes[invoked],
        kinds=kind[invoked],
        keys=key[invoked],
        nodes=nodes[invoked],
        errors=errors[invoked],
        arguments=value[invoked],
        results=results[invoked],
        kind_names=events.kinds.things,
        key_names=events.keys.things,
        node_names=events.nodes.things,
        error_names=events.errors.things,
        values=events.values.things,
        flat=events.values.flat,
        finals=finals[invoked],
        positions=_placed(events.positions(), asked, answered, invoked),
    )


def _placed(
    events: Positions | None, asked: Any, answered: Any, invoked: NDArray[np.bool_]
) -> Positions | None:
    """An operation's position is that of its completion."""
    if events is None or not events.known[answered].any():
        return None

    def moved(column: NDArray[Any]) -> NDArray[Any]:
        whole = np.zeros_like(column)
        whole[asked] = column[answered]
        return whole[invoked]

    return Positions(moved(events.known), moved(events.epochs), moved(events.offsets))
