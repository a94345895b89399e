"""AlterPartition: a leader proposes who is in sync with it, from what it knows of the partition.

A proposal made from an older state of the partition is refused, and so is one that takes in a
broker that might have lost what it had: fenced, leaving, or restarted since the leader looked.

Source: KIP-497; KIP-704 (recovery), KIP-841 (fenced brokers), KIP-903 (broker epochs); a real
controller's order of checks.
"""

from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View
from splitbrain.nodes.controller.basis.leaderships import PartitionAt
from splitbrain.nodes.controller.basis.registrations import registered
from splitbrain.nodes.controller.partitions.partition_change import (
    RECOVERED,
    RECOVERING,
    Target,
    automatic_election,
    names_leader,
    partition_change,
)
from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.metadata.partitions import PartitionState, Sharing, changed_partition
from splitbrain.nodes.metadata.records import MetadataRecord, PartitionChangeRecord
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.partitions import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionRequest,
    AlterPartitionResponse,
    InSyncBroker,
    PartitionToAlter,
)

#: First version in which a leader says the broker epochs that it saw.
_EPOCHS_SINCE = 3


def alter_partitions(view: View, request: AlterPartitionRequest, version: int) -> Decision:
    """Return the ISRs that the broker proposes, each with its own outcome.

    Raises Refusal: the broker is not registered with this epoch.
    """
    if request.topics:
        registered(view.image, request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    topics: list[AlteredTopic] = []
    for wanted in request.topics:
        topic = view.image.topics.by_id.get(wanted.topic_id)
        altered: list[AlteredPartition] = []
        for proposal in wanted.partitions:
            if topic is None:
                altered.append(_refused(proposal, ApiError.UNKNOWN_TOPIC_ID))
                continue
            outcome, record = _altered(view, request.broker_id, topic, proposal, version)
            altered.append(outcome)
            if record is not None:
                records.append(record)
        topics.append(AlteredTopic(topic_id=wanted.topic_id, partitions=tuple(altered)))
    answer = AlterPartitionResponse(
        throttle_time_ms=0, error_code=ApiError.NONE, topics=tuple(topics)
    )
    return Decision(answer, records)


def _altered(
    view: View, broker_id: int, topic: TopicImage, proposal: PartitionToAlter, version: int
) -> tuple[AlteredPartition, PartitionChangeRecord | None]:
    image, number = view.image, proposal.partition_index
    state = image.topics.partition(topic.topic_id, number)
    if state is None:
        return _refused(proposal, ApiError.UNKNOWN_TOPIC_OR_PARTITION), None
    in_sync = _proposed(proposal, version)
    problem = _problem(view, broker_id, state, proposal, in_sync)
    if problem is not ApiError.NONE:
        return _refused(proposal, problem), None
    target = Target(
        isr=tuple(each.broker_id for each in in_sync),
        leader_recovery_state=proposal.leader_recovery_state,
        election=automatic_election(image, topic.name),
    )
    record = partition_change(image, PartitionAt(topic, number, state), target)
    if record is None:
        return _answered(number, state), None
    if names_leader(record) and record.leader != broker_id:
        # The change ends a reassignment, or the leader's directory is lost: it counts, and the
        # asker, who leads no more, has to learn what there is from the metadata.
        return _refused(proposal, ApiError.NEW_LEADER_ELECTED), record
    return _answered(number, changed_partition(state, record, Sharing())), record


def _proposed(proposal: PartitionToAlter, version: int) -> tuple[InSyncBroker, ...]:
    if version >= _EPOCHS_SINCE:
        return proposal.new_isr_with_epochs
    return tuple(InSyncBroker(broker_id=each) for each in proposal.new_isr)


def _problem(
    view: View,
    broker_id: int,
    state: PartitionState,
    proposal: PartitionToAlter,
    in_sync: tuple[InSyncBroker, ...],
) -> ApiError:
    """Return the first thing that is wrong with the proposal; NONE if nothing is."""
    if (
        proposal.leader_epoch > state.leader_epoch
        or proposal.partition_epoch > state.partition_epoch
    ):
        # The asker knows more than we do: another controller leads by now.
        return ApiError.NOT_CONTROLLER
    if proposal.leader_epoch < state.leader_epoch:
        return ApiError.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ApiError.INVALID_REQUEST
    if proposal.partition_epoch < state.partition_epoch:
        return ApiError.INVALID_UPDATE_VERSION
    if not _is_sound(state, proposal, in_sync):
        return ApiError.INVALID_REQUEST
    if not all(_is_eligible(view.image, each) for each in in_sync):
        return ApiError.INELIGIBLE_REPLICA
    return ApiError.NONE


def _is_sound(
    state: PartitionState, proposal: PartitionToAlter, in_sync: tuple[InSyncBroker, ...]
) -> bool:
    """Whether the partition could be what is proposed, alive as all brokers may be."""
    isr = [each.broker_id for each in in_sync]
    if len(set(isr)) < len(isr) or not set(isr) <= set(state.replicas) or state.leader not in isr:
        return False
    recovery = proposal.leader_recovery_state
    if recovery not in (RECOVERED, RECOVERING):
        raise Refusal(ApiError.UNKNOWN_SERVER_ERROR, f"recovery state {recovery} is unknown")
    if recovery == RECOVERED:
        return True
    # A leader that recovers from an unclean election is alone in sync; nobody goes back to it.
    return len(isr) == 1 and state.leader_recovery_state == RECOVERING


def _is_eligible(image: MetadataImage, member: InSyncBroker) -> bool:
    broker = image.brokers.get(member.broker_id)
    if broker is None or broker.in_controlled_shutdown or broker.fenced:
        return False
    return member.broker_epoch in (-1, broker.broker_epoch)


def _answered(number: int, state: PartitionState) -> AlteredPartition:
    return AlteredPartition(
        partition_index=number,
        error_code=ApiError.NONE,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
    )


def _refused(proposal: PartitionToAlter, code: ApiError) -> AlteredPartition:
    return AlteredPartition(
        partition_index=proposal.partition_index,
        error_code=code,
        leader_id=0,
        leader_epoch=0,
        isr=(),
        partition_epoch=0,
    )
