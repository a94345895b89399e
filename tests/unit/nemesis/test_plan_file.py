"""Plan files: what they may say, and how they are refused."""

from typing import Any

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Awaited
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.plan import Quiet
from splitbrain.nemesis.plan_file import from_file_faults, line_of, parse_plan_file, with_options

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
    assert "waits for no happening" in refused(there.replace('target = "leader"', 'target="there"'))


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
