"""The doorkeeper of one port: how many connections it has, and how much they may make a node hold.

Nobody is asked who they are, so what counts is only what a connection does. One that has half a
frame, or answers that it does not read, and does not go on with it, is dropped. Where all places
are taken, who has been idle for long makes room for the newcomer. Where all connections together
hold too much, those go first that have been still for the longest time.

Time is counted in ticks of the loop, not read from a clock: a node that was paused itself has
counted one, and drops nobody for its own pause.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

#: Connections of one port.
CONNECTIONS_COUNT_MAX: Final = 1_024
#: Bound on all connections of one port: frames that wait or are not whole, requests without
#: their answers, answers that were not sent.
HELD_BYTES_MAX: Final = 64 * 1024 * 1024
#: It is counted anew whenever this part of it has come.
_COUNTS_PER_MAX: Final = 4
#: Between two looks at all connections.
TICK_S: Final = 1.0
#: A connection makes room for another if it has asked for nothing for so many looks.
IDLE_TICKS_MIN: Final = 5
#: Nor is a place kept for longer for one that waits for an answer; longer than a broker's patience.
WAITING_TICKS_MIN: Final = 90
#: Half a frame, and an answer that is not read, may stay like that for so many looks.
STUCK_TICKS_MAX: Final = 30


class Guest(Protocol):
    """A connection, as its doorkeeper sees it."""

    #: Looks since something whole came from it.
    still_ticks: int

    @property
    def held_bytes(self) -> int:
        """Bytes that the node holds for it."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing that it asked is under way."""
        ...

    def look(self) -> str | None:
        """Count a tick; for how many its other end has not gone on, in words, if for too long."""
        ...

    def close(self) -> None:
        """Drop it; the doorkeeper is told by ``left``."""
        ...


class Doorkeeper:
    """Knows the connections of one port."""

    def __init__(
        self,
        refused: Callable[[str], None],
        *,
        connections_count_max: int = CONNECTIONS_COUNT_MAX,
        held_bytes_max: int = HELD_BYTES_MAX,
        tick_s: float = TICK_S,
    ) -> None:
        """A port without connections; ``refused`` is told in words why one was dropped."""
        self.refused = refused
        self._count_max = connections_count_max
        self._held_bytes_max = held_bytes_max
        self._tick_s = tick_s
        self._guests: dict[Guest, None] = {}
        #: Bytes that came since the held ones were last counted, whatever has gone.
        self._uncounted_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        #: Set once no connection is taken any more.
        self.is_closed = False

    @property
    def guests(self) -> tuple[Guest, ...]:
        """The connections there are."""
        return tuple(self._guests)

    def open(self) -> None:
        """Take connections."""
        self.is_closed = False

    def admit(self, guest: Guest) -> bool:
        """Whether the connection may stay."""
        if self.is_closed:
            return False
        if len(self._guests) >= self._count_max and not self._make_room():
            self.refused(f"all {self._count_max} connections of the port are in use")
            return False
        self._guests[guest] = None
        self._look_later()
        return True

    def left(self, guest: Guest) -> None:
        """Note that the connection is gone; harmless if it never stayed."""
        self._guests.pop(guest, None)

    def grew(self, size_bytes: int) -> None:
        """The node holds so much more for one of the connections."""
        self._uncounted_bytes += size_bytes
        if self._uncounted_bytes > self._held_bytes_max // _COUNTS_PER_MAX:
            self._count()

    def close(self) -> None:
        """Take no connection any more and drop those there are."""
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for guest in self.guests:
            guest.close()

    def _make_room(self) -> bool:
        may_go = [
            guest
            for guest in self._guests
            if guest.still_ticks >= (IDLE_TICKS_MIN if guest.is_idle else WAITING_TICKS_MIN)
        ]
        if not may_go:
            return False
        max(may_go, key=lambda guest: guest.still_ticks).close()
        return True

    def _count(self) -> None:
        """Count what is held, and drop connections until it is not too much."""
        self._uncounted_bytes = 0
        held = {guest: guest.held_bytes for guest in self._guests}
        total_bytes = sum(held.values())
        worst = sorted(held, key=lambda guest: (guest.still_ticks, held[guest]))
        while total_bytes > self._held_bytes_max:
            guest = worst.pop()
            total_bytes -= held[guest]
            self._drop(guest, f"the port's connections hold over {self._held_bytes_max} bytes")

    def _look_later(self) -> None:
        if self._timer is None and not self.is_closed:
            self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._look)

    def _look(self) -> None:
        self._timer = None
        for guest in self.guests:
            reason = guest.look()
            if reason is not None:
                self._drop(guest, reason)
        if self._guests:
            self._look_later()

    def _drop(self, guest: Guest, reason: str) -> None:
        self.refused(reason)
        guest.close()
