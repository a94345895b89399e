"""An inbound connection of either protocol: frames in, taken in order, and answers out.

Frames are taken a few at a time in turns of their own, so that no connection keeps the others
waiting, and none is taken from within the answer to the one before it: however many are sent in a
row, the stack stays as it is. While frames wait, or answers that the other end does not read, the
connection is not read either. The port's doorkeeper bounds how much connections take of a node.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX, STUCK_TICKS_MAX, Doorkeeper

#: Frames of one connection that are taken in one turn.
FRAMES_PER_TURN_MAX: Final = 64
#: Answers that one connection leaves unsent; with the next one it is dropped.
UNSENT_BYTES_MAX: Final = 8 * 1024 * 1024
#: Turns of the loop in which a connection that was accepted just before is made, aborted and lost;
#: a loop that ended earlier would leave its socket open.
_TURNS_TO_CLOSE: Final = 3


class Cutter(Protocol):
    """Cuts a byte stream into frames."""

    @property
    def pending_bytes(self) -> int:
        """Bytes of a frame that is not whole yet."""
        ...

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are whole now; raises one of the connection's ``refusals``."""
        ...


class InboundConnection(asyncio.Protocol):
    """One connection of a port; subclasses say what becomes of a frame."""

    #: Exceptions of a frame that breaks the protocol; the connection is dropped then.
    refusals: tuple[type[Exception], ...] = ()

    def __init__(self, door: Doorkeeper, cutter: Cutter) -> None:
        self.still_ticks = 0
        #: Looks since its other end went on with what waits for it.
        self._stuck_ticks = 0
        self._door = door
        self._cutter = cutter
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        #: Answers that the last look found unsent.
        self._unsent_bytes = 0
        self._is_turn_due = False
        self._writes_wait = False
        self._is_read = True
        self._transport: asyncio.Transport | None = None

    # Supplied by a subclass.

    @property
    def may_take(self) -> bool:
        """Whether the next frame may be taken."""
        raise NotImplementedError

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way that was asked."""
        raise NotImplementedError

    @property
    def under_way_bytes(self) -> int:
        """Bytes of the frames that were taken and have no answer yet."""
        raise NotImplementedError

    def take(self, body: bytes) -> None:
        """Take a frame; it may be answered at once."""
        raise NotImplementedError

    def opened(self, transport: asyncio.Transport) -> None:
        """Note that the connection may stay."""

    def gone(self) -> None:
        """The connection that stayed is gone."""

    # Calls of the doorkeeper.

    @property
    def held_bytes(self) -> int:
        """Bytes that the node holds for this connection."""
        held = self._waiting_bytes + self._cutter.pending_bytes + self.under_way_bytes
        return held + self._unsent()

    def look(self) -> str | None:
        """Count a tick; why the connection has to go, if it has."""
        self.still_ticks += 1
        before, self._unsent_bytes = self._unsent_bytes, self._unsent()
        if self._unsent_bytes:
            is_stuck = not self._unsent_bytes < before
        else:
            is_stuck = self._is_read and self._cutter.pending_bytes > 0
        self._stuck_ticks = self._stuck_ticks + 1 if is_stuck else 0
        if self._stuck_ticks <= STUCK_TICKS_MAX:
            return None
        if self._unsent_bytes:
            return f"{self._unsent_bytes} bytes of answers are not read"
        return f"a frame is not ended, of which {self._cutter.pending_bytes} bytes came"

    def close(self) -> None:
        """Drop the connection at once; later answers go nowhere."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        transport.abort()
        self._waiting.clear()
        self._waiting_bytes = 0
        self._door.left(self)
        self.gone()

    # Calls of a subclass.

    def write(self, frame: bytes) -> None:
        """Send an answer, unless the connection is gone; the next frame is taken later."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            self._refuse(f"over {UNSENT_BYTES_MAX} bytes of answers were not read")
            return
        transport.write(frame)
        self._door.grew(len(frame))
        if self._waiting:
            self._take_later()

    # Calls of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        # A cast, since uvloop's transports are not derived from asyncio's.
        made = cast(asyncio.Transport, transport)
        if not self._door.admit(self):
            made.abort()
            return
        self._transport = made
        self.opened(made)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self.close()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if self._transport is None:
            return
        try:
            bodies = self._cutter.feed(data)
        except self.refusals as error:
            self._refuse(str(error))
            return
        if bodies:
            self.still_ticks = self._stuck_ticks = 0
            self._waiting.extend(bodies)
            self._waiting_bytes += sum(map(len, bodies))
        self._door.grew(len(data))
        self._take_waiting()

    def pause_writing(self) -> None:
        """Called by the event loop."""
        self._writes_wait = True

    def resume_writing(self) -> None:
        """Called by the event loop."""
        self._writes_wait = False
        self._take_later()

    def _unsent(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _take_later(self) -> None:
        if not self._is_turn_due and self._transport is not None:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_turn_due = False
        self._take_waiting()

    @property
    def _may_go_on(self) -> bool:
        return bool(self._waiting) and self.may_take and not self._writes_wait

    def _take_waiting(self) -> None:
        try:
            for _ in range(FRAMES_PER_TURN_MAX):
                if not self._may_go_on:
                    break
                body = self._waiting.popleft()
                self._waiting_bytes -= len(body)
                self.take(body)
        except self.refusals as error:
            self._refuse(str(error))
            return
        if self._may_go_on:
            self._take_later()
        self._read_or_not()

    def _read_or_not(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        is_read = not (self._waiting or self._writes_wait)
        if is_read != self._is_read:
            self._is_read = is_read
            if is_read:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _refuse(self, reason: str) -> None:
        self._door.refused(reason)
        self.close()


class PortListener:
    """One port of a node; subclasses say which connections it has."""

    def __init__(
        self, refused: Callable[[str], None], connections_count_max: int = CONNECTIONS_COUNT_MAX
    ) -> None:
        """Prepare, without listening yet; ``refused`` is told why a connection was dropped."""
        self.door = Doorkeeper(refused, connections_count_max=connections_count_max)
        self._server: asyncio.Server | None = None

    def new_connection(self) -> InboundConnection:
        """Return a connection that is about to be made."""
        raise NotImplementedError

    async def listen(self, host: str, port: int) -> int:
        """Open the port and return its number (of interest for port 0); raises OSError."""
        self.door.open()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.new_connection, host, port)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is not None:
            self._server.close()
        self.door.close()
        if self._server is not None:
            await self._server.wait_closed()
        for _ in range(_TURNS_TO_CLOSE):
            await asyncio.sleep(0)
