"""Each invariant of what brokers are told turns red by an answer, or a record, that breaks it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.quorum.effects import AppendRecords
from splitbrain.nodes.quorum.identifiers import NodeId, Offset
from splitbrain.nodes.transport.client_protocol import ClientAnswer
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from splitbrain.nodes.wire.families.partitions import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionRequest,
    AlterPartitionResponse,
    InSyncBroker,
    PartitionToAlter,
    TopicToAlter,
)
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.invariants import Arrival
from tests.unit.simulation.kraft.small_controllers import Controllers, beat
from tests.unit.simulation.kraft.test_invariants_metadata import (
    TOPIC,
    fencing,
    partition,
    registration,
    request,
    two_brokers,
)

IDS = frozenset(invariant.id for invariant in INVARIANTS)
MINE = frozenset({*(f"INV-{number}" for number in range(50, 58)), "INV-66"})


def told(
    controllers: Controllers,
    message: msgspec.Struct,
    answer: msgspec.Struct,
    applied: int | None = None,
) -> None:
    """Let the oracle see a call of the leader answered that nobody asked.

    ``applied``: the leader had applied what is below it when it was asked; None: all.
    """
    oracle, host = controllers.cluster.oracle, controllers.leader.host
    header = RequestHeader(ApiKey.BROKER_HEARTBEAT, 1, 7, None)
    call = ReceivedCall(header, message)
    assert isinstance(oracle.called(host, call), Arrival)
    # The node itself has applied nothing of what the oracle alone has seen.
    end = len(controllers.ghost.committed) if applied is None else applied
    asked = Arrival(host.clock.now(), end)
    oracle.answered(host, call, answer, asked)


def beaten(*, fenced: bool = False, leaves: bool = False) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        throttle_time_ms=0, error_code=0, is_caught_up=True, is_fenced=fenced,
        should_shut_down=leaves,
    )  # fmt: skip


def appended(controllers: Controllers, *records: Any) -> None:
    """Let the oracle see a leader append what nobody decided, and see it committed."""
    leader = controllers.leader
    assert leader.log is not None
    first = len(controllers.ghost.committed)
    leader.log.truncate(first)
    payloads = tuple(encode_record(record) for record in records)
    epoch = leader.host.node.replica.epoch
    written = AppendRecords(0, Offset(first), epoch, payloads)
    controllers.cluster.oracle.after(leader.host, written)
    controllers.commit(*records)


def proposal(
    partition_epoch: int, *isr: tuple[int, int], epoch: int
) -> tuple[AlterPartitionRequest, AlterPartitionResponse]:
    """A proposal of broker 7, and what accepts it."""
    members = tuple(InSyncBroker(broker_id=each, broker_epoch=known) for each, known in isr)
    asked = PartitionToAlter(
        partition_index=0,
        leader_epoch=0,
        new_isr_with_epochs=members,
        leader_recovery_state=0,
        partition_epoch=partition_epoch,
    )
    altered = AlteredPartition(
        partition_index=0, error_code=0, leader_id=7, leader_epoch=0,
        isr=tuple(each for each, _ in isr), partition_epoch=partition_epoch + 1,
    )  # fmt: skip
    return (
        AlterPartitionRequest(
            broker_id=7,
            broker_epoch=epoch,
            topics=(TopicToAlter(topic_id=TOPIC, partitions=(asked,)),),
        ),
        AlterPartitionResponse(
            throttle_time_ms=0,
            error_code=0,
            topics=(AlteredTopic(topic_id=TOPIC, partitions=(altered,)),),
        ),
    )


def refused(answer: AlterPartitionResponse, code: int) -> AlterPartitionResponse:
    """The same answer, which accepts nothing."""
    (topic,) = answer.topics
    outcomes = tuple(
        msgspec.structs.replace(each, error_code=code, isr=()) for each in topic.partitions
    )
    return msgspec.structs.replace(
        answer, topics=(msgspec.structs.replace(topic, partitions=outcomes),)
    )


def ids(first: int, *, broker_id: int, epoch: int) -> tuple[Any, Any]:
    """A question for producer ids, and the block that answers it."""
    return (
        AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch),
        AllocateProducerIdsResponse(
            throttle_time_ms=0, error_code=0, producer_id_start=first, producer_id_len=1_000
        ),
    )


def asking(broker_id: int, life: int, previous: int = -1) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="",
        incarnation_id=f"{16 * broker_id + life:032x}",
        listeners=(),
        features=(),
        rack=None,
        log_dirs=(f"{broker_id:032d}",),
        previous_broker_epoch=previous,
    )


def heartbeat_of_an_earlier_incarnation(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    told(controllers, beat(epoch - 1), beaten(fenced=True))


def heartbeat_of_nobody(controllers: Controllers) -> None:
    told(controllers, beat(3, broker_id=9), beaten(fenced=True))


def isr_proposed_before_another_change(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    controllers.commit(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(7,)))
    told(controllers, *proposal(0, (7, first), (8, second), epoch=first))


def isr_with_a_fenced_broker(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(fencing(8, second, 1))
    controllers.commit(TopicRecord("t", TOPIC), partition(7))
    told(controllers, *proposal(0, (7, first), (8, second), epoch=first))


def isr_with_an_earlier_incarnation(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7))
    told(controllers, *proposal(0, (7, first), (8, second - 1), epoch=first))


def good_isr_refused(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7))
    message, answer = proposal(0, (7, first), (8, second), epoch=first)
    told(controllers, message, refused(answer, ApiError.INVALID_UPDATE_VERSION))


def good_isr_that_the_controller_stumbles_over(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7))
    message, _ = proposal(0, (7, first), (8, second), epoch=first)
    stumbled = AlterPartitionResponse(
        throttle_time_ms=0, error_code=ApiError.UNKNOWN_SERVER_ERROR, topics=()
    )
    told(controllers, message, stumbled)


def producer_ids_given_to_two(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(ProducerIdsRecord(broker_id=7, broker_epoch=first, next_producer_id=1_000))
    told(controllers, *ids(0, broker_id=7, epoch=first))
    told(controllers, *ids(0, broker_id=8, epoch=second))


def registration_told_that_nobody_has(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    answer = BrokerRegistrationResponse(throttle_time_ms=0, error_code=0, broker_epoch=epoch + 9)
    told(controllers, asking(7, 2), answer)


def producer_ids_told_before_they_are_written(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    told(controllers, *ids(0, broker_id=7, epoch=epoch))


def isr_told_that_is_not_committed(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7))
    told(controllers, *proposal(0, (7, first), (8, second), epoch=first))


def end_of_a_fence_told_too_early(controllers: Controllers) -> None:
    epoch = len(controllers.ghost.committed)
    controllers.commit(registration(7, epoch))
    told(controllers, beat(epoch), beaten(fenced=False))


def broker_let_go_before_another_one_knows(controllers: Controllers) -> None:
    first, _ = two_brokers(controllers)
    told(controllers, beat(first), beaten())
    leaving = BrokerRegistrationChangeRecord(
        broker_id=7, broker_epoch=first, in_controlled_shutdown=1
    )
    appended(controllers, leaving)
    told(controllers, beat(first), beaten(fenced=True, leaves=True))


def second_process_of_a_broker_that_lives(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    told(controllers, beat(epoch), beaten())
    appended(controllers, registration(7, len(controllers.ghost.committed), life=2))


def view_of_metadata_in_which_the_broker_is_fenced(controllers: Controllers) -> None:
    broker = controllers.ghost.machines[NodeId(4)]
    said = ClientAnswer(1, "ok", definite=True, result=None, offset=2)
    controllers.cluster.oracle.replied(broker.host, request("describe-topic", "t"), said, 0)


def clean_stop_of_the_life_before_the_last(controllers: Controllers) -> None:
    oracle, host = controllers.cluster.oracle, controllers.leader.host
    lives: list[int] = []
    for life in (1, 2):
        oracle.calls(host, asking(7, life, *lives))
        lives.append(len(controllers.ghost.committed))
        controllers.commit(registration(7, lives[-1], life))
        lives = lives[:1]
    oracle.calls(host, asking(7, 3, lives[0]))


CASES: list[tuple[str, Callable[[Controllers], None]]] = [
    ("INV-50", heartbeat_of_an_earlier_incarnation),
    ("INV-50", heartbeat_of_nobody),
    ("INV-51", isr_proposed_before_another_change),
    ("INV-51", isr_with_a_fenced_broker),
    ("INV-51", isr_with_an_earlier_incarnation),
    ("INV-52", producer_ids_given_to_two),
    ("INV-53", registration_told_that_nobody_has),
    ("INV-53", producer_ids_told_before_they_are_written),
    ("INV-53", isr_told_that_is_not_committed),
    ("INV-53", end_of_a_fence_told_too_early),
    ("INV-54", broker_let_go_before_another_one_knows),
    ("INV-55", second_process_of_a_broker_that_lives),
    ("INV-56", view_of_metadata_in_which_the_broker_is_fenced),
    ("INV-57", clean_stop_of_the_life_before_the_last),
    ("INV-66", good_isr_refused),
    ("INV-66", good_isr_that_the_controller_stumbles_over),
]


def test_every_invariant_of_brokers_has_a_case() -> None:
    assert {invariant for invariant, _ in CASES} == MINE


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_an_invariant_of_brokers_turns_red_when_it_is_broken(
    invariant: str, break_it: Callable[[Controllers], None]
) -> None:
    controllers = Controllers(muted=IDS - {invariant}, brokers=1)
    with pytest.raises(ViolationError) as caught:
        break_it(controllers)
    assert caught.value.invariant == invariant


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_nobody_sees_it_where_all_are_muted(
    invariant: str, break_it: Callable[[Controllers], None]
) -> None:
    del invariant
    break_it(Controllers(muted=IDS, brokers=1))


def test_what_controllers_may_tell_brokers_alarms_nobody() -> None:
    controllers = Controllers(muted=IDS - MINE)
    first, second = two_brokers(controllers)
    told(controllers, asking(7, 1), BrokerRegistrationResponse(
        throttle_time_ms=0, error_code=0, broker_epoch=first
    ))  # fmt: skip
    told(controllers, beat(first), beaten())
    controllers.commit(TopicRecord("t", TOPIC), partition(7))
    controllers.commit(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(7, 8)))
    message, answer = proposal(0, (7, first), (8, second), epoch=first)
    told(controllers, message, answer, applied=len(controllers.ghost.committed) - 1)
    for start, broker_id, epoch in ((0, 7, first), (1_000, 8, second)):
        written = ProducerIdsRecord(
            broker_id=broker_id, broker_epoch=epoch, next_producer_id=start + 1_000
        )
        controllers.commit(written)
        told(controllers, *ids(start, broker_id=broker_id, epoch=epoch))
    leaving = BrokerRegistrationChangeRecord(
        broker_id=7, broker_epoch=first, in_controlled_shutdown=1
    )
    appended(controllers, leaving)
    told(controllers, beat(second, 8, len(controllers.ghost.committed)), beaten())
    told(controllers, beat(first), beaten(fenced=True, leaves=True))
    # Once its session is over another process may come in its place.
    controllers.run(2_000_000)
    appended(controllers, registration(7, len(controllers.ghost.committed), life=2))
    late = beaten(fenced=True)
    told(controllers, beat(first, 9), msgspec.structs.replace(late, error_code=77))


def test_a_proposal_that_is_not_good_may_be_refused() -> None:
    controllers = Controllers(muted=IDS - MINE)
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7))
    for members, epoch in (
        (((8, second),), 0),
        (((7, first), (9, 3)), 0),
        (((7, first), (8, second - 1)), 0),
        (((7, first), (8, second), (8, second)), 0),
        (((7, first), (8, second)), 1),
    ):
        message, answer = proposal(epoch, *members, epoch=first)
        told(controllers, message, refused(answer, ApiError.INVALID_REQUEST))
    message, answer = proposal(0, (7, first), (8, second), epoch=first)
    told(controllers, message, refused(answer, ApiError.NEW_LEADER_ELECTED))
    deposed = msgspec.structs.replace(answer, error_code=ApiError.NOT_CONTROLLER, topics=())
    told(controllers, message, deposed)
    # It changed while the proposal was looked at.
    changed = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(7, 8))
    controllers.commit(changed)
    before = len(controllers.ghost.committed) - 1
    told(controllers, message, refused(answer, ApiError.INVALID_UPDATE_VERSION), applied=before)
    controllers.commit(fencing(8, second, 1))
    message, answer = proposal(1, (7, first), (8, second), epoch=first)
    told(controllers, message, refused(answer, ApiError.INELIGIBLE_REPLICA))
