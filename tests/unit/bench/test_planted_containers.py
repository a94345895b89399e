"""Runs told again by time, and the table of planted bugs on real runtimes: counted rightly."""

from pathlib import Path

import msgspec
import pytest

from bench.campaign import RunReport
from bench.pinned import Compared, Rate, pinned_cells, rate, struck_by_time, timed_copy
from bench.planted_containers import (
    SUITE,
    Series,
    Wanted,
    lines_of,
    reasons_of,
    run_or_refuse,
    series_of,
    shown,
    summary,
)
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Awaited, Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict
from splitbrain.harness.campaign.suite.reading import check_cells, plan, read_suite
from splitbrain.history.course import Phase
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.schedule_lines import decode_schedule
from splitbrain.systems.kraft.planted_bugs import planted_bugs

MS = 1_000_000
LOAD_START = 4_000 * MS
LOST = ReplayVerdict("INVALID", ("lost-commits",))
BRAIN = ReplayVerdict("INVALID", ("split-brain",))
CUT = Fault(0, "partition", "leader", 3_000_000, 2_000_000, 7)
THERE = Fault(1, "kill", "there", 2_500_000, 1_000_000, 0, when=Awaited("truncates"))


def invoked(index: int, time_ms: int, *, leader: str, node: str = "n1") -> FaultEvent:
    return FaultEvent(
        time=LOAD_START + time_ms * MS,
        index=index,
        kind="kill",
        phase="invoked",
        target="there",
        nodes=(NodeName(node),),
        leader=NodeName(leader),
    )


def test_a_fault_that_waited_strikes_at_the_time_at_which_it_struck() -> None:
    timed = struck_by_time((THERE, CUT), [invoked(1, 5200, leader="n2")], LOAD_START)
    assert [(fault.index, fault.at_us, fault.when) for fault in timed] == [
        (0, 3_000_000, None),
        (1, 5_200_000, None),
    ]


def test_a_target_that_only_a_waiting_fault_has_becomes_who_led_or_leads() -> None:
    deposed = struck_by_time((THERE,), [invoked(1, 5200, leader="n2")], LOAD_START)
    leading = struck_by_time((THERE,), [invoked(1, 5200, leader="n1")], LOAD_START)
    assert [fault.target for fault in (*deposed, *leading)] == ["last-leader", "leader"]


def test_a_fault_that_never_struck_keeps_the_time_from_which_it_waited() -> None:
    (timed,) = struck_by_time((msgspec.structs.replace(THERE, target="leader"),), [], LOAD_START)
    assert (timed.at_us, timed.when, timed.target) == (2_500_000, None, "leader")


