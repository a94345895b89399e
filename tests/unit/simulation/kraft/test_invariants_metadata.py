"""Each invariant of the metadata turns red by a committed record, or an answer, that breaks it."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.quorum.effects import AppendRecords
from splitbrain.nodes.quorum.identifiers import Epoch, NodeId, Offset
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from tests.unit.nodes.controller.clusters import directory_of
from tests.unit.nodes.controller.clusters import partition as partition_of
from tests.unit.simulation.kraft.small_controllers import Controllers

TOPIC, OTHER = "a" * 32, "b" * 32
UNFENCED = -1
IDS = frozenset(invariant.id for invariant in INVARIANTS)


def registration(broker_id: int, broker_epoch: int, life: int = 1) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=f"{16 * broker_id + life:032x}",
        broker_epoch=broker_epoch,
        end_points=(),
        features=(),
        rack=None,
        log_dirs=(directory_of(broker_id),),
    )


def fencing(broker_id: int, broker_epoch: int, fenced: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, fenced=fenced
    )


def partition(*isr: int, leader: int = 7) -> PartitionRecord:
    return partition_of(TOPIC, 0, (7, 8), isr=isr, leader=leader)


def two_brokers(controllers: Controllers) -> tuple[int, int]:
    """Brokers 7 and 8, unfenced; their epochs."""
    epochs: list[int] = []
    for broker_id in (7, 8):
        epoch = len(controllers.ghost.committed)
        controllers.commit(registration(broker_id, epoch))
        controllers.commit(fencing(broker_id, epoch, UNFENCED))
        epochs.append(epoch)
    return epochs[0], epochs[1]


def request(kind: str, key: str, operation: str = "c0.1-1") -> ClientRequest:
    return ClientRequest(1, kind, key, operation=operation)  # type: ignore[arg-type]


def topic_removed_that_never_was(controllers: Controllers) -> None:
    controllers.commit(RemoveTopicRecord(TOPIC))


def transaction_kept_open_at_failover(controllers: Controllers) -> None:
    controllers.commit(BeginTransactionRecord(None))
    epoch = controllers.leader.host.node.replica.epoch
    controllers.commit(NoOpRecord(), epoch=epoch + 1)


def append(controllers: Controllers, record: MetadataRecord, *, epoch: int = 0) -> None:
    """Let the oracle see a record written that nobody wrote; ``epoch``: so many ahead."""
    leader = controllers.leader
    replica = leader.host.node.replica
    written = Epoch(replica.epoch + epoch)
    payload = encode_record(record)
    effect = AppendRecords(0, Offset(replica.log_end_offset), written, (payload,))
    controllers.cluster.oracle.after(leader.host, effect)


def next_leader_that_goes_on_in_the_transaction(controllers: Controllers) -> None:
    controllers.commit(BeginTransactionRecord(None))
    append(controllers, NoOpRecord(), epoch=1)


def epoch_given_twice(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    controllers.commit(registration(9, epoch))


def epoch_of_the_incarnation_before(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    controllers.commit(registration(7, epoch, life=2))


def epoch_below_the_one_before(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    controllers.commit(registration(7, epoch - 1, life=2))


def new_partition_led_by_a_fenced_broker(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    controllers.commit(registration(7, epoch + 100, life=2))
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))


def fenced_broker_that_leads_on(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    controllers.commit(fencing(7, epoch, 1))


def fenced_broker_that_stays_in_sync(controllers: Controllers) -> None:
    _, epoch = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    controllers.commit(fencing(8, epoch, 1))


def leader_that_is_not_in_sync(controllers: Controllers) -> None:
    two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    controllers.commit(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(8,)))


def record_told_twice(controllers: Controllers) -> None:
    two_brokers(controllers)
    first = controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    for operation in ("c0.1-1", "c0.2-1"):
        ask = request("create-topic", "t", operation)
        controllers.reply(ask, result=True, offset=first, epoch=1)


def topic_told_to_be_there_that_never_was(controllers: Controllers) -> None:
    controllers.reply(request("create-topic", "t"), result=False)


def topic_told_to_be_gone_that_always_was(controllers: Controllers) -> None:
    two_brokers(controllers)
    first = controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    controllers.reply(request("delete-topic", "t"), floor=first + 2, result=False)


def view_that_goes_back(controllers: Controllers) -> None:
    broker = controllers.ghost.machines[NodeId(4)]
    for offset in (5, 4):
        said = ClientAnswer(1, "ok", definite=True, result=None, offset=offset)
        controllers.cluster.oracle.replied(broker.host, request("describe-topic", "t"), said, 0)


def broker_unfenced_that_lags_behind(controllers: Controllers) -> None:
    """Broker 7 is no node of the world, and has applied nothing."""
    append(controllers, fencing(7, 9, UNFENCED))


CASES: list[tuple[str, Callable[[Controllers], None]]] = [
    ("INV-43", topic_removed_that_never_was),
    ("INV-44", transaction_kept_open_at_failover),
    ("INV-44", next_leader_that_goes_on_in_the_transaction),
    ("INV-45", epoch_given_twice),
    ("INV-45", epoch_of_the_incarnation_before),
    ("INV-45", epoch_below_the_one_before),
    ("INV-46", new_partition_led_by_a_fenced_broker),
    ("INV-46", fenced_broker_that_leads_on),
    ("INV-46", fenced_broker_that_stays_in_sync),
    ("INV-46", leader_that_is_not_in_sync),
    ("INV-47", record_told_twice),
    ("INV-47", topic_told_to_be_there_that_never_was),
    ("INV-47", topic_told_to_be_gone_that_always_was),
    ("INV-48", view_that_goes_back),
    ("INV-49", broker_unfenced_that_lags_behind),
]


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_an_invariant_of_the_metadata_turns_red_when_it_is_broken(
    invariant: str, break_it: Callable[[Controllers], None]
) -> None:
    controllers = Controllers(muted=IDS - {invariant}, brokers=1)
    with pytest.raises(ViolationError) as caught:
        break_it(controllers)
    assert caught.value.invariant == invariant


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_nobody_else_sees_it_where_it_is_muted(
    invariant: str, break_it: Callable[[Controllers], None]
) -> None:
    del invariant
    break_it(Controllers(muted=IDS, brokers=1))


def test_a_transaction_is_ended_or_aborted_without_an_alarm() -> None:
    """By its own leader, record by record; or by the next one, who then begins its own."""
    controllers = Controllers(muted=IDS - {"INV-44"})
    controllers.commit(BeginTransactionRecord(None))
    append(controllers, NoOpRecord())
    append(controllers, EndTransactionRecord())
    append(controllers, AbortTransactionRecord(None), epoch=2)
    append(controllers, BeginTransactionRecord(None), epoch=2)
    # Deposed meanwhile, and none the wiser.
    append(controllers, NoOpRecord(), epoch=1)
    with pytest.raises(ViolationError):
        append(controllers, BeginTransactionRecord(None), epoch=3)


def test_what_brokers_may_do_alarms_nobody() -> None:
    """The last in sync stays alone, without a leader; a new life of a broker has a new epoch."""
    controllers = Controllers(muted=IDS - {case[0] for case in CASES})
    first, second = two_brokers(controllers)
    offset = controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    ask = request("create-topic", "t")
    controllers.reply(ask, result=True, offset=offset, epoch=1)
    controllers.reply(request("create-topic", "t", "c0.2-1"), floor=offset + 1, result=False)
    controllers.commit(
        fencing(7, first, 1),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(8,), leader=8),
    )
    controllers.commit(
        fencing(8, second, 1),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=-1),
    )
    controllers.commit(registration(8, len(controllers.ghost.committed), life=2))
    controllers.commit(RemoveTopicRecord(TOPIC))
    controllers.reply(request("delete-topic", "t", "c0.3-1"), result=False)
    assert controllers.ledger.problem is None
    assert not controllers.metadata.topics
    assert controllers.metadata.brokers[8].fenced
