"""Each invariant of partitions turns red by a committed record that breaks it, and by no other."""

from collections.abc import Callable
from typing import Any

import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.metadata.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    TopicRecord,
)
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from tests.unit.nodes.controller.clusters import directory_of
from tests.unit.nodes.controller.clusters import partition as partition_of
from tests.unit.simulation.kraft.small_controllers import Controllers
from tests.unit.simulation.kraft.test_invariants_brokers import proposal
from tests.unit.simulation.kraft.test_invariants_metadata import (
    TOPIC,
    UNFENCED,
    fencing,
    partition,
    two_brokers,
)

IDS = frozenset(invariant.id for invariant in INVARIANTS)
MINE = frozenset(f"INV-{number}" for number in range(58, 62))
UNCLEAN = ConfigRecord(2, "t", "unclean.leader.election.enable", "true")


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)


def led(controllers: Controllers, *isr: int) -> tuple[int, int]:
    """A partition on brokers 7 and 8, led by the first of its ISR; the brokers' epochs."""
    epochs = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(*isr, leader=isr[0]))
    return epochs


def proposed(controllers: Controllers, *isr: int, partition_epoch: int = 0) -> None:
    """Let the oracle see broker 7 propose an ISR to the leader."""
    message, _ = proposal(partition_epoch, *((each, 0) for each in isr), epoch=0)
    call = ReceivedCall(RequestHeader(ApiKey.ALTER_PARTITION, 3, 7, None), message)
    controllers.cluster.oracle.called(controllers.leader.host, call)


def leaving(broker_id: int, epoch: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id, epoch, in_controlled_shutdown=1)


def two_replicas_on_one_broker(controllers: Controllers) -> None:
    two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition_of(TOPIC, 0, (7, 7), isr=(7,)))


def isr_of_a_broker_without_a_replica(controllers: Controllers) -> None:
    led(controllers, 7)
    controllers.commit(change(isr=(7, 9)))


def isr_of_nobody(controllers: Controllers) -> None:
    led(controllers, 7)
    controllers.commit(change(isr=(), leader=NO_LEADER))


def replica_without_a_directory(controllers: Controllers) -> None:
    led(controllers, 7)
    controllers.commit(change(directories=("7" * 32,)))


def recovery_state_that_is_none(controllers: Controllers) -> None:
    led(controllers, 7)
    controllers.commit(change(leader_recovery_state=2))


def new_partition_that_has_had_leaders(controllers: Controllers) -> None:
    two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition_of(TOPIC, 0, (7, 8), leader_epoch=1))


def leader_from_outside_the_isr(controllers: Controllers) -> None:
    first, _ = led(controllers, 7)
    controllers.commit(change(leader=8, isr=(8,), leader_recovery_state=1), fencing(7, first, 1))


def unclean_leader_though_another_can(controllers: Controllers) -> None:
    led(controllers, 7)
    controllers.commit(UNCLEAN, change(leader=8, isr=(8,), leader_recovery_state=1))


def unclean_leader_that_need_not_recover(controllers: Controllers) -> None:
    first, _ = led(controllers, 7)
    controllers.commit(UNCLEAN, change(leader=8, isr=(8,)), fencing(7, first, 1))


def leader_that_is_about_to_go(controllers: Controllers) -> None:
    _, second = led(controllers, 7, 8)
    controllers.commit(leaving(8, second), change(leader=8))


def leader_whose_directory_is_lost(controllers: Controllers) -> None:
    led(controllers, 7, 8)
    controllers.commit(change(leader=8, directories=(directory_of(7), "0" * 31 + "2")))


def broker_that_joins_unproposed(controllers: Controllers) -> None:
    led(controllers, 7)
    controllers.commit(change(isr=(7, 8)))


def broker_that_joins_by_an_older_proposal(controllers: Controllers) -> None:
    _, second = led(controllers, 7)
    proposed(controllers, 7, 8)
    controllers.commit(change(isr=(7, 8)), change(isr=(7,)), leaving(8, second))
    controllers.commit(change(isr=(7, 8)))


