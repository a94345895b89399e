"""Brokers with a controller of ours: what it makes of them, and they of it."""

from typing import Any

from splitbrain.nodes.broker.effects import BecameRunning, Recover
from splitbrain.nodes.broker.events import ShutdownAsked
from splitbrain.nodes.broker.lifecycle import BrokerState
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.families.brokers import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    UnregisterBrokerRequest,
)
from tests.unit.nodes.broker.broker_world import CONTROLLERS, Process, World
from tests.unit.nodes.controller.led_cluster import SECOND, directory


def running(**identity: Any) -> tuple[World, Process]:
    """Return broker 1 after a second, and its world."""
    world = World()
    process = world.start(1, **identity)
    world.run(1)
    return world, process


def leading() -> tuple[World, Process, Process]:
    """Return broker 1, which leads a partition of both, and broker 2."""
    world = World()
    leader, other = world.start(1), world.start(2)
    world.run(1)
    world.cluster.add_topic((1, 2))
    world.run(3)
    return world, leader, other


def beats(process: Process) -> list[BrokerHeartbeatRequest]:
    return [
        each.request for each in process.sent if isinstance(each.request, BrokerHeartbeatRequest)
    ]


def test_a_broker_registers_catches_up_and_is_unfenced_within_a_tenth_of_a_second() -> None:
    world = World()
    process = world.start(1)
    world.run(0.2)
    assert process.state is BrokerState.RUNNING
    assert [type(effect) for _, effect in process.reported] == [Recover, BecameRunning]
    assert process.reported[-1][0] < SECOND // 10
    assert not world.cluster.image.brokers[1].fenced
    assert not process.lifecycle.is_fenced


def test_a_broker_stays_fenced_until_its_own_image_says_otherwise() -> None:
    world = World()
    process = world.start(1)
    process.lags = True
    world.run(1)
    assert process.state is BrokerState.STARTING
    process.lags = False
    # Now it has its registration, and lags behind its unfencing.
    while process.state is not BrokerState.RUNNING:
        process.lags = process.lifecycle.image is not MetadataImage() and any(
            isinstance(effect, Recover) for _, effect in process.reported
        )
        world.run(0.001)
    assert process.lifecycle.is_fenced
    process.lags = False
    world.run(0.05)
    assert not process.lifecycle.is_fenced


def test_heartbeats_come_every_two_seconds_and_say_how_far_the_broker_is() -> None:
    world, process = running(cordoned_directories=(directory(1),))
    before = len(beats(process))
    world.run(20)
    new = beats(process)[before:]
    assert len(new) == 10
    assert {each.current_metadata_offset for each in new} == {world.cluster.next_offset - 1}
    assert {each.cordoned_log_dirs for each in new} == {(directory(1),)}
    assert beats(process)[0].cordoned_log_dirs is None


def test_directories_are_not_called_cordoned_where_no_record_could_say_so() -> None:
    world = World()
    world.cluster.append([records.FeatureLevelRecord("metadata.version", 29)])
    process = world.start(1)
    world.run(5)
    assert process.state is BrokerState.RUNNING
    assert {each.cordoned_log_dirs for each in beats(process)} == {None}


def test_a_broker_that_is_cut_off_is_fenced_knows_it_and_comes_back() -> None:
    world, process = running()
    process.is_cut = True
    world.run(15)
    # It cannot reach the controller, but follows the log, which says what became of it.
    assert world.cluster.image.brokers[1].fenced
    assert process.lifecycle.is_fenced
    assert process.state is BrokerState.RUNNING
    process.is_cut = False
    world.run(5)
    assert not world.cluster.image.brokers[1].fenced
    assert not process.lifecycle.is_fenced
    assert process.state is BrokerState.RUNNING
    assert sum(isinstance(effect, BecameRunning) for _, effect in process.reported) == 1


