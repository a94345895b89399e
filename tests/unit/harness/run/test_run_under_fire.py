"""A run whose end misbehaves step by step: the evidence that could be had is there, and judged."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.committed import ReplicaLog, ReplicaRecord
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.manifest import MANIFEST_NAME
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.history.course import read_phases
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import seal
from tests.unit.harness.fake_quorum import FakeQuorum, FakeSystem
from tests.unit.harness.in_process import judge_in_process
from tests.unit.harness.judged_runs import edit, judged_run, rewrite, verdict_of, verdicts
from tests.unit.harness.run_fake import FakeRun, before, fault

N1, N2 = NodeName("n1"), NodeName("n2")
ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    judge_in_process(monkeypatch)
    monkeypatch.setattr("splitbrain.harness.run.ending._TEARDOWN_PATIENCE_S", 0.1)


def refuse(*_: object, **__: object) -> NoReturn:
    raise HarnessError("collect", "n1", "the engine is gone", "Start it.")


def explode(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("odd")


def exited(run: FakeRun) -> list[str | None]:
    phases = read_phases(run.outcome.folder.root)
    return [phase.node for phase in phases if phase.phase == "node-exited"]


def test_one_node_that_cannot_be_collected_costs_its_own_log(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.5)
    before(run.runtime, "collect", lambda node, *_, **__: node == N1 and refuse())
    outcome = run.run()
    assert set(load_run(outcome.folder.root).committed_logs) == {"n2", "n3"}
    assert run.runtime.torn_down == 1
    found = judged_run(run)
    assert (found.headline, found.exit_code) == ("HARNESS FAILED", 3)
    assert verdicts(found)["linearizability"] == "valid"
    assert "the engine is gone" in found.problems[0]
    # Judged again from the folder alone it is the same.
    again = judge_and_publish(outcome.folder.root, analyze=False)
    assert (again.exit_code, verdicts(again)) == (found.exit_code, verdicts(found))


@pytest.mark.parametrize(
    ("digests", "headline", "said"),
    [
        ({"n1": "a", "n2": "a", "n3": "a"}, "VALID", "3 replicas of 1 log have equal records"),
        ({"n1": "a", "n2": "b", "n3": "a"}, "INVALID", "1 different-records: Log 0, offset 0"),
        ({"n1": "a", "n2": "a"}, "UNKNOWN", "There is no replica of n3."),
    ],
)
def test_replicas_that_a_system_shows_are_dumped_and_judged(
    tmp_path: Path, digests: dict[str, str], headline: str, said: str
) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.5)

    class Replicated(type(run.system)):
        declares_replica_logs = True

        def replica_logs(self, node: NodeName, data_folder: Path) -> list[ReplicaLog]:
            assert data_folder.is_dir()
            records = [ReplicaRecord(0, 1, digests[node])] if node in digests else []
            return [ReplicaLog(node, "0", 0, 1, 1, tuple(records))] if records else []

    run.system = Replicated(run.quorum)
    run.run()
    found = judged_run(run)
    assert found.headline == headline
    assert said in " ".join(result.reason for result in found.checkers)


@pytest.mark.parametrize("error", [ValueError("no such record"), RecursionError(), MemoryError()])
def test_a_dump_that_crashes_costs_its_own_log(tmp_path: Path, error: Exception) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.5)

    def crash_on_n1(node: NodeName, _data_folder: Path) -> None:
        if node == N1:
            raise error

    before(run.system, "committed_log", crash_on_n1)
    outcome = run.run()
    assert outcome.failure is None
    found = judged_run(run)
    assert found.exit_code == 2
    told = next(result for result in found.checkers if result.checker == "record")
    assert told.reason == "There is no committed log of n1."
    collected = next(p for p in read_phases(outcome.folder.root) if p.phase == "collected")
    assert f"n1: the dump of its log crashed: {type(error).__name__}" in (collected.detail or "")


HANGING_SYSTEM = """
import os, signal
from splitbrain.contracts.committed import CommittedLog

class HangingSystem:
    declares_committed_logs = True
    declares_replica_logs = False
    declares_state_events = False
    tells_events_at_once = False

    def committed_log(self, node, data):
        if node == "n1":
            signal.pause()
        if node == "n2":
            os.kill(os.getpid(), signal.SIGKILL)
        return CommittedLog(node, 0, 0, ())
