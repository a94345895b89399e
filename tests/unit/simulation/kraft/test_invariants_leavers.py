"""A broker that may go and is kept turns INV-65 red; one that has to wait does not."""

from collections.abc import Callable

import msgspec
import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    TopicRecord,
)
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from tests.unit.simulation.kraft.small_controllers import Controllers, beat
from tests.unit.simulation.kraft.test_invariants_brokers import appended, beaten, told
from tests.unit.simulation.kraft.test_invariants_metadata import (
    TOPIC,
    fencing,
    partition,
    two_brokers,
)

IDS = frozenset(invariant.id for invariant in INVARIANTS)
MINE = frozenset({"INV-65"})
#: Heartbeats that come at one instant may be taken in either order.
LATER_US = 1_000


def leaving(epoch: int, broker_id: int = 7) -> BrokerHeartbeatRequest:
    return msgspec.structs.replace(beat(epoch, broker_id), want_shut_down=True)


def handed_over(controllers: Controllers) -> tuple[int, int]:
    """Broker 7 is about to go, and 8 leads what it led; their epochs."""
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    begun = BrokerRegistrationChangeRecord(
        broker_id=7, broker_epoch=first, in_controlled_shutdown=1
    )
    moved = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(8,), leader=8)
    appended(controllers, begun, moved)
    controllers.run(LATER_US)
    return first, second


def says_how_far(controllers: Controllers, epoch: int, offset: int) -> None:
    """Let broker 8 say what it has applied."""
    told(controllers, beat(epoch, 8, offset), beaten())
    controllers.run(LATER_US)


def known(controllers: Controllers) -> int:
    """Offset of the last record."""
    return len(controllers.ghost.committed) - 1


def leaver_that_is_kept_though_the_others_know(controllers: Controllers) -> None:
    first, second = handed_over(controllers)
    says_how_far(controllers, second, known(controllers))
    told(controllers, leaving(first), beaten())


def leaver_that_is_kept_though_it_is_alone(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(fencing(8, second, 1))
    told(controllers, leaving(first), beaten())


def fenced_leaver_that_is_kept(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    says_how_far(controllers, second, known(controllers))
    controllers.commit(fencing(7, first, 1))
    told(controllers, leaving(first), beaten(fenced=True))


CASES: list[tuple[str, Callable[[Controllers], None]]] = [
    ("INV-65", leaver_that_is_kept_though_the_others_know),
    ("INV-65", leaver_that_is_kept_though_it_is_alone),
    ("INV-65", fenced_leaver_that_is_kept),
]


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_an_invariant_of_leavers_turns_red_when_it_is_broken(
    invariant: str, break_it: Callable[[Controllers], None]
) -> None:
    controllers = Controllers(muted=IDS - {invariant})
    with pytest.raises(ViolationError) as caught:
        break_it(controllers)
    assert caught.value.invariant == invariant


def leads_still(controllers: Controllers) -> None:
    first, second = two_brokers(controllers)
    controllers.commit(TopicRecord("t", TOPIC), partition(7, 8))
    says_how_far(controllers, second, known(controllers))
    told(controllers, leaving(first), beaten())


def others_have_not_said_it(controllers: Controllers) -> None:
    first, second = handed_over(controllers)
    told(controllers, leaving(first), beaten())
    says_how_far(controllers, second, known(controllers) - 1)
    told(controllers, leaving(first), beaten())


def others_say_it_at_the_same_instant(controllers: Controllers) -> None:
    first, second = handed_over(controllers)
    told(controllers, beat(second, 8, known(controllers)), beaten())
    told(controllers, leaving(first), beaten())


def another_broker_has_changed_since_it_said_it(controllers: Controllers) -> None:
    first, second = handed_over(controllers)
    says_how_far(controllers, second, known(controllers))
    cordoned = BrokerRegistrationChangeRecord(
        broker_id=8, broker_epoch=second, cordoned_log_dirs=()
    )
    appended(controllers, cordoned)
    told(controllers, leaving(first), beaten())


def another_word_is_under_way(controllers: Controllers) -> None:
    first, second = handed_over(controllers)
    says_how_far(controllers, second, known(controllers))
    oracle, host = controllers.cluster.oracle, controllers.leader.host
    header = RequestHeader(ApiKey.BROKER_HEARTBEAT, 1, 7, None)
    oracle.called(host, ReceivedCall(header, beat(second, 8, 0)))
    controllers.run(LATER_US)
    told(controllers, leaving(first), beaten())


def a_later_change_is_not_known(controllers: Controllers) -> None:
    first, second = handed_over(controllers)
    says_how_far(controllers, second, known(controllers))
    moved = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(8,), leader=-1)
    appended(controllers, moved)
    told(controllers, leaving(first), beaten())


@pytest.mark.parametrize(
    "wait",
    [
        leads_still,
        others_have_not_said_it,
        others_say_it_at_the_same_instant,
        another_broker_has_changed_since_it_said_it,
        another_word_is_under_way,
        a_later_change_is_not_known,
    ],
)
def test_a_leaver_that_has_to_wait_alarms_nobody(wait: Callable[[Controllers], None]) -> None:
    wait(Controllers(muted=IDS - MINE))


def test_a_leaver_that_is_let_go_alarms_nobody() -> None:
    controllers = Controllers(muted=IDS - MINE)
    first, second = handed_over(controllers)
    says_how_far(controllers, second, known(controllers))
    told(controllers, leaving(first), beaten(fenced=True, leaves=True))
