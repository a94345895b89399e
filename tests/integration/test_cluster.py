"""Three real processes: they elect, commit, survive kills, catch up, and read linearizably."""

import signal
from collections.abc import Callable

import msgspec
import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import Route
from splitbrain.history.run_folder import RunFolder
from tests.integration.three_nodes import Cluster, awaited

pytestmark = pytest.mark.slow  # together they take half a minute


def write(key: str, value: int) -> Operation:
    return Operation("write", key, value)


def read(key: str) -> Operation:
    return Operation("read", key, None)


def test_all_operations_do_what_they_say(cluster: Cluster) -> None:
    completions = cluster.invoke(
        read("r"),
        write("r", 1),
        Operation("cas", "r", [1, 2]),
        Operation("cas", "r", [1, 3]),
        read("r"),
        Operation("add", "s", 7),
        Operation("add", "s", 8),
        read("s"),
    )
    assert [completion.type for completion in completions] == ["ok"] * 8
    values = [completion.value for completion in completions]
    assert values == [None, 1, [1, 2, True], [1, 3, False], 2, 7, 8, [7, 8]]
    positions = [c.position for c in completions if c.position is not None]
    assert len(positions) == 5  # everything but reads has a place in the log
    assert positions == sorted(positions)


def test_a_follower_refuses_and_appends_nothing(cluster: Cluster) -> None:
    follower = cluster.follower()
    refused = cluster.pinned(follower, write("r", 5))
    assert (refused.type, refused.error) == ("fail", "not-leader")
    assert cluster.pinned(follower, read("r")).error == "not-leader"
    (after,) = cluster.invoke(read("r"))
    assert after.value is None


def test_what_was_committed_survives_kill_9_of_the_leader(cluster: Cluster) -> None:
    before = cluster.invoke(*(write(f"r{number}", number) for number in range(20)))
    assert {completion.type for completion in before} == {"ok"}
    killed = cluster.leader()
    old_epoch = cluster.system.leader(cluster.runtime, 1.0).epoch
    cluster.runtime.kill(killed)

    def new_leader_commits() -> None:
        view = cluster.system.leader(cluster.runtime, 1.0)
        assert view.leader not in (None, killed)
        assert (view.epoch or 0) > (old_epoch or 0)
        (completion,) = cluster.invoke(write("after", 1))
        assert completion.type == "ok"

    awaited(new_leader_commits)
    reads = cluster.invoke(*(read(f"r{number}") for number in range(20)))
    assert [completion.value for completion in reads] == list(range(20))


def test_a_restarted_node_catches_up(cluster: Cluster) -> None:
    away = cluster.follower()
    cluster.runtime.kill(away)
    cluster.invoke(*(write("r", number) for number in range(50)))
    cluster.runtime.start(away)
    cluster.await_converged()
    logs: list[list[str]] = []
    for node in cluster.runtime.nodes():
        cluster.terminate(node)
    for node in cluster.runtime.nodes():
        data = RunFolder(cluster.folder).node(node) / "data"
        log = cluster.system.committed_log(node, data)
        logs.append([record.digest for record in log.records])
        assert [record.value for record in log.records if record.f == "write"] == list(range(50))
    # Those that were stopped last have led and committed once more: the common part is the same.
    shortest = min(len(digests) for digests in logs)
    assert len({tuple(digests[:shortest]) for digests in logs}) == 1


def test_a_whole_cluster_comes_back_with_its_data(cluster: Cluster) -> None:
    cluster.invoke(write("r", 1), Operation("add", "s", 4))
    for node in cluster.runtime.nodes():
        cluster.runtime.kill(node)
    for node in cluster.runtime.nodes():
        cluster.runtime.start(node)
    cluster.await_ready()
    register, elements = cluster.invoke(read("r"), read("s"))
    assert (register.value, elements.value) == (1, [4])


