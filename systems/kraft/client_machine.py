"""The quorum's client as a machine of events and effects: pinned to a node, or led to the leader.

A pinned client asks its node and no other; a node that does not lead refuses, which is a certain
failure. A leader-following client goes on to the next node only while it is certain that nothing
was appended. Nothing is sent before the node itself has greeted, since a port's proxy or a frozen
process' kernel takes connections too; nothing is sent when no time is left to hear of it.

All decisions are here; whoever drives it (``client``, ``simulation.client``) carries effects out in
their order and tells what came of the last one. Times are whole microseconds of the driver's clock.
Must never send one operation twice once it may have been appended.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.systems.kraft import outcomes
from splitbrain.systems.kraft.state_machines import node_name

#: Longest wait for one node's greeting while others could be asked instead; a frozen node's kernel
#: takes connections.
CONNECT_TIMEOUT_US: Final = 200_000
#: A node that took so long and did not greet is not asked for a while, whoever names it the leader.
AVOIDANCE_US: Final = 500_000
#: Pause after every node was asked in vain; an election takes some hundred milliseconds.
ROUND_PAUSE_US: Final = 20_000
#: The node gives up this much earlier than the client, so that its answer still arrives.
NODE_HEADSTART_US: Final = 100_000
_US_PER_MS: Final = 1_000


class Aim:
    """One client's choice of nodes, over all of its operations.

    Led by what the nodes say, round by round: no node is asked twice in a round, and one that took
    connections and said nothing is left out for a while, whoever names it the leader.
    """

    def __init__(self, nodes: Sequence[NodeName], first: NodeName) -> None:
        """``nodes`` in the order in which they are tried, beginning with the ``first``."""
        self._nodes = tuple(nodes)
        #: Until when a node is not asked while there are others.
        self._avoided: dict[NodeName, int] = {}
        #: Asked in the present round.
        self._asked: list[NodeName] = []
        #: Whom to ask.
        self.target = first

    def knows(self, node: NodeName) -> bool:
        """Whether it is one of the nodes that may be asked."""
        return node in self._nodes

    def begin(self) -> None:
        """A new operation: its first round."""
        self._asked.clear()

    def avoid(self, node: NodeName, now: int) -> None:
        """A node did not greet in time: the others name a frozen leader until they have another."""
        self._avoided[node] = now + AVOIDANCE_US

    def aim_elsewhere(self, hint: NodeName | None, now: int) -> bool:
        """Choose another target; whether the round was over, so that a pause is due.

        ``hint`` is the leader that the node just asked names; ``now`` is on the clock of ``avoid``.
        """
        self._asked.append(self.target)
        choice = [node for node in self._nodes if self._avoided.get(node, 0) <= now]
        choice = choice or list(self._nodes)
        rest = [node for node in choice if node not in self._asked]
        if rest:
            self.target = hint if hint is not None and hint in rest else rest[0]
            return False
        self._asked.clear()
        self.target = hint if hint is not None and hint in choice else self._next_of(choice)
        return True

    def _next_of(self, choice: list[NodeName]) -> NodeName:
        place = self._nodes.index(self.target)
        turned = self._nodes[place + 1 :] + self._nodes[: place + 1]
        return next(node for node in turned if node in choice)


class Invoked(msgspec.Struct, frozen=True):
    """An operation begins; the one before has ended, or the client was closed since."""

    operation: Operation
    timeout_us: int


class Greeted(msgspec.Struct, frozen=True):
    """The node that was connected to is there itself."""


class Answered(msgspec.Struct, frozen=True):
    """An answer came on the connection."""

    answer: ClientAnswer


class NotSent(msgspec.Struct, frozen=True):
    """There is no connection to that node, or no byte of the request has left on it."""


class Lost(msgspec.Struct, frozen=True):
    """The connection is gone, or there was none; at any time, also between operations."""


class TimePassed(msgspec.Struct, frozen=True):
    """The time limit of the last effect is over, and nothing else came of it."""


class Closed(msgspec.Struct, frozen=True):
    """The owner drops the connection; an operation under way ends with what is told next."""


class Connect(msgspec.Struct, frozen=True):
    """Open a connection; then tell ``Greeted``, ``NotSent``, ``Lost`` or ``TimePassed``."""

    node: NodeName
    limit_us: int


class Send(msgspec.Struct, frozen=True):
    """Send on the connection; then tell ``Answered``, ``NotSent``, ``Lost`` or ``TimePassed``."""

    request: ClientRequest
    limit_us: int


class Pause(msgspec.Struct, frozen=True):
    """Let time pass, maybe none; then tell ``TimePassed``."""

    limit_us: int


class Disconnect(msgspec.Struct, frozen=True):
    """Drop the connection at once, greeted or not; nothing that still comes on it is told."""


class Complete(msgspec.Struct, frozen=True):
    """Tell the outcome of the operation."""

    completion: Completion


Event = Invoked | Greeted | Answered | NotSent | Lost | TimePassed | Closed
#: Those after which an event is waited for. They come last, as ``Complete`` does.
Awaiting = Connect | Send | Pause
Effect = Awaiting | Disconnect | Complete


class ClientMachine:
    """One client: its one connection and its one operation at a time."""

    def __init__(self, name: str, nodes: Sequence[NodeName], route: Route) -> None:
        """A client that connects at its first operation.

        Its name, unique among all clients, goes into the log with each command; ``nodes`` may lead,
        and are tried in their order.
        """
        self._name = name
        self._is_pinned = route.kind == "pinned"
        self._aim = Aim(nodes, route.node)
        #: None: at rest; else what is waited for.
        self._awaiting: Literal["greeting", "answer", "pause"] | None = None
        #: Closed since the operation under way began: nothing more is sent for it.
        self._is_closed = False
        #: A connection is there or being made; it leads to the node that is aimed at.
        self._is_connected = False
        self._is_greeted = False
        self._operation: Operation | None = None
        self._deadline = 0
        #: How long the present node's greeting may take.
        self._patience_us = 0
        self._sent_count = 0

    def step(self, event: Event, now: int) -> Sequence[Effect]:
        """Take an event; what has to be done, in this order.

        An event that the present state does not wait for (a late greeting, the answer to another
        request) changes nothing.
        """
        match event:
            case Answered():
                return self._answered(event.answer, now)
            case Invoked():
                return self._invoked(event, now)
            case Greeted():
                return self._greeted(now)
            case NotSent():
                return self._not_sent(now)
            case Lost():
                return self._lost(now)
            case TimePassed():
                return self._time_passed(now)
            case Closed():
                self._is_closed = True
                return self._disconnect()

    def _invoked(self, event: Invoked, now: int) -> Sequence[Effect]:
        assert self._awaiting is None or self._is_closed, "one operation at a time"
        self._awaiting, self._is_closed = None, False
        if event.operation.f not in outcomes.REQUEST_KINDS:
            return (Complete(outcomes.certainly_not("unknown-operation", None)),)
        self._operation = event.operation
        self._deadline = now + event.timeout_us
        self._aim.begin()
        return self._attempt(now)

    def _attempt(self, now: int) -> Sequence[Effect]:
        """Ask the node that is aimed at, once it has greeted."""
        remaining_us = self._deadline - now
        if self._is_greeted or self._is_closed or remaining_us <= 0:
            return self._send(now)
        # Others could be asked instead of waiting for a frozen node; a pinned client has none.
        patience_us = remaining_us if self._is_pinned else min(remaining_us, CONNECT_TIMEOUT_US)
        self._awaiting, self._patience_us = "greeting", patience_us
        self._is_connected = True
        return (Connect(self._aim.target, patience_us),)

    def _send(self, now: int) -> Sequence[Effect]:
        operation, remaining_us = self._operation, self._deadline - now
        assert operation is not None
        if self._is_closed or remaining_us <= 0:
            # Sent too late, all that could be known of it would be lost.
            return self._conclude(self._unsent(), None, now)
        self._awaiting = "answer"
        self._sent_count += 1
        node_timeout_us = max(remaining_us - NODE_HEADSTART_US, remaining_us // 2)
        request = ClientRequest(
            id=self._sent_count,
            kind=outcomes.REQUEST_KINDS[operation.f],
            key=operation.key or "",
            value=operation.value,
            operation=f"{self._name}-{self._sent_count}",
            timeout_ms=max(1, node_timeout_us // _US_PER_MS),
        )
        return (Send(request, remaining_us),)

    # Outcomes.

    def _greeted(self, now: int) -> Sequence[Effect]:
        if self._awaiting != "greeting":
            return ()
        # The connection of one that was closed meanwhile has still to be dropped.
        self._is_connected = self._is_greeted = True
        return self._send(now)

    def _answered(self, answer: ClientAnswer, now: int) -> Sequence[Effect]:
        if self._awaiting != "answer" or answer.id != self._sent_count:
            return ()
        assert self._operation is not None
        leader = None if answer.leader_id is None else node_name(answer.leader_id)
        hint = leader if leader is not None and self._aim.knows(leader) else None
        return self._conclude(
            outcomes.answered(self._operation, answer, self._aim.target), hint, now
        )

    def _not_sent(self, now: int) -> Sequence[Effect]:
        return (*self._disconnect(), *self._conclude(self._unsent(), None, now))

    def _lost(self, now: int) -> Sequence[Effect]:
        self._is_connected = self._is_greeted = False
        if self._awaiting == "greeting":
            return self._conclude(self._unsent(), None, now)
        if self._awaiting == "answer":
            return self._unanswered(outcomes.LOST, now)
        return ()

    def _time_passed(self, now: int) -> Sequence[Effect]:
        if self._awaiting == "pause":
            return self._attempt(now)
        if self._awaiting == "answer":
            return (*self._disconnect(), *self._unanswered(outcomes.TIMED_OUT, now))
        if self._patience_us >= CONNECT_TIMEOUT_US:
            self._aim.avoid(self._aim.target, now)
        return self._not_sent(now)

    def _unsent(self) -> Completion:
        return outcomes.certainly_not(outcomes.NOT_SENT, self._aim.target)

    def _unanswered(self, error: str, now: int) -> Sequence[Effect]:
        assert self._operation is not None
        return self._conclude(
            outcomes.unanswered(self._operation, error, self._aim.target), None, now
        )

    # Next steps.

    def _conclude(
        self, completion: Completion, hint: NodeName | None, now: int
    ) -> Sequence[Effect]:
        """End the operation with what one node made of it, or go on to another node."""
        assert self._operation is not None
        self._awaiting = None
        is_last = self._is_pinned or self._is_closed
        if is_last or not outcomes.may_go_on(self._operation, completion):
            if completion.type == "info" or self._is_closed:
                # A late answer must never meet a later operation.
                return (*self._disconnect(), Complete(completion))
            return (Complete(completion),)
        dropped = self._disconnect()
        pause_us = ROUND_PAUSE_US if self._aim.aim_elsewhere(hint, now) else 0
        if now + ROUND_PAUSE_US >= self._deadline:
            # Too late for an answer, and nothing was appended anywhere.
            return (*dropped, Complete(outcomes.certainly_not(outcomes.NO_LEADER, completion.node)))
        self._awaiting = "pause"
        return (*dropped, Pause(pause_us))

    def _disconnect(self) -> Sequence[Effect]:
        effects = (Disconnect(),) if self._is_connected else ()
        self._is_connected = self._is_greeted = False
        return effects
