"""Coverage of a fault is what the nodes told; the untold is unknown."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.coverage_cells import CoverageCell, sum_coverage
from splitbrain.harness.folder.results import read
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.fault_coverage import NodeTimeline, coverage_of, fault_coverage
from splitbrain.harness.report.coverage_tables import (
    HEADER,
    coverage_rows,
    never_tried,
    workload_rows,
)
from splitbrain.harness.report.publishing import judge_and_publish as judge
from splitbrain.history.course import LeaderSighting
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.told_cluster import COVERAGE, MS, fault_lines, write_told_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_told_run(tmp_path / "20261121T020000Z-7")


def cells_of(folder: RunFolder) -> list[tuple[Any, ...]]:
    """Without their workload, which is the same in one run."""
    cells = coverage_of(load_run(folder.root))
    assert {cell.workload for cell in cells} == {"register"}
    return [(one.kind, one.role, one.phase, one.faults, one.bitten) for one in cells]


def test_each_fault_counts_by_the_roles_and_the_phase_that_it_met(run: RunFolder) -> None:
    assert cells_of(run) == COVERAGE


def test_a_node_without_state_events_is_unknown_and_so_is_every_phase(run: RunFolder) -> None:
    run.state_events(NodeName("n3")).unlink()
    cells = cells_of(run)
    assert {phase for _, _, phase, _, _ in cells} == {"unknown"}
    assert ("pause", "unknown", "unknown", 1, 1) in cells
    assert ("kill", "leader", "unknown", 1, 1) in cells
    assert ("partition", "leader", "unknown", 1, 1) in cells


def test_without_any_state_events_nothing_is_known_though_a_leader_was_named(
    run: RunFolder,
) -> None:
    for node in run.node_names():
        run.state_events(node).unlink()
    lines = [msgspec.structs.replace(one, leader=NodeName("n1")) for one in fault_lines()]
    run.faults.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in lines))
    assert {(role, phase) for _, role, phase, _, _ in cells_of(run)} == {("unknown", "unknown")}


def test_events_without_times_tell_nothing() -> None:
    assert (
        NodeTimeline([StateEvent("n1", 0, 7, "started", 0, role="follower")]).highest_epoch(1)
        is None
    )


@pytest.mark.parametrize(
    ("leader", "sighted", "role"),
    [
        ("n2", "n1", "leader"),
        ("n1", "n2", "follower"),
        (None, "n2", "leader"),
        (None, "n3", "follower"),
        (None, None, "unknown"),
    ],
)
def test_a_system_that_tells_nothing_is_seen_from_outside(
    leader: str | None, sighted: str | None, role: str
) -> None:
    named = None if leader is None else NodeName(leader)
    seen = None if sighted is None else NodeName(sighted)
    event = FaultEvent(5 * MS, 0, "pause", "invoked", "n2", (NodeName("n2"),), leader=named)
    sightings = [LeaderSighting(MS, seen, 1), LeaderSighting(9 * MS, NodeName("n2"), 2)]
    cells = outside([event], sightings)
    assert [(one.role, one.phase) for one in cells] == [(role, "unknown")]


def test_from_outside_a_node_that_was_killed_is_down_once_that_was_seen() -> None:
    def told(index: int, kind: str, phase: Any, at: int) -> FaultEvent:
        return FaultEvent(at * MS, index, kind, phase, "n2", (NodeName("n2"),))

    kill = [told(0, "kill", "invoked", 5), told(0, "kill", "verified", 8)]
    sightings = [LeaderSighting(MS, NodeName("n2"), 1)]
    for at, role in ((4, "leader"), (6, "unknown"), (9, "down")):
        cells = outside([*kill, told(1, "loss", "invoked", at)], sightings)
        assert [one.role for one in cells if one.kind == "loss"] == [role]


def outside(events: list[FaultEvent], sightings: list[LeaderSighting]) -> tuple[CoverageCell, ...]:
    return fault_coverage(
        events,
        nodes=["n1", "n2", "n3"],
        workload="set",
        end_time=99 * MS,
        state_events={},
        sightings=sightings,
    )


def tell(node: str, *words: tuple[int, Any, int, str | None]) -> list[StateEvent]:
    """Events of one life of a node, from (ms, kind, epoch, role)."""
    return [
        StateEvent(node, number, 0, kind, epoch, role=role, offset=1, time=at * MS)
        for number, (at, kind, epoch, role) in enumerate(words)
    ]


def phase_met(*tales: list[StateEvent], at: int = 50) -> str:
    event = FaultEvent(at * MS, 0, "pause", "invoked", "n1", (NodeName("n1"),))
    cells = fault_coverage(
        [event],
        nodes=["n1", "n2", "n3"],
        workload="set",
        end_time=99 * MS,
        state_events={tale[0].node: tale for tale in tales},
    )
    return cells[0].phase


LEADS = tell("n1", (1, "started", 1, "leader"), (2, "commit", 1, None))


def test_a_leader_that_most_nodes_have_given_up_stands_in_an_election() -> None:
    n2 = tell("n2", (1, "started", 1, "follower"), (40, "role", 1, "prospective"))
    follows, doubts = (
        tell("n3", (1, "started", 1, "follower"), (40, "role", 1, role))
        for role in ("follower", "prospective")
    )
    assert phase_met(LEADS, n2, follows) == "settled"
    assert phase_met(LEADS, n2, doubts) == "election"


def test_an_older_leader_does_not_settle_a_newer_epoch() -> None:
    n2 = tell("n2", (1, "started", 1, "follower"), (40, "role", 2, "candidate"))
    n3 = tell("n3", (1, "started", 1, "follower"))
    assert phase_met(LEADS, n2, n3) == "election"
    assert phase_met(LEADS, n2, n3, at=39) == "settled"


def test_nodes_that_never_tell_of_commits_leave_the_phase_unknown() -> None:
    silent = tell("n1", (1, "started", 1, "leader"))
    others = [tell(node, (1, "started", 1, "follower")) for node in ("n2", "n3")]
    assert phase_met(silent, *others) == "unknown"
    assert phase_met(LEADS, *others) == "settled"


def test_what_a_follower_learns_to_be_committed_settles_no_epoch() -> None:
    n1 = tell("n1", (1, "started", 1, "leader"))
    n2 = tell("n2", (1, "started", 1, "follower"), (2, "high-watermark", 1, None))
    n3 = tell("n3", (1, "started", 1, "follower"))
    assert phase_met(n1, n2, n3) == "new-leader"


def test_a_node_that_came_back_is_unknown_while_it_may_end_again_and_then_as_it_says() -> None:
    first = tell("n1", (1, "started", 1, "follower"))
    again = tell("n1", (30, "started", 1, "follower"))
    tale = NodeTimeline([*first, msgspec.structs.replace(again[0], incarnation=1)])
    loop = FaultWindow(0, "crash-loop", ("n1",), 10 * MS, 60 * MS, 15 * MS, healed=True)
    met = {at: tale.standing(at * MS, [loop]).role for at in (5, 12, 20, 50, 70)}
    assert met == {5: "follower", 12: "unknown", 20: "down", 50: "unknown", 70: "follower"}


def test_events_count_also_where_none_were_promised(run: RunFolder) -> None:
    record = load_run(run.root)
    assert record.plan is not None
    plan = msgspec.structs.replace(record.plan, declares_state_events=False)
    unpromised = msgspec.structs.replace(record, plan=plan)
    assert coverage_of(unpromised) == coverage_of(record)


def test_a_role_that_nobody_knows_is_unknown() -> None:
    strange = tell("n1", (1, "started", 1, "viewstamped"))
    assert NodeTimeline(strange).standing(50 * MS, ()).role == "unknown"


def test_coverage_adds_up_by_kind_role_phase_and_workload() -> None:
    one = CoverageCell("kill", "leader", "settled", "set", 2, 1)
    other = msgspec.structs.replace(one, workload="register")
    total = sum_coverage([[one, other], [one]])
    assert [(cell.workload, cell.faults, cell.bitten) for cell in total] == [
        ("register", 2, 1),
        ("set", 4, 2),
    ]


CELLS = (
    CoverageCell("kill", "leader", "settled", "set", 2, 1),
    CoverageCell("kill", "leader", "election", "set", 1, 1),
    CoverageCell("kill", "leader", "new-leader", "set", 1, 1),
    CoverageCell("pause", "follower", "settled", "register", 3, 3),
    CoverageCell("pause", "down", "settled", "register", 1, 0),
)


def test_rows_show_zeros_and_what_was_never_tried_first() -> None:
    rows = coverage_rows(CELLS, ("kill", "wipe"))
    assert all(len(row) == len(HEADER) for row in rows)
    assert rows == [
        ("wipe", "leader", "0", "0", "0", "0"),
        ("wipe", "follower", "0", "0", "0", "0"),
        ("wipe", "candidate", "0", "0", "0", "0"),
        ("kill", "leader", "1", "1", "2 (1 took effect)", "0"),
        ("kill", "follower", "0", "0", "0", "0"),
        ("kill", "candidate", "0", "0", "0", "0"),
        ("pause", "leader", "0", "0", "0", "0"),
        ("pause", "follower", "0", "0", "3", "0"),
        ("pause", "candidate", "0", "0", "0", "0"),
        ("pause", "down", "0", "0", "1 (0 took effect)", "0"),
    ]
    assert workload_rows(CELLS, ("wipe",)) == [
        ("fault", "register", "set"),
        ("wipe", "0", "0"),
        ("kill", "0", "4 (3 took effect)"),
        ("pause", "4 (3 took effect)", "0"),
    ]


def test_what_was_never_tried_is_said_in_words() -> None:
    assert never_tried(CELLS, ("kill", "power", "wipe")) == [
        "at all: power, wipe",
        "kill on a follower; on a candidate",
        "pause on a leader; on a follower in an election or under a new leader; on a candidate",
        "under the workload register: kill",
        "under the workload set: pause",
    ]


def test_the_judge_writes_coverage_into_results_summary_and_report(run: RunFolder) -> None:
    results = judge(run.root, analyze=False)
    assert results.coverage == coverage_of(load_run(run.root))
    assert read(run.results).coverage == results.coverage
    summary = run.summary.read_text()
    assert "## Fault coverage" in summary
    assert "| partition | leader | 0 | 0 | 2 | 0 |" in summary
    # Planned, or at least asked for, and never injected.
    assert "| wipe | leader | 0 | 0 | 0 | 0 |" in summary
    assert re.search('id="coverage-title">Fault coverage *<', run.report.read_text())


def test_results_of_an_earlier_version_show_no_coverage_instead_of_zeros(run: RunFolder) -> None:
    from splitbrain.harness.report.summary import to_markdown

    results = judge(run.root, analyze=False)
    old = msgspec.to_builtins(results)
    del old["coverage"]
    again = msgspec.convert(old, type(results))
    assert again.coverage is None
    assert "Fault coverage" not in to_markdown(again)
