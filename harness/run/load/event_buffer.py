"""Where a worker process records events until it hands them over.

The event is stamped when it is recorded, so that an operation's interval in the history contains
its real one, and encoded at once, so that what a client does with its values later changes nothing.
"""

from collections.abc import Callable
from typing import Unpack

from splitbrain.history.records import Event, EventFields, EventType
from splitbrain.history.writer import stamped_line


class EventBuffer:
    """Records like ``history.writer.HistoryWriter``, in memory; for one thread."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """``clock`` gives nanoseconds since the run's start, monotonic."""
        self._clock = clock
        self._times: list[int] = []
        self._lines: list[bytes] = []

    def append(
        self, process: int, type_: EventType, f: str, **fields: Unpack[EventFields]
    ) -> Event:
        """Record one event and return it with its time; its index is not known yet."""
        time = self._clock()
        event = Event(
            index=0,
            time=time,
            process=process,
            type=type_,
            f=f,
            **fields,
        )
        self._lines.append(stamped_line(event))
        self._times.append(time)
        return event

    def take(self) -> tuple[int, list[int], list[bytes]]:
        """The watermark, the times and the lines since the last call, and forget them here."""
        times, lines = self._times, self._lines
        self._times, self._lines = [], []
        # One thread: whatever is recorded later is stamped later.
        return self._clock(), times, lines
