"""A machine and its node from start to end."""

import errno

from splitbrain.contracts.scenario import NetworkOptions
from splitbrain.nodes.storage.layout import META_PROPERTIES
from splitbrain.simulation.kraft.happenings import HAPPENINGS
from splitbrain.simulation.kraft.host import Host
from tests.unit.simulation.kraft.unwatched_worlds import SECOND_US, Quorum

#: Happenings that every quiet election and a few writes bring, and the node must not survive.
COMMON = tuple(name for name in HAPPENINGS if name != "truncates")


def test_a_frozen_node_takes_nothing_and_its_backlog_runs_in_order() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    caller = quorum.caller(leader.name)
    caller.knock()
    quorum.run(10_000)
    assert caller.greetings == 1
    leader.pause()
    assert leader.is_paused
    assert not leader.serves
    taken = len(quorum.notes.of(leader.name, "takes"))
    asked = [caller.ask("status") for _ in range(8)]
    caller.knock()
    quorum.run(SECOND_US)
    assert caller.answers == []
    assert len(quorum.notes.of(leader.name, "takes")) == taken
    assert caller.losses == [], "a frozen node's kernel keeps its connections"
    leader.resume()
    quorum.run(10_000)
    assert [answer.id for answer in caller.answers] == asked
    assert caller.greetings == 2
    assert len(quorum.notes.of(leader.name, "takes")) > taken


def test_a_frozen_leader_is_replaced_and_steps_down_when_it_goes_on() -> None:
    quorum = Quorum()
    quorum.start()
    old = quorum.await_leader()
    old.pause()
    quorum.run_until(lambda: quorum.leader() not in {None, old})
    old.resume()
    quorum.run_until(lambda: old.node.replica.role != "leader")
    assert old.is_up


def test_frozen_in_the_midst_of_its_backlog_the_rest_waits_in_order() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    caller = quorum.caller(leader.name)
    leader.pause()
    asked = [caller.ask("status") for _ in range(6)]
    quorum.run(SECOND_US)
    host_replied = quorum.notes.replied

    def freeze_at_the_second(host: Host, request: object, answer: object, token: object) -> None:
        host_replied(host, request, answer, token)  # type: ignore[arg-type]
        if len(quorum.notes.of(leader.name, "replies")) == 2:
            host.pause()

    quorum.notes.replied = freeze_at_the_second  # type: ignore[method-assign]
    leader.resume()
    quorum.run(10_000)
    assert [answer.id for answer in caller.answers] == asked[:2]
    leader.resume()
    quorum.run(10_000)
    assert [answer.id for answer in caller.answers] == asked


def test_frozen_while_it_boots_it_begins_when_it_goes_on() -> None:
    quorum = Quorum()
    host = quorum.host("n1")
    host.start()
    host.pause()
    quorum.run(SECOND_US)
    assert quorum.notes.of("n1", "started") == []
    host.resume()
    assert quorum.notes.of("n1", "started") == [0]


def test_starting_a_node_that_is_up_does_nothing() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    node = leader.node
    leader.start()
    assert leader.node is node


def test_a_wiped_disk_comes_back_with_a_fresh_directory_id_and_no_vote() -> None:
    quorum = Quorum(5)
    quorum.start()
    leader = quorum.await_leader()
    victim = next(host for host in quorum.hosts.values() if host is not leader)
    victim.end_life(lose_unsynced=False, draw=1)
    victim.disk.wipe()
    victim.start()
    quorum.run_until(lambda: victim.serves and victim.node.replica.high_watermark > 0)
    assert len(victim.directory_ids) == 2
    assert victim.directory_ids[0] != victim.directory_ids[1]
    assert not victim.node.replica.is_voter
    assert victim.incarnation == 1, "a number that an earlier life had is not taken twice"


def test_the_fresh_directory_id_is_the_seed_s() -> None:
    def fresh(seed: int) -> object:
        quorum = Quorum(seed)
        host = quorum.host("n2")
        host.start()
        quorum.run_until(lambda: host.serves)
        host.end_life(lose_unsynced=False, draw=1)
        host.disk.wipe()
        host.start()
        return host.directory_ids[-1]

    assert fresh(1) == fresh(1) != fresh(2)


