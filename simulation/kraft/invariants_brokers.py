"""Invariants of controllers' answers to brokers, and of brokers' own claims.

Looked at when an answer leaves: whoever decided it had applied at least what the node had applied
when it was asked, and all that it saw is committed by then. So it is judged by the committed
metadata in between, at some offset of which it must have been right; where a deposed controller
answers from what it still has, that is right as well. In worlds of registers there are no such
calls. Must never ask a controller, nor a broker.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from collections.abc import Collection, Iterator
from typing import Any, Final

from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families import brokers
from splitbrain.nodes.wire.families.partitions import (
    AlteredPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionToAlter,
)
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import Arrival, MetadataInvariant
from splitbrain.simulation.kraft.metadata.state import Metadata

#: Requests that only a registered broker may make, each with the epoch that it was given.
_OF_BROKERS: Final = (
    brokers.BrokerHeartbeatRequest,
    AlterPartitionRequest,
    brokers.AllocateProducerIdsRequest,
    brokers.AssignReplicasToDirsRequest,
)
#: Epoch in answers of a leader that does not know a broker's.
_ANY_EPOCH: Final = -1
_RECOVERED: Final = 0
#: Outcomes of a proposal that counts.
_TAKEN: Final = (ApiError.NONE, ApiError.NEW_LEADER_ELECTED)


class Answers(MetadataInvariant):
    """Knows what was committed while a call was answered."""

    def metadata(self, arrival: Arrival) -> Iterator[Metadata]:
        """Yield the committed metadata that whoever answered may have seen, oldest first."""
        end = len(self.ghost.committed)
        for end_offset in range(min(arrival.applied, end), end + 1):
            yield self.ledger.at(end_offset)


class StrangersAreRefused(Answers):
    """A broker answered without an error is registered with the broker epoch that it says."""

    id = "INV-50"

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        if not isinstance(message, _OF_BROKERS) or answer.error_code != ApiError.NONE:
            return
        if isinstance(message, AlterPartitionRequest) and not message.topics:
            return
        broker_id, epoch = message.broker_id, message.broker_epoch
        for metadata in self.metadata(arrival):
            broker = metadata.brokers.get(broker_id)
            if broker is not None and broker.broker_epoch == epoch:
                return
        raise self.violated(
            f"n{machine.host.node_id} takes a {type(message).__name__} of broker {broker_id} with"
            f" the broker epoch {epoch}, which is not the registered one",
            machine,
            kind=type(message).__name__,
        )


class ProposalsAreOfThePresent(Answers):
    """An ISR that is accepted was proposed from the partition as it is, of brokers that may be."""

    id = "INV-51"

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        if not isinstance(message, AlterPartitionRequest):
            return
        assert isinstance(answer, AlterPartitionResponse)
        accepted = [(topic_id, each.partition_index) for topic_id, each in _altered(answer)]
        for topic in message.topics:
            for proposal in topic.partitions:
                if (topic.topic_id, proposal.partition_index) in accepted:
                    self._check(machine, topic.topic_id, proposal, arrival)

    def _check(
        self, machine: Machine, topic_id: str, proposal: PartitionToAlter, arrival: Arrival
    ) -> None:
        number = proposal.partition_index
        seen: list[int] = []
        for metadata in self.metadata(arrival):
            state = metadata.partition(topic_id, number)
            if state is None:
                continue
            if state.partition_epoch == proposal.partition_epoch and _may_be(metadata, proposal):
                return
            seen.append(state.partition_epoch)
        if seen and proposal.partition_epoch not in seen:
            raise self.violated(
                f"n{machine.host.node_id} takes an ISR for partition {number} of {topic_id} that"
                f" was proposed at partition epoch {proposal.partition_epoch}; it is {seen[0]}",
                machine,
                kind="stale",
            )
        isr = [member.broker_id for member in proposal.new_isr_with_epochs]
        raise self.violated(
            f"n{machine.host.node_id} takes the ISR {isr} for partition {number} of {topic_id}, and"
            " one of them is fenced, about to go, or of an earlier incarnation",
            machine,
            kind="ineligible",
        )


class GoodProposalsAreTaken(Answers):
    """An ISR is accepted that was proposed from the partition as it is, of brokers that may be.

    Where that ends the leadership of whoever proposed it, the answer says so instead (KIP-455).
    """

    id = "INV-66"

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        is_refused = answer.error_code == ApiError.UNKNOWN_SERVER_ERROR
        if not isinstance(message, AlterPartitionRequest) or (answer.error_code and not is_refused):
            return
        taken = [(topic_id, each.partition_index) for topic_id, each in _outcomes(answer, _TAKEN)]
        seen = list(self.metadata(arrival))
        for topic in message.topics:
            for proposal in topic.partitions:
                at = topic.topic_id, proposal.partition_index
                if at in taken or not all(_is_good(each, message, at, proposal) for each in seen):
                    continue
                isr = [member.broker_id for member in proposal.new_isr_with_epochs]
                raise self.violated(
                    f"n{machine.host.node_id} refuses the ISR {isr} for partition {at[1]} of"
                    f" {at[0]}, which its leader proposed from the partition as it is, and all of"
                    " them can serve",
                    machine,
                )


class ProducerIdsAreToldOnce(MetadataInvariant):
    """No producer id is in two blocks that controllers have given."""

    id = "INV-52"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: First id of each block -> one past its last, and whose it is.
        self._given: dict[int, tuple[int, int]] = {}

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        if not isinstance(answer, brokers.AllocateProducerIdsResponse) or answer.error_code:
            return
        assert isinstance(message, brokers.AllocateProducerIdsRequest)
        first, end = answer.producer_id_start, answer.producer_id_start + answer.producer_id_len
        for start, (stop, holder) in self._given.items():
            if first < stop and start < end:
                raise self.violated(
                    f"n{machine.host.node_id} gives broker {message.broker_id} the producer ids"
                    f" from {first} on, which broker {holder} has",
                    machine,
                )
        self._given[first] = end, message.broker_id


class ToldIsCommitted(Answers):
    """Answers to brokers are committed: a registration, a block of ids, the end of a fence, an ISR.

    The twin of what INV-12 says of clients' requests.
    """

    id = "INV-53"

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        if getattr(answer, "error_code", ApiError.NONE) != ApiError.NONE:
            return
        seen = self.metadata(arrival)
        match answer:
            case brokers.BrokerRegistrationResponse():
                broker_id = message.broker_id
                is_so = any(
                    (known := metadata.brokers.get(broker_id)) is not None
                    and known.broker_epoch == answer.broker_epoch
                    and known.incarnation_id == message.incarnation_id
                    for metadata in seen
                )
                what = f"its registration with epoch {answer.broker_epoch}"
            case brokers.AllocateProducerIdsResponse():
                end = answer.producer_id_start + answer.producer_id_len
                is_so = any(metadata.next_producer_id >= end for metadata in seen)
                what = f"the producer ids up to {end}"
            case brokers.BrokerHeartbeatResponse(is_fenced=False):
                broker_id = message.broker_id
                is_so = any(
                    (known := metadata.brokers.get(broker_id)) is not None and not known.fenced
                    for metadata in seen
                )
                what = "that it is not fenced"
            case AlterPartitionResponse():
                told = _altered(answer)
                states = list(seen)
                is_so = all(any(_has(metadata, each) for metadata in states) for each in told)
                what = "an ISR that it proposed"
            case _:
                return
        if not is_so:
            raise self.violated(
                f"n{machine.host.node_id} tells broker {message.broker_id} {what}, which is not"
                " committed",
                machine,
                kind=type(message).__name__,
            )


class FencedShowNothing(MetadataInvariant):
    """A broker shows only metadata in which it is not fenced itself."""

    id = "INV-56"

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        is_shown = answer.outcome == "ok" and answer.offset is not None
        if not is_shown or not self.ghost.is_view(machine, request):
            return
        own = self.ledger.at(answer.offset or 0).brokers.get(int(machine.host.node_id))
        if own is None or own.fenced:
            raise self.violated(
                f"n{machine.host.node_id} shows {request.key} as of offset {answer.offset}, where"
                f" it is {'not registered' if own is None else 'fenced'} itself",
                machine,
            )


class CleanStopsAreToldOnce(MetadataInvariant):
    """The epoch of a clean stop is told by the next life, and by no later one."""

    id = "INV-57"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: By broker: the incarnations that have asked to be registered, newest last.
        self._incarnations: dict[int, list[str]] = {}

    def calls(self, machine: Machine, message: Any) -> None:
        if not isinstance(message, brokers.BrokerRegistrationRequest):
            return
        mine = message.incarnation_id
        known = self._incarnations.setdefault(message.broker_id, [])
        if not known or known[-1] != mine:
            known.append(mine)
        last = self.ledger.metadata.brokers.get(message.broker_id)
        if message.previous_broker_epoch < 0 or last is None or len(known) == 1:
            return
        is_last_life_s = last.incarnation_id == known[-2]
        if is_last_life_s and last.broker_epoch != message.previous_broker_epoch:
            raise self.violated(
                f"broker {message.broker_id} says that its last life, of the broker epoch"
                f" {last.broker_epoch}, stopped in order with epoch"
                f" {message.previous_broker_epoch}",
                machine,
            )


def _may_be(metadata: Metadata, proposal: PartitionToAlter) -> bool:
    """Whether all that are proposed may be in sync."""
    for member in proposal.new_isr_with_epochs:
        broker = metadata.brokers.get(member.broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        if member.broker_epoch not in (_ANY_EPOCH, broker.broker_epoch):
            return False
    return True


def _is_good(
    metadata: Metadata,
    asked: AlterPartitionRequest,
    at: tuple[str, int],
    proposal: PartitionToAlter,
) -> bool:
    """Whether the proposal is of the present, whole, and of brokers that may be in sync."""
    known, leader = metadata.partition(*at), metadata.brokers.get(asked.broker_id)
    isr = [member.broker_id for member in proposal.new_isr_with_epochs]
    if known is None or leader is None or leader.broker_epoch != asked.broker_epoch:
        return False
    proposed = asked.broker_id, proposal.leader_epoch, proposal.partition_epoch
    is_whole = len(set(isr)) == len(isr) and asked.broker_id in isr
    return (
        proposed == (known.leader, known.leader_epoch, known.partition_epoch)
        and is_whole
        and set(isr) <= set(known.replicas)
        and proposal.leader_recovery_state == _RECOVERED
        and _may_be(metadata, proposal)
    )


def _altered(answer: AlterPartitionResponse) -> list[tuple[str, AlteredPartition]]:
    """Return the partitions whose ISRs were accepted."""
    return _outcomes(answer, (ApiError.NONE,))


def _outcomes(
    answer: AlterPartitionResponse, codes: Collection[int]
) -> list[tuple[str, AlteredPartition]]:
    """Return the partitions with one of these outcomes."""
    return [
        (topic.topic_id, each)
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code in codes
    ]


def _has(metadata: Metadata, told: tuple[str, AlteredPartition]) -> bool:
    """Whether the partition is what the answer tells."""
    topic_id, altered = told
    known = metadata.partition(topic_id, altered.partition_index)
    return known is not None and (
        (known.leader, known.leader_epoch, known.isr, known.partition_epoch)
        == (altered.leader_id, altered.leader_epoch, altered.isr, altered.partition_epoch)
    )
