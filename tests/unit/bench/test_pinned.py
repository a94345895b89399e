"""A run whose faults waited for events is told again by time, and replays are counted both ways."""

from pathlib import Path

import msgspec

from bench.pinned import Compared, Rate, pinned_cells, rate, struck_by_time, timed_copy
from splitbrain.contracts.fault import Awaited, Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict
from splitbrain.history.course import Phase, phases_path
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.schedule_lines import decode_schedule

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
    phases_path(run.root).write_bytes(started + b"\n")
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
