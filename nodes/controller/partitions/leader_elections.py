"""Elections that nobody's death asks for: on request, and from time to time.

ElectLeaders names partitions, or all. The periodic ones give partitions back to their preferred
leaders, and lead those that nobody may lead cleanly where their topic allows that. Each looks at
all partitions.

Source: KIP-460; a real controller's periodic elections, and their bound per event.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from splitbrain.nodes.controller.basis.batch_limit import RecordBatch
from splitbrain.nodes.controller.basis.decisions import Decision, View, bad_request
from splitbrain.nodes.controller.basis.leaderships import (
    PartitionAt,
    partitions_off_balance,
    partitions_without_leader,
)
from splitbrain.nodes.controller.partitions.partition_change import (
    Election,
    Target,
    automatic_election,
    partition_change,
)
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import NO_LEADER, MetadataRecord, PartitionChangeRecord
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.partitions import (
    ElectedPartition,
    ElectedTopic,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

#: Most elections of one periodic event; a full one means that more may be due.
ELECTIONS_PER_EVENT_MAX: Final = 1_000
_NOT_NEEDED: Final = "Leader election not needed for topic partition."
_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_TYPES: Final = {_PREFERRED: Election.PREFERRED, _UNCLEAN: Election.UNCLEAN}


def elect_leaders(view: View, request: ElectLeadersRequest, _version: int) -> Decision:
    """Elects as asked; each partition has its own outcome.

    Of all partitions, those that need no election are not told. Raises Refusal: there is no such
    election, or too much would change at once.
    """
    named = request.topic_partitions
    election = _TYPES.get(request.election_type, Election.ONLINE)
    if election is Election.ONLINE and named != ():
        raise bad_request(f"Unknown election type {request.election_type}")
    records: list[MetadataRecord] = []
    topics: list[ElectedTopic] = []
    if named is None:
        every = view.image.topics
        wanted: list[tuple[str, Iterable[int]]] = [
            (name, range(len(every.by_id[topic_id].partitions)))
            for name, topic_id in sorted(every.ids_by_name.items())
        ]
    else:
        wanted = [(topic.topic, topic.partitions) for topic in named]
    for name, numbers in wanted:
        outcomes = [_elected(view.image, name, each, election, records) for each in numbers]
        result = tuple(
            each
            for each in outcomes
            if named is not None or each.error_code != ApiError.ELECTION_NOT_NEEDED
        )
        topics.append(ElectedTopic(topic=name, partition_result=result))
    RecordBatch(view).check_room(len(records))
    answer = ElectLeadersResponse(
        throttle_time_ms=0, error_code=ApiError.NONE, replica_election_results=tuple(topics)
    )
    return Decision(answer, records)


def balance(view: View) -> Decision | None:
    """Preferred leaders for partitions that another leads; None if none can be had.

    To be asked again at once, when the records are in the image, after a full event.
    """
    return _periodic(
        view.image, partitions_off_balance(view.image), Target(election=Election.PREFERRED)
    )


def elect_unclean(view: View) -> Decision | None:
    """Leaders from outside the ISR where there is no other and the topic allows it; or None.

    To be asked again as ``balance``.
    """
    if not view.leaderships.leaderless_count(view.image):
        return None
    allowed = (
        at
        for at in partitions_without_leader(view.image)
        if automatic_election(view.image, at.topic.name) is Election.UNCLEAN
    )
    return _periodic(view.image, allowed, Target(election=Election.UNCLEAN))


def _periodic(
    image: MetadataImage, partitions: Iterator[PartitionAt], target: Target
) -> Decision | None:
    records: list[PartitionChangeRecord] = []
    for at in partitions:
        record = partition_change(image, at, target)
        if record is not None:
            records.append(record)
        if len(records) == ELECTIONS_PER_EVENT_MAX:
            break
    return Decision(None, records) if records else None


def _elected(
    image: MetadataImage, name: str, number: int, election: Election, records: list[MetadataRecord]
) -> ElectedPartition:
    topic = image.topics.named(name)
    if topic is None:
        return _outcome(number, ApiError.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    state = image.topics.partition(topic.topic_id, number)
    if state is None:
        problem = f"No such partition as {name}-{number}"
        return _outcome(number, ApiError.UNKNOWN_TOPIC_OR_PARTITION, problem)
    if election is Election.PREFERRED:
        is_needed = state.leader != state.replicas[0]
        failure = ApiError.PREFERRED_LEADER_NOT_AVAILABLE
        reason = "The preferred leader was not available."
    else:
        is_needed = state.leader == NO_LEADER
        failure = ApiError.ELIGIBLE_LEADERS_NOT_AVAILABLE
        reason = "Eligible topic partition leaders are not available."
    if not is_needed:
        return _outcome(number, ApiError.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    record = partition_change(image, PartitionAt(topic, number, state), Target(election=election))
    if record is None:
        return _outcome(number, failure, reason)
    records.append(record)
    return _outcome(number, ApiError.NONE, None)


def _outcome(number: int, code: ApiError, message: str | None) -> ElectedPartition:
    return ElectedPartition(partition_id=number, error_code=code, error_message=message)
