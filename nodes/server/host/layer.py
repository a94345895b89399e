"""The layer above a node's log: a state machine, and the service that answers for it.

One node runs one layer: registers, or Kafka's metadata. The node tells the service what the replica
said and what was applied; the service gives the replica its proposals. Must never decide who leads.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from splitbrain.nodes.quorum.effects import AcceptProposal, AnswerRead, RejectProposal, RejectRead
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, Epoch
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.server.host.surroundings import Surroundings
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.transport.client_protocol import ClientRequest, NodeState, Reply
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse, own_versions
from splitbrain.nodes.wire.apis import RequestHeader

#: Counts of a layer, by their names in ``nodes.server.machine.prometheus``.
Figures = Callable[[], Mapping[str, float]]


class Service:
    """Answers those who ask of a node what its state machine knows.

    A layer overrides what concerns it. Defaults do nothing, or refuse what is never asked of it.
    """

    def start(self) -> None:
        """Note that the node begins to work; its listeners are open."""

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """Note that a client of ours asks; ``reply`` is called once, at once or later."""
        raise NotImplementedError

    def completed(self, state: NodeState) -> NodeState:
        """Return the node's state, with what the service knows of it."""
        return state

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        """Note that a broker or a client of Kafka's asks on the quorum's listener."""
        raise AssertionError(f"API {header.api_key} is not served here")

    def described(
        self, connection: ConnectionId, correlation: CorrelationId, answer: DescribeQuorumAnswer
    ) -> bool:
        """Take the replica's description of the quorum; False if the service did not ask for it."""
        return False

    def versions(self) -> ApiVersionsResponse:
        """Return the APIs of the quorum's listener."""
        return own_versions()

    def accepted(self, effect: AcceptProposal) -> None:
        """Records are in the leader's log."""
        raise AssertionError(f"proposal {effect.proposal_id} was never made")

    def rejected(self, effect: RejectProposal) -> None:
        """Records were certainly not appended."""
        raise AssertionError(f"proposal {effect.proposal_id} was never made")

    def confirmed(self, effect: AnswerRead) -> None:
        """Note that a read may be answered."""
        raise AssertionError(f"read {effect.read_id} was never asked")

    def read_rejected(self, effect: RejectRead) -> None:
        """Note that a read cannot be answered here."""
        raise AssertionError(f"read {effect.read_id} was never asked")

    def applied(self, offset: int, epoch: int, result: Any) -> None:
        """The machine applied a record."""

    def advanced(self) -> None:
        """Note that the machine has applied all that is committed."""

    def passed_over(self, end_offset: int) -> None:
        """Note that a snapshot took the place of the records below this offset."""

    def role_changed(self) -> None:
        """Note that the replica's role is another, or is held in another epoch."""

    def figures(self) -> Mapping[str, float]:
        """Return the layer's counts as they are now."""
        return {}

    def leave(self, left: Callable[[], None]) -> None:
        """Note that the node was asked to stop: ``left`` is called once it may, at once or soon."""
        left()

    def stop(self) -> None:
        """Refuse what comes from now on, answer what waits."""


class ServiceNeeds(NamedTuple):
    """A node as its service sees it."""

    identity: StorageIdentity
    replica: Replica
    surroundings: Surroundings
    #: Gives an event to the replica.
    feed: Callable[[Event], None]
    #: Of the last batch that the machine has applied.
    applied_epoch: Callable[[], Epoch]
    #: Ends the node: its exit code and why.
    end: Callable[[int, str], None]


class Layer(NamedTuple):
    """How the layer of one life is made."""

    machine: StateMachine
    make_service: Callable[[ServiceNeeds], Service]
