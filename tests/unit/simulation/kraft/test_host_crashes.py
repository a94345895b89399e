"""Kills and power cuts at any moment: what they end, what they leave."""

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import DiskOptions, NetworkOptions, NodeCrashed
from splitbrain.nodes.quorum.events import TimerElapsed
from splitbrain.simulation.kraft.happenings import HAPPENINGS
from splitbrain.simulation.kraft.host import Host
from tests.unit.simulation.kraft.unwatched_worlds import SECOND_US, Quorum

#: Happenings that every quiet election and a few writes bring, and the node must not survive.
COMMON = tuple(name for name in dict.fromkeys(HAPPENINGS) if "truncate" not in name)


def kill_at(quorum: Quorum, happening: str, *, lose_unsynced: bool) -> list[tuple[Host, int]]:
    """Kill the first node to which it happens, within its step; where its notes ended."""
    struck: list[tuple[Host, int]] = []

    def strike(node: NodeName, _: str) -> None:
        if not struck:
            host = quorum.host(node)
            assert host.is_running
            host.end_life(lose_unsynced=lose_unsynced, draw=12345)
            struck.append((host, len(quorum.notes.lines)))
            raise NodeCrashed(happening)

    quorum.world.watch(happening, strike)
    return struck


@pytest.mark.parametrize("happening", COMMON)
@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_after_a_kill_between_two_effects_nothing_of_the_node_happens(
    happening: str, *, lose_unsynced: bool
) -> None:
    quorum = Quorum(2)
    struck = kill_at(quorum, happening, lose_unsynced=lose_unsynced)
    quorum.start()

    def load() -> None:
        leader = quorum.leader()
        if leader is not None:
            quorum.caller(leader.name).ask()
        quorum.world.after(20_000, load)

    load()
    quorum.run_until(lambda: bool(struck))
    host, position = struck[0]
    name = host.name
    assert not host.is_up
    disk_then = host.disk.snapshot()
    # Two others elect and commit; nothing of the dead one, neither node nor disk.
    quorum.run(SECOND_US // 2)
    later = [line for line in quorum.notes.lines[position:] if line[0] == name]
    assert later == []
    assert host.disk.snapshot() == disk_then
    commits = quorum.await_leader().node.replica.high_watermark
    host.start()
    quorum.run_until(lambda: host.serves and host.node.replica.high_watermark > commits)
    assert host.incarnation == 1


def test_a_life_s_end_is_told_once() -> None:
    quorum = Quorum()
    quorum.start()
    leader = quorum.await_leader()
    leader.end_life(lose_unsynced=False, draw=1)
    assert leader.end_life(lose_unsynced=False, draw=1) == "it was down"
    assert quorum.notes.of(leader.name, "ended") == [0]


def test_nothing_of_an_ended_life_reaches_the_next_one() -> None:
    """Timers, disk jobs, answers, what waited while it was frozen: all are of one life."""
    quorum = Quorum(3, disk=DiskOptions(latency_us_min=2_000, latency_us_max=4_000))
    quorum.start()
    for round_number in range(20):
        leader = quorum.await_leader()
        quorum.caller(leader.name).ask(value=round_number)
        if round_number % 3 == 1:
            leader.pause()
        quorum.run(600 * round_number)
        old = leader.node
        taken: list[object] = []
        old.take = lambda event, taken=taken: taken.append(event) or ()  # type: ignore[method-assign]
        leader.end_life(lose_unsynced=round_number % 2 == 0, draw=round_number)
        leader.start()
        quorum.run(SECOND_US)
        assert taken == []
        assert leader.node is not old
    assert max(host.incarnation for host in quorum.hosts.values()) > 3


def test_killed_while_frozen_the_backlog_is_gone() -> None:
    quorum = Quorum(network=NetworkOptions(half_open_chance=0.0))
    quorum.start()
    leader = quorum.await_leader()
    caller = quorum.caller(leader.name)
    caller.knock()
    quorum.run(10_000)
    leader.pause()
    caller.ask("status")
    quorum.run(10_000)
    leader.end_life(lose_unsynced=False, draw=1)
    assert not leader.is_paused
    leader.start()
    leader.resume()
    quorum.run(SECOND_US)
    position = len(quorum.notes.lines)
    leader.pause()
    leader.resume()
    assert quorum.notes.lines[position:] == [], "what waited was of the life before"
    assert caller.answers == []
    assert caller.losses == [("reset", False)]


def _appended_and_not_flushed(quorum: Quorum) -> tuple[Host, int, int]:
    """A leader whose log ends further than its disk; both ends."""
    quorum.start()
    leader = quorum.await_leader()
    quorum.run(200_000)
    durable_end = int(leader.node.replica.log_end_offset)
    leader.disk_speed.slow_down(100_000)
    quorum.caller(leader.name).ask()
    quorum.run_until(lambda: leader.node.replica.log_end_offset > durable_end)
    for host in quorum.hosts.values():
        if host is not leader:
            host.end_life(lose_unsynced=False, draw=0)
    return leader, durable_end, int(leader.node.replica.log_end_offset)


ALL_LOST = DiskOptions(latency_us_min=100, latency_us_max=500, torn_chance=0.0)


def test_a_kill_keeps_the_page_cache() -> None:
    quorum = Quorum(disk=ALL_LOST)
    leader, _, end = _appended_and_not_flushed(quorum)
    assert leader.end_life(lose_unsynced=False, draw=7) == "page cache kept"
    leader.start()
    quorum.run_until(lambda: leader.serves)
    assert leader.node.replica.log_end_offset == end


def test_a_power_cut_loses_unsynced_bytes() -> None:
    quorum = Quorum(disk=ALL_LOST)
    leader, durable_end, _ = _appended_and_not_flushed(quorum)
    assert leader.end_life(lose_unsynced=True, draw=7) == "all unsynced bytes lost"
    leader.start()
    quorum.run_until(lambda: leader.serves)
    assert leader.node.replica.log_end_offset == durable_end


def test_a_power_cut_after_a_kill_loses_the_page_cache_that_the_kill_kept() -> None:
    quorum = Quorum(disk=ALL_LOST)
    leader, durable_end, _ = _appended_and_not_flushed(quorum)
    leader.end_life(lose_unsynced=False, draw=7)
    assert leader.end_life(lose_unsynced=True, draw=8) == "it was down, all unsynced bytes lost"
    leader.start()
    quorum.run_until(lambda: leader.serves)
    assert leader.node.replica.log_end_offset == durable_end


def test_a_torn_power_cut_is_told_and_survived() -> None:
    for draw in range(10):
        quorum = Quorum(disk=DiskOptions(torn_chance=1.0))
        leader, durable_end, end = _appended_and_not_flushed(quorum)
        assert leader.end_life(lose_unsynced=True, draw=draw) == "unsynced bytes lost in part"
        leader.start()
        quorum.run_until(lambda leader=leader: leader.serves)
        assert durable_end <= leader.node.replica.log_end_offset <= end


@pytest.mark.parametrize("draw", range(12))
@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_a_crash_amid_recovery_is_survived(draw: int, *, lose_unsynced: bool) -> None:
    """The writes of a start (incarnation, recovery) are cut off anywhere, again and again."""
    quorum = Quorum(disk=DiskOptions(torn_chance=1.0))
    quorum.start()
    victim = quorum.await_leader()
    victim.end_life(lose_unsynced=True, draw=draw)
    for attempt in range(5):
        victim.start()
        assert victim.is_up, victim.ended
        assert not victim.serves, "it is booting"
        quorum.run(100 * attempt)
        victim.end_life(lose_unsynced=lose_unsynced, draw=draw * 10 + attempt)
    quorum.run(SECOND_US)
    assert quorum.notes.of(victim.name, "started") == [0], "no life of those ever came to work"
    victim.start()
    quorum.run_until(lambda: victim.serves and victim.node.replica.high_watermark > 0)
    assert len(victim.directory_ids) == 1


def test_a_crash_in_the_very_first_boot_is_survived() -> None:
    for draw in range(10):
        quorum = Quorum(disk=DiskOptions(torn_chance=1.0))
        first = quorum.host("n1")
        first.start()
        first.end_life(lose_unsynced=True, draw=draw)
        quorum.start()
        quorum.await_leader()
        quorum.run_until(lambda first=first: first.node.replica.high_watermark > 0)


def test_a_kill_of_another_node_leaves_the_step_under_way_whole() -> None:
    """The leader's step goes on when a fault that waited for it kills a follower."""
    quorum = Quorum(4)
    quorum.start()
    leader = quorum.await_leader()
    victim = next(host for host in quorum.hosts.values() if host is not leader)
    struck: list[NodeName] = []

    def strike(node: NodeName, _: str) -> None:
        if not struck and node == leader.name:
            struck.append(node)
            victim.end_life(lose_unsynced=True, draw=3)

    quorum.world.watch("leader-appends", strike)
    caller = quorum.caller(leader.name)
    caller.ask()
    quorum.run_until(lambda: bool(caller.answers))
    assert caller.answers[0].outcome == "ok"
    assert struck
    assert not victim.is_up


def test_every_beginning_of_an_effect_is_followed_by_its_end_unless_the_life_ends_there() -> None:
    quorum = Quorum(6)
    quorum.start()
    quorum.run(SECOND_US)
    for name in quorum.hosts:
        begun = quorum.notes.of(name, "begins")
        assert begun == quorum.notes.of(name, "did")
        assert any(isinstance(event, TimerElapsed) for event in quorum.notes.of(name, "takes"))
