"""The leader is seen from outside while a run goes on, and stands in for state events."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.system import LeaderView
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.judge import _assemble, _Attempts
from splitbrain.harness.report.chart_data import shown_reigns
from splitbrain.harness.report.page import report_page
from splitbrain.harness.report.summary import to_markdown
from splitbrain.harness.run import leader_watch
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.evidence import Baseline
from splitbrain.harness.run.leader_watch import LeaderWatch
from splitbrain.harness.run.nemesis_driver import NemesisDriver
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.course import LeaderSighting
from splitbrain.history.leadership import Reign, sighted_reigns
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import LineWriter
from splitbrain.nemesis.effects import Evidence
from tests.synthetic_runs import write_run
from tests.unit.harness.ended_operations import ended
from tests.unit.harness.fake_quorum import FakeNode, FakeQuorum
from tests.unit.harness.fake_runtime import FakeRuntime
from tests.unit.harness.run_fake import FakeRun

N1, N2 = NodeName("n1"), NodeName("n2")


class Nodes:
    """Answers with one view after the other, the last one for ever; an error is raised."""

    def __init__(self, *answers: LeaderView | Exception) -> None:
        self.answers = list(answers)
        self.all_given = threading.Event()

    def leader(self, timeout_s: float) -> LeaderView:
        answer = self.answers[0]
        if len(self.answers) > 1:
            self.answers.pop(0)
        elif not self.all_given.is_set():
            self.all_given.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


@contextmanager
def watching(folder: Path, leader: Any) -> Iterator[tuple[LeaderWatch, Progress, Stop]]:
    clock, stop = RunClock(), Stop()
    with LineWriter(folder / "phases.jsonl") as phases, LineWriter(folder / "leaders") as lines:
        progress = Progress(clock, phases, Traffic())
        watch = LeaderWatch(leader, clock, lines, progress, stop, interval_s=0.001)
        watch.start()
        yield watch, progress, stop
        watch.finish()


def seen(folder: Path) -> list[tuple[str | None, int | None]]:
    lines = (folder / "leaders").read_bytes().splitlines()
    sightings = [msgspec.json.decode(line, type=LeaderSighting) for line in lines]
    return [(sighting.leader, sighting.epoch) for sighting in sightings]


def test_only_changes_are_written_and_a_failed_look_is_none(tmp_path: Path) -> None:
    nodes = Nodes(
        LeaderView(N1, 1),
        LeaderView(N1, 1),
        OSError("nobody there"),
        LeaderView(None, 1),
        LeaderView(N2, 2),
    )
    with watching(tmp_path, nodes.leader) as (watch, progress, stop):
        assert nodes.all_given.wait(5)
        watch.finish()
        assert not stop.is_set()
    # The last look may be the one that the end has come before.
    assert seen(tmp_path)[:2] == [("n1", 1), (None, 1)]
    assert seen(tmp_path)[2:] in ([], [("n2", 2)])
    assert [line for line in progress.recent if "n1 leads epoch 1" in line] == [progress.recent[0]]


def test_a_look_that_hangs_holds_up_no_end_and_writes_nothing_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_watch, "_END_PATIENCE_S", 0.01)
    asked, answer = threading.Event(), threading.Event()

    def leader(timeout_s: float) -> LeaderView:
        asked.set()
        answer.wait(5)
        return LeaderView(N1, 1)

    with watching(tmp_path, leader) as (watch, progress, stop):
        assert asked.wait(5)
        watch.finish()
        answer.set()
        watch._thread.join(5)
        assert not watch._thread.is_alive()
    assert seen(tmp_path) == []
    assert progress.leader is None
    assert not stop.is_set()


def test_a_leader_is_not_announced_again_after_a_moment_of_silence(tmp_path: Path) -> None:
    with LineWriter(tmp_path / "phases.jsonl") as phases:
        progress = Progress(RunClock(), phases, Traffic())
        for view in ((N1, 1), (None, 1), (N1, 1), (N2, 2)):
            progress.led_by(*view)
    assert [line.split("s  ")[1] for line in progress.recent] == [
        "n1 leads epoch 1",
        "n2 leads epoch 2",
    ]


def test_a_run_leaves_who_led_from_outside_without_any_fault(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.3)
    outcome = run.run()
    (first, *_) = run.lines(outcome.folder.leaders, LeaderSighting)
    assert first.leader in run.quorum.nodes
    assert first.epoch == 1


# --- the report ---------------------------------------------------------------------------------

SIGHTINGS = (
    LeaderSighting(10, N1, 0),
    LeaderSighting(50, None, 0),
    LeaderSighting(70, N2, 1),
    LeaderSighting(90, N1, None),
)


def test_a_sighting_lasts_until_something_else_is_seen() -> None:
    assert sighted_reigns(SIGHTINGS, 100) == [Reign("n1", 0, 0, 10, 50), Reign("n2", 1, 0, 70, 90)]
    assert sighted_reigns(SIGHTINGS[:1], 100) == [Reign("n1", 0, 0, 10, 100)]
    assert sighted_reigns((), 100) == []


def test_two_leaders_of_one_epoch_seen_from_outside_are_no_clash() -> None:
    reigns = [Reign("n1", 3, 0, 0, 1), Reign("n2", 3, 0, 1, None)]
    assert all(reign.clash for reign in shown_reigns(reigns, 2))
    assert not any(reign.clash for reign in shown_reigns(reigns, 2, from_outside=True))


def write_sightings(folder: RunFolder) -> None:
    with LineWriter(folder.leaders) as lines:
        for sighting in SIGHTINGS:
            lines.append(sighting)


def assembled(root: Path) -> Results:
    """The figures of a run, without what the checkers say."""
    return _assemble(load_run(root), (), (), _Attempts())


def test_without_state_events_elections_and_reigns_are_those_seen(tmp_path: Path) -> None:
    root = write_run(tmp_path / "t" / "run", operations_per_second=10)
    folder = RunFolder(root)
    write_sightings(folder)
    told = assembled(root)
    assert (told.elections, told.elections_from_outside) == (3, False)
    for node in folder.node_names():
        folder.state_events(node).unlink()
    results = assembled(root)
    assert (results.elections, results.elections_from_outside) == (2, True)
    assert "seen from outside, once a second" in to_markdown(results)
    page = report_page(load_run(root), results, None)
    assert "n2 leads epoch 1" in page
    assert "seen to lead from outside, once a second" in " ".join(page.split())


# --- what a fault's evidence counts -----------------------------------------------------------


class _Onlooker:
    """Sees everything at once; meanwhile n1 acknowledges three operations."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic

    def before(self, expectations: Sequence[Any]) -> Baseline:
        return Baseline()

    def await_all(self, expectations: Sequence[Any], *rest: Any, **more: Any) -> Evidence:
        for invoked in range(3):
            self.traffic.completed(ended("ok", "n1"), invoked)
        return Evidence(True, "seen")

    def await_acknowledgement(self, *rest: Any) -> Evidence:
        return Evidence(True, "seen")


