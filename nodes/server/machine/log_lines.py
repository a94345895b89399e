"""The node's own log: one JSON line per fact on standard output. Never raises."""

import os
import time
from typing import Any, Final

import msgspec

from splitbrain.nodes.server.host.surroundings import Level, LogSink, TimerHandle, Timers

_ENCODER: Final = msgspec.json.Encoder()
_STANDARD_OUTPUT: Final = 1
#: Warnings with one message that are written in one while.
WARNINGS_COUNT_MAX: Final = 10
#: How long a while is.
WHILE_US: Final = 10_000_000
#: Letters of one fact in a warning; it may quote what a stranger sent.
FACT_LETTERS_MAX: Final = 400


class LogLines:
    """Writes lines for one node; a full pipe loses the line."""

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


class BoundedLog:
    """A ``LogSink`` before another one, which bounds the warnings: others cause them at will.

    Of warnings that say the same so many are written in a while; how many were not is said once the
    while is over. Everything else is written as it comes: a node says it of itself.
    """

    def __init__(self, lines: LogSink, timers: Timers) -> None:
        self._lines = lines
        self._timers = timers
        #: Of the present while, by message.
        self._counts: dict[str, int] = {}
        self._timer: TimerHandle | None = None

    def write(self, level: Level, message: str, **fields: Any) -> None:
        """Write a line, or count it."""
        if level != "warning":
            self._lines.write(level, message, **fields)
            return
        if self._timer is None:
            self._timer = self._timers.call_later(WHILE_US, self.sum_up)
        count = self._counts.get(message, 0) + 1
        self._counts[message] = count
        if count <= WARNINGS_COUNT_MAX:
            facts = {name: _shortened(fact) for name, fact in fields.items()}
            self._lines.write(level, message, **facts)

    def sum_up(self) -> None:
        """End the present while: say how many lines were not written in it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counts, self._counts = self._counts, {}
        for message, count in counts.items():
            if count > WARNINGS_COUNT_MAX:
                self._lines.write(
                    "warning", "warnings not logged", of=message, count=count - WARNINGS_COUNT_MAX
                )


def _shortened(fact: Any) -> Any:
    if isinstance(fact, str) and len(fact) > FACT_LETTERS_MAX:
        return f"{fact[:FACT_LETTERS_MAX]}... ({len(fact)} letters)"
    return fact
