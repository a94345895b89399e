"""Whole runs against the quorum in memory."""

from collections import defaultdict
from io import StringIO
from itertools import groupby
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.store import is_alive
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.run.metrics import SYSTEM_TIMEOUT_S, MetricLine
from splitbrain.history.course import read_phases
from splitbrain.history.pairing import pair
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event
from splitbrain.history.schedule_lines import decode_schedule
from tests.awaiting import await_true
from tests.unit.harness.fake_quorum import FakeClient
from tests.unit.harness.run_fake import FakeRun, fault

COURSE = [
    *("deploying", "deployed", "ready", "load-started", "load-ended", "healed", "converged"),
    *("final-reads-ended", "stopped", "collected", "torn-down"),
]


decode_metrics = msgspec.json.Decoder(MetricLine).decode


def phases_by_fault(run: FakeRun) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for event in run.lines(run.outcome.folder.faults, FaultEvent):
        found[event.index].append(event.phase)
    return dict(found)


def history(run: FakeRun) -> list[Event]:
    return list(HistoryReader(run.outcome.folder.history))


def streams(run: FakeRun, slots: int = 10) -> dict[int, list[Operation]]:
    """Return the invocations of each slot, in order."""
    found: dict[int, list[Operation]] = defaultdict(list)
    for event in history(run):
        if event.type == "invoke" and not event.final:
            found[event.process % slots].append(Operation(event.f, event.key, event.value))
    return dict(found)


SCHEDULE = (
    fault("partition", duration_ms=600),
    fault("kill", at_ms=1100, index=1),
    fault("pause", at_ms=1800, index=2, duration_ms=400),
)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> FakeRun:
    """One run with a fault of each kind, for all tests that only look at what it left."""
    folder = tmp_path_factory.mktemp("runs")
    run = FakeRun(folder, schedule=SCHEDULE, time_limit_s=8.0, seed=7)
    run.clients_before = FakeClient.opened
    run.run()
    run.clients_opened = FakeClient.opened - run.clients_before
    return run


def test_a_whole_run_goes_its_course_and_leaves_everything(broken: FakeRun) -> None:
    run, outcome = broken, broken.outcome
    assert (outcome.failure, outcome.interrupted, outcome.loaded) == (None, False, True)
    assert [phase.phase for phase in read_phases(outcome.folder.root)] == COURSE
    healed = ["invoked", "verified", "healing", "removed", "resumed"]
    assert phases_by_fault(run) == {0: healed, 1: healed, 2: healed}
    assert run.runtime.torn_down == 1
    assert not is_alive(outcome.folder)
    assert (run.options.runs_folder / "latest").resolve() == outcome.folder.root
    record = load_run(outcome.folder.root)
    assert record.problems == ()
    assert record.plan is not None
    assert record.plan.planned_faults == 3
    assert set(record.committed_logs) == set(record.state_events) == {"n1", "n2", "n3"}


def test_the_schedule_file_holds_the_plan_and_what_became_of_it(broken: FakeRun) -> None:
    lines = broken.outcome.folder.schedule.read_bytes().splitlines()
    scheduled, actual = decode_schedule(lines)
    assert scheduled == SCHEDULE
    assert [fault.index for fault in actual] == [0, 1, 2]
    assert all(fault.nodes == (fault.leader,) for fault in actual)


def test_each_fault_of_the_leader_brings_a_new_epoch_with_acknowledged_writes(
    broken: FakeRun,
) -> None:
    run = broken
    epochs = {event.position[0] for event in history(run) if event.position}
    assert epochs == {1, 2, 3, 4}
    stamped = [
        event
        for node in map(NodeName, ("n1", "n2", "n3"))
        for event in run.lines(run.outcome.folder.state_events(node), StateEvent)
    ]
    assert all(event.time is not None for event in stamped)
    assert {event.epoch for event in stamped if event.role == "leader"} == epochs


def test_a_process_never_appears_again_after_an_unknown_outcome(broken: FakeRun) -> None:
    events = history(broken)
    retired: set[int] = set()
    for event in events:
        assert event.process not in retired
        if event.type == "info":
            retired.add(event.process)
    assert retired, "an isolated leader must leave operations unknown"
    pair(events)
    # Each process had a client of its own. The last one of a seat may have done nothing: it follows
    # an unknown outcome, and on a busy machine also a failure that came late.
    used = len({event.process for event in events})
    last = {(event.process % 10, event.final): event.type for event in events}
    assert len(last) == 10 + 4
    unused_min = sum(kind == "info" for kind in last.values())
    unused_max = sum(kind != "ok" for kind in last.values())
    assert used + unused_min <= broken.clients_opened <= used + unused_max


