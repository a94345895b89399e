"""Remains of a run that the harness, its environment or the user ends early."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.harness.folder.store import is_alive
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.history.course import read_phases
from tests.unit.harness.run_fake import FakeRun, before, fault


def phase_names(run: FakeRun) -> list[str]:
    return [phase.phase for phase in read_phases(run.outcome.folder.root)]


def test_a_failed_deployment_leaves_nothing_and_nothing_to_judge(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    run.runtime.fails_at = "deploy"
    outcome = run.run()
    assert "could not deploy" in str(outcome.failure)
    assert not outcome.loaded
    assert run.runtime.torn_down == 1
    assert phase_names(run) == ["deploying", "torn-down", "failed"]


def test_a_cluster_that_never_serves_is_told_with_what_was_missing(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    run.timing = type(run.timing)(ready_s=0.2)

    def never(runtime: object) -> None:
        raise RuntimeError("n2 does not answer")

    before(run.system, "ready", never)
    outcome = run.run()
    assert "after 0.2 s: n2 does not answer" in str(outcome.failure)
    assert not outcome.loaded
    assert phase_names(run)[-4:] == ["stopped", "collected", "torn-down", "failed"]


def test_a_node_that_exits_at_the_start_is_told_at_once(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)

    def die(runtime: object) -> None:
        for node in run.quorum.nodes.values():
            node.status, node.exit_code = "exited", 1
        raise RuntimeError("no answer")

    before(run.system, "ready", die)
    outcome = run.run()
    assert "n1 exited with code 1. " in str(outcome.failure)
    assert "n1 printed last: ImportError" in str(outcome.failure)


def test_a_node_that_waits_for_others_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.3)
    ends = iter(range(2))

    def end_early(runtime: object) -> None:
        if next(ends, None) is not None:
            run.quorum.nodes[NodeName("n2")].status = "exited"
            raise RuntimeError("n2 is not up")

    before(run.system, "ready", end_early)
    monkeypatch.setattr(run.system, "starts_again", lambda node: node == "n2")
    outcome = run.run()
    assert outcome.failure is None
    assert next(ends, None) is None


@pytest.mark.parametrize("call", ["cut", "restore"])
def test_a_runtime_that_fails_amid_the_load_is_healed_and_taken_down(
    tmp_path: Path, call: str
) -> None:
    run = FakeRun(tmp_path, schedule=(fault("partition"),))
    run.runtime.fails_at = call
    outcome = run.run()
    assert f"could not {call}" in str(outcome.failure)
    assert outcome.loaded
    assert run.runtime.torn_down == 1
    assert run.quorum.cut == set()
    # Logs are read all the same, so that what is there can be judged; no final reads, though.
    assert set(load_run(outcome.folder.root).committed_logs) == {"n1", "n2", "n3"}
    assert "final-reads-ended" not in phase_names(run)


@pytest.mark.parametrize("call", ["collect", "teardown"])
def test_a_failure_at_the_end_is_told(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splitbrain.harness.run.ending._TEARDOWN_PATIENCE_S", 0.1)
    run = FakeRun(tmp_path, time_limit_s=0.3)
    run.runtime.fails_at = call
    assert f"could not {call}" in str(run.run().failure)
    assert "teardown" in run.runtime.calls


def test_a_client_that_raises_is_a_defect_of_the_adapter(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    run.system.client_raises = True
    outcome = run.run()
    assert "ValueError: a defect of the adapter" in str(outcome.failure)
    events = load_run(outcome.folder.root).events
    outcomes = {(event.f == "read", event.type) for event in events if event.type != "invoke"}
    assert outcomes
    assert outcomes <= {(True, "fail"), (False, "info")}


def test_a_full_disk_under_the_history_ends_the_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FakeRun(tmp_path)
    from splitbrain.history.writer import HistoryWriter

    def fail_after_a_while(self: HistoryWriter, *_: Any, **__: Any) -> None:
        if self.count > 100:
            raise HarnessError("write to the file", "history.jsonl", "no space", "Make room.")

    monkeypatch.setattr(HistoryWriter, "append", HistoryWriter.append)  # put back in the end
    before(HistoryWriter, "append", fail_after_a_while)
    outcome = run.run()
    assert "no space" in str(outcome.failure)
    assert run.runtime.torn_down == 1


def test_a_defect_in_the_load_takes_the_nodes_down_too(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)

    def explode(runtime: object, route: object) -> None:
        raise ZeroDivisionError

    before(run.system, "open_client", explode)
    outcome = run.run()
    assert "ZeroDivisionError" in str(outcome.failure)
    assert run.runtime.torn_down == 1
    story = (outcome.folder.root / "defect.txt").read_text()
    assert "in explode" in story


def test_ctrl_c_heals_stops_and_keeps_what_is_there(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, schedule=(fault("partition", duration_ms=20_000),), time_limit_s=30.0)
    cut = run.runtime.cut

    def cut_then_interrupt(links: Iterable[Link]) -> None:
        cut(links)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    run.runtime.cut = cut_then_interrupt  # type: ignore[method-assign]
    handler = signal.getsignal(signal.SIGINT)
    outcome = run.run()
    assert outcome.interrupted
    assert outcome.failure is None
    assert run.quorum.cut == set()
    assert run.runtime.torn_down == 1
    names = phase_names(run)
    assert "interrupted" in names
    assert "final-reads-ended" not in names
    record = load_run(outcome.folder.root)
    assert [event.phase for event in record.faults] == [
        *("invoked", "verified", "healing", "removed")
    ]
    assert signal.getsignal(signal.SIGINT) is handler


CHILD = """
import sys
from pathlib import Path
from tests.unit.harness.run_fake import FakeRun, fault

run = FakeRun(Path(sys.argv[1]), schedule=(fault("kill", at_ms=100),), time_limit_s=60.0)
start = run.runtime.start

def say_started(node):
    start(node)
    print("healed", flush=True)

run.runtime.start = say_started
run.run()
"""


def test_a_run_killed_in_the_middle_leaves_a_folder_that_can_be_read(tmp_path: Path) -> None:
    paths = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "healed\n"
    root = (tmp_path / "latest").resolve()
    folder = load_run(root).folder
    assert is_alive(folder)
    child.kill()
    child.wait()
    child.stdout.close()
    assert not is_alive(folder)
    record = load_run(root)
    assert record.plan is not None
    assert record.plan.planned_faults == len(record.scheduled) == 1
    assert [event.phase for event in record.faults][:3] == ["invoked", "verified", "healing"]
    assert len(record.operations) > 20
    assert "torn-down" not in {phase.phase for phase in read_phases(root)}