def test_a_frozen_broker_is_fenced_and_comes_back_in_its_state() -> None:
    world, process = running()
    process.freeze()
    world.run(12)
    assert world.cluster.image.brokers[1].fenced
    process.thaw()
    assert process.state is BrokerState.RUNNING
    world.run(5)
    assert not world.cluster.image.brokers[1].fenced
    assert not process.lifecycle.is_fenced


def test_a_second_process_waits_until_the_first_ones_session_is_over() -> None:
    world, first = running()
    first.freeze()
    second = world.start(1, life=2)
    world.run(5)
    assert second.state is BrokerState.STARTING
    assert second.lifecycle.broker_epoch == -1
    world.run(10)
    assert second.state is BrokerState.RUNNING
    assert not second.lifecycle.is_fenced
    # The first one wakes, finds itself displaced, and stays fenced for good.
    first.thaw()
    world.run(20)
    assert first.lifecycle.is_fenced
    assert world.cluster.image.brokers[1].broker_epoch == second.lifecycle.broker_epoch


def test_a_broker_that_leads_goes_when_others_have_taken_over() -> None:
    world, one, two = leading()
    world.stop(one)
    assert one.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    assert beats(one)[-1].want_shut_down
    world.run(0.02)
    assert world.cluster.partition().leader == 2
    assert one.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    world.run(5)
    stopped = one.stopped
    assert stopped is not None
    assert (stopped.clean, stopped.broker_epoch) == (True, one.lifecycle.broker_epoch)
    assert one.lifecycle.is_fenced
    assert world.cluster.image.brokers[1].fenced
    assert two.state is BrokerState.RUNNING


def test_the_first_heartbeat_after_a_pending_shutdown_comes_after_fifty_milliseconds() -> None:
    world, one, _ = leading()
    for other in world.processes[1:]:
        other.freeze()
    world.stop(one)
    before = len(one.sent)
    world.run(0.052)
    assert len(one.sent) == before
    world.run(0.005)
    assert len(one.sent) == before + 1
    # And the next ones in their time again.
    world.run(1.9)
    assert len(one.sent) == before + 1


def test_asked_twice_a_broker_that_goes_does_not_hurry() -> None:
    world, one, _ = leading()
    world.stop(one)
    world.stop(one)
    assert one.stopped is None
    one.step(ShutdownAsked(controlled=False))
    assert one.stopped is not None


def test_a_broker_finds_the_next_controller_and_keeps_its_epoch() -> None:
    world, process = running()
    epoch = process.lifecycle.broker_epoch
    for leader in (CONTROLLERS[1], None, CONTROLLERS[2], CONTROLLERS[0]):
        world.elect(leader)
        world.run(4)
    assert process.lifecycle.broker_epoch == epoch
    assert process.state is BrokerState.RUNNING
    assert not world.cluster.image.brokers[1].fenced
    assert {each.controller_id for each in process.sent} == set(CONTROLLERS)


def test_a_broker_that_was_unregistered_stays_fenced_until_it_is_restarted() -> None:
    world, process = running()
    world.cluster.ask(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1))
    world.run(20)
    assert process.lifecycle.is_fenced
    assert 1 not in world.cluster.image.brokers
    world.stop(process)
    again = world.start(1, life=2)
    world.run(1)
    assert again.state is BrokerState.RUNNING


def test_a_restarted_broker_starts_from_what_it_had_and_says_its_last_epoch() -> None:
    world, first = running()
    world.stop(first)
    world.run(1)
    stopped = first.stopped
    assert stopped is not None
    stored = first.lifecycle.image
    second = Process(world, 1, 2, previous_broker_epoch=stopped.broker_epoch)
    second.start(stored)
    # The old registration in the stored image is not taken for its own.
    assert second.lifecycle.is_fenced
    # A session outlives a clean stop: the controller takes no second process before it is over.
    world.run(15)
    assert second.state is BrokerState.RUNNING
    registration = second.sent[0].request
    assert isinstance(registration, BrokerRegistrationRequest)
    assert registration.previous_broker_epoch == stopped.broker_epoch
    first_beat = beats(second)[0]
    assert first_beat.current_metadata_offset >= stored.provenance.last_offset
