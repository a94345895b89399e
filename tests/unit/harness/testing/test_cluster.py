import threading
import time
from pathlib import Path

import pytest

from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.testing.cluster import Cluster
from splitbrain.history.schedule_lines import decode_schedule
from tests.awaiting import await_true
from tests.unit.harness.testing.stands import TEST, Stand

pytestmark = pytest.mark.usefixtures("in_process")


def test_its_operations_and_faults_are_recorded_as_those_of_a_run(tmp_path: Path) -> None:
    stand = Stand(tmp_path, seed=5, operation_timeout_s=2.0)
    with stand.cluster as cluster:
        client = cluster.client()
        assert client.write("x", 1).type == "ok"
        with cluster.fault("partition", on="leader") as fault:
            deposed = fault.nodes[0]
            assert "links cut" in fault.evidence
            assert cluster.client(on=deposed).write("x", 2).type == "info"
            assert client.cas("x", 1, 3).value == [1, 3, True]
            assert cluster.leader() not in (None, deposed)
        assert client.read("x").value == 3
        results = cluster.check()
    assert results.headline == "VALID"
    assert stand.fake.runtime.torn_down == 1
    assert [phase for _, phase in stand.faults()] == [
        *("invoked", "verified", "healing", "removed", "resumed")
    ]
    own = [event for event in stand.events() if event.key == "x"]
    told = [(event.type, event.f) for event in own if not event.final and event.type != "invoke"]
    assert told == [("ok", "write"), ("info", "write"), ("ok", "cas"), ("ok", "read")]
    assert any(event.final and event.type == "ok" for event in own)
    record = load_run(stand.folder.root)
    assert (len(record.scheduled), record.node_names) == (1, ["n1", "n2", "n3"])
    assert (stand.plan.driven_by, stand.plan.experiment.seed) == (TEST, 5)
    assert results.reproduce.startswith(f"pytest {TEST} --splitbrain-seed 5  # splitbrain ")


def test_a_violation_is_told_with_its_operation_and_the_seed(tmp_path: Path) -> None:
    stand = Stand(tmp_path, seed=7, bugs=("stale-leader-reads",))

    def steps(cluster: Cluster) -> None:
        client = cluster.client()
        client.write("x", 1)
        with cluster.fault("partition", on="leader") as fault:
            client.write("x", 2)
            assert cluster.client(on=fault.nodes[0]).read("x").value == 1

    with pytest.raises(AssertionError, match="INVALID") as failed, stand.cluster as cluster:
        steps(cluster)
    # Nobody called check(): leaving the block does.
    text = str(failed.value)
    assert "read -> 1" in text
    assert "seed 7" in text
    assert stand.fake.runtime.torn_down == 1


