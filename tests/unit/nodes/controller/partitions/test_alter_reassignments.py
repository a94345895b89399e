"""AlterPartitionReassignments: moves begin, end at once or are called off."""

import pytest

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.partitions.alter_reassignments import alter_reassignments
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    PartitionToReassign,
    TopicToReassign,
)
from tests.unit.nodes.controller.clusters import (
    applied,
    broker,
    directory_of,
    image_with,
    partition,
    view_of,
)

A = "a0" * 16
UNCLEAN = records.ConfigRecord(2, "a", "unclean.leader.election.enable", "true")
Asked = tuple[str, int, tuple[int, ...] | None]
Moved = tuple[int, str | None]


def image_of(
    *more: records.MetadataRecord, replicas: tuple[int, ...] = (1, 2), **fields: object
) -> MetadataImage:
    return image_with(
        [
            *(broker(each) for each in range(1, 6)),
            records.TopicRecord("a", A),
            partition(A, 0, replicas, **fields),
            *more,
        ]
    )


IMAGE = image_of()
MOVING = image_of(
    replicas=(3, 4, 1, 2),
    isr=(1, 2),
    adding_replicas=(3, 4),
    removing_replicas=(1, 2),
    directories=tuple(directory_of(each) for each in (3, 4, 1, 2)),
)


def moved(
    image: MetadataImage, *wanted: Asked, may_change_factor: bool = True, records_max: int = 9
) -> tuple[PartitionState, list[Moved]]:
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change_factor,
        topics=tuple(
            TopicToReassign(
                name=name,
                partitions=(PartitionToReassign(partition_index=number, replicas=replicas),),
            )
            for name, number, replicas in wanted
        ),
    )
    view = view_of(image, settings=ControllerSettings(records_per_batch_max=records_max))
    decision = alter_reassignments(view, request, 1)
    answer = decision.answer
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert answer.allow_replication_factor_change == may_change_factor
    found = [
        (partition.error_code, partition.error_message)
        for topic in answer.responses
        for partition in topic.partitions
    ]
    return applied(image, decision).topics.by_id[A].partitions[0], found


def test_new_replicas_are_added_before_the_old_ones_go() -> None:
    state, answers = moved(IMAGE, ("a", 0, (4, 3)))
    assert answers == [(0, None)]
    assert state.replicas == (4, 3, 1, 2)
    assert state.adding_replicas == (3, 4)
    assert state.removing_replicas == (1, 2)
    assert state.directories == tuple(directory_of(each) for each in (4, 3, 1, 2))
    assert (state.isr, state.leader, state.leader_epoch) == ((1, 2), 1, 0)


def test_another_order_of_the_same_replicas_is_there_at_once() -> None:
    state, _ = moved(IMAGE, ("a", 0, (2, 1)))
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((2, 1), (), ())
    assert state.directories == (directory_of(2), directory_of(1))
    assert state.leader == 1


def test_fewer_replicas_are_there_at_once_where_those_that_stay_are_in_sync() -> None:
    state, _ = moved(IMAGE, ("a", 0, (2,)))
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((2,), (2,), 2, 1)


def test_where_it_is_already_nothing_is_written() -> None:
    state, answers = moved(IMAGE, ("a", 0, (1, 2)))
    assert (state, answers) == (IMAGE.topics.by_id[A].partitions[0], [(0, None)])


def test_a_move_that_is_called_off_leaves_what_was_there() -> None:
    state, answers = moved(MOVING, ("a", 0, None))
    assert answers == [(0, None)]
    assert (state.replicas, state.isr, state.leader) == ((1, 2), (1, 2), 1)
    assert (state.adding_replicas, state.removing_replicas) == ((), ())
    assert state.directories == (directory_of(1), directory_of(2))


@pytest.mark.parametrize("is_allowed", [False, True])
def test_a_move_is_called_off_with_losses_only_where_that_is_allowed(is_allowed: bool) -> None:
    extra = [UNCLEAN] if is_allowed else []
    image = image_of(
        *extra,
        replicas=(3, 1),
        isr=(3,),
        leader=3,
        adding_replicas=(3,),
        directories=(directory_of(3), directory_of(1)),
    )
    state, answers = moved(image, ("a", 0, None))
    if is_allowed:
        assert answers == [(0, None)]
        assert (state.replicas, state.isr, state.leader) == ((1,), (1,), 1)
    else:
        problem = "Unable to revert partition assignment for a:0 because it would require an "
        problem += "unclean leader election."
        assert answers == [(ApiError.INVALID_REPLICA_ASSIGNMENT, problem)]
        assert state.replicas == (3, 1)


MANUAL = "The manual partition assignment includes "
REFUSALS: dict[ApiError, list[tuple[Asked, str | None]]] = {
    ApiError.UNKNOWN_TOPIC_OR_PARTITION: [
        (("x", 0, (1,)), "Unable to find a topic named x."),
        (("a", 1, (1,)), "Unable to find partition a:1."),
    ],
    ApiError.NO_REASSIGNMENT_IN_PROGRESS: [(("a", 0, None), None)],
    ApiError.INVALID_REPLICA_ASSIGNMENT: [
        (("a", 0, ()), MANUAL + "an empty replica list."),
        (("a", 0, (1, 9)), MANUAL + "broker 9, but no such broker is registered."),
        (("a", 0, (3, 3)), MANUAL + "the broker 3 more than once."),
    ],
    ApiError.INVALID_REPLICATION_FACTOR: [
        (("a", 0, (1, 2, 3)), "The replication factor is changed from 2 to 3")
    ],
}


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [(wanted, code, message) for code, rows in REFUSALS.items() for wanted, message in rows],
)
def test_a_move_is_refused(wanted: Asked, code: ApiError, message: str | None) -> None:
    state, answers = moved(IMAGE, wanted, may_change_factor=False)
    assert answers == [(code, message)]
    assert state == IMAGE.topics.by_id[A].partitions[0]


def test_the_factor_of_a_move_counts_without_what_goes() -> None:
    _, answers = moved(MOVING, ("a", 0, (4, 5)), may_change_factor=False)
    assert answers == [(0, None)]


def test_a_partition_that_is_asked_twice_is_moved_on_from_the_first_move() -> None:
    state, answers = moved(IMAGE, ("a", 0, (3, 4)), ("a", 0, None))
    assert answers == [(0, None)] * 2
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((1, 2), (), ())


def test_moves_beyond_the_limit_are_refused() -> None:
    _, answers = moved(IMAGE, ("a", 0, (3, 4)), records_max=0)
    problem = "Unable to perform excessively large batch operation."
    assert answers == [(ApiError.POLICY_VIOLATION, problem)]
