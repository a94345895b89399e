"""Simulated connections: first in first out, with delays, stalls, resets and half-open ends.

No datagrams: what TCP hides stays hidden (order and single delivery hold within a connection), and
what TCP shows is shown. A cut link stalls what is on it until it is restored, in one direction or
both. A reset loses what is under way, so an answer can be lost after its request was executed. A
client that closes its end and connects anew may still have its old request under way: order does
not hold across connections. A process that dies resets its connections, or leaves the other end
waiting, as a machine that lost power does; what comes for it later is reset by its next life. One
that ends in order hangs up: what it had sent before arrives, and then the end.

Draws from the stream ``network`` alone. Must never look into a message. The module is longer than
400 lines because a connection and the network it is part of know each other. Source: design, 9.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NetworkOptions
from splitbrain.contracts.simulation import ClientEnd, ServerEnd
from splitbrain.history.timeline_records import MessageFate, TimelineMessage

if TYPE_CHECKING:
    from splitbrain.simulation.world.world import SimulatedWorld

_STREAM: Final = "network"
#: Name, detail, and whether it carries nothing new, of a message, for the story of a run.
Describe = Callable[[Any], tuple[str, str, bool]]


class Direction:
    """Frames that travel one way on one connection."""

    __slots__ = ("arrives_at", "is_stalled", "link", "waiting")

    def __init__(self, source: str, destination: str) -> None:
        self.link = (source, destination)
        #: When the last message arrives.
        self.arrives_at = 0
        self.is_stalled = False
        #: Arrived at a cut or a stall, in order.
        self.waiting: list[Callable[[], None]] = []


class SimulatedConnection:
    """Both ends of one connection; the opener's half is the object itself."""

    def __init__(
        self,
        network: "SimulatedNetwork",
        number: int,
        source: str,
        place: str,
        client: ClientEnd,
        opened: Callable[[], None] | None,
    ) -> None:
        """``opened``: as in ``Network.connect``."""
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
        self.forth = Direction(source, place)
        self.back = Direction(place, source)

    def send(self, message: Any) -> None:
        """Towards the server."""
        self._network.send(self, message)

    def close(self) -> None:
        """Nothing is reported any more; the server hears of it after all that was sent."""
        self._network.close(self)