def test_half_of_the_slots_are_pinned_and_cover_every_node(broken: FakeRun) -> None:
    asked: dict[int, set[str | None]] = defaultdict(set)
    for event in history(broken):
        if event.type == "invoke" and not event.final:
            asked[event.process % 10].add(event.node)
    assert [asked[slot] for slot in range(0, 10, 2)] == [{None}] * 5
    assert [asked[slot] for slot in range(1, 10, 2)] == [{"n1"}, {"n2"}, {"n3"}, {"n1"}, {"n2"}]


def test_same_seed_gives_the_same_streams_of_operations(broken: FakeRun, tmp_path: Path) -> None:
    # One run with faults and one without: replies and lost time must not matter.
    runs = [FakeRun(tmp_path, seed=seed, time_limit_s=0.8) for seed in (7, 8)]
    for run in runs:
        run.run()
    first, second, other = (streams(run) for run in (broken, *runs))
    shared = {slot: min(len(first[slot]), len(second[slot])) for slot in range(10)}
    assert all(count > 20 for count in shared.values())
    assert all(first[slot][:count] == second[slot][:count] for slot, count in shared.items())
    assert all(first[slot][:20] != other[slot][:20] for slot in range(10))


def test_same_seed_gives_the_same_schedule(tmp_path: Path) -> None:
    def schedule(seed: int) -> bytes:
        run = FakeRun(tmp_path, seed=seed, nemesis="partition,kill", time_limit_s=14.0)
        from splitbrain.harness.run.options import prepare

        test = prepare(run.options, run.system, lambda: run.runtime)
        return repr(test.schedule).encode()

    assert schedule(4) == schedule(4) != schedule(5)


def test_final_reads_come_last_from_everyone_and_cover_every_key(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, workload="set", time_limit_s=0.6)
    run.run()
    events = history(run)
    first_final = next(place for place, event in enumerate(events) if event.final)
    assert all(event.final for event in events[first_final:])
    finals = [event for event in events if event.final]
    assert {event.node for event in finals if event.type == "invoke"} == {None, "n1", "n2", "n3"}
    used = {event.key for event in events if not event.final}
    read = {event.key for event in finals if event.type == "ok"}
    assert read == used
    added = {event.value for event in events if event.f == "add" and event.type == "ok"}
    seen = {value for event in finals if event.type == "ok" for value in event.value or []}
    assert added <= seen


def changes(lines: list[MetricLine]) -> list[str]:
    """Return a node's states, one after the other: a slow machine takes more samples of each."""
    return [status for status, _ in groupby(line.status for line in lines)]


def heal_once_it_is_sampled(run: FakeRun, call: str, status: str) -> None:
    """Have a fault last until a line of the metrics tells it, and its end until one tells that."""
    heal = getattr(run.runtime, call)

    def tells(node: NodeName, wanted: str) -> bool:
        (metrics,) = run.options.runs_folder.glob("*/metrics.jsonl")
        lines = metrics.read_bytes().rpartition(b"\n")[0].splitlines()
        statuses = [line.status for line in map(decode_metrics, lines) if line.node == node]
        return bool(statuses) and statuses[-1] == wanted

    def healed(node: NodeName) -> None:
        await_true(lambda: tells(node, status))
        heal(node)
        await_true(lambda: tells(node, "running"))

    setattr(run.runtime, call, healed)


def test_metrics_have_a_line_for_each_node_and_second_and_killed_nodes_are_excused(
    tmp_path: Path,
) -> None:
    kill = fault("kill", "n3", at_ms=600, duration_ms=800)
    run = FakeRun(tmp_path, time_limit_s=2.0, schedule=(kill,))
    heal_once_it_is_sampled(run, "start", "exited")
    run.run()
    lines = run.lines(run.outcome.folder.metrics, MetricLine)
    by_node = {node: [line for line in lines if line.node == node] for node in ("n1", "n2", "n3")}
    (count,) = {len(found) for found in by_node.values()}
    assert count >= 3
    assert changes(by_node["n3"]) == ["running", "exited", "running"]
    assert all(line.memory_bytes for line in by_node["n1"])
    assert "node-exited" not in {phase.phase for phase in read_phases(run.outcome.folder.root)}