def test_a_node_that_cannot_start_says_why_and_can_be_started_again() -> None:
    quorum = Quorum()
    host = quorum.host("n1")
    host.disk.fail_reads(META_PROPERTIES, errno.EIO)
    host.start()
    assert not host.is_up
    assert host.ended is not None
    assert "could not start" in host.ended
    host.disk.clear_faults()
    host.start()
    quorum.run_until(lambda: host.serves)
    assert host.ended is None


def test_a_rotten_identity_is_refused_for_good() -> None:
    quorum = Quorum()
    host = quorum.host("n1")
    path = host.folder / META_PROPERTIES
    content = host.disk.read(path)
    host.disk.rot(path, content.index(b"node.id") + len(b"node.id="), 0x0F)
    for _ in range(2):
        host.start()
        assert not host.is_up
        assert META_PROPERTIES in (host.ended or "")


def test_a_failed_sync_ends_the_node_which_says_why() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    leader.disk.fail_next("sync", errno.EIO)
    quorum.caller(leader.name).ask()
    quorum.run_until(lambda: not leader.is_up)
    assert "disk failed" in (leader.ended or "")
    assert quorum.notes.of(leader.name, "ended") == [0]
    position = len(quorum.notes.lines)
    quorum.run(SECOND_US)
    assert [line for line in quorum.notes.lines[position:] if line[0] == leader.name] == []
    leader.start()
    quorum.run_until(lambda: leader.serves)
    assert leader.ended is None


def test_messages_through_the_wire_codec_make_the_same_world() -> None:
    def course(seed: int, *, through_codec: bool) -> tuple[str, int]:
        quorum = Quorum(
            seed,
            through_codec=through_codec,
            network=NetworkOptions(reset_chance=0.01, slow_chance=0.02, lost_answer_chance=0.01),
        )
        quorum.start()
        for round_number in range(8):
            quorum.run(300_000)
            leader = quorum.leader()
            if leader is None:
                continue
            quorum.caller(leader.name).ask(value=round_number)
            quorum.caller(leader.name).ask("read")
            if round_number % 3 == 2:
                leader.end_life(lose_unsynced=True, draw=round_number)
                quorum.run(100_000)
                leader.start()
        return quorum.world.trace_hash, quorum.world.step

    for seed in range(4):
        assert course(seed, through_codec=True) == course(seed, through_codec=False)


def test_worlds_of_one_seed_are_equal_and_of_two_seeds_differ() -> None:
    def course(seed: int) -> str:
        quorum = Quorum(seed)
        quorum.start()
        quorum.run(SECOND_US)
        return quorum.world.trace_hash

    assert course(1) == course(1) != course(2)


def test_a_drifting_clock_shows_in_the_node_s_own_times() -> None:
    quorum = Quorum(drift_ppm=(0, 100_000, -100_000))
    quorum.start()
    quorum.run(SECOND_US)
    now = {name: int(host.node.surroundings.timers.now()) for name, host in quorum.hosts.items()}
    assert now == {"n1": 1_000_000, "n2": 1_100_000, "n3": 900_000}


def test_a_jump_of_the_wall_clock_moves_no_timer() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    epoch = leader.node.replica.epoch
    wall_ms = leader.clock.wall_clock_ms()
    for host in quorum.hosts.values():
        host.clock.jump(3_600 * SECOND_US)
    assert leader.clock.wall_clock_ms() - wall_ms == 3_600_000
    quorum.run(2 * SECOND_US)
    assert quorum.await_leader().node.replica.epoch == epoch


def test_state_events_are_numbered_by_life_and_stamped_with_virtual_time() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    leader.end_life(lose_unsynced=False, draw=0)
    leader.start()
    quorum.run(SECOND_US)
    for incarnation in (0, 1):
        own = [event for event in leader.state_events.events if event.incarnation == incarnation]
        assert [event.sequence for event in own] == list(range(len(own)))
    times = [event.time for event in leader.state_events.events]
    assert all(time is not None for time in times)
    assert times == sorted(times, key=lambda time: time or 0)
    assert leader.state_events.events[0].kind == "started"
