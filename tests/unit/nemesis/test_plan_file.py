"""Plan files, scripted plans, ``schedule.jsonl``: what they say, and how they are refused."""

from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import ActualFault, Awaited, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.history.schedule_lines import decode_schedule, pin
from splitbrain.nemesis.plan import Quiet
from splitbrain.nemesis.plan_file import (
    FileAwaited,
    from_file_faults,
    line_of,
    parse_plan_file,
    with_options,
)
from splitbrain.nemesis.scripted import SCRIPTED, least_time_limit_ms

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
WRITTEN = """\
# a plan of two faults
overlap = 2

[[faults]]
kind = "kill"
target = "leader"
at_ms = 1000
duration_ms = 500

[[faults]]
kind = "loss"
target = "follower"
duration_ms = 900
options = { loss = 0.2 }
when = { on = "commits", node = "leader", epoch = 5, count = 3 }
"""


def refused(text: str, name: str = "plan.toml") -> str:
    def read() -> None:
        plan = parse_plan_file(text.encode(), name)
        from_file_faults(plan.plan.faults, NODES, 10_000, overlap=2, places=plan.places)

    with pytest.raises(UsageError) as caught:
        read()
    return str(caught.value)


def test_a_fault_may_wait_for_what_happens_in_an_epoch() -> None:
    read = parse_plan_file(WRITTEN.encode(), "plan.toml")
    waiting, timed = from_file_faults(read.plan.faults, NODES, 10_000, overlap=2)
    assert timed.when is None
    assert waiting.when == Awaited("commits", "leader", 5, 3, timeout_us=30_000_000)
    assert (waiting.at_us, waiting.options) == (0, {"loss": 0.2})


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "loss"', 'kind = "los"', "plan.toml line 10: there is no fault called 'los'"),
        ("loss = 0.2", "lsos = 0.2", "plan.toml line 10: the fault 'loss' has no option 'lsos'"),
        ("loss = 0.2", "loss = 1.5", "the option 'loss' of the fault 'loss' cannot be 1.5"),
        ("loss = 0.2", 'loss = "x"', "It is a number"),
        ('target = "follower"', "target = 3", "plan.toml, line 12, cannot be read"),
        ("at_ms = 1000", "at = 1000", "plan.toml, line 7, cannot be read"),
        ("at_ms = 1000", "at = 1000", "Did you mean 'at_ms'"),
        ("at_ms = 1000", "", "says neither when to strike nor what to wait for"),
        ('on = "commits"', 'on = "commmits"', "Did you mean 'commits'"),
        ('on = "commits"', 'no = "commits"', "plan.toml, line 15, cannot be read"),
        ('node = "leader", epoch', 'node = "n9", epoch', "what happens at 'n9'"),
        ("count = 3", "count = 0", "count = 0"),
        ("overlap = 2", "overlap = ", "line 2"),
        ("overlap = 2", 'nemesis = "kill"', "has both faults and a nemesis"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, says: str) -> None:
    assert says in refused(WRITTEN.replace(old, new, 1))


def test_a_fault_strikes_there_only_where_it_waits() -> None:
    there = WRITTEN.replace('target = "follower"', 'target = "there"')
    read = parse_plan_file(there.encode(), "plan.toml")
    assert from_file_faults(read.plan.faults, NODES, 10_000, overlap=2)[0].target == "there"
    assert "waits for nothing at any node" in refused(
        there.replace('target = "leader"', 'target="there"')
    )


@pytest.mark.parametrize("words", ["[pace]\nrecovered = true\n", "[options.kill]\nbeside = 1\n"])
def test_what_is_for_drawing_is_refused_beside_faults_that_are_written(words: str) -> None:
    assert "its faults are not drawn" in refused(f"{WRITTEN}\n{words}")


def test_a_plan_with_nothing_in_it_is_refused() -> None:
    assert "has no field 'faults'" in refused("overlap = 1\n")


def test_a_drawn_plan_has_pace_and_options() -> None:
    text = """\
nemesis = "delay,kill:leader"
beyond_promise = true
[pace]
overlap = 2
weights = { kill = 3 }
quiet = [{ from_ms = 5000, to_ms = 9000 }]
[options.delay]
delay_ms = 300
"""
    plan = parse_plan_file(text.encode(), "plan.toml").plan
    assert plan.pace.overlap == 2
    assert plan.pace.quiet == (Quiet(5000, 9000),)
    made = with_options(
        from_file_faults(
            parse_plan_file(WRITTEN.encode(), "plan.toml").plan.faults, NODES, 10_000, overlap=2
        ),
        plan,
        "plan.toml",
    )
    assert all(fault.options["beyond_promise"] for fault in made)
    lost = text.replace("[options.delay]", "[options.loss]")
    with pytest.raises(UsageError, match="options of 'loss'"):
        with_options((), parse_plan_file(lost.encode(), "plan.toml").plan, "plan.toml")