"""


def test_a_dump_that_hangs_or_is_killed_costs_its_own_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adapter that can be sent to a process, and does not come back from there."""
    import importlib

    from splitbrain.harness.run import log_collection

    (tmp_path / "hanging_system_under_test.py").write_text(HANGING_SYSTEM)
    monkeypatch.syspath_prepend(str(tmp_path))
    system = importlib.import_module("hanging_system_under_test").HangingSystem()
    monkeypatch.setattr(log_collection, "_DUMP_LIMITS", Limits(1.0, 4096, jobs=2))
    monkeypatch.setattr("splitbrain.harness.pool.workers._GRACE_S", 0.1)
    folder = RunFolder(tmp_path)
    nodes = [NodeName(f"n{number}") for number in (1, 2, 3)]
    for node in nodes:
        (folder.node(node) / "data").mkdir(parents=True)
    problems = log_collection.dump_logs(system, folder, nodes)
    assert folder.committed_log(nodes[2]).exists()
    assert problems == [
        "n1: the dump of its log failed: time budget of 1 s used up, stopped",
        "n2: the dump of its log failed: crashed: its worker was ended by signal 9",
    ]


def test_what_nodes_printed_of_their_roles_is_evidence(tmp_path: Path) -> None:
    """Times are those of the engine before each line, counted from the beginning of the run."""
    from splitbrain.harness.run import log_collection

    class Printing(FakeSystem):
        declares_committed_logs = False

        def events_printed(
            self, node: NodeName, lines: Iterable[tuple[int | None, str]]
        ) -> Iterable[StateEvent]:
            for sequence, (time, line) in enumerate(lines):
                yield StateEvent(node, sequence, 0, "fatal", 1, reason=line, time=time)

    folder, node, silent = RunFolder(tmp_path), NodeName("n1"), NodeName("n2")
    for name in (node, silent):
        (folder.node(name) / "data").mkdir(parents=True)
    (folder.node(node) / "output.log").write_bytes(
        b"1970-01-01T00:01:02.25Z first\n1970-01-01T00:01:03.000000001Z \xff\nno time\n"
    )
    problems = log_collection.dump_logs(Printing(FakeQuorum()), folder, [node, silent], 60 * 10**9)
    decoder = msgspec.json.Decoder(StateEvent)
    told = [decoder.decode(line) for line in folder.state_events(node).read_bytes().splitlines()]
    assert [(event.time, event.reason) for event in told] == [
        (2_250_000_000, "first"),
        (3_000_000_001, "\N{REPLACEMENT CHARACTER}"),
        (None, "no time"),
    ]
    assert (problems, folder.state_events(silent).exists()) == ([], False)


@pytest.mark.parametrize("step", ["collect", "teardown", "kill"])
def test_a_step_that_hangs_is_left_alone_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr("splitbrain.harness.run.ending.ACT_TIMEOUT_S", 0.2)
    run = FakeRun(tmp_path, time_limit_s=0.3)
    released = threading.Event()
    setattr(run.runtime, step, lambda *_, **__: released.wait(60))
    outcome = run.run()
    released.set()
    assert "did not end within 0.2 s and was left alone" in str(outcome.failure)
    names = [phase.phase for phase in read_phases(outcome.folder.root)]
    assert "collected" in names
    assert judged_run(run).exit_code == 3


def test_a_defect_while_collecting_still_removes_the_nodes(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.3)
    before(run.runtime, "collect", explode)
    outcome = run.run()
    assert run.runtime.torn_down == 1
    assert "ZeroDivisionError: odd" in str(outcome.failure)
    assert "ZeroDivisionError" in (outcome.folder.root / "defect.txt").read_text()


def test_a_thread_that_dies_is_a_failure_of_the_harness(tmp_path: Path) -> None:
    """Whatever it watched, such as nodes that exit, was watched no longer."""
    run = FakeRun(tmp_path, time_limit_s=5.0)
    before(run.runtime, "sample", explode)
    outcome = run.run()
    assert "ZeroDivisionError: odd" in str(outcome.failure)
    assert judged_run(run).exit_code == 3


