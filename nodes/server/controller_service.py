"""A controller at work on a node: one queue of events, one consumer, answers once they are true.

The leader of the quorum is the active controller, from when everything of earlier epochs and its
own first record are applied until its role changes. It sees what it has appended, and answers what
is committed; the others keep their image hot and answer NOT_CONTROLLER. Each event is handled in a
turn of its own, never within the replica's step.

Must never answer a request before its records are committed, but for those that change nothing, and
these not before what they saw is. Source: KIP-631; a real controller's event queue.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from nodes.controller.active import HANDLERS, ActiveController, Identity
from nodes.controller.controllers import describe_cluster
from nodes.controller.decisions import Decision
from nodes.metadata.errors import ContradictionError
from nodes.metadata.machine import MetadataMachine
from nodes.metadata.records import MetadataRecord
from nodes.metadata.serde import encode_record
from nodes.quorum.effects import AcceptProposal, AnswerRead, RejectProposal, RejectRead
from nodes.quorum.events import (
    ProposalId,
    RecordsProposed,
    RequestReceived,
    ResignRequested,
)
from nodes.quorum.identifiers import ConnectionId, CorrelationId, Epoch, Offset
from nodes.quorum.messages import DescribeQuorumAnswer, DescribeQuorumRequest
from nodes.quorum.transitions import RoleName
from nodes.server.controller_calls import Call, opened
from nodes.server.controller_registrar import ControllerRegistrar
from nodes.server.event_queue import EventQueue
from nodes.server.image_figures import image_figures
from nodes.server.layer import Layer, ServiceNeeds
from nodes.server.own_registration import own_registration
from nodes.server.surroundings import TimerHandle
from nodes.transport.client_protocol import ClientAnswer, ClientRequest, Reply
from nodes.wire.api_versions import ApiVersionsAnswer, served_versions
from nodes.wire.apis import QUORUM_LISTENER, SUPPORTED_VERSIONS, ApiKey, RequestHeader
from nodes.wire.controller_apis import CONTROLLER_FEATURES, PINNED_LEVELS, advertised_versions
from nodes.wire.errors import ApiError
from nodes.wire.families.cluster import DescribeClusterRequest
from nodes.wire.families.controllers import EnvelopeRequest
from nodes.wire.messages import Endpoint

#: What is served on the quorum's listener, besides the quorum's own requests.
SERVED: Final = frozenset({*HANDLERS, ApiKey.DESCRIBE_CLUSTER, ApiKey.ENVELOPE})
#: What brokers may ask on behalf of clients.
_FORWARDED: Final = frozenset({*HANDLERS, ApiKey.DESCRIBE_QUORUM})
_INCARNATION_DIGITS: Final = 32
_HEX: Final = 16
#: Events of time that follow one another in one turn at most: requests wait meanwhile.
_DUE_PER_TURN_MAX: Final = 10

_Done = Callable[[bool], None]


class _Deferred(msgspec.Struct):
    """What waits for the records up to an offset to be committed."""

    last_offset: Offset
    done: _Done


class ControllerService:
    """The controller of one node, active or not."""

    def __init__(self, needs: ServiceNeeds, machine: MetadataMachine, identity: Identity) -> None:
        """A controller that is not active and has heard nothing."""
        self._needs = needs
        self._machine = machine
        self._identity = identity
        self._timers = needs.surroundings.timers
        draw = identity.random.random
        digits = [f"{int(draw() * _HEX):x}" for _ in range(_INCARNATION_DIGITS)]
        self._registrar = ControllerRegistrar(
            own_registration(needs.identity, "".join(digits)),
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
        self._active: ActiveController | None = None
        self._active_epoch = Epoch(-1)
        surroundings = needs.surroundings
        self._queue = EventQueue(self._timers, surroundings.measurements, self._arm)
        self._timer: TimerHandle | None = None
        #: Oldest first.
        self._deferred: deque[_Deferred] = deque()
        self._proposal_count = 0
        self._accepted: AcceptProposal | None = None
        self._stopping = False

    # Who asks.

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """A client of ours may ask how the node is, and nothing else."""
        if request.kind == "status":
            reply(ClientAnswer(request.id, "ok", definite=True, result=self._needs.state()))
            return
        reason = "this node holds Kafka's metadata, no registers"
        reply(ClientAnswer(request.id, "invalid-request", definite=True, reason=reason))

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        """A broker or a client of Kafka's asks on the quorum's listener."""

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
            call.reply(self._described(call.message, call.version))
        elif self._stopping or self._active is None:
            # Known without a turn: whoever asks shall look for the active controller soon.
            call.refuse(ApiError.NOT_CONTROLLER)
        else:
            self._queue.add(lambda: self._decide(call))

    def described(
        self, connection: ConnectionId, correlation: CorrelationId, answer: DescribeQuorumAnswer
    ) -> bool:
        """The replica describes the quorum; whether that was asked in an envelope."""
        call = self._describing.pop((connection, correlation), None)
        if call is not None:
            call.reply(answer)
        return call is not None

    def versions(self) -> ApiVersionsAnswer:
        """What the quorum's listener serves, and the levels that the cluster runs with."""
        image = self._machine.image
        served = {**SUPPORTED_VERSIONS, **advertised_versions(SERVED)}
        if image.metadata_version is None:
            return served_versions(served, CONTROLLER_FEATURES)
        levels = {**image.features, "kraft.version": PINNED_LEVELS["kraft.version"]}
        return served_versions(served, CONTROLLER_FEATURES, levels, image.provenance.last_offset)

    # What the node says.

    def accepted(self, effect: AcceptProposal) -> None:
        """Records are in the leader's log."""
        self._accepted = effect

    def rejected(self, effect: RejectProposal) -> None:
        """Records were certainly not appended: this node does not lead."""

    def confirmed(self, effect: AnswerRead) -> None:
        """Never: nothing is read through the quorum."""
        raise AssertionError(f"read {effect.read_id} was never asked")

    def read_rejected(self, effect: RejectRead) -> None:
        """Never: nothing is read through the quorum."""
        raise AssertionError(f"read {effect.read_id} was never asked")

    def applied(self, offset: int, epoch: int, result: Any) -> None:
        """Nothing: what waits, waits for an offset."""

    def advanced(self) -> None:
        """The image has everything that is committed: answer what waited for it, begin to lead."""
        while self._deferred and self._deferred[0].last_offset < self._machine.end_offset:
            self._deferred.popleft().done(True)
        self._claim_if_due()
        self._registrar.look()

    def passed_over(self, end_offset: int) -> None:
        """Nothing: who takes a snapshot does not lead, and nobody waits."""

    def role_changed(self) -> None:
        """The replica's role is another, or is held in another epoch."""
        replica = self._needs.replica
        leads = replica.role == RoleName.LEADER.value and replica.epoch == self._active_epoch
        if self._active is not None and not leads:
            self._renounce()
        self._registrar.look()

    def figures(self) -> Mapping[str, float]:
        """What this controller counts; brokers by what the image says of them."""
        counted = {
            "active_controller_count": int(self._active is not None),
            "queue_length": len(self._queue),
        }
        return counted | image_figures(self._machine.image)

    def stop(self) -> None:
        """Refuse what comes from now on, answer what waits."""
        self._stopping = True
        self._registrar.stop()
        self._renounce()

    # Leading.

    def _claim_if_due(self) -> None:
        replica = self._needs.replica
        if self._active is not None or self._stopping or replica.role != RoleName.LEADER.value:
            return
        if self._needs.applied_epoch() != replica.epoch:
            return  # What earlier leaders wrote is not committed yet.
        self._active_epoch = replica.epoch
        self._active = ActiveController(
            self._identity, self._machine.image, replica.epoch, self._timers.now()
        )
        self._queue.take_all()
        self._queue.add(self._activate)

    def _activate(self) -> None:
        """The first event of a leadership: its own records, and then its own registration."""
        active = self._active
        if active is None:
            return
        records = active.activation(self._machine.transaction_opened_at)
        self._append(records, self._activated)
        registration = active.decide(
            ApiKey.CONTROLLER_REGISTRATION,
            self._registrar.request,
            0,
            now=self._timers.now(),
            next_offset=self._needs.replica.log_end_offset,
        )
        if not self._registrar.is_registered:
            self._append(registration.records, _nobody_waits)

    def _activated(self, succeeded: bool) -> None:
        if succeeded:
            self._needs.surroundings.log_lines.write(
                "info", "controller active", epoch=self._active_epoch
            )

    def _renounce(self) -> None:
        """Lead no more: nobody can know what becomes of what is not committed."""
        was_active = self._active is not None
        self._active = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deferred, self._deferred = self._deferred, deque()
        queue = self._queue.take_all()
        for waiting in deferred:
            waiting.done(False)
        for event in queue:
            event()  # With nobody active each of them refuses, or does nothing.
        if was_active:
            self._needs.surroundings.log_lines.write(
                "info", "controller renounced", epoch=self._active_epoch
            )

    # What the queue brings.

    def _decide(self, call: Call) -> None:
        active = self._active
        if active is None:
            call.refuse(ApiError.NOT_CONTROLLER)
            return
        decision = active.decide(
            call.api_key,
            call.message,
            call.version,
            now=self._timers.now(),
            next_offset=self._needs.replica.log_end_offset,
        )
        self._carry_out(decision, call)

    def _carry_out(self, decision: Decision, call: Call) -> None:
        answer = decision.answer
        assert answer is not None

        def done(succeeded: bool) -> None:
            if succeeded:
                call.reply(answer)
            else:
                call.refuse(ApiError.NOT_CONTROLLER)

        try:
            self._append(decision.records, done)
        except ContradictionError as error:
            # A defect of a decision: nothing of it was appended, and another may lead better.
            self._needs.surroundings.measurements.metadata_error()
            self._needs.surroundings.log_lines.write(
                "error", "wrong decision", api=call.api_key.name, reason=str(error)
            )
            call.refuse(ApiError.UNKNOWN_SERVER_ERROR)
            self._needs.feed(ResignRequested())

    def _append(self, records: Sequence[MetadataRecord], done: _Done) -> None:
        """Append records in batches that may be so long; ``done`` once all are committed.

        Raises:
            ContradictionError: they cannot follow what was appended; nothing of the batch was.
        """
        longest = self._identity.settings.records_per_batch_max
        for start in range(0, len(records), longest):
            if not self._propose(records[start : start + longest]):
                done(False)
                return
        last_offset = Offset(self._needs.replica.log_end_offset - 1)
        if last_offset < self._machine.end_offset:
            done(True)
        else:
            self._deferred.append(_Deferred(last_offset, done))

    def _propose(self, records: Sequence[MetadataRecord]) -> bool:
        """Append one batch; False if this node does not lead any more."""
        active = self._active
        if active is None:
            return False
        next_offset = self._needs.replica.log_end_offset
        prepared = active.prepare(records, next_offset)
        self._proposal_count += 1
        self._accepted = None
        payloads = tuple([encode_record(record) for record in records])
        self._needs.feed(RecordsProposed(ProposalId(self._proposal_count), payloads))
        if self._accepted is None or self._active is not active:
            return False
        assert self._accepted.base_offset == next_offset
        active.appended(prepared)
        return True

    # Time.

    def _arm(self) -> None:
        active = self._active
        deadline = None if active is None else active.deadline
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            delay_us = max(deadline - self._timers.now(), 0)
            self._timer = self._timers.call_later(delay_us, self._elapse)

    def _elapse(self) -> None:
        self._timer = None
        self._queue.add(self._do_what_is_due)

    def _do_what_is_due(self) -> None:
        for _ in range(_DUE_PER_TURN_MAX):
            active = self._active
            if active is None:
                return
            decision = active.due(self._timers.now(), self._needs.replica.log_end_offset)
            if decision is None:
                return
            self._append(decision.records, _nobody_waits)
        self._queue.add(self._do_what_is_due)

    # What it says of itself.

    def _described(self, request: DescribeClusterRequest, version: int) -> msgspec.Struct:
        return describe_cluster(
            request,
            version,
            image=self._machine.image,
            cluster_id=self._needs.identity.cluster_id,
            listener=QUORUM_LISTENER,
            leader_id=self._needs.replica.leader_id,
        )


def metadata_layer(identity: Identity) -> Layer:
    """Kafka's metadata above the log."""
    machine = MetadataMachine()

    def make_service(needs: ServiceNeeds) -> ControllerService:
        return ControllerService(needs, machine, identity)

    return Layer(machine, make_service)


def _nobody_waits(_: bool) -> None:
    """Nobody asked."""