@pytest.mark.parametrize(
    ("path", "line"),
    [("faults[0].at_ms", 7), ("faults[1]", 10), ("faults[1].when.count", 15), ("overlap", 2),
     ("faults[7].kind", None), ("pace", None)],
)  # fmt: skip
def test_the_line_of_a_value_is_found(path: str, line: int | None) -> None:
    assert line_of(WRITTEN, path) == line


def test_a_plan_in_json_is_refused_by_place() -> None:
    said: Any = refused('{"faults": [{"kind": "kill", "target": 3}]}', "plan.json")
    assert "faults[0].target must be text" in said


AT_THE_LEADER = [
    "isolate-leader", "isolate-leader-8s", "isolate-leader-again", "leader-kill", "leader-pause",
    "partial-partition", "leader-cut-then-killed",
]  # fmt: skip


def scripted(name: str, time_limit_ms: int) -> tuple[Fault, ...]:
    plan = SCRIPTED[name](time_limit_ms)
    return from_file_faults(plan.faults, NODES, time_limit_ms, overlap=plan.overlap)


def end_ms(fault: Fault) -> int:
    return (fault.at_us + fault.duration_us) // 1000


JSON = '{"faults": [{"kind": "kill", "target": "n2", "at_ms": 1000, "duration_ms": 500}]}'
TOML = '[[faults]]\nkind = "kill"\ntarget = "n2"\nat_ms = 1000\nduration_ms = 500\n'


@pytest.mark.parametrize("name", sorted(SCRIPTED))
@pytest.mark.parametrize("time_limit_ms", [24_000, 60_000])
def test_scripted_plans_end_calm(name: str, time_limit_ms: int) -> None:
    faults = scripted(name, time_limit_ms)
    assert faults
    assert (
        max(fault.at_us // 1000 + fault.duration_us // 1000 for fault in faults)
        <= time_limit_ms - 4000
    )


@pytest.mark.parametrize("name", AT_THE_LEADER)
def test_plans_that_are_named_after_the_leader_aim_at_it(name: str) -> None:
    assert {fault.target for fault in scripted(name, 15_000)} == {"leader"}


def test_figure_8_brings_back_a_leader_with_records_of_an_old_epoch() -> None:
    faults = scripted("raft-figure-8", 20_000)
    told = [(fault.kind, fault.target) for fault in faults]
    assert told == [
        ("partition", "leader"), ("kill", "last-leader"), ("partition", "leader"),
        ("kill", "there"),
    ]  # fmt: skip
    assert faults[0].options == {"beside": 1}
    # The first leader dies while cut off, and is back after the cut is healed.
    assert faults[0].at_us < faults[1].at_us < faults[0].at_us + faults[0].duration_us
    assert faults[3].when is not None
    assert (faults[3].when.on, faults[3].when.node) == ("commits", "leader")


@pytest.mark.parametrize("name", ["isolate-leader-again", "leader-kill", "leader-pause"])
def test_the_least_time_limit_has_room_for_a_fault_and_less_has_not(name: str) -> None:
    least_ms = least_time_limit_ms(name)
    assert scripted(name, least_ms)
    assert not SCRIPTED[name](least_ms - 1).faults


def test_isolate_leader_is_one_long_isolation() -> None:
    (fault,) = scripted("isolate-leader", 20_000)
    assert (fault.kind, fault.at_us, fault.duration_us) == (
        "partition",
        3_000_000,
        13_000_000,
    )


@pytest.mark.parametrize(("text", "file_format"), [(JSON, "json"), (TOML, "toml")])
def test_a_plan_file_reads_the_same_in_both_formats(text: str, file_format: str) -> None:
    (fault,) = from_file_faults(
        parse_plan_file(text.encode(), f"plan.{file_format}").plan.faults, NODES, 10_000
    )
    assert (fault.index, fault.kind, fault.target) == (0, "kill", "n2")
    assert (fault.at_us // 1000, fault.duration_us // 1000) == (1000, 500)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"faults": [{"kind": "kill"}]}', '{"fault": []}', '{"faults": 3}']
)
def test_what_is_no_plan_file_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="plan file"):
        parse_plan_file(text.encode(), "plan.json")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kind": "kil"}, "Did you mean 'kill'"),
        ({"target": "n7"}, "no target 'n7'"),
        ({"target": "halves"}, "cannot have the target"),
        ({"duration_ms": 0}, "lasts 0 ms"),
        ({"at_ms": -1}, "begins before the load"),
        ({"draw": -1}, "draw of at least 0"),
        ({"options": {"lenght": 1}}, "no option 'lenght'"),
        ({"options": {"nodes": ["n9"]}}, "list of nodes"),
        ({"at_ms": 9_800}, "ends after the time limit"),
    ],
)
def test_faults_that_do_not_fit_are_refused(fields: dict[str, object], says: str) -> None:
    (fault,) = parse_plan_file(JSON.encode(), "plan.json").plan.faults
    with pytest.raises(UsageError, match=says):
        from_file_faults([msgspec.structs.replace(fault, **fields)], NODES, 10_000)