def live_broker_that_is_dropped(controllers: Controllers) -> None:
    led(controllers, 7, 8)
    proposed(controllers, 7, 8)
    controllers.commit(change(isr=(7,)))


def new_partition_with_a_broker_about_to_go(controllers: Controllers) -> None:
    _, second = two_brokers(controllers)
    controllers.commit(leaving(8, second))
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))


def nobody_leads_though_one_can(controllers: Controllers) -> None:
    led(controllers, 7, 8)
    controllers.commit(change(leader=NO_LEADER))


def nobody_leads_once_the_last_is_back(controllers: Controllers) -> None:
    first, _ = led(controllers, 7)
    controllers.commit(change(leader=NO_LEADER), fencing(7, first, 1))
    controllers.commit(fencing(7, first, UNFENCED))


CASES: list[tuple[str, Callable[[Controllers], None]]] = [
    ("INV-58", two_replicas_on_one_broker),
    ("INV-58", isr_of_a_broker_without_a_replica),
    ("INV-58", isr_of_nobody),
    ("INV-58", replica_without_a_directory),
    ("INV-58", recovery_state_that_is_none),
    ("INV-58", new_partition_that_has_had_leaders),
    ("INV-59", leader_from_outside_the_isr),
    ("INV-59", unclean_leader_though_another_can),
    ("INV-59", unclean_leader_that_need_not_recover),
    ("INV-59", leader_that_is_about_to_go),
    ("INV-59", leader_whose_directory_is_lost),
    ("INV-60", broker_that_joins_unproposed),
    ("INV-60", broker_that_joins_by_an_older_proposal),
    ("INV-60", live_broker_that_is_dropped),
    ("INV-60", new_partition_with_a_broker_about_to_go),
    ("INV-61", nobody_leads_though_one_can),
    ("INV-61", nobody_leads_once_the_last_is_back),
]


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_an_invariant_of_partitions_turns_red_when_it_is_broken(
    invariant: str, break_it: Callable[[Controllers], None]
) -> None:
    controllers = Controllers(muted=IDS - {invariant})
    with pytest.raises(ViolationError) as caught:
        break_it(controllers)
    assert caught.value.invariant == invariant


def test_every_invariant_of_partitions_has_a_case() -> None:
    assert {invariant for invariant, _ in CASES} == MINE


def test_elections_and_isrs_by_the_rules_alarm_nobody() -> None:
    controllers = Controllers(muted=IDS - MINE)
    first, second = led(controllers, 7, 8)
    # The leader drops a follower and takes it back.
    proposed(controllers, 7)
    controllers.commit(change(isr=(7,)))
    proposed(controllers, 7, 8, partition_epoch=1)
    controllers.commit(change(isr=(7, 8)))
    # A follower goes, and the last in sync too; where it is allowed, the other one leads alone.
    controllers.commit(change(isr=(7,)), fencing(8, second, 1))
    controllers.commit(change(leader=NO_LEADER), fencing(7, first, 1))
    controllers.commit(
        UNCLEAN,
        fencing(8, second, UNFENCED),
        change(leader=8, isr=(8,), leader_recovery_state=1),
    )
    state = controllers.partitions("t")[0]
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (8, 2, 5)


def test_a_broker_on_its_way_out_leads_again_once_an_old_heartbeat_unfences_it() -> None:
    # Seed 5023; a real controller does the same.
    controllers = Controllers(muted=IDS - MINE)
    first, _ = led(controllers, 7)
    controllers.commit(leaving(7, first), change(leader=NO_LEADER))
    controllers.commit(fencing(7, first, 1))
    controllers.commit(fencing(7, first, UNFENCED), change(leader=7))
    assert controllers.partitions("t")[0].leader == 7


def test_a_move_may_end_with_a_leader_that_its_old_one_proposed() -> None:
    controllers = Controllers(muted=IDS - MINE)
    led(controllers, 7)
    proposed(controllers, 7, 8)
    controllers.commit(change(isr=(8,), leader=8, replicas=(8,), directories=(directory_of(8),)))
    assert controllers.partitions("t")[0].leader == 8