def test_the_copy_of_a_run_has_its_plan_and_verdict_and_a_schedule_by_time(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.root.mkdir()
    run.plan.write_text("the plan")
    run.results.write_text("the results")
    run.schedule.write_bytes(b"\n".join(map(msgspec.json.encode, (THERE, CUT))))
    run.faults.write_bytes(msgspec.json.encode(invoked(1, 4100, leader="n1")) + b"\n")
    started = msgspec.json.encode(Phase(LOAD_START, "load-started"))
    run.phases.write_bytes(started + b"\n")
    copy = timed_copy(run, tmp_path / "copies" / "run")
    assert (copy.plan.read_text(), copy.results.read_text()) == ("the plan", "the results")
    planned, actual = decode_schedule(copy.schedule.read_bytes().splitlines())
    assert [(fault.index, fault.at_us) for fault in planned] == [(0, 3_000_000), (1, 4_100_000)]
    assert actual == ()


def test_only_the_recorded_verdict_counts_as_the_same() -> None:
    counted = rate(LOST, [LOST, BRAIN, LOST, ReplayVerdict("VALID")])
    assert counted == Rate(replays=4, same=2, invalid=3)


def test_the_ratio_is_of_rates_and_there_is_none_where_times_never_hit() -> None:
    halved = Compared("cell", "invalid", pinned=Rate(4, 4, 4), timed=Rate(8, 4, 5))
    assert halved.ratio == 2.0
    never = Compared("cell", "invalid", pinned=Rate(4, 4, 4), timed=Rate(5, 0, 0))
    assert never.ratio is None


def test_the_table_of_planted_bugs_has_plans_that_wait_for_events() -> None:
    assert pinned_cells()


REPORT = RunReport(
    seed=1,
    exit_code=1,
    verdict="invalid",
    vacuous=[],
    telling=True,
    elections=2,
    longest_unavailability_ms=None,
    violated=["lost-commits", "linearizability:cas-register"],
    took_s=30.0,
)
VALID = msgspec.structs.replace(REPORT, exit_code=0, verdict="valid", violated=[])
REFUSED = msgspec.structs.replace(VALID, exit_code=64, verdict="none")
FAILED = msgspec.structs.replace(VALID, exit_code=3, verdict="failed")


class Runs:
    """Carries out runs as told, and remembers what was asked for."""

    def __init__(self, *with_bug: RunReport, without: RunReport = VALID) -> None:
        self.left = list(with_bug)
        self._without = without
        self.asked: list[tuple[list[str], int, Path]] = []

    def __call__(self, arguments: list[str], seed: int, folder: Path) -> RunReport:
        self.asked.append((arguments, seed, folder))
        return self.left.pop(0) if "--bug" in arguments else self._without


def series(bug: str, *, tries: int = 3, controls: int = 1) -> Series:
    wanted = Wanted(runtime="docker", bugs=(bug,), tries=tries, controls=controls)
    return next(one for one in series_of(read_suite(SUITE).suite, wanted) if one.bug == bug)


def silent() -> Series:
    all_ = series_of(read_suite(SUITE).suite, Wanted(runtime="docker", tries=1))
    return next(one for one in all_ if one.expect == "valid")


def test_each_planted_bug_has_a_plan_or_a_reason_and_never_both() -> None:
    all_ = series_of(read_suite(SUITE).suite, Wanted(runtime="docker"))
    planned = {one.bug for one in all_ if one.expect == "invalid"}
    reasons = set(reasons_of(()))
    assert planned | reasons == set(planted_bugs())
    assert not planned & reasons
    assert len(planned) >= 10


def test_the_page_of_planted_bugs_has_every_plan_and_every_reason() -> None:
    page = (Path(__file__).parents[3] / "docs" / "planted.md").read_text()
    shown, _, hidden = page.partition("## Which cannot be shown")
    for one in series_of(read_suite(SUITE).suite, Wanted(runtime="docker")):
        nemesis = str(one.runs[0].options["nemesis"])
        assert f"`{one.bug}`" in shown
        assert f"`{Path(nemesis).name}`" in shown
    for bug, reason in reasons_of(()).items():
        assert f"| `{bug}` | {reason} |" in hidden


def test_a_kill_of_all_nodes_must_not_show_the_missing_fsync_that_a_power_cut_shows() -> None:
    all_ = series_of(read_suite(SUITE).suite, Wanted(runtime="docker", bugs=("ack-before-fsync",)))
    assert [(one.expect, one.controls == ()) for one in all_] == [
        ("invalid", False),
        ("valid", False),
    ]
    assert "power-loss-of-all" in all_[0].plan
    assert "kill-of-all.toml" in all_[1].plan


def test_this_version_can_run_every_cell_of_the_table() -> None:
    file = read_suite(SUITE)
    check_cells(file.path, plan(file, 0))


def test_detections_are_counted_with_who_saw_them_and_how_long_it_took(tmp_path: Path) -> None:
    slower = msgspec.structs.replace(REPORT, took_s=40.0, violated=["lost-commits"])
    carry = Runs(REPORT, VALID, slower)
    result = shown(series("ack-before-fsync"), tmp_path, carry)
    assert (result.detections, result.tries, result.median_s) == (2, 3, 35.0)
    assert result.seen_by == {"lost-commits": 2, "linearizability:cas-register": 1}
    assert result.is_as_wanted
    assert [seed for _, seed, _ in carry.asked] == [1, 2, 3, 1]
    # The campaign gives each run its own seed; a second one would be refused.
    assert not any("--seed" in arguments for arguments, _, _ in carry.asked)
    assert "2 of 3" in lines_of(result)[0]


BY_OTHERS = msgspec.structs.replace(REPORT, violated=["record"])


@pytest.mark.parametrize(
    ("tries", "reports", "control", "expected"),
    [
        # Only a checker that is named as catcher has caught it.
        (1, [BY_OTHERS], VALID, {"detections": 0, "is_as_wanted": False}),
        # An alarm without the bug spoils the series.
        (1, [REPORT], REPORT, {"control_alarms": 1, "is_as_wanted": False}),
        # A run that the runtime refuses is tried once and is no failure.
        (3, [REFUSED], VALID, {"is_refused": True, "tries": 0, "is_as_wanted": True}),
        # Runs that failed for other reasons are no tries.
        (2, [FAILED, REPORT], VALID, {"tries": 1, "detections": 1, "failed": 1}),
    ],
)
def test_a_series_counts_what_it_says(
    tmp_path: Path,
    tries: int,
    reports: list[RunReport],
    control: RunReport,
    expected: dict[str, object],
) -> None:
    carry = Runs(*reports, without=control)
    result = shown(series("ack-before-fsync", tries=tries), tmp_path, carry)
    assert {name: getattr(result, name) for name in expected} == expected
    assert not carry.left
    assert ("NOT AS IT MUST BE" in lines_of(result)[0]) == (not result.is_as_wanted)


def test_a_silent_series_must_stay_silent(tmp_path: Path) -> None:
    assert shown(silent(), tmp_path, Runs(VALID)).is_as_wanted
    assert not shown(silent(), tmp_path, Runs(REPORT)).is_as_wanted


def test_the_last_line_adds_up(tmp_path: Path) -> None:
    wanted = Wanted(runtime="docker", tries=1)
    results = [
        shown(series("ack-before-fsync", tries=1), tmp_path, Runs(REPORT)),
        shown(silent(), tmp_path, Runs(VALID)),
    ]
    said = summary(results, {"some-bug": "why"}, wanted)
    assert (said["planned_bugs"], said["shown_bugs"], said["silent_alarms"]) == (1, 1, 0)
    assert said["bugs"]["ack-before-fsync"]["detections"] == 1
    assert msgspec.json.decode(msgspec.json.encode(said)) == said


def test_a_bug_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_or_refuse(Wanted(runtime="docker", bugs=("no-such-bug",))) == 64
    assert "no-such-bug" in capsys.readouterr().err
    with pytest.raises(UsageError):
        series_of(read_suite(SUITE).suite, Wanted(runtime="docker", bugs=("no-such-bug",)))
