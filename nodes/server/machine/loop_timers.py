"""Timers of an asyncio event loop, and the machine's clocks."""

import asyncio
import time
from typing import Final

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.server.host.surroundings import Action

#: Timers of the loop are no finer than this.
_TIMER_S_MIN: Final = 0.001


class LoopTimers:
    """``nodes.server.host.surroundings.Timers`` on one event loop; used on its thread alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> Microseconds:
        """Microseconds on the machine's monotonic clock."""
        return Microseconds(time.monotonic_ns() // 1_000)

    def wall_clock_ms(self) -> int:
        """Milliseconds since 1970 on the machine's clock."""
        return time.time_ns() // 1_000_000

    def call_soon(self, action: Action) -> None:
        """Do it in the loop's next turn."""
        self._loop.call_soon(action)

    def call_later(self, delay_us: int, action: Action) -> asyncio.TimerHandle:
        """Do it after the delay, which is at least a millisecond."""
        return self._loop.call_later(max(delay_us / 1_000_000, _TIMER_S_MIN), action)