class SimulatedNetwork:
    """All connections of a world, and what is wrong with its links."""

    def __init__(
        self, world: "SimulatedWorld", options: NetworkOptions, describe: Describe
    ) -> None:
        """``describe`` tells of a message, for the story of the run."""
        self._world = world
        self._options = options
        self._describe = describe
        self._number = 0
        #: Set once no chance strikes any more.
        self._is_calm = False
        self._listening: dict[str, ServerEnd] = {}
        self._connections: dict[int, SimulatedConnection] = {}
        #: Links that faults cut now, in no order.
        self._cuts: set[tuple[str, str]] = set()
        self._clogs: dict[tuple[str, str], int] = {}
        #: Links that answer with resets now, in no order, and how often one did.
        self._resetting: set[tuple[str, str]] = set()
        self._answered_count = 0
        #: Messages that arrived, and connections that were reset.
        self.delivered_count = 0
        self.reset_count = 0

    # Calls of places.

    def listen(self, place: str, server: ServerEnd) -> None:
        """Note that a process takes connections at this place until ``crash``."""
        self._listening[place] = server

    def connect(
        self,
        source: str,
        place: str,
        client: ClientEnd,
        *,
        opened: Callable[[], None] | None = None,
    ) -> SimulatedConnection:
        """Open a connection; what comes of it is seen when something is sent.

        ``opened`` is called once the opener's machine hears of the acceptance, even if the process
        behind the place is frozen.
        """
        self._number += 1
        connection = SimulatedConnection(self, self._number, source, place, client, opened)
        self._connections[self._number] = connection
        return connection

    def send(self, connection: SimulatedConnection, message: Any) -> None:
        """From the opener to the server; called through the connection."""
        if connection.client is None or connection.is_lost:
            return

        def arrive() -> None:
            server = connection.server
            if server is None:
                listening = self._listening.get(connection.place)
                was_sent, connection.was_sent = connection.was_sent, True
                if listening is None or was_sent:
                    self._turn_away(connection, refused=not was_sent)
                    return
                server = connection.server = listening
                # The opener's machine learns that the connection is made before any answer.
                if connection.opened is not None:
                    self._carry(connection, connection.back, None, connection.opened)
            server.requested(connection.number, connection.source, message)

        self._carry(connection, connection.forth, message, arrive)

    def answer(self, place: str, connection: int, message: Any) -> None:
        """From the server to the opener of a connection; dropped if that is gone."""
        known = self._connections.get(connection)
        if known is None or known.is_lost or known.place != place:
            return
        if not self._is_calm and self._world.chance(_STREAM, self._options.lost_answer_chance):
            self._lose(known)
            return

        def arrive() -> None:
            if known.client is not None:
                known.client.answered(message)

        self._carry(known, known.back, message, arrive)

    def close(self, connection: SimulatedConnection) -> None:
        """Note that the opener closes; called through the connection."""
        if connection.client is None:
            return
        connection.client = None
        if connection.is_lost:
            return
        self._carry(connection, connection.forth, None, partial(self._end_server, connection))

    def crash(self, place: str) -> None:
        """Note that the process at this place is gone, with both ends of its connections."""
        self._listening.pop(place, None)
        for connection in list(self._connections.values()):
            if connection.place == place and connection.server is not None:
                connection.server = None
                if self._is_calm or not self._world.chance(_STREAM, self._options.half_open_chance):
                    self._turn_away(connection, refused=False)
            elif connection.source == place:
                self.close(connection)

    def hang_up(self, place: str) -> None:
        """The process at this place ends in order: its peers hear of it after all it had sent."""
        self._listening.pop(place, None)
        for connection in list(self._connections.values()):
            if connection.place == place and connection.server is not None:
                connection.server = None
                if not connection.is_lost:
                    heard = partial(self._end_both, connection)
                    self._carry(connection, connection.back, None, heard)
            elif connection.source == place:
                self.close(connection)

    # Calls of faults.

    def cut(self, links: Sequence[Link]) -> None:
        """Stall everything on these links from now on."""
        self._cuts.update(_ends(link) for link in links)

    def restore(self, links: Sequence[Link]) -> None:
        """Open these links; what was stalled goes on."""
        for ends in map(_ends, links):
            if ends in self._cuts:
                self._cuts.discard(ends)
                self._release(ends)

    def clog(self, links: Sequence[Link], delay_us: int) -> None:
        """Everything on these links takes so much longer; 0 heals."""
        for link in links:
            self._clogs[_ends(link)] = delay_us

    def reset(self, node: NodeName) -> int:
        """Reset every connection from or to a node; how many there were."""
        hit = [
            connection
            for connection in self._connections.values()
            if node in (connection.source, connection.place) and not connection.is_lost
        ]
        for connection in hit:
            self._lose(connection)
        return len(hit)

    def answer_with_resets(self, links: Sequence[Link]) -> None:
        """Answer what comes along these links with a reset from now on, new connections too."""
        self._resetting.update(_ends(link) for link in links)

    def answer_no_more(self, links: Sequence[Link]) -> int:
        """Let these links be as before; how many resets there ever were by such."""
        self._resetting.difference_update(_ends(link) for link in links)
        return self._answered_count

    def is_cut(self, source: str, destination: str) -> bool:
        """Whether a fault cuts this link now."""
        return (source, destination) in self._cuts

    def waiting_count(self, links: Sequence[Link]) -> int:
        """Messages that wait on these links now."""
        ends = {_ends(link) for link in links}
        return sum(
            len(direction.waiting)
            for connection in self._connections.values()
            for direction in (connection.forth, connection.back)
            if direction.link in ends
        )

    def calm_down(self) -> None:
        """No chance strikes any more, and stalls end; cuts and clogs stay."""
        self._is_calm = True
        for connection in list(self._connections.values()):
            for direction in (connection.forth, connection.back):
                direction.is_stalled = False
        self._release(None)

    # How it travels.

    def _carry(
        self,
        connection: SimulatedConnection,
        direction: Direction,
        message: Any,
        arrive: Callable[[], None],
    ) -> None:
        """Bring something to the other end, after all that was sent before it."""
        world, options = self._world, self._options
        if message is not None and not self._is_calm:
            if options.reset_chance and world.chance(_STREAM, options.reset_chance):
                self._tell(direction, message)
                self._lose(connection)
                return
            if options.stall_chance and world.chance(_STREAM, options.stall_chance):
                self._stall(connection, direction)
        sent_at, link = world.now, direction.link
        late_us = self._delay() + self._clogs.get(link, 0)
        when = max(sent_at + late_us, direction.arrives_at)
        direction.arrives_at = when
        is_recorded = world.is_recording and message is not None
        number = self._tell(direction, message) if is_recorded else -1

        def travel() -> None:
            if connection.is_lost:
                return
            if link in self._cuts or direction.is_stalled or direction.waiting:
                direction.waiting.append(land)
            else:
                land()

        def land() -> None:
            if connection.is_lost:
                return
            if self._resetting and self._is_answered_with_a_reset(connection, direction):
                return
            self.delivered_count += 1
            if number >= 0:
                world.amend(number, self._record_of(direction, message, sent_at, "arrived"))
            arrive()

        world.after(when - sent_at, travel)

    def _is_answered_with_a_reset(
        self, connection: SimulatedConnection, direction: Direction
    ) -> bool:
        """Whether what arrives ends its connection instead; the first on one is refused."""
        if direction.link not in self._resetting:
            return False
        self._answered_count += 1
        is_first = direction is connection.forth and not connection.was_sent
        self._turn_away(connection, refused=is_first)
        return True

    def _tell(self, direction: Direction, message: Any) -> int:
        """Record a message as one that never arrives; where the record is, -1: nowhere."""
        if not self._world.is_recording:
            return -1
        return self._world.record(self._record_of(direction, message, self._world.now, "lost"))

    def _record_of(
        self, direction: Direction, message: Any, sent_at: int, fate: MessageFate
    ) -> TimelineMessage:
        name, detail, empty = self._describe(message)
        node, peer = direction.link
        return TimelineMessage(
            time=sent_at,
            node=node,
            peer=peer,
            name=name,
            arrived=self._world.now if fate == "arrived" else None,
            fate=fate,
            detail=detail,
            empty=empty,
        )

    def _delay(self) -> int:
        options, world = self._options, self._world
        slow_chance = 0 if self._is_calm else options.slow_chance
        if slow_chance and world.chance(_STREAM, slow_chance):
            return world.between(_STREAM, options.delay_us_max, options.slow_us_max)
        return world.between(_STREAM, options.delay_us_min, options.delay_us_max)

    def _stall(self, connection: SimulatedConnection, direction: Direction) -> None:
        direction.is_stalled = True

        def go_on() -> None:
            direction.is_stalled = False
            self._drain(connection, direction)

        self._world.after(self._world.between(_STREAM, 0, self._options.stall_us_max), go_on)

    def _release(self, link: tuple[str, str] | None) -> None:
        """Send on what waited on a link; None: on every link that is whole."""
        for connection in list(self._connections.values()):
            for direction in (connection.forth, connection.back):
                if direction.waiting and link in (None, direction.link):
                    self._world.after(self._delay(), partial(self._drain, connection, direction))

    def _drain(self, connection: SimulatedConnection, direction: Direction) -> None:
        """Let what waits land, unless something holds it up again."""
        while direction.waiting and not (
            connection.is_lost or direction.link in self._cuts or direction.is_stalled
        ):
            direction.waiting.pop(0)()

    def _turn_away(self, connection: SimulatedConnection, *, refused: bool) -> None:
        """A reset by the server's machine; one that meets a cut is gone, as TCP sends it once.

        Then the opener waits, and the next message that it sends is turned away in its place.
        """
        if not self.is_cut(connection.place, connection.source):
            self._lose(connection, refused=refused)

    def _lose(self, connection: SimulatedConnection, *, refused: bool = False) -> None:
        """Reset: both ends hear of it, each in its own time, and nothing else arrives."""
        if connection.is_lost:
            return
        connection.is_lost = True
        self.reset_count += 1
        world, reason = self._world, "refused" if refused else "reset"
        end_client = partial(self._end_client, connection, reason, refused=refused)
        world.after(self._delay(), end_client)
        world.after(self._delay(), partial(self._end_server, connection))

    def _end_both(self, connection: SimulatedConnection) -> None:
        """The opener hears that the server has hung up; whatever it sent since goes nowhere."""
        self._end_server(connection)
        self._end_client(connection, "closed", refused=False)

    def _end_client(self, connection: SimulatedConnection, reason: str, *, refused: bool) -> None:
        client, connection.client = connection.client, None
        if client is not None:
            client.lost(reason, refused=refused)

    def _end_server(self, connection: SimulatedConnection) -> None:
        self._connections.pop(connection.number, None)
        connection.is_lost = True
        server, connection.server = connection.server, None
        if server is not None:
            server.disconnected(connection.number)


def _ends(link: Link) -> tuple[str, str]:
    return str(link.source), str(link.destination)
