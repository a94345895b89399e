"""The node's side of the client listener: what each request becomes.

Requests that arrive in one turn are proposed (or confirmed) together at its end. Must never answer
for the replica: it alone knows whether this node leads.
"""

from collections.abc import Callable
from typing import Final

from nodes.quorum.bugs import PlantedBugs
from nodes.quorum.events import Event
from nodes.quorum.identifiers import Microseconds
from nodes.registers.machine import RegisterMachine
from nodes.server.proposals import InvalidRequestError, Proposals
from nodes.server.reads import Reads
from nodes.server.surroundings import TimerHandle, Timers
from nodes.transport.client_protocol import ClientAnswer, ClientRequest, NodeState, Reply

#: How often requests are looked at whose time may be up.
EXPIRY_INTERVAL_US: Final = 20_000
#: Longest time that a client may ask for.
TIMEOUT_MS_MAX: Final = 60_000


class ClientService:
    """Handles the requests of all clients of one node."""

    def __init__(
        self,
        *,
        feed: Callable[[Event], None],
        state: Callable[[], NodeState],
        timers: Timers,
        machine: RegisterMachine,
        bugs: PlantedBugs,
    ) -> None:
        """A service without requests.

        Args:
            feed: gives an event to the replica.
            state: what the node says of itself.
            timers: the clock of the deadlines, and what gathers a turn's requests.
            machine: what reads read.
            bugs: which planted bugs are on.
        """
        self.proposals = Proposals(feed, bugs)
        self.reads = Reads(feed, machine)
        self._state = state
        self._timers = timers
        self._flush_is_due = False
        self._expiry: TimerHandle | None = None
        self._stopping = False

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """Take one request; ``reply`` is called once, at once or later."""
        if request.kind == "status":
            reply(ClientAnswer(request.id, "ok", definite=True, result=self._state()))
            return
        if self._stopping:
            reply(ClientAnswer(request.id, "stopping", definite=True, reason="the node stops"))
            return
        timeout_ms = min(max(request.timeout_ms, 1), TIMEOUT_MS_MAX)
        deadline = Microseconds(self._timers.now() + timeout_ms * 1_000)
        if request.kind in {"read", "read-set"}:
            self.reads.add(request, reply, deadline)
        else:
            try:
                self.proposals.add(request, reply, deadline)
            except InvalidRequestError as error:
                reply(ClientAnswer(request.id, "invalid-request", definite=True, reason=str(error)))
                return
        self._schedule()

    def stop(self) -> None:
        """Refuse what comes from now on, answer what waits."""
        self._stopping = True
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self.reads.stop()
        self.proposals.stop()

    def _schedule(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._timers.call_soon(self._flush)
        if self._expiry is None:
            self._expiry = self._timers.call_later(EXPIRY_INTERVAL_US, self._expire)

    def _flush(self) -> None:
        self._flush_is_due = False
        if not self._stopping:
            self.proposals.flush()
            self.reads.flush()

    def _expire(self) -> None:
        self._expiry = None
        now = self._timers.now()
        self.proposals.expire(now)
        self.reads.expire(now)
        if not (self.proposals.is_idle and self.reads.is_idle):
            self._expiry = self._timers.call_later(EXPIRY_INTERVAL_US, self._expire)
