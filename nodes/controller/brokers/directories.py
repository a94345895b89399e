"""AssignReplicasToDirs: a broker says in which of its directories replicas lie.

A replica in a directory that the broker has lost is no longer in sync.

Unlike a real controller's, each record is decided on top of those before it: one of a lost
directory that looked past the assignment could bring back replicas of a move that this has ended.

Source: KIP-858.
"""

from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.controller.basis.leaderships import PartitionAt
from splitbrain.nodes.controller.basis.registrations import is_online, registered
from splitbrain.nodes.controller.brokers.broker_transitions import without_broker
from splitbrain.nodes.controller.partitions.partition_change import Target, partition_change
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.metadata.partitions import Sharing, changed_partition
from splitbrain.nodes.metadata.records import MetadataRecord, RegisterBrokerRecord
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import (
    AssignedDirectory,
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryToAssign,
    TopicToAssign,
)


def assign_replicas(view: View, request: AssignReplicasToDirsRequest, _version: int) -> Decision:
    """Each replica lies where the broker says; each has its own outcome.

    Raises Refusal: the broker is not registered with this epoch.
    """
    broker = registered(view.image, request.broker_id, request.broker_epoch)
    assignments = _Assignments(view, broker)
    directories = tuple(assignments.take(each) for each in request.directories)
    answer = AssignReplicasToDirsResponse(
        throttle_time_ms=0, error_code=ApiError.NONE, directories=directories
    )
    return Decision(answer, assignments.records())


class _Assignments:
    """Result of one request."""

    def __init__(self, view: View, broker: RegisterBrokerRecord) -> None:
        self._view = view
        self._broker = broker
        self._records: list[MetadataRecord] = []
        #: Partitions as they are with the records in.
        self._states: dict[tuple[str, int], PartitionAt] = {}
        #: Those whose replica lies in a lost directory, each once.
        self._lost: dict[tuple[str, int], None] = {}

    def take(self, directory: DirectoryToAssign) -> AssignedDirectory:
        topics = tuple(self._topic(each, directory.id) for each in directory.topics)
        return AssignedDirectory(id=directory.id, topics=topics)

    def records(self) -> list[MetadataRecord]:
        lost = [self._states[each] for each in self._lost]
        changes = without_broker(self._view.image, self._broker.broker_id, lost)
        return [*self._records, *changes]

    def _topic(self, wanted: TopicToAssign, directory: str) -> AssignedTopic:
        topic = self._view.image.topics.by_id.get(wanted.topic_id)
        partitions = tuple(
            AssignedPartition(
                partition_index=each.partition_index,
                error_code=(
                    ApiError.UNKNOWN_TOPIC_ID
                    if topic is None
                    else self._partition(topic, each.partition_index, directory)
                ),
            )
            for each in wanted.partitions
        )
        return AssignedTopic(topic_id=wanted.topic_id, partitions=partitions)

    def _partition(self, topic: TopicImage, number: int, directory: str) -> ApiError:
        image, broker_id = self._view.image, self._broker.broker_id
        state = image.topics.partition(topic.topic_id, number)
        if state is None:
            return ApiError.UNKNOWN_TOPIC_OR_PARTITION
        if broker_id not in state.replicas:
            return ApiError.NOT_LEADER_OR_FOLLOWER
        key = topic.topic_id, number
        at = self._states.get(key) or PartitionAt(topic, number, state)
        record = partition_change(image, at, Target(directories={broker_id: directory}))
        if record is not None:
            self._records.append(record)
            at = at._replace(state=changed_partition(at.state, record, Sharing()))
        self._states[key] = at
        if not is_online(self._broker, directory):
            self._lost[key] = None
        return ApiError.NONE
