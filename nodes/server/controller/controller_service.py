"""A controller at work on a node: who asks it what, and how the answers go back.

Changes of the metadata go through one queue (``leading``) while this node is the active controller;
the others keep their image hot and answer NOT_CONTROLLER. Clients of ours ask about topics alone
(``topic_requests``). Requests are answered once their records, or for those that change nothing the
records they read, are committed. Source: KIP-631.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.nodes.controller.brokers.controllers import describe_cluster
from splitbrain.nodes.controller.roles.active import Identity
from splitbrain.nodes.controller.roles.handlers import HANDLERS
from splitbrain.nodes.controller.roles.standby import read, wrong_controller
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.effects import AcceptProposal, AnswerRead, RejectProposal, RejectRead
from splitbrain.nodes.quorum.events import RequestReceived
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer, DescribeQuorumRequest
from splitbrain.nodes.server.controller.controller_calls import Call, opened
from splitbrain.nodes.server.controller.controller_registrar import (
    ControllerRegistrar,
    own_registration,
)
from splitbrain.nodes.server.controller.image_figures import image_figures
from splitbrain.nodes.server.controller.leading import Fate, Leading
from splitbrain.nodes.server.controller.topic_requests import TopicRequests
from splitbrain.nodes.server.host.incarnation import drawn_incarnation_id
from splitbrain.nodes.server.host.layer import Layer, Service, ServiceNeeds
from splitbrain.nodes.transport.client_protocol import ClientRequest, Reply
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse, served_versions
from splitbrain.nodes.wire.apis import QUORUM_LISTENER, SUPPORTED_VERSIONS, ApiKey, RequestHeader
from splitbrain.nodes.wire.controller_apis import (
    CONTROLLER_FEATURES,
    PINNED_LEVELS,
    advertised_versions,
)
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import DescribeClusterRequest
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest
from splitbrain.nodes.wire.messages import Endpoint

#: APIs served on the quorum's listener, besides the quorum's own.
SERVED: Final = frozenset({*HANDLERS, ApiKey.DESCRIBE_CLUSTER, ApiKey.ENVELOPE})
#: Answers of these that nothing was changed are for brokers to hand to clients who rely on them:
#: whoever led meanwhile may have changed what they tell. A real controller does not look.
_PROVEN: Final = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS})
#: Requests that may wait to be decided; beyond, as it looks, of some who are gone by now.
WAITING_COUNT_MAX: Final = 4_096
#: Requests that brokers may forward for clients.
_FORWARDED: Final = frozenset({*HANDLERS, ApiKey.DESCRIBE_QUORUM})


class ControllerService(Service):
    """The controller of one node, active or not."""

    def __init__(self, needs: ServiceNeeds, machine: MetadataMachine, identity: Identity) -> None:
        """A controller that is not active and has heard nothing."""
        self._needs = needs
        self._machine = machine
        self._identity = identity
        self._registrar = ControllerRegistrar(
            own_registration(needs.identity, drawn_incarnation_id(identity.random)),
            machine,
            needs.replica,
            needs.surroundings.timers,
            needs.surroundings.call_peer,
        )
        self._endpoints = {
            voter.node_id: Endpoint(voter.host, voter.port) for voter in needs.identity.voters
        }
        #: Questions about the quorum that came in an envelope; the replica answers at once.
        self._describing: dict[tuple[ConnectionId, CorrelationId], Call] = {}
        self._leading = Leading(needs, machine, identity, self._registrar)
        self._topics = TopicRequests(needs, machine, self._leading)
        self._stopping = False

    # Requests.

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """Note that a client of ours asks about topics."""
        self._topics.handle(request, reply)

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        """Note that a broker or a client of Kafka's asks on the quorum's listener."""

        def answer(reply: msgspec.Struct) -> None:
            self._needs.surroundings.reply_to_call(connection, correlation, reply)

        if isinstance(message, EnvelopeRequest):
            call = opened(message, answer, served=_FORWARDED, endpoints=self._endpoints)
            if call is None:
                return
        else:
            call = Call(header, message, answer)
        if isinstance(call.message, DescribeQuorumRequest):
            self._describing[connection, correlation] = call
            self._needs.feed(RequestReceived(connection, correlation, call.message))
        elif isinstance(call.message, DescribeClusterRequest):
            cluster = describe_cluster(
                call.message,
                call.version,
                image=self._machine.image,
                cluster_id=self._needs.identity.cluster_id,
                listener=QUORUM_LISTENER,
                leader_id=self._needs.replica.leader_id,
            )
            call.reply(cluster)
        elif (
            self._stopping
            or self._leading.active is None
            or self._leading.waiting_count >= WAITING_COUNT_MAX
        ):
            # Known without a turn: whoever asks shall look for the active controller soon.
            self._answer_as_standby(call)
        else:
            self._leading.submit(lambda: self._decide(call))

    def described(
        self, connection: ConnectionId, correlation: CorrelationId, answer: DescribeQuorumAnswer
    ) -> bool:
        """Return the replica describes the quorum; whether that was asked in an envelope."""
        call = self._describing.pop((connection, correlation), None)
        if call is not None:
            call.reply(answer)
        return call is not None

    def versions(self) -> ApiVersionsResponse:
        """Return the APIs of the quorum's listener, and the levels that the cluster runs with."""
        image = self._machine.image
        served = {**SUPPORTED_VERSIONS, **advertised_versions(SERVED)}
        if image.metadata_version is None:
            return served_versions(served, CONTROLLER_FEATURES)
        levels = {**image.features, "kraft.version": PINNED_LEVELS["kraft.version"]}
        return served_versions(served, CONTROLLER_FEATURES, levels, image.provenance.last_offset)

    # Calls of the node.

    def accepted(self, effect: AcceptProposal) -> None:
        """Records are in the leader's log."""
        self._leading.accepted(effect)

    def rejected(self, effect: RejectProposal) -> None:
        """Records were certainly not appended: this node does not lead."""

    def confirmed(self, effect: AnswerRead) -> None:
        """Reads may be answered."""
        self._topics.reads.confirmed(effect)

    def read_rejected(self, effect: RejectRead) -> None:
        """Reads cannot be answered here."""
        self._topics.reads.rejected(effect)

    def advanced(self) -> None:
        """Note that the image has everything that is committed."""
        self._leading.advanced()
        self._topics.reads.answer_applied()
        self._registrar.look()

    def role_changed(self) -> None:
        """Note that the replica's role is another, or is held in another epoch."""
        self._leading.role_changed()
        self._registrar.look()

    def figures(self) -> Mapping[str, float]:
        """Return this controller's counts; brokers by their state in the image."""
        counted = {
            "active_controller_count": int(self._leading.active is not None),
            "queue_length": self._leading.waiting_count,
        }
        return counted | image_figures(self._machine.image)

    def stop(self) -> None:
        """Refuse what comes from now on, answer what waits."""
        self._stopping = True
        self._registrar.stop()
        self._topics.stop()
        self._leading.stop()

    def _decide(self, call: Call) -> None:
        if self._leading.active is None:
            self._answer_as_standby(call)
            return
        decision = self._leading.decide(call.api_key, call.message, call.version)
        answer = decision.answer
        assert answer is not None

        def proven(leads: bool) -> None:
            if leads:
                call.reply(answer)
            else:
                self._refuse_as_standby(call)

        def done(fate: Fate) -> None:
            if fate == "committed" and call.api_key in _PROVEN and not decision.records:
                self._topics.prove_leadership(proven)
            elif fate == "committed":
                call.reply(answer)
            elif fate == "lost":
                self._refuse_as_standby(call)
            else:
                call.refuse(ApiError.UNKNOWN_SERVER_ERROR)

        self._leading.carry_out(decision, call.api_key, done)

    def _answer_as_standby(self, call: Call) -> None:
        """Answer from what is committed, where that is enough; else say whom to ask."""
        answer = read(self._identity, self._machine.image, call.api_key, call.message, call.version)
        if answer is None:
            self._refuse_as_standby(call)
        else:
            call.reply(answer)

    def _refuse_as_standby(self, call: Call) -> None:
        call.refuse(ApiError.NOT_CONTROLLER, wrong_controller(self._needs.replica.leader_id))


def metadata_layer(identity: Identity) -> Layer:
    """Kafka's metadata above the log of a controller."""
    machine = MetadataMachine()

    def make_service(needs: ServiceNeeds) -> ControllerService:
        return ControllerService(needs, machine, identity)

    return Layer(machine, make_service)