def test_a_test_that_fails_leaves_no_node_and_no_fault(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    with (
        pytest.raises(ZeroDivisionError),
        stand.cluster as cluster,
        cluster.fault("pause", on="n2"),
    ):
        _ = 1 / 0
    assert stand.fake.runtime.torn_down == 1
    assert (0, "removed") in stand.faults()
    assert stand.phases()[-1] == "torn-down"
    assert "interrupted" in stand.phases()
    assert not stand.folder.results.exists()


def test_what_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.fake.runtime.fails_at = "deploy"
    with pytest.raises(HarnessError, match="could not deploy"), stand.cluster:
        raise AssertionError("it does not stand")
    assert stand.fake.runtime.torn_down == 1
    assert stand.phases()[-1] == "failed"


@pytest.mark.parametrize("action", ["injects", "heals"])
def test_a_fault_must_be_seen_from_outside(tmp_path: Path, action: str) -> None:
    stand = Stand(tmp_path)
    setattr(stand.fake.runtime, action, False)
    said = "could not inject the fault pause:n1" if action == "injects" else "could not heal"
    with (
        pytest.raises(HarnessError, match=said),
        stand.cluster as cluster,
        cluster.fault("pause", on="n1"),
    ):
        assert action == "heals"
    assert stand.fake.runtime.torn_down == 1


def test_faults_overlap_and_the_inner_ends_first(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    with stand.cluster as cluster, cluster.loading():
        with cluster.fault("kill", on="n1"), cluster.fault("partition", on="n1"):
            assert stand.fake.runtime.quorum.cut
        assert not stand.fake.runtime.quorum.cut
    phases = stand.faults()
    assert phases.index((1, "removed")) < phases.index((0, "healing"))
    schedule, actual = decode_schedule(stand.folder.schedule.read_bytes().splitlines())
    assert [fault.kind for fault in schedule] == ["kill", "partition"] == [a.kind for a in actual]
    assert schedule[0].draw != schedule[1].draw


def test_each_thread_is_a_process_of_the_history(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    with stand.cluster as cluster:
        client = cluster.client()
        client.write("x", 0)

        def work() -> None:
            for value in range(20):
                client.write("x", value)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.read("x").type == "ok"
        assert cluster.check().headline == "VALID"
    processes = {event.process for event in stand.events() if event.key == "x" and not event.final}
    assert len(processes) == 5


def test_a_load_goes_on_where_the_one_before_left_off(tmp_path: Path) -> None:
    stand = Stand(tmp_path, workload="set")
    with stand.cluster as cluster:
        for _ in range(2):
            cluster.load(seconds=0.2)
        cluster.client().add("own", 1)
        assert cluster.check().headline == "VALID"
    added = [
        (event.key, event.value)
        for event in stand.events()
        if (event.f, event.type) == ("add", "invoke")
    ]
    assert len(added) == len({*added}) > 20


def test_a_thread_of_the_test_that_dies_is_no_failure_of_the_cluster(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    told: list[type] = []
    before, threading.excepthook = threading.excepthook, lambda it: told.append(it.exc_type)
    try:
        with stand.cluster as cluster:
            cluster.client().write("x", 1)
            dying = threading.Thread(target=lambda: 1 / 0)
            dying.start()
            dying.join()
            assert cluster.check().headline == "VALID"
    finally:
        threading.excepthook = before
    assert told == [ZeroDivisionError]


def test_a_client_that_raises_fails_the_test_at_once(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.fake.system.client_raises = True
    says = "a defect of the adapter"
    with pytest.raises(HarnessError, match=says) as failed, stand.cluster as cluster:
        cluster.client().read("x")
    assert isinstance(failed.value.__cause__, ValueError)
    assert stand.fake.runtime.torn_down == 1


def test_it_is_over_once_it_was_judged_also_for_who_waits(tmp_path: Path) -> None:
    stand = Stand(tmp_path, operation_timeout_s=20.0)
    late: list[BaseException] = []
    with stand.cluster as cluster:
        client, pinned = cluster.client(), cluster.client(on="n1")
        client.write("x", 1)

        def wait() -> None:
            try:
                while True:
                    pinned.write("y", 1)
            except UsageError as error:
                late.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        await_true(lambda: any(event.key == "y" for event in stand.events()))
        cluster.judge()
        waiting.join(10)
        assert len(late) == 1
        with pytest.raises(UsageError, match=r"the cluster is over.*before check\(\)"):
            client.read("x")
        with pytest.raises(UsageError, match="the cluster was started before"), cluster:
            pass
        assert cluster.judge() is cluster.judge()


def test_it_is_not_judged_while_something_goes_on(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    with stand.cluster as cluster:
        with cluster.loading(), pytest.raises(UsageError, match="a load is under way"):
            cluster.check()
        with cluster.fault("pause", on="n3"), pytest.raises(UsageError, match="in force"):
            cluster.check()
        with cluster.fault("pause", on="n3"):
            cluster.client().write("x", 1)
        assert cluster.check().headline == "VALID"


def test_a_fault_that_no_operation_met_proves_nothing(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    none = "VACUOUS: .*No fault hit an operation in flight"
    with (
        pytest.raises(AssertionError, match=none),
        stand.cluster as cluster,
        cluster.fault("pause", on="n3"),
    ):
        pass


def test_nothing_is_proven_where_nothing_succeeds(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    none = "VACUOUS: .*No operation of the test succeeded"
    with pytest.raises(AssertionError, match=none), stand.cluster:
        pass
    other = Stand(tmp_path / "other")

    def steps(cluster: Cluster) -> None:
        leader = cluster.leader()
        (follower, *_) = (node for node in cluster.nodes if node != leader)
        assert cluster.client(on=follower).write("x", 1).error == "not-leader"

    with pytest.raises(AssertionError, match=none), other.cluster as cluster:
        steps(cluster)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda c: c.client(on="n4"), UsageError, "the cluster has no node 'n4'. Did you mean"),
        (lambda c: c.client().read(5), UsageError, "a key of the type int cannot be recorded"),
        (lambda c: c.client().write("x", {1: object()}), UsageError, "cannot be recorded"),
        (lambda c: c.client().add("x", 1), UsageError, "'register' has no operation 'add'"),
        (lambda c: _enter(c.fault("kil")), UsageError, "no fault called 'kil'. Did you mean"),
        (lambda c: _enter(c.fault("kill", on="n9")), UsageError, "n9"),
        (lambda c: _enter(c.fault("kill", beside=2)), UsageError, "beside"),
        (lambda c: _enter(c.fault("flap", seconds=-1)), UsageError, "lasts -1000"),
        (
            lambda c: _enter(c.fault("kill", seconds="5")),
            UsageError,
            "its seconds as a number",
        ),
        (lambda c: _enter(c.fault("loss")), CapabilityError, "it cannot do loss here"),
        (lambda c: _enter(c.fault("full-disk")), UsageError, r"faults='full-disk'\)"),
        (lambda c: c.load(0.1, rate=0), UsageError, "a load has the rate 0"),
    ],
)
def test_bad_use_is_one_sentence_and_the_cluster_goes_on(
    tmp_path: Path, wrong: object, error: type[Exception], says: str
) -> None:
    assert callable(wrong)
    stand = Stand(tmp_path)
    stand.fake.runtime.can = frozenset({*stand.fake.runtime.can, "full-disk"})
    with stand.cluster as cluster:
        with pytest.raises(error, match=says):
            wrong(cluster)
        assert cluster.client().write("x", 1).type == "ok"
        assert cluster.judge().faults == ()


def _enter(context: object) -> None:
    with context:  # type: ignore[attr-defined]
        raise AssertionError("it is in force")


def test_a_fault_with_strokes_goes_through_them_and_lasts_until_its_block_ends(
    tmp_path: Path,
) -> None:
    stand = Stand(tmp_path)
    with stand.cluster as cluster:
        began = time.monotonic()
        with cluster.fault("crash-loop", on="n2", seconds=0.6, count=3):
            await_true(lambda: stand.fake.runtime.calls.count("kill") == 3)
            # Longer than its strokes take.
            await_true(lambda: time.monotonic() - began > 0.8)
            assert cluster.client().write("x", 1).type == "ok"
            assert stand.fake.runtime.status(cluster.nodes[1]) == "exited"
        assert stand.fake.runtime.status(cluster.nodes[1]) == "running"
        cluster.check()