def test_a_paused_leader_is_replaced_and_refuses_reads_when_it_wakes(cluster: Cluster) -> None:
    cluster.invoke(write("r", 1))
    old = cluster.leader()
    cluster.runtime.pause(old)

    def replaced() -> None:
        view = cluster.system.leader(cluster.runtime, 0.5)
        assert view.leader not in (None, old)

    awaited(replaced)
    (written,) = cluster.invoke(write("r", 2), route=Route("leader", cluster.leader()))
    assert written.type == "ok"
    cluster.runtime.resume(old)
    seen = cluster.pinned(old, read("r"))
    assert seen.type == "fail" or seen.value == 2
    cluster.await_converged()


def test_sigterm_hands_over_at_once_and_exits_with_0(cluster: Cluster) -> None:
    leader = cluster.leader()
    assert cluster.terminate(leader) == 0
    (completion,) = cluster.invoke(write("r", 1))
    assert completion.type == "ok"
    last = _events(cluster, leader)[-1]
    assert (last.kind, last.reason) == ("stopped", "asked to stop")


def test_state_events_are_whole_ordered_and_numbered_by_life(cluster: Cluster) -> None:
    node = cluster.follower()
    cluster.invoke(*(write("r", number) for number in range(10)))
    cluster.runtime.kill(node)
    cluster.runtime.start(node)
    cluster.await_ready()
    events = _events(cluster, node)
    lives = {incarnation: [] for incarnation in (0, 1)}
    for event in events:
        lives[event.incarnation].append(event)
    for life in lives.values():
        assert [event.sequence for event in life] == list(range(len(life)))
        assert life[0].kind == "started"
    assert any(event.kind == "high-watermark" for event in lives[0])
    leader_events = _events(cluster, cluster.leader())
    assert any(event.kind == "role" and event.role == "leader" for event in leader_events)
    assert any(event.kind == "commit" for event in leader_events)


def test_a_write_is_acknowledged_only_by_a_majority(cluster: Cluster) -> None:
    leader = cluster.leader()
    others = cluster.paused_others(leader)
    completion = cluster.pinned(leader, write("r", 1), timeout_s=1.0)
    assert completion.type == "info"
    for node in others:
        cluster.runtime.resume(node)
    cluster.await_ready()


def test_ack_before_commit_acknowledges_what_no_majority_holds(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster("ack-before-commit")
    leader = cluster.leader()
    others = cluster.paused_others(leader)
    # The first may still reach the others: it answers the fetches that wait at the leader. The
    # second answers nobody's fetch.
    for key in ("first", "second"):
        assert cluster.pinned(leader, write(key, 1)).type == "ok"
    cluster.runtime.kill(leader)
    for node in others:
        cluster.runtime.resume(node)
    (after,) = cluster.invoke(read("second"))
    assert (after.type, after.value) == ("ok", None)  # acknowledged, and gone


def test_stale_leader_reads_answers_from_a_deposed_leader(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster("stale-leader-reads")
    cluster.invoke(write("r", 1))
    leader = cluster.leader()
    cluster.paused_others(leader)
    alone = cluster.pinned(leader, read("r"))
    assert (alone.type, alone.value) == ("ok", 1)  # nobody was there to confirm that it leads


def test_a_correct_leader_that_is_alone_answers_no_read(cluster: Cluster) -> None:
    cluster.invoke(write("r", 1))
    leader = cluster.leader()
    cluster.paused_others(leader)
    assert cluster.pinned(leader, read("r")).type == "fail"


def test_an_idle_node_stays_below_80_mib(cluster: Cluster) -> None:
    for node in cluster.runtime.nodes():
        sample = cluster.runtime.sample(node)
        assert sample is not None
        assert sample.memory_bytes < 80 * 1024 * 1024


def test_a_traceback_is_never_printed(cluster: Cluster) -> None:
    cluster.invoke(*(write("r", number) for number in range(5)))
    for node in cluster.runtime.nodes():
        cluster.terminate(node)
        assert "Traceback" not in cluster.runtime.log_tail(node, 1_000)
        assert cluster.runtime.exit_code(node) == 0 != -signal.SIGKILL


def _events(cluster: Cluster, node: NodeName) -> list[StateEvent]:
    path = cluster.system.state_event_file(cluster.folder, node)
    assert path is not None
    return [msgspec.json.decode(line, type=StateEvent) for line in path.read_bytes().splitlines()]
