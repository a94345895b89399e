"""Each invariant of brokers' sessions turns red by what a controller does, or leaves undone."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.metadata.records import BrokerRegistrationChangeRecord
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from tests.unit.simulation.kraft.small_controllers import Controllers, beat
from tests.unit.simulation.kraft.test_invariants_brokers import appended, beaten, told
from tests.unit.simulation.kraft.test_invariants_metadata import (
    fencing,
    registration,
    two_brokers,
)

IDS = frozenset(invariant.id for invariant in INVARIANTS)
MINE = frozenset({"INV-62", "INV-63", "INV-64"})
SESSION_US = 900_000


def wish(controllers: Controllers, epoch: int) -> None:
    """Let broker 7 ask to be fenced, and wait for the answer."""
    header = RequestHeader(ApiKey.BROKER_HEARTBEAT, 1, 7, None)
    call = ReceivedCall(header, beat(epoch, want_fence=True))
    controllers.cluster.oracle.called(controllers.leader.host, call)


def silent_broker_that_stays(controllers: Controllers) -> None:
    """The oracle alone has seen it unfenced."""
    two_brokers(controllers)
    controllers.run(3 * SESSION_US)


def broker_that_falls_silent(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    for _ in range(4):
        for broker_id, of in ((7, epoch), (8, epoch + 2)):
            told(controllers, beat(of, broker_id), beaten())
        controllers.run(SESSION_US // 2)
    controllers.run(2 * SESSION_US)


def caught_up_broker_that_is_left_fenced(controllers: Controllers) -> None:
    epoch = len(controllers.ghost.committed)
    controllers.commit(registration(7, epoch))
    told(controllers, beat(epoch, offset=epoch), beaten(fenced=True))


def live_broker_that_is_fenced(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    controllers.run(2 * SESSION_US)
    told(controllers, beat(epoch), beaten())
    controllers.run(SESSION_US // 2)
    appended(controllers, fencing(7, epoch, 1))


def broker_that_a_new_controller_gives_no_session(controllers: Controllers) -> None:
    epoch, _ = two_brokers(controllers)
    appended(controllers, fencing(7, epoch, 1))


CASES: list[tuple[str, Callable[[Controllers], None]]] = [
    ("INV-62", silent_broker_that_stays),
    ("INV-62", broker_that_falls_silent),
    ("INV-63", caught_up_broker_that_is_left_fenced),
    ("INV-64", live_broker_that_is_fenced),
    ("INV-64", broker_that_a_new_controller_gives_no_session),
]


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_an_invariant_of_sessions_turns_red_when_it_is_broken(
    invariant: str, break_it: Callable[[Controllers], None]
) -> None:
    controllers = Controllers(muted=IDS - {invariant})
    with pytest.raises(ViolationError) as caught:
        break_it(controllers)
    assert caught.value.invariant == invariant


def test_every_invariant_of_sessions_has_a_case() -> None:
    assert {invariant for invariant, _ in CASES} == MINE


def test_brokers_that_lag_ask_for_it_or_are_silent_may_be_fenced() -> None:
    controllers = Controllers(muted=IDS - MINE)
    first, second = two_brokers(controllers)
    wish(controllers, first)
    appended(controllers, fencing(7, first, 1))
    leaving = BrokerRegistrationChangeRecord(8, second, in_controlled_shutdown=1)
    appended(controllers, leaving)
    appended(controllers, fencing(8, second, 1))
    # It has not applied its registration.
    told(controllers, beat(first, offset=first - 1), beaten(fenced=True))
    controllers.run(3 * SESSION_US)
    epoch = len(controllers.ghost.committed)
    controllers.commit(registration(9, epoch))
    controllers.commit(fencing(9, epoch, -1))
    told(controllers, beat(epoch, 9), beaten())
    controllers.run(SESSION_US)
    appended(controllers, fencing(9, epoch, 1))


def test_a_controller_that_slept_is_given_the_time_to_fence() -> None:
    controllers = Controllers(muted=IDS - MINE, brokers=1)
    leader = controllers.leader.host
    controllers.cluster.pause(leader.name)
    controllers.run(4 * SESSION_US)
    controllers.cluster.resume(leader.name)
    controllers.run(4 * SESSION_US)
