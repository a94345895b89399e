"""Scripted plans and plan files."""

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.plan_file import from_file_faults, parse_plan_file
from splitbrain.nemesis.scripted import SCRIPTED, least_time_limit_ms

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))


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
    import msgspec

    (fault,) = parse_plan_file(JSON.encode(), "plan.json").plan.faults
    with pytest.raises(UsageError, match=says):
        from_file_faults([msgspec.structs.replace(fault, **fields)], NODES, 10_000)


def test_overlapping_faults_are_refused() -> None:
    (fault,) = parse_plan_file(JSON.encode(), "plan.json").plan.faults
    with pytest.raises(UsageError, match="is over at"):
        from_file_faults([fault, fault], NODES, 10_000)


def test_as_many_faults_overlap_as_the_plan_lets() -> None:
    (fault,) = parse_plan_file(JSON.encode(), "plan.json").plan.faults
    assert len(from_file_faults([fault, fault], NODES, 10_000, overlap=2)) == 2
    with pytest.raises(UsageError, match="overlap = 3"):
        from_file_faults([fault, fault, fault], NODES, 10_000, overlap=2)
