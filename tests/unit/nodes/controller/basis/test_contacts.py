"""Sessions of brokers, and what a leader knows of them beside the records."""

from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.controller.basis.contacts import Contacts, Incarnation
from splitbrain.nodes.quorum.identifiers import Microseconds, Offset
from tests.unit.nodes.controller.led_cluster import SESSION, Cluster

ONE, TWO = Incarnation(1, 10), Incarnation(2, 20)


def at(now: int) -> Microseconds:
    return Microseconds(now)


def test_a_session_lasts_the_whole_timeout_and_no_longer() -> None:
    contacts = Contacts()
    contacts.hear(ONE, at(5))
    assert contacts.has_session(ONE, at(5 + SESSION), SESSION)
    assert not contacts.has_session(ONE, at(5 + SESSION + 1), SESSION)
    assert contacts.stale(at(5 + SESSION), SESSION) == ()
    assert contacts.stale(at(5 + SESSION + 1), SESSION) == (ONE,)
    assert contacts.next_stale_at(SESSION) == 5 + SESSION + 1


def test_who_was_never_heard_of_has_no_session() -> None:
    contacts = Contacts()
    assert not contacts.has_session(ONE, at(0), SESSION)
    assert contacts.next_stale_at(SESSION) is None
    contacts.hear(ONE, at(0))
    assert not contacts.has_session(Incarnation(ONE.broker_id, ONE.epoch + 1), at(0), SESSION)


def test_an_ended_session_is_not_stale_again() -> None:
    contacts = Contacts()
    contacts.hear(ONE, at(0))
    contacts.end_session(ONE)
    assert contacts.stale(at(SESSION * 2), SESSION) == ()


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5))))
def test_the_longest_silent_comes_first(heard: list[tuple[int, int]]) -> None:
    contacts, now, last = Contacts(), 0, dict[int, int]()
    for broker_id, passed in heard:
        now += passed
        contacts.hear(Incarnation(broker_id, 0), at(now))
        last[broker_id] = now
    timeout = at(3)
    due = [each for each in last if now - last[each] > timeout]
    stale = [each.broker_id for each in contacts.stale(at(now), timeout)]
    assert sorted(stale) == sorted(due)
    assert [last[each] for each in stale] == sorted(last[each] for each in due)
    assert contacts.next_stale_at(timeout) == (min(last.values()) + 4 if last else None)


def test_a_new_leader_gives_a_session_to_brokers_that_are_not_fenced() -> None:
    cluster = Cluster(1)
    cluster.register(2)
    contacts = Contacts.of_new_leader(cluster.image, at(100))
    assert contacts.has_session(Incarnation(1, cluster.epoch(1)), at(100 + SESSION), SESSION)
    assert not contacts.has_session(Incarnation(2, cluster.epoch(2)), at(100), SESSION)
    # Nothing that another leader wrote of a broker stands later than the image reaches.
    assert contacts.registration_offset(1, cluster.epoch(1)) == cluster.next_offset - 1
    assert Contacts().registration_offset(1, cluster.epoch(1)) == cluster.epoch(1)


def test_the_lowest_active_offset_counts_brokers_that_serve_and_stay() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.register(4)
    contacts = Contacts()
    contacts.report(1, Offset(7))
    contacts.report(2, Offset(9))
    assert contacts.lowest_active_offset(cluster.image) == -1
    contacts.begin_shutdown(3, Offset(5))
    assert contacts.lowest_active_offset(cluster.image) == 7
    contacts.begin_shutdown(1, Offset(8))
    contacts.begin_shutdown(2, Offset(8))
    assert contacts.lowest_active_offset(cluster.image) is None


def test_the_first_shutdown_offset_counts_until_the_broker_is_fenced() -> None:
    contacts = Contacts()
    contacts.begin_shutdown(1, Offset(5))
    contacts.begin_shutdown(1, Offset(8))
    assert contacts.shutdown_offset(1) == 5
    contacts.end_shutdown(1)
    assert contacts.shutdown_offset(1) is None


def test_a_new_registration_voids_what_the_earlier_one_said() -> None:
    contacts = Contacts()
    contacts.report(1, Offset(5))
    contacts.begin_shutdown(1, Offset(5))
    contacts.registered(1, Offset(9))
    assert contacts.shutdown_offset(1) is None
    assert contacts.registration_offset(1, 3) == 9
    contacts.forget(1)
    assert contacts.registration_offset(1, 3) == 3
