"""The node's side of the client listener: what each request becomes.

Requests that arrive in one turn are proposed (or confirmed) together at its end. Must never answer
for the replica: it alone knows whether this node leads.
"""

from typing import Any, Final

from splitbrain.nodes.quorum.effects import AcceptProposal, AnswerRead, RejectProposal, RejectRead
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.server.host.layer import Layer, Service, ServiceNeeds
from splitbrain.nodes.server.host.surroundings import TimerHandle
from splitbrain.nodes.server.registers.proposals import InvalidRequestError, Proposals
from splitbrain.nodes.server.registers.reads import Look, Reads, Seen
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest, Reply

#: How often requests are looked at whose time may be up.
EXPIRY_INTERVAL_US: Final = 20_000
#: Longest time that a client may ask for.
TIMEOUT_MS_MAX: Final = 60_000


class ClientService(Service):
    """Handles the requests of all clients of one node."""

    def __init__(self, needs: ServiceNeeds, machine: RegisterMachine) -> None:
        """A service without requests; ``machine`` is what reads read."""
        self.proposals = Proposals(needs.feed)
        self.reads = Reads(needs.feed, machine, look_into(machine))
        self._timers = needs.surroundings.timers
        self._flush_is_due = False
        self._expiry: TimerHandle | None = None
        self._stopping = False

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """Take one request; ``reply`` is called once, at once or later."""
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

    def accepted(self, effect: AcceptProposal) -> None:
        """Commands are in the leader's log."""
        self.proposals.accepted(effect)

    def rejected(self, effect: RejectProposal) -> None:
        """Commands were certainly not appended."""
        self.proposals.rejected(effect)

    def confirmed(self, effect: AnswerRead) -> None:
        """Reads may be answered."""
        self.reads.confirmed(effect)

    def read_rejected(self, effect: RejectRead) -> None:
        """Reads cannot be answered here."""
        self.reads.rejected(effect)

    def applied(self, offset: int, epoch: int, result: Any) -> None:
        """The machine applied a command."""
        self.proposals.applied(offset, epoch, result)

    def advanced(self) -> None:
        """Note that the machine has applied all that is committed."""
        self.reads.answer_applied()

    def passed_over(self, end_offset: int) -> None:
        """Note that a snapshot took the place of the commands below this offset."""
        self.proposals.passed_over(end_offset)

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


def look_into(machine: RegisterMachine) -> Look:
    """Read registers and set as they are when it is asked."""

    def look(request: ClientRequest) -> Seen:
        read = machine.read_set if request.kind == "read-set" else machine.read
        return Seen(read(request.key), machine.end_offset)

    return look


def register_layer() -> Layer:
    """Registers and set above the log."""
    machine = RegisterMachine()

    def make_service(needs: ServiceNeeds) -> ClientService:
        return ClientService(needs, machine)

    return Layer(machine, make_service)
