"""A small broker on a node that is no voter: follows the metadata log, serves what its image says.

Each image goes to ``nodes.broker.lifecycle`` before anything is told from it, and heartbeats say
how far it reaches; what changes the metadata is handed to the active controller that the replica
knows. Descriptions of topics come from the broker's own image: never older than the last one that
the same broker gave, but as old as the broker lags behind; none while it has to believe that it is
fenced.

Source: KIP-631; a real broker's lifecycle manager and its request handler.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from splitbrain.nodes.broker import serving
from splitbrain.nodes.broker.effects import (
    AbandonRequest,
    BecameRunning,
    Effect,
    FindController,
    MayStop,
    Recover,
    SendToController,
)
from splitbrain.nodes.broker.events import (
    AnswerReceived,
    ControllerKnown,
    Event,
    ImageAdvanced,
    RecoveryFinished,
    RequestFailed,
    ShutdownAsked,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.broker.forwarding import Forwarding
from splitbrain.nodes.broker.image_reading import RequestContext
from splitbrain.nodes.broker.lifecycle import BrokerState, Lifecycle
from splitbrain.nodes.broker.settings import BrokerIdentity, BrokerSettings
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, NodeId
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.server.broker.clean_stop import CleanStop
from splitbrain.nodes.server.broker.envelopes_out import EnvelopesOut
from splitbrain.nodes.server.broker.isr_proposer import IsrProposer
from splitbrain.nodes.server.controller.image_figures import image_figures
from splitbrain.nodes.server.controller.topic_requests import kafka_request, partition_count
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.host.incarnation import drawn_incarnation_id
from splitbrain.nodes.server.host.layer import Layer, Service, ServiceNeeds
from splitbrain.nodes.server.host.surroundings import TimerHandle
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest, NodeState, Reply
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.families.brokers import (
    AdvertisedListener,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)

#: Name of the listener that Kafka's clients are told of.
CLIENT_LISTENER: Final = "PLAINTEXT"
_PLAINTEXT: Final = 0


class BrokerMaterials(NamedTuple):
    """Parts of a broker, besides those that every layer is given."""

    settings: BrokerSettings
    #: Where Kafka's clients reach it.
    host: str
    port: int
    #: For the incarnation, and for whom clients take for the controller.
    random: RandomSource
    clean_stop: CleanStop


class BrokerService(Service):
    """The broker of one life of a node."""

    def __init__(
        self, needs: ServiceNeeds, machine: MetadataMachine, materials: BrokerMaterials
    ) -> None:
        """A broker that has said nothing.

        Raises OSError: what the last life left cannot be read or taken away.
        """
        surroundings = needs.surroundings
        assert surroundings.call_peer is not None
        self._needs = needs
        self._machine = machine
        self._materials = materials
        self._timers = surroundings.timers
        self._call = surroundings.call_peer
        #: Where the broker is in its life; to be looked at only.
        self.lifecycle = Lifecycle(_identity(needs.identity, materials), materials.settings)
        pause_us = materials.settings.find_controller_back_off
        self._envelopes = EnvelopesOut(needs.replica, self._timers, self._call, pause_us)
        node_id, replica = needs.identity.node_id, needs.replica
        self._isrs = IsrProposer(
            node_id, self.lifecycle, replica, self._timers, self._call, pause_us
        )
        self._events: deque[Event] = deque()
        self._is_stepping = False
        self._timer: TimerHandle | None = None
        self._left: Callable[[], None] | None = None
        self._patience: TimerHandle | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to register."""
        self._tell(Started(self._machine.image))
        self.role_changed()

    # Requests.

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """Note that a client of ours asks about topics."""
        if self._stopping:
            reply(ClientAnswer(request.id, "stopping", definite=True, reason="the broker stops"))
        elif request.kind == "describe-topic":
            reply(self._described(request))
        else:
            change = kafka_request(request)
            if change is None:
                reason = "this node is a broker: it has topics, which need a number of partitions"
                reply(ClientAnswer(request.id, "invalid-request", definite=True, reason=reason))
            else:
                self._envelopes.change(request, reply, change)

    def completed(self, state: NodeState) -> NodeState:
        """With the broker's place in its life."""
        return msgspec.structs.replace(
            state,
            broker_state=self.lifecycle.state.name,
            is_fenced=self.lifecycle.is_fenced,
            broker_epoch=self.lifecycle.broker_epoch,
        )

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        """Note that a client of Kafka's asks."""

        def reply(answer: msgspec.Struct | bytes | None) -> None:
            self._needs.surroundings.reply_to_call(connection, correlation, answer)

        if isinstance(message, Forwarding):
            self._envelopes.relay(message, reply)
            return
        context = RequestContext(
            image=self.lifecycle.image,
            cluster_id=self._needs.identity.cluster_id,
            listener=CLIENT_LISTENER,
            random=self._materials.random,
        )
        api_key, is_fenced = ApiKey(header.api_key), self.lifecycle.is_fenced
        reply(serving.answer(context, api_key, message, header.api_version, is_fenced=is_fenced))

    def versions(self) -> ApiVersionsResponse:
        """Return the versions that clients are offered."""
        leader_id = self._needs.replica.leader_id
        versions_of = self._needs.surroundings.versions_of_peer
        controller = None if leader_id is None else versions_of(NodeId(leader_id))
        return serving.offered_versions(self.lifecycle.image, controller)

    # Calls of the node.

    def advanced(self) -> None:
        """Note that the image has everything that is committed."""
        if self._machine.image is not self.lifecycle.image:
            self._tell(ImageAdvanced(self._machine.image))

    def passed_over(self, end_offset: int) -> None:
        """A snapshot became the image."""
        self.advanced()

    def role_changed(self) -> None:
        """Somebody else may lead."""
        leader_id = self._needs.replica.leader_id
        if leader_id is not None:
            self._tell(ControllerKnown(NodeId(leader_id)))

    def figures(self) -> Mapping[str, float]:
        """Return the counts of the broker's image."""
        return image_figures(self.lifecycle.image)

    def leave(self, left: Callable[[], None]) -> None:
        """Hand over what is led, for so long as the settings say."""
        self._left = left
        delay_us = self._materials.settings.controlled_shutdown_timeout
        self._patience = self._timers.call_later(delay_us, self._leave_at_once)
        self._tell(ShutdownAsked())

    def stop(self) -> None:
        """Refuse what comes from now on, answer what waits."""
        self._stopping = True
        self._isrs.stop()
        self._envelopes.stop()
        for timer in (self._timer, self._patience):
            if timer is not None:
                timer.cancel()
        self._timer = self._patience = None

    # The life.

    def _tell(self, event: Event) -> None:
        """Take a step, and those that it brings about."""
        self._events.append(event)
        if self._is_stepping or self._stopping:
            return
        self._is_stepping = True
        try:
            while self._events:
                event = self._events.popleft()
                for effect in self.lifecycle.step(self._timers.now(), event):
                    self._perform(effect)
        finally:
            self._is_stepping = False
        self._arm()
        self._isrs.look()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case FindController():
                leader_id = self._needs.replica.leader_id
                if leader_id is not None:
                    self._events.append(ControllerKnown(NodeId(leader_id)))
            case SendToController():
                self._send(effect)
            case AbandonRequest():
                pass  # Its number tells a late answer; each call has a connection to itself.
            case Recover():
                self._events.append(RecoveryFinished())
            case BecameRunning():
                self._log("broker running", broker_epoch=self.lifecycle.broker_epoch)
            case MayStop():
                self._over(effect)

    def _send(self, effect: SendToController) -> None:
        def answered(answer: msgspec.Struct | None) -> None:
            if isinstance(answer, BrokerRegistrationResponse | BrokerHeartbeatResponse):
                self._tell(AnswerReceived(effect.number, answer))
            else:
                self._tell(RequestFailed(effect.number))

        self._call(effect.controller_id, effect.request, answered)

    def _over(self, effect: MayStop) -> None:
        self._log("broker leaves", cause=effect.reason, broker_epoch=effect.broker_epoch)
        if not effect.clean:
            self._needs.end(exit_codes.UNUSABLE, effect.reason)
            return
        if effect.broker_epoch < 0:
            self._go()
            return
        clean_stop, epoch = self._materials.clean_stop, effect.broker_epoch
        self._needs.surroundings.disk_jobs.submit(lambda: clean_stop.write(epoch), self._stored)

    def _stored(self, failure: Exception | None) -> None:
        if failure is not None:
            # The next life takes this one for a crash, which is always right.
            self._needs.surroundings.log_lines.write(
                "warning", "clean stop not stored", reason=str(failure)
            )
        self._go()

    def _leave_at_once(self) -> None:
        self._patience = None
        if self.lifecycle.state is BrokerState.SHUTTING_DOWN:
            self._go()  # The disk has not answered.
        else:
            self._tell(ShutdownAsked(controlled=False))

    def _go(self) -> None:
        left, self._left = self._left, None
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if left is not None:
            left()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.lifecycle.deadline
        if deadline is not None and not self._stopping:
            delay_us = max(deadline - self._timers.now(), 0)
            self._timer = self._timers.call_later(delay_us, self._elapse)

    def _elapse(self) -> None:
        self._timer = None
        self._tell(TimerElapsed())

    # Its state.

    def _described(self, request: ClientRequest) -> ClientAnswer:
        image = self.lifecycle.image
        if self.lifecycle.is_fenced:
            reason = "this broker has to believe that it is fenced"
            return ClientAnswer(request.id, "fenced", definite=True, reason=reason)
        return ClientAnswer(
            request.id,
            "ok",
            definite=True,
            result=partition_count(image, request.key),
            offset=image.provenance.end_offset,
        )

    def _log(self, message: str, **fields: Any) -> None:
        self._needs.surroundings.log_lines.write("info", message, **fields)


def _identity(identity: StorageIdentity, materials: BrokerMaterials) -> BrokerIdentity:
    """Return the identity of a new life, never an earlier one's; takes what the last one left."""
    return BrokerIdentity(
        broker_id=identity.node_id,
        cluster_id=identity.cluster_id,
        incarnation_id=drawn_incarnation_id(materials.random),
        listeners=(
            AdvertisedListener(
                name=CLIENT_LISTENER,
                host=materials.host,
                port=materials.port,
                security_protocol=_PLAINTEXT,
            ),
        ),
        directories=(identity.directory_id,),
        previous_broker_epoch=materials.clean_stop.take(),
    )


def broker_layer(materials: BrokerMaterials) -> Layer:
    """Kafka's metadata above the log of a broker."""
    machine = MetadataMachine()

    def make_service(needs: ServiceNeeds) -> BrokerService:
        return BrokerService(needs, machine, materials)

    return Layer(machine, make_service)