def test_a_fault_counts_what_was_acknowledged_from_the_call_to_inject_on(tmp_path: Path) -> None:
    clock, traffic, stop = RunClock(), Traffic(), Stop()
    quorum = FakeQuorum()
    quorum.nodes[N1] = FakeNode(N1, 1)
    runtime: Any = FakeRuntime(quorum)
    onlooker: Any = _Onlooker(traffic)
    path = tmp_path / "faults"
    with LineWriter(path) as faults, LineWriter(tmp_path / "other") as other:
        driver = NemesisDriver(
            schedule=[Fault(0, "pause", "leader", 0, 1_000, 0)],
            runtime=runtime,
            leader=lambda _timeout_s: LeaderView(N1, 1),
            observer=onlooker,
            recovered=lambda: None,
            clock=clock,
            faults=faults,
            schedule_file=other,
            down=DownNodes(),
            progress=Progress(clock, other, traffic),
            stop=stop,
        )
        driver.run(clock.now(), clock.now() + 10**12)
    events = [msgspec.json.decode(line, type=FaultEvent) for line in path.read_bytes().splitlines()]
    (healing,) = [event.evidence for event in events if event.phase == "healing"]
    assert healing == (
        "3 operations acknowledged from the call to inject until the healing, 3 by its nodes"
    )
