"""AlterPartitionReassignments: partitions move to other brokers, or such a move is called off.

A move first adds all new replicas; once they are in sync, a later change of the partition takes
away those that go (``partition_change``). A partition that is asked twice is changed
twice, the second time on top of the first; a real controller decides both on what was there before.

Source: a real controller's replication control; KIP-455, KIP-860.
"""

from collections.abc import Sequence

from splitbrain.nodes.controller.basis.batch_limit import RecordBatch
from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View
from splitbrain.nodes.controller.basis.leaderships import PartitionAt
from splitbrain.nodes.controller.partitions.assignments import check_assignment
from splitbrain.nodes.controller.partitions.partition_change import (
    Election,
    Target,
    automatic_election,
    partition_change,
)
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import PartitionState, Sharing, changed_partition
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    PartitionToReassign,
    ReassignedPartition,
    ReassignedTopic,
)


def alter_reassignments(
    view: View, request: AlterPartitionReassignmentsRequest, _version: int
) -> Decision:
    """Decide about AlterPartitionReassignments; each partition has its own outcome."""
    moves = _Moves(view, may_change_factor=request.allow_replication_factor_change)
    responses = tuple(
        ReassignedTopic(
            name=topic.name,
            partitions=tuple(moves.take(topic.name, each) for each in topic.partitions),
        )
        for topic in request.topics
    )
    answer = AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ApiError.NONE,
        error_message=None,
        responses=responses,
    )
    return Decision(answer, tuple(moves.batch.records))


class _Moves:
    """Result of one request."""

    def __init__(self, view: View, *, may_change_factor: bool) -> None:
        self._image = view.image
        self._may_change_factor = may_change_factor
        self.batch = RecordBatch(view)
        #: Partitions as they are with the records in.
        self._states: dict[tuple[str, int], PartitionAt] = {}

    def take(self, topic: str, wanted: PartitionToReassign) -> ReassignedPartition:
        """Change one partition."""
        code, message = ApiError.NONE, None
        try:
            self._change(topic, wanted)
        except Refusal as refusal:
            code, message = refusal.code, refusal.message
        return ReassignedPartition(
            partition_index=wanted.partition_index, error_code=code, error_message=message
        )

    def _change(self, topic: str, wanted: PartitionToReassign) -> None:
        key = topic, wanted.partition_index
        at = self._states.get(key) or _found(self._image, *key)
        if wanted.replicas is None:
            target = _called_off(self._image, at)
        else:
            check_assignment(self._image, wanted.replicas, None)
            if not self._may_change_factor:
                _check_factor(at.state, wanted.replicas)
            target = _moved(at.state, wanted.replicas)
        record = partition_change(self._image, at, target)
        if record is not None:
            self.batch.add([record])
            self._states[key] = at._replace(state=changed_partition(at.state, record, Sharing()))


def _found(image: MetadataImage, name: str, partition_id: int) -> PartitionAt:
    topic = image.topics.named(name)
    if topic is None:
        raise Refusal(ApiError.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    state = image.topics.partition(topic.topic_id, partition_id)
    if state is None:
        raise Refusal(
            ApiError.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition_id}."
        )
    return PartitionAt(topic, partition_id, state)


def _moved(state: PartitionState, replicas: Sequence[int]) -> Target:
    """Return the partition with all new replicas added, and what then goes still there."""
    removing = tuple(sorted(set(state.replicas) - set(replicas)))
    adding = tuple(sorted(set(replicas) - set(state.replicas)))
    return Target(
        replicas=(*replicas, *removing),
        # Fields of an earlier move stay where this one says nothing, as in a real controller.
        removing=removing or None,
        adding=adding or None,
    )


def _called_off(image: MetadataImage, at: PartitionAt) -> Target:
    """Return the partition as it was before its move."""
    state = at.state
    if not state.adding_replicas and not state.removing_replicas:
        raise Refusal(ApiError.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(each for each in state.replicas if each not in state.adding_replicas)
    isr = tuple(each for each in state.isr if each not in state.adding_replicas)
    election = automatic_election(image, at.topic.name)
    if not replicas:
        raise Refusal(
            ApiError.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    if not isr:
        # All that are in sync came with the move: who was there before lacks records.
        if election is not Election.UNCLEAN:
            raise Refusal(
                ApiError.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {at.topic.name}:{at.number} because "
                "it would require an unclean leader election.",
            )
        isr = replicas[:1]
    return Target(isr=isr, replicas=replicas, removing=(), adding=(), election=election)


def _check_factor(state: PartitionState, replicas: Sequence[int]) -> None:
    # Without a move both are empty, and it is all replicas.
    staying = set(state.replicas) | set(state.adding_replicas)
    count = len(staying - set(state.removing_replicas))
    if count != len(replicas):
        raise Refusal(
            ApiError.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {count} to {len(replicas)}",
        )
