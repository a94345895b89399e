"""A node's own connection to one peer: drives ``link_machine``, which decides, on an event loop."""

import asyncio
from collections.abc import Callable
from typing import Generic, cast

from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.link_machine import (
    Answered,
    Asked,
    LinkCodec,
    LinkMachine,
    LinkOwner,
)
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.framing import FrameReader


class _Connection(asyncio.Protocol):
    """One TCP connection; tells what comes on it until it is dropped."""

    def __init__(self, received: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        self._received: Callable[[bytes], None] | None = received
        self._lost: Callable[[str], None] | None = lost
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, since uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self._lose(str(error))
            return
        for payload in frames:
            if self._received is not None:
                self._received(payload)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(f"connection lost: {exc}" if exc is not None else "the peer closed it")

    def write(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)

    def drop(self) -> None:
        """Close at once; nothing is told any more."""
        self._received = None
        self._lost = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def _lose(self, reason: str) -> None:
        lost = self._lost
        self.drop()
        if lost is not None:
            lost(reason)


class PeerLink(Generic[Asked, Answered]):
    """Requests to one peer; implements ``link_machine.LinkPort`` for the machine that decides."""

    def __init__(
        self, peer: Voter, codec: LinkCodec[Asked, Answered, bytes], owner: LinkOwner[Answered]
    ) -> None:
        """A link without a connection; ``owner`` is told what came of requests."""
        self._peer = peer
        self._machine = machine = LinkMachine(peer.node_id, codec, self, owner)
        #: The machine itself hears its owner's calls.
        self.send, self.abandon, self.close = machine.send, machine.abandon, machine.close
        self._connection: _Connection | None = None
        self._connecting: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for an answer."""
        return self._machine.is_idle

    # Calls of the machine.

    def call_soon(self, action: Callable[[], None]) -> None:
        """Do it in the loop's next turn."""
        asyncio.get_running_loop().call_soon(action)

    def call_later(self, delay_us: int, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Do it after the delay."""
        return asyncio.get_running_loop().call_later(delay_us / 1_000_000, action)

    def connect(self, pause_us: int) -> None:
        """Open a connection after a pause."""
        self._connecting = asyncio.create_task(self._connect(pause_us))

    def write(self, frame: bytes) -> None:
        """Send on the connection."""
        assert self._connection is not None
        self._connection.write(frame)

    def drop(self) -> None:
        """Close the connection at once, or give up the attempt at one."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self._connection is not None:
            self._connection.drop()
            self._connection = None

    async def _connect(self, pause_us: int) -> None:
        """Open the connection and tell of it; ended by cancellation where it is given up."""
        connection = _Connection(self._machine.received, self._machine.lost)
        host, port = self._peer.host, self._peer.port
        try:
            if pause_us:
                await asyncio.sleep(pause_us / 1_000_000)
            self._machine.attempted()
            await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
        except asyncio.CancelledError:
            connection.drop()  # made already, maybe: its end must not fail the next request
            raise
        except OSError as error:
            self._connecting = None
            refused = isinstance(error, ConnectionRefusedError)
            self._machine.lost(f"cannot connect to {host}:{port}: {error}", refused=refused)
            return
        self._connecting = None
        self._connection = connection
        self._machine.accepted()
        self._machine.connected()
