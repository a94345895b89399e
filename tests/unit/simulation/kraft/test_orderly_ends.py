"""A node that is asked to end, or ends by itself, winds up as a real process does."""

import errno
from pathlib import Path

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.nodes.server.host.node import RESIGNATION_US_MAX
from splitbrain.nodes.storage.layout import QUORUM_STATE, SEGMENT_SUFFIX, log_folder, segment_name
from splitbrain.simulation.kraft.host import Host
from tests.unit.simulation.kraft.unwatched_worlds import SECOND_US, Quorum


def cut_off(quorum: Quorum, host: Host) -> None:
    """Cut a node from its peers; its clients reach it."""
    others = [name for name in quorum.hosts if name != host.name]
    links = [Link(host.name, other) for other in others]
    quorum.world.network.cut([*links, *(Link(link.destination, host.name) for link in links)])


def test_a_leader_that_is_asked_to_end_hands_over_and_exits_of_its_own_accord() -> None:
    def until_another_leads(*, asks: bool) -> int:
        quorum = Quorum()
        quorum.start()
        old = quorum.await_leader()
        since_us = quorum.world.now
        if asks:
            old.terminate(1)
        else:
            old.end_life(lose_unsynced=False, draw=1)
        quorum.run_until(lambda: quorum.leader() not in {None, old})
        took_us = quorum.world.now - since_us
        quorum.run_until(lambda: not old.is_up, RESIGNATION_US_MAX + 100_000)
        assert old.ended is None, "it did what it was asked to"
        assert quorum.notes.of(old.name, "ended")
        stopped = [event for event in old.state_events.events if event.kind == "stopped"]
        assert [event.reason for event in stopped] == (["asked to stop"] if asks else [])
        old.start()
        quorum.run_until(lambda: old.serves)
        return took_us

    assert until_another_leads(asks=True) < until_another_leads(asks=False)


def test_a_stopping_node_answers_who_waits_and_then_closes_the_connection() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    caller = quorum.caller(leader.name)
    caller.knock()
    quorum.run(10_000)
    cut_off(quorum, leader)
    caller.ask(timeout_ms=20_000)
    quorum.run(50_000)
    assert caller.answers == []
    leader.terminate(1)
    quorum.run_until(lambda: not leader.is_up)
    quorum.run(50_000)
    assert [(answer.outcome, answer.definite) for answer in caller.answers] == [("unknown", False)]
    assert caller.losses == [("closed", False)]


def test_a_node_that_ends_by_itself_answers_who_waits_too() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    caller = quorum.caller(leader.name)
    caller.knock()
    quorum.run(10_000)
    leader.disk.fail_next("write", errno.EIO, path_suffix=SEGMENT_SUFFIX)
    caller.ask()
    quorum.run_until(lambda: not leader.is_up)
    quorum.run(50_000)
    assert leader.ended is not None
    assert [(answer.outcome, answer.definite) for answer in caller.answers] == [("stopping", True)]
    assert caller.losses == [("closed", False)]


def test_an_end_that_nobody_asked_for_is_one_by_itself_whatever_its_exit_code() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    leader.node.stop()
    quorum.run_until(lambda: not leader.is_up)
    assert leader.ended == "exit code 0: asked to stop"


def test_a_process_that_ends_waits_for_its_disk_and_keeps_what_that_did() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    path = log_folder(leader.folder) / segment_name(0)
    before = len(leader.disk.durable_content(path) or b"")
    leader.disk_speed.slow_down(1_000)
    caller = quorum.caller(leader.name)
    caller.ask()
    quorum.run_until(lambda: leader.disk.job_in_flight)
    leader.terminate(1)
    quorum.run_until(lambda: leader.node.has_ended)
    assert leader.is_up, "its disk is at work"
    assert not leader.serves
    leader.disk_speed.slow_down(1)
    quorum.run_until(lambda: not leader.is_up)
    assert not leader.disk.job_in_flight
    assert len(leader.disk.durable_content(path) or b"") > before


def test_a_frozen_node_takes_the_signal_when_it_goes_on() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    leader.pause()
    leader.terminate(1)
    quorum.run(2 * SECOND_US)
    assert leader.is_up
    leader.resume()
    quorum.run_until(lambda: not leader.is_up)
    assert leader.ended is None


def test_before_it_listens_a_node_dies_of_the_signal() -> None:
    quorum = Quorum()
    host = quorum.host("n1")
    host.start()
    assert host.is_up
    host.terminate(1)
    quorum.run(0)
    assert not host.is_up
    assert quorum.notes.of("n1", "started") == []
    host.start()
    quorum.run_until(lambda: host.serves)


def test_a_second_signal_and_one_to_a_node_that_is_down_change_nothing() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    leader.terminate(1)
    leader.terminate(2)
    quorum.run_until(lambda: not leader.is_up)
    leader.terminate(3)
    quorum.run(SECOND_US)
    assert len(quorum.notes.of(leader.name, "ended")) == 1


def test_a_power_cut_ends_a_process_that_winds_up_with_what_it_had_not_synced() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    leader.disk_speed.slow_down(1_000)
    quorum.caller(leader.name).ask()
    quorum.run_until(lambda: leader.disk.job_in_flight)
    leader.terminate(1)
    quorum.run_until(lambda: leader.node.has_ended)
    leader.end_life(lose_unsynced=True, draw=3)
    quorum.run(5 * SECOND_US)
    assert len(quorum.notes.of(leader.name, "ended")) == 1
    assert NodeName(leader.name) in quorum.hosts
    assert leader.disk.durable_content(Path(f"{log_folder(leader.folder)}/{QUORUM_STATE}"))
