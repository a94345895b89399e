"""An event loop in virtual time: when nothing is ready the clock goes on to the next timer."""

import asyncio
from collections.abc import Sequence
from typing import Any


class _NoSockets:
    """Stands in for a loop's selector: waiting for events is letting time pass."""

    def __init__(self, late_s: float) -> None:
        self.now_s = 0.0
        self._late_s = late_s

    def select(self, timeout_s: float | None) -> Sequence[Any]:
        assert timeout_s is not None, "everybody waits for what never comes"
        if timeout_s > 0:
            self.now_s += timeout_s + self._late_s
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """Has timers and tasks, and neither sockets nor processes."""

    def __init__(self, late_s: float = 0.0) -> None:
        """``late_s``: how late timers ring, as those of a machine always do."""
        super().__init__()
        self._selector = _NoSockets(late_s)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._selector.now_s

    @property
    def now_us(self) -> int:
        """The same in whole microseconds."""
        return round(self.time() * 1e6)

    def _process_events(self, event_list: Sequence[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Wake nobody: who calls from another thread does so between two waits."""
