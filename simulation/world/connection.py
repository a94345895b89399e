"""One simulated connection: both ends, and what travels on it in either direction.

Must never decide what becomes of a message: that is the network's.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from splitbrain.contracts.simulation import ClientEnd, ServerEnd

if TYPE_CHECKING:
    from splitbrain.simulation.world.network import SimulatedNetwork


class Direction:
    """Frames that travel one way on one connection."""

    __slots__ = ("arrives_at", "is_stalled", "waiting")

    def __init__(self) -> None:
        #: When the last message arrives.
        self.arrives_at = 0
        self.is_stalled = False
        #: Arrived at a cut or a stall, in order.
        self.waiting: list[Callable[[], None]] = []


class SimulatedConnection:
    """Both ends of one connection; the opener's half is the object itself."""

    __slots__ = (
        "_network", "back", "client", "forth", "is_lost", "number", "opened", "place", "server",
        "source", "was_sent",
    )  # fmt: skip

    def __init__(
        self,
        network: "SimulatedNetwork",
        number: int,
        source: str,
        place: str,
        client: ClientEnd,
        opened: Callable[[], None] | None,
    ) -> None:
        """``opened``: as in ``SimulatedNetwork.connect``."""
        self._network = network
        self.number = number
        self.source = source
        self.place = place
        #: None once it has closed, died, or heard that the connection is gone.
        self.client: ClientEnd | None = client
        #: Told once that the server has accepted; None: nobody asks.
        self.opened = opened
        #: The life that accepted it; None before and after.
        self.server: ServerEnd | None = None
        self.was_sent = False
        #: Reset: nothing arrives any more in either direction.
        self.is_lost = False
        self.forth = Direction()
        self.back = Direction()

    def send(self, message: Any) -> None:
        """Towards the server."""
        self._network.send(self, message)

    def close(self) -> None:
        """Nothing is reported any more; the server hears of it after all that was sent."""
        self._network.close(self)
