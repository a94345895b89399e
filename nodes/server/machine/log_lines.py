"""The node's own log: one JSON line per fact on standard output."""

import os
import time
from typing import Any, Final

import msgspec

from splitbrain.nodes.server.host.surroundings import Level

_ENCODER: Final = msgspec.json.Encoder()
_STANDARD_OUTPUT: Final = 1


class LogLines:
    """Writes lines for one node; must never raise, a full pipe loses the line."""

    def __init__(self, node: str, incarnation: int | None = None) -> None:
        self._node = node
        self._incarnation = incarnation

    def write(self, level: Level, message: str, **fields: Any) -> None:
        """Write one line; ``fields`` are facts, JSON-ready, by name."""
        line = {
            "time": time.time_ns(),
            "monotonic_ns": time.monotonic_ns(),
            "level": level,
            "node": self._node,
            "incarnation": self._incarnation,
            "message": message,
            **fields,
        }
        try:
            os.write(_STANDARD_OUTPUT, _ENCODER.encode(line) + b"\n")
        except OSError:
            return
