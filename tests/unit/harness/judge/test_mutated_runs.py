"""Soundness of judging: one thing about a good run is changed, and the right checker sees it.

The run itself comes out valid with exit code 0; none of its mutants may. Each names who must
notice: a checker that calls it invalid, or what makes it unknown, vacuous or failed.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.harness.folder.manifest import write_manifest
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import NODES, write_run
from tests.unit.harness.judged_runs import (
    edit,
    edit_plan,
    judged,
    judged_as_it_is,
    lines,
    rewrite,
    verdict_of,
)

pytestmark = pytest.mark.usefixtures("in_process")

Mutation = Callable[[RunFolder], object]
LINEARIZABILITY = "linearizability:cas-register"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("good")
    yield write_run(root / "run", operations_per_second=30)
    shutil.rmtree(root)


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(good, tmp_path / "run")))


def on_each_node(path_of: Callable[[Any], Path], act: Callable[[Path], object]) -> None:
    for node in NODES:
        act(path_of(node))


def test_the_run_itself_is_valid(copy: RunFolder) -> None:
    found = judged(copy)
    assert (found.headline, found.exit_code, found.problems) == ("VALID", 0, ())
    assert {result.verdict for result in found.checkers} == {Verdict.VALID}


# Changed evidence: somebody must call it invalid.


def a_read_saw_another_value(folder: RunFolder) -> None:
    events = lines(folder.history)
    read = next(
        event
        for event in reversed(events)
        if event["type"] == "ok" and event["f"] == "read" and not event.get("final")
    )
    read["value"] = 987_654
    rewrite(folder.history, events)


def a_write_is_gone_from_all_logs(folder: RunFolder) -> None:
    def drop(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        victim = next(record for record in records[20:] if record["f"] == "write")
        victim.update({"f": None, "key": None, "value": None})
        return records

    on_each_node(folder.committed_log, lambda path: edit(path, drop))


def a_write_is_cut_out_of_all_logs(folder: RunFolder) -> None:
    """Later records move up, so that no offset is missing."""

    def drop(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        header, rest = records[0], records[1:21] + records[22:]
        moved = [{**record, "offset": offset} for offset, record in enumerate(rest)]
        return [header | {"end_offset": len(moved)}, *moved]

    on_each_node(folder.committed_log, lambda path: edit(path, drop))


def one_log_differs(folder: RunFolder) -> None:
    def change(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        records[15]["digest"] = "another"
        return records

    edit(folder.committed_log(NODES[1]), change)


def two_nodes_lead_one_epoch(folder: RunFolder) -> None:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        usurper = next(event for event in events if event.get("role") == "follower")
        usurper.update({"role": "leader", "epoch": 1, "leader": 3})
        return events

    edit(folder.state_events(NODES[2]), change)


def an_epoch_goes_back(folder: RunFolder) -> None:
    def change(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        records[-1]["epoch"] = 1
        return records

    on_each_node(folder.committed_log, lambda path: edit(path, change))


def a_node_wrote_a_traceback(folder: RunFolder) -> None:
    log = folder.node(NODES[0]) / "container.log"
    log.write_text(log.read_text() + "Traceback (most recent call last):\nKeyError: 7\n")


def a_node_ended_by_itself(folder: RunFolder) -> None:
    path = folder.root / "phases.jsonl"
    exited = {"time": 12_000_000_000, "phase": "node-exited", "node": "n3", "exit_code": 1}
    rewrite(path, [*lines(path), exited])


@pytest.mark.parametrize(
    ("mutate", "checker"),
    [
        (a_read_saw_another_value, LINEARIZABILITY),
        (a_write_is_gone_from_all_logs, "lost-commits"),
        (a_write_is_cut_out_of_all_logs, "lost-commits"),
        (one_log_differs, "split-brain"),
        (two_nodes_lead_one_epoch, "split-brain"),
        (an_epoch_goes_back, "split-brain"),
        (a_node_wrote_a_traceback, "node-health"),
        (a_node_ended_by_itself, "node-health"),
    ],
)
def test_changed_evidence_is_invalid(copy: RunFolder, mutate: Mutation, checker: str) -> None:
    mutate(copy)
    found = judged(copy)
    assert verdict_of(found, checker) is Verdict.INVALID
    assert (found.headline, found.exit_code) == ("INVALID", 1)


# Missing evidence: nobody can say valid.


def history_torn(folder: RunFolder) -> None:
    folder.history.write_bytes(folder.history.read_bytes()[:-20])


def history_broken_in_its_middle(folder: RunFolder) -> None:
    data = bytearray(folder.history.read_bytes())
    data[len(data) // 2] = ord("\n")
    folder.history.write_bytes(data)


def history_cut_at_the_end_of_a_line(folder: RunFolder) -> None:
    events = folder.history.read_bytes().splitlines(keepends=True)
    folder.history.write_bytes(b"".join(events[:-4]))


def an_event_repeated(folder: RunFolder) -> None:
    edit(folder.history, lambda events: [*events[:50], events[49], *events[50:]])


def phase_cut(name: str) -> Mutation:
    """The course of the run ends before this step, as if the harness had died."""

    def mutate(folder: RunFolder) -> None:
        path = folder.root / "phases.jsonl"
        course = lines(path)
        place = [phase["phase"] for phase in course].index(name)
        rewrite(path, course[:place])

    return mutate


def garbage(path_of: Callable[[RunFolder], Path]) -> Mutation:
    return lambda folder: path_of(folder).write_bytes(b'{"no":\xff such thing\n\x00\n')


def missing(path_of: Callable[[RunFolder], Path]) -> Mutation:
    return lambda folder: path_of(folder).unlink()


def faults_torn(folder: RunFolder) -> None:
    folder.faults.write_bytes(folder.faults.read_bytes()[:-20])


def no_fault_verified(folder: RunFolder) -> None:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for event in events:
            if event["phase"] == "verified":
                event["phase"] = "not-bitten"
        return events

    edit(folder.faults, change)


def heal_missing(folder: RunFolder) -> None:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [e for e in events if not (e["index"] == 2 and e["phase"] in ("removed", "resumed"))]

    edit(folder.faults, change)


def no_state_events(folder: RunFolder) -> None:
    on_each_node(folder.state_events, Path.unlink)


def a_gap_in_the_state_events(folder: RunFolder) -> None:
    edit(folder.state_events(NODES[2]), lambda events: [*events[:2], *events[3:]])


def no_logs(folder: RunFolder) -> None:
    on_each_node(folder.committed_log, Path.unlink)


def one_log_torn(folder: RunFolder) -> None:
    path = folder.committed_log(NODES[0])
    path.write_bytes(path.read_bytes()[:-30])


def one_log_cut_at_the_end_of_a_line(folder: RunFolder) -> None:
    edit(folder.committed_log(NODES[0]), lambda records: records[:-3])


def a_node_folder_missing(folder: RunFolder) -> None:
    shutil.rmtree(folder.node(NODES[1]))


def not_converged(folder: RunFolder) -> None:
    path = folder.root / "phases.jsonl"
    path.write_text(path.read_text().replace('"converged"', '"not-converged"'))


def interrupted(folder: RunFolder) -> None:
    path = folder.root / "phases.jsonl"
    rewrite(path, [*lines(path), {"time": 1, "phase": "interrupted"}])


def failed(folder: RunFolder) -> None:
    path = folder.root / "phases.jsonl"
    rewrite(path, [*lines(path), {"time": 1, "phase": "failed", "detail": "the engine is gone"}])


@pytest.mark.parametrize(
    ("mutate", "headline", "code", "said"),
    [
        (history_torn, "UNKNOWN", 2, "torn"),
        (history_broken_in_its_middle, "UNKNOWN", 2, "broken after its first"),
        (history_cut_at_the_end_of_a_line, "UNKNOWN", 2, "events that the run wrote"),
        (an_event_repeated, "UNKNOWN", 2, "broken after its first"),
        (missing(lambda folder: folder.history), "UNKNOWN", 2, "history.jsonl is missing"),
        (phase_cut("load-ended"), "UNKNOWN", 2, "died"),
        (phase_cut("final-reads-ended"), "UNKNOWN", 2, "died"),
        (phase_cut("collected"), "UNKNOWN", 2, "died"),
        (missing(lambda folder: folder.root / "phases.jsonl"), "UNKNOWN", 2, "how far"),
        (garbage(lambda folder: folder.root / "phases.jsonl"), "UNKNOWN", 2, "phases.jsonl"),
        (missing(lambda folder: folder.plan), "UNKNOWN", 2, "plan.json is missing"),
        (garbage(lambda folder: folder.plan), "UNKNOWN", 2, "plan.json cannot be read"),
        (lambda folder: edit_plan(folder, checkers=[]), "UNKNOWN", 2, "names no checker"),
        (lambda folder: edit_plan(folder, planned_faults=4), "VACUOUS", 2, "4 faults"),
        (missing(lambda folder: folder.faults), "UNKNOWN", 2, "faults.jsonl is damaged"),
        (faults_torn, "UNKNOWN", 2, "faults.jsonl is torn"),
        (garbage(lambda folder: folder.faults), "UNKNOWN", 2, "faults.jsonl are broken"),
        (no_fault_verified, "VACUOUS", 2, "None of the 3 planned faults took effect"),
        (heal_missing, "HARNESS FAILED", 3, "was not healed"),
        (no_state_events, "VACUOUS", 2, "state events"),
        (missing(lambda folder: folder.state_events(NODES[0])), "UNKNOWN", 2, "no state events"),
        (a_gap_in_the_state_events, "UNKNOWN", 2, "have a gap"),
        (garbage(lambda folder: folder.state_events(NODES[0])), "UNKNOWN", 2, "state_events"),
        (no_logs, "UNKNOWN", 2, "no committed log of n1, n2, n3"),
        (missing(lambda folder: folder.committed_log(NODES[0])), "UNKNOWN", 2, "log of n1"),
        (one_log_torn, "UNKNOWN", 2, "n1/log.jsonl is torn"),
        (one_log_cut_at_the_end_of_a_line, "UNKNOWN", 2, "before its end"),
        (a_node_folder_missing, "UNKNOWN", 2, "n2"),
        (not_converged, "UNKNOWN", 2, "did not converge"),
        (interrupted, "INTERRUPTED", 2, "interrupted"),
        (failed, "HARNESS FAILED", 3, "the engine is gone"),
    ],
)
def test_missing_evidence_is_never_valid(
    copy: RunFolder, mutate: Mutation, headline: str, code: int, said: str
) -> None:
    mutate(copy)
    found = judged(copy)
    told = " ".join([*(result.reason for result in found.checkers), *found.vacuous])
    assert (found.headline, found.exit_code) == (headline, code), told
    assert said in " ".join([told, *found.problems])


@pytest.mark.parametrize("name", ["results.json", "junit.xml", "summary.md", "report.html"])
def test_what_judging_writes_is_never_read(copy: RunFolder, name: str) -> None:
    (copy.root / name).write_bytes(b"\xff garbage")
    assert judged(copy).exit_code == 0
    if name != "report.html":
        assert b"garbage" not in (copy.root / name).read_bytes()


def test_missing_evidence_hides_no_violation(copy: RunFolder) -> None:
    """A violation in what is left wins over everything that is gone."""
    a_read_saw_another_value(copy)
    copy.plan.unlink()
    heal_missing(copy)
    no_logs(copy)
    found = judged(copy)
    assert (found.headline, found.exit_code) == ("INVALID", 1)


def test_a_violation_before_the_break_of_a_history_is_found(copy: RunFolder) -> None:
    a_read_saw_another_value(copy)
    copy.history.write_bytes(copy.history.read_bytes() + b'{"broken\n{"line": 1}\n')
    assert judged(copy).exit_code == 1


# Damage that no reader can see, to a folder that the run has sealed.


def shorten(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize(
    "name",
    [
        "plan.json",
        "history.jsonl",
        "faults.jsonl",
        "phases.jsonl",
        "schedule.jsonl",
        "metrics.jsonl",
        "leaders.jsonl",
        "nodes/n2/state_events.jsonl",
        "nodes/n3/log.jsonl",
        "nodes/n1/container.log",
    ],
)
@pytest.mark.parametrize("damage", [shorten, Path.unlink])
def test_a_sealed_folder_tells_every_damage(
    copy: RunFolder, name: str, damage: Callable[[Path], object]
) -> None:
    for told in (copy.metrics, copy.leaders):
        told.write_text("\n\n")
    write_manifest(copy)
    assert judged_as_it_is(copy).exit_code == 0
    damage(copy.root / name)
    found = judged_as_it_is(copy)
    assert found.exit_code != 0
    record = next(result for result in found.checkers if result.checker == "record")
    assert f"damaged after the run: {name}" in record.reason


def test_a_changed_letter_in_a_sealed_folder_is_told(copy: RunFolder) -> None:
    write_manifest(copy)
    log = copy.node(NODES[0]) / "container.log"
    log.write_text(log.read_text().replace("listening", "Listening"))
    found = judged_as_it_is(copy)
    assert found.exit_code == 2
    assert "container.log was changed since the run" in found.checkers[-1].reason


def test_judging_changes_nothing_of_what_the_run_recorded(copy: RunFolder) -> None:
    write_manifest(copy)
    first = judged_as_it_is(copy)
    assert judged_as_it_is(copy).exit_code == first.exit_code == 0