def test_a_violation_wins_over_a_failed_teardown(tmp_path: Path) -> None:
    """Everything at once: a read had what nobody wrote, and then nothing can be removed."""
    run = FakeRun(tmp_path, time_limit_s=0.3)
    run.runtime.fails_at = "teardown"
    folder = run.run().folder
    asked = {"time": 1, "process": 0, "f": "read", "key": "r0", "node": "n1", "final": False}
    rewrite(
        folder.history,
        [
            {**asked, "index": 0, "type": "invoke", "value": None},
            {**asked, "index": 1, "type": "ok", "value": 7},
        ],
    )
    edit(folder.root / "phases.jsonl", lambda course: [{**line, "events": 0} for line in course])
    seal(folder)
    found = judged_run(run)
    assert found.harness_failed
    assert (found.headline, found.exit_code) == ("INVALID", 1)


def test_a_phase_that_cannot_be_recorded_keeps_no_node_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk refuses the line of each step; healing and removal come after most of them."""
    from splitbrain.history.course import Phase
    from splitbrain.history.writer import LineWriter

    def full(_: LineWriter, record: Any) -> None:
        if isinstance(record, Phase) and record.phase in ("load-ended", "stopped", "collected"):
            refuse()

    monkeypatch.setattr(LineWriter, "append", LineWriter.append)  # put back in the end
    before(LineWriter, "append", full)
    run = FakeRun(tmp_path, time_limit_s=0.3)
    outcome = run.run()
    assert run.runtime.torn_down == 1
    assert "the engine is gone" in str(outcome.failure)
    assert judged_run(run).exit_code == 3


def test_a_node_that_ends_unseen_is_noticed_when_it_is_to_be_stopped(tmp_path: Path) -> None:
    """Nodes are looked at once a second; one that ends after the last look was never missed."""
    run = FakeRun(tmp_path, time_limit_s=0.3)
    heal_all = run.runtime.heal_all

    def die() -> None:
        heal_all()
        run.quorum.nodes[N2].status, run.quorum.nodes[N2].exit_code = "exited", 139

    run.runtime.heal_all = die  # type: ignore[method-assign]
    run.run()
    assert exited(run) == ["n2"]
    found = judged_run(run)
    assert found.exit_code == 1
    assert "exit code 139" in next(r.reason for r in found.checkers if r.checker == "node-health")


def test_the_evidence_of_a_run_is_sealed(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.5)
    folder = run.run().folder
    assert (folder.root / MANIFEST_NAME).is_file()
    assert verdict_of(judged_run(run), "record") is Verdict.VALID
    folder.history.write_bytes(folder.history.read_bytes()[:-1])
    assert "damaged after the run" in judged_run(run).checkers[-1].reason


CHILD = """
import resource, sys
from pathlib import Path
from tests.unit.harness.run_fake import FakeRun

run = FakeRun(Path(sys.argv[1]), time_limit_s=20.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
outcome = run.run()
print(outcome.failure)
print("torn down", run.runtime.torn_down)
"""


@pytest.mark.slow
def test_a_history_that_may_grow_no_further_ends_as_a_prefix(tmp_path: Path) -> None:
    """The kernel refuses more, in the middle of a line as it pleases."""
    paths = os.pathsep.join(entry or str(ROOT) for entry in sys.path)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=60,
        check=False,
    )
    assert "File too large. Make room" in child.stdout, child.stderr
    assert "torn down 1" in child.stdout
    root = (tmp_path / "latest").resolve()
    record = load_run(root)
    assert len(record.operations) > 50
    assert not [problem for problem in record.problems if "broken" in problem]
    assert RunFolder(root).history.stat().st_size <= 30_000


def test_a_node_that_does_not_stay_up_after_a_kill_is_the_systems_failure(tmp_path: Path) -> None:
    """Its log is spoilt by the kill, say: it is started again, and ends at once."""
    run = FakeRun(tmp_path, schedule=(fault("kill"),))
    run.runtime.heals = False
    outcome = run.run()
    assert "could not heal the fault" in str(outcome.failure)
    found = judged_run(run)
    assert (found.headline, found.exit_code) == ("INVALID", 1)
    health = next(result for result in found.checkers if result.checker == "node-health")
    assert "did not stay up after the kill was healed" in health.reason


def test_a_full_disk_leaves_room_for_the_end_of_the_story(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.5)
    ballast = tmp_path / "latest" / "ballast"
    seen: list[bool] = []
    before(run.runtime, "kill", lambda _: seen.append(ballast.stat().st_size > 100_000))
    folder = run.run().folder
    assert seen == [True, True, True]
    assert not (folder.root / "ballast").exists()