def test_overlapping_faults_are_refused() -> None:
    (fault,) = parse_plan_file(JSON.encode(), "plan.json").plan.faults
    with pytest.raises(UsageError, match="is over at"):
        from_file_faults([fault, fault], NODES, 10_000)


def test_faults_that_wait_for_recovery_have_windows_of_their_own_and_no_place() -> None:
    (fault,) = parse_plan_file(JSON.encode(), "plan.json").plan.faults
    waiting = msgspec.structs.replace(fault, at_ms=2000, when=FileAwaited("recovered"))
    (_, made) = from_file_faults([fault, waiting], NODES, 10_000)
    assert made.when == Awaited("recovered", timeout_us=30_000_000)
    early = msgspec.structs.replace(waiting, at_ms=1200)
    with pytest.raises(UsageError, match="begins before the one before it is over at 1500 ms"):
        from_file_faults([fault, early], NODES, 10_000)
    there = msgspec.structs.replace(waiting, target="there")
    with pytest.raises(UsageError, match="waits for nothing at any node"):
        from_file_faults([there], NODES, 10_000)
    with pytest.raises(UsageError, match="does not say when to strike at the earliest"):
        from_file_faults([msgspec.structs.replace(waiting, at_ms=None)], NODES, 10_000)
    (first,) = from_file_faults([msgspec.structs.replace(waiting, at_ms=0)], NODES, 10_000)
    assert first.at_us == 0
    for more in ({"node": "n2"}, {"epoch": 3}, {"count": 2}):
        one = msgspec.structs.replace(waiting, when=FileAwaited("recovered", **more))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="'recovered' at one node, in one epoch or several"):
            from_file_faults([one], NODES, 10_000)


def test_as_many_faults_overlap_as_the_plan_lets() -> None:
    (fault,) = parse_plan_file(JSON.encode(), "plan.json").plan.faults
    assert len(from_file_faults([fault, fault], NODES, 10_000, overlap=2)) == 2
    with pytest.raises(UsageError, match="overlap = 3"):
        from_file_faults([fault, fault, fault], NODES, 10_000, overlap=2)


PLANNED = [
    Fault(0, "kill", "leader", 1_000_000, 500_000, 17),
    Fault(1, "pause", "leader", 3_000_000, 500_000, 4),
]
ACTUAL = ActualFault(0, "kill", "leader", (NodeName("n3"),), leader=NodeName("n3"))
LINES = [msgspec.json.encode(record) for record in (*PLANNED, ACTUAL)]


def test_planned_and_actual_faults_are_told_apart() -> None:
    assert decode_schedule(LINES) == (tuple(PLANNED), (ACTUAL,))


def test_a_torn_last_line_is_left_out_and_an_earlier_one_is_not() -> None:
    assert decode_schedule([*LINES[:2], LINES[2][:20]]) == (tuple(PLANNED), ())
    with pytest.raises(msgspec.DecodeError):
        decode_schedule([LINES[0][:20], LINES[1]])


def test_pinning_keeps_times_and_hits_the_recorded_nodes() -> None:
    first, second = pin(PLANNED, [ACTUAL])
    assert first.options == {"nodes": ["n3"]}
    assert (first.at_us, first.target) == (1_000_000, "leader")
    assert second == PLANNED[1]
