"""A node that ends by itself ends neither the healing nor the final reads of the others."""

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.harness.folder.results import leading_sentence
from splitbrain.harness.judge import judge
from splitbrain.history.course import read_phases
from tests.unit.harness.judged_runs import judged_run
from tests.unit.harness.run_fake import FakeRun, before, fault

pytestmark = pytest.mark.usefixtures("in_process")

N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))


def patient_run(folder: Path, *schedule: Fault) -> FakeRun:
    """A run that waits for a busy machine; what has ended can be neither frozen nor set free."""
    run = FakeRun(folder, schedule=schedule, time_limit_s=4.0)
    for call in ("pause", "resume"):
        refusing_what_has_ended(run, call)
    patience = msgspec.structs.replace(
        run.timing.nemesis, healed_us=5_000_000, resumed_us=5_000_000
    )
    run.timing = msgspec.structs.replace(run.timing, nemesis=patience)
    return run


def die(run: FakeRun, node: NodeName, exit_code: int = 2) -> None:
    with run.quorum.lock:
        run.quorum.nodes[node].status = "exited"
        run.quorum.nodes[node].exit_code = exit_code
        run.quorum.settle()


def dies_at(run: FakeRun, call: str, node: NodeName) -> None:
    """The node dies right after the runtime was first told to do this."""
    act: Callable[..., None] = getattr(run.runtime, call)
    done = threading.Event()

    def acted(*arguments: object) -> None:
        act(*arguments)
        if not done.is_set():
            done.set()
            die(run, node)

    setattr(run.runtime, call, acted)


def refusing_what_has_ended(run: FakeRun, call: str) -> None:
    def refuse(node: NodeName) -> None:
        if run.quorum.nodes[node].status == "exited":
            raise HarnessError(call, node, "the container is not running", "Start it.")

    before(run.runtime, call, refuse)


def steps(run: FakeRun, index: int) -> list[str]:
    faults = run.lines(run.outcome.folder.faults, FaultEvent)
    return [event.phase for event in faults if event.index == index]


def went_to_its_end(run: FakeRun, node: NodeName, faults: int) -> None:
    """All faults healed, the others read, one exit told, and that is the headline."""
    assert run.outcome.failure is None, run.outcome.failure
    for index in range(faults):
        assert "removed" in steps(run, index), steps(run, index)
    phases = read_phases(run.outcome.folder.root)
    assert {"healed", "final-reads-ended", "torn-down"} <= {phase.phase for phase in phases}
    assert [phase.node for phase in phases if phase.phase == "node-exited"] == [node]
    found = judged_run(run)
    assert (found.headline, found.exit_code) == ("INVALID", 1), found.checkers
    read_by = {
        operation.node
        for operation in judge.load_run(run.outcome.folder.root).operations
        if operation.final and operation.type == "ok"
    }
    assert read_by
    assert node not in read_by


@pytest.mark.parametrize(
    ("kind", "target", "call"),
    [
        ("pause", "n3", "pause"),
        ("pause", "n3", "resume"),
        ("partition", "n3", "cut"),
        ("partition", "n3", "restore"),
        ("kill", "n3", "start"),
    ],
)
def test_a_fault_on_a_node_that_ends_by_itself_is_healed_for_the_others(
    tmp_path: Path, kind: str, target: str, call: str
) -> None:
    other = fault("pause", "n2", at_ms=900, duration_ms=300, index=1)
    run = patient_run(tmp_path, fault(kind, target), other)
    dies_at(run, call, N3)
    run.run()
    went_to_its_end(run, N3, 2)


def test_a_fault_on_a_node_that_has_ended_already_does_not_bite_and_ends_nothing(
    tmp_path: Path,
) -> None:
    late = fault("pause", "n3", at_ms=700, duration_ms=200, index=1)
    run = patient_run(tmp_path, fault("partition", "n2", at_ms=200, duration_ms=200), late)
    dies_at(run, "cut", N3)
    run.run()
    assert "not-bitten" in steps(run, 1)
    went_to_its_end(run, N3, 2)


def test_a_node_that_ends_by_itself_right_before_its_kill_is_told_and_was_not_killed(
    tmp_path: Path,
) -> None:
    kill = fault("kill", "n3", at_ms=450, duration_ms=200, index=1)
    run = patient_run(tmp_path, fault("partition", "n2", at_ms=200, duration_ms=200), kill)
    dies_at(run, "restore", N3)
    run.run()
    assert steps(run, 1)[:3] == ["invoked", "not-bitten", "healing"]
    phases = read_phases(run.outcome.folder.root)
    exits = [(phase.node, phase.exit_code) for phase in phases if phase.phase == "node-exited"]
    assert exits == [(N3, 2)]
    assert judged_run(run).exit_code == 1


def test_another_node_s_partition_is_healed_though_one_end_of_its_links_is_gone(
    tmp_path: Path,
) -> None:
    run = patient_run(tmp_path, fault("partition", "n2"))
    reachable = run.runtime.reachable
    # A probe is answered by a process.
    run.runtime.reachable = lambda link, port, timeout_s: (  # type: ignore[method-assign]
        run.quorum.nodes[link.destination].status == "running" and reachable(link, port, timeout_s)
    )
    dies_at(run, "cut", N3)
    run.run()
    went_to_its_end(run, N3, 1)


@pytest.mark.parametrize("fails", ["heal_all", "resume"])
def test_what_cannot_be_healed_keeps_no_killed_node_down(tmp_path: Path, fails: str) -> None:
    schedule = (
        fault("pause", "n2", at_ms=200, duration_ms=5000),
        fault("kill", "n3", at_ms=300, duration_ms=5000, index=1),
    )
    run = FakeRun(tmp_path, schedule=schedule, time_limit_s=0.8)
    run.runtime.fails_at = fails
    started: list[str] = []
    before(run.runtime, "start", started.append)
    run.run()
    assert N3 in started
    assert "it was told to fail" in str(run.outcome.failure)


def test_the_last_words_are_the_headline(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=1.0, schedule=(fault("partition", "n2", at_ms=100),))
    collect = run.runtime.collect

    def collects(node: NodeName, folder: Path, *, with_data: bool) -> None:
        collect(node, folder, with_data=with_data)
        if node == N3:
            with (folder / "node.log").open("a") as log:
                log.write("panic: index out of range [3]\n\ngoroutine 1 [running]:\nmain.go:7\n")

    run.runtime.collect = collects  # type: ignore[method-assign]
    dies_at(run, "cut", N3)
    run.run()
    sentence = leading_sentence(judged_run(run))
    assert sentence.startswith("Node n3 ended by itself with exit code 2 ")
    assert sentence.endswith(": panic: index out of range [3] (nodes/n3/node.log:2).")
