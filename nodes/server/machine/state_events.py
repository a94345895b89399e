"""Writes what the node says of itself: one JSON line per event, at once, in one write call.

The lines have the shape of ``contracts.state_event.StateEvent``, which this room may not import.
Must never buffer: what a killed node did just before it died is what the events are for.
"""

import os
import time
from pathlib import Path
from typing import Any, Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder()
#: Bytes read of a file's end to find its last whole line.
_TAIL_BYTES: Final = 1024 * 1024


class StateEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line; field meanings as in ``contracts.state_event``."""

    node: str
    sequence: int
    incarnation: int
    kind: str
    epoch: int
    role: str | None = None
    leader: int | None = None
    offset: int | None = None
    base_offset: int | None = None
    reason: str | None = None
    node_time: int | None = None
    detail: dict[str, Any] = {}


class StateEventFile:
    """The stream of one incarnation; a node without a file writes none."""

    def __init__(self, path: Path | None, node: str, incarnation: int) -> None:
        """Open the file for appending; raises OSError.

        A line that a killed incarnation left torn is ended first, so that it spoils no other.
        """
        self._node = node
        self._incarnation = incarnation
        self._sequence = 0
        self._file: int | None = None
        if path is None:
            return
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        size_bytes = os.fstat(self._file).st_size
        if size_bytes and os.pread(self._file, 1, size_bytes - 1) != b"\n":
            os.write(self._file, b"\n")

    def write(
        self,
        kind: str,
        epoch: int,
        *,
        role: str | None = None,
        leader: int | None = None,
        offset: int | None = None,
        base_offset: int | None = None,
        reason: str | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Append one event, stamped with the node's monotonic clock; raises OSError."""
        if self._file is None:
            return
        event = StateEvent(
            node=self._node,
            sequence=self._sequence,
            incarnation=self._incarnation,
            kind=kind,
            epoch=epoch,
            role=role,
            leader=leader,
            offset=offset,
            base_offset=base_offset,
            reason=reason,
            node_time=time.monotonic_ns(),
            detail=detail or {},
        )
        os.write(self._file, _ENCODER.encode(event) + b"\n")
        self._sequence += 1

    def close(self) -> None:
        """Close the file; later events go nowhere."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def last_incarnation(path: Path) -> int | None:
    """Number of the last life that wrote to a state-event file, None for none; raises OSError.

    Numbers only grow, so the last line that can be read has the highest.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        try:
            return msgspec.json.decode(line, type=StateEvent).incarnation
        except (ValueError, RecursionError):  # empty, torn, or cut where reading began
            continue
    return None