def test_metrics_hold_the_systems_own_figures_and_null_while_a_node_is_paused(
    tmp_path: Path,
) -> None:
    pause = fault("pause", "n3", at_ms=600, duration_ms=800)
    run = FakeRun(tmp_path, time_limit_s=2.0, schedule=(pause,))
    heal_once_it_is_sampled(run, "resume", "paused")
    run.run()
    path = run.outcome.folder.metrics
    paused = [line for line in run.lines(path, MetricLine) if line.node == "n3"]
    assert changes(paused) == ["running", "paused", "running"]
    assert all((line.system is None) == (line.status == "paused") for line in paused)
    assert all(line.memory_bytes for line in paused)
    first, last = paused[0].system, paused[-1].system
    assert first is not None
    assert last is not None
    assert last["log_end_offset"] > first["log_end_offset"]
    assert b'"system":null' in path.read_bytes()


def test_a_node_that_does_not_answer_delays_no_other_and_costs_no_second(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=2.4)
    run.system.silent = {NodeName("n1"), NodeName("n2")}
    run.run()
    lines = run.lines(run.outcome.folder.metrics, MetricLine)
    by_node = {node: [line for line in lines if line.node == node] for node in ("n1", "n2", "n3")}
    assert {len(found) for found in by_node.values()} == {3}
    assert all(line.system is None for node in ("n1", "n2") for line in by_node[node])
    assert all(line.system for line in by_node["n3"])
    # Written at once: the answer of n3 stands before the others' silence is over.
    assert [line.node for line in lines[::3]] == ["n3"] * 3
    assert all(
        abs(line.time - lines[place - place % 3].time) < SYSTEM_TIMEOUT_S * 1e9
        for place, line in enumerate(lines)
    )


def test_a_node_that_exits_by_itself_is_told(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, time_limit_s=0.4)
    ready = run.system.ready

    def ready_then_die(runtime: object) -> None:
        ready(runtime)
        run.quorum.nodes["n3"].status = "exited"  # type: ignore[index]
        run.quorum.nodes["n3"].exit_code = 1  # type: ignore[index]

    run.system.ready = ready_then_die  # type: ignore[method-assign]
    run.run()
    (exited,) = [
        phase for phase in read_phases(run.outcome.folder.root) if phase.phase == "node-exited"
    ]
    assert (exited.node, exited.exit_code) == ("n3", 1)


def test_traffic_that_does_not_resume_is_told(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, schedule=(fault("kill", "all", duration_ms=100),), time_limit_s=0.6)
    can_lead = run.quorum._can_lead
    run.quorum._can_lead = lambda node: node.incarnation == 0 and can_lead(node)  # type: ignore[method-assign]
    run.run()
    assert phases_by_fault(run) == {0: ["invoked", "verified", "healing", "removed", "not-healed"]}
    assert run.outcome.failure is None
    assert "not-converged" in {phase.phase for phase in read_phases(run.outcome.folder.root)}


def test_a_cluster_that_never_recovers_breaks_the_promise_that_it_does(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path,
        schedule=(fault("kill", "all", duration_ms=100),),
        time_limit_s=0.6,
        recovery_limit_s=0.5,
    )
    can_lead = run.quorum._can_lead
    run.quorum._can_lead = lambda node: node.incarnation == 0 and can_lead(node)  # type: ignore[method-assign]
    run.run()
    results = judge_and_publish(run.outcome.folder.root, analyze=False)
    violated = [each.checker for each in results.checkers if each.verdict is Verdict.INVALID]
    assert violated == ["convergence"]


def test_a_replay_says_what_else_it_runs_on(tmp_path: Path) -> None:
    def run(name: str, image: str, replay_of: str | None = None) -> tuple[str, str]:
        """The run's folder and what it said."""
        made, said = FakeRun(tmp_path / name, time_limit_s=0.2, replay_of=replay_of), StringIO()
        made.console = Console(file=said, width=200)
        versions = {"engine": "28.1", "image a": f"sha256:{image * 64}"}
        made.runtime.versions = lambda: versions
        return str(made.run().folder.root), said.getvalue()

    first, said = run("first", "a")
    assert "changed" not in said
    again, said = run("again", "b", first)
    shown = f"image a was sha256:{'a' * 16}, now sha256:{'b' * 16}\n"
    assert f"changed since the run: {shown}" in said
    assert "changed" not in run("same", "b", again)[1]
    assert "changed" not in run("gone", "b", str(tmp_path / "gone"))[1]
