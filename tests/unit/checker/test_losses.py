"""The fault that a moment falls to, and the losses by fault."""

from typing import Any

import msgspec
import pytest

from splitbrain.checker import losses, set_full
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.losses import LISTED_MAX, Losses, attribute
from splitbrain.checker.lost_commits import check as check_lost_commits
from splitbrain.checker.registry import checker_named
from splitbrain.checker.set_full import check as check_set_full
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.fault import FaultEvent, FaultPhase
from splitbrain.contracts.names import NodeName
from splitbrain.history import fault_windows as windows
from splitbrain.history.fault_windows import FaultWindow, fault_windows
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation

N1, N2 = NodeName("n1"), NodeName("n2")


def story(
    index: int, node: NodeName, start: int, end: int | None, kind: str = "partition"
) -> list[FaultEvent]:
    times: dict[FaultPhase, int] = {"invoked": start, "verified": start + 1}
    if end is not None:
        times |= {"healing": end - 1, "removed": end, "resumed": end + 5}
    return [
        FaultEvent(time, index, kind, phase, "leader", (node,), leader=node)
        for phase, time in times.items()
    ]


S = 1_000_000_000
TWO = [*story(0, N1, 10 * S, 20 * S), *story(1, N2, 40 * S, 42 * S, "kill")]


BOTH_IN_FORCE = [*story(0, N1, 0, 50 * S), *story(1, N2, 10 * S, 20 * S)]
NEVER_GONE = story(0, N1, 10 * S, None)
FOUND_NO_TARGET = [FaultEvent(5, 0, "kill", "not-applicable", "leader")]

Found = tuple[int, str, float]
#: Moment in seconds, node, and the fault it falls to, when, and how far away in seconds.
MOMENTS: dict[str, list[tuple[list[FaultEvent], float, str | None, Found | None]]] = {
    "in a window": [(TWO, time, "n1", (0, "during", 0)) for time in (10, 15, 20)],
    "where no fault hit the node": [(TWO, 15, node, (0, "during", 0)) for node in ("n2", None)],
    "of two in force, the one on the node": [
        (BOTH_IN_FORCE, 15, "n1", (0, "during", 0)),
        (BOTH_IN_FORCE, 15, "n2", (1, "during", 0)),
        (BOTH_IN_FORCE, 15, "n3", (1, "during", 0)),
    ],
    "outside of all windows, the nearest of the node": [
        (TWO, 24, "n1", (0, "after", 4)),
        (TWO, 39.5, "n2", (1, "before", 0.5)),
        (TWO, 38, "n1", (0, "after", 18)),  # the one on n2 is nearer in time
        (TWO, 38, "n3", (1, "before", 2)),
    ],
    "a fault that was never seen to be gone": [(NEVER_GONE, 1000, "n1", (0, "during", 0))],
    "no fault": [(events, 15, "n1", None) for events in ([], FOUND_NO_TARGET)],
}


def found_at(events: list[FaultEvent], time_s: float, node: str | None) -> Found | None:
    found = attribute(fault_windows(events), round(time_s * S), node)
    return None if found is None else (found.fault.index, found.when, found.distance_ns / S)


@pytest.mark.parametrize("name", MOMENTS)
def test_a_moment_falls_to_its_fault(name: str) -> None:
    for events, time_s, node, expected in MOMENTS[name]:
        assert found_at(events, time_s, node) == expected


def test_a_fault_is_named_by_what_it_did() -> None:
    window = FaultWindow(3, "kill", ("n2",), 0, 1, None, healed=True, target="leader")
    assert window.name == "fault 3 (kill:leader on n2)"
    assert msgspec.structs.replace(window, target="n2").name == "fault 3 (kill:n2)"


# --- told by the checkers --------------------------------------------------------------------


def add(element: int, start: float, node: str | None, **fields: Any) -> PairedOperation:
    return operation(
        "add",
        element,
        start=round(start * S),
        end=fields.pop("end", round((start + 0.1) * S)),
        index=element,
        process=element,
        node=node,
        **fields,
    )


def final_read(*elements: int) -> PairedOperation:
    shown = list(elements)
    return operation("read", None, shown, start=90 * S, end=91 * S, final=True, node="n2")


def lost_set(*operations: PairedOperation, events: list[FaultEvent] = TWO) -> CheckResult:
    return checker_named("set-full")(
        Evidence(operations=operations, faults=tuple(events)), Unlimited()
    )


LOST = (
    add(1, 5, "n1"),
    add(2, 15, "n1"),
    add(3, 16, "n1"),
    add(4, 21, "n1"),
    add(5, 39, "n2"),
    final_read(1),
)


def test_the_reason_says_how_much_is_lost_by_whom_and_during_what() -> None:
    result = lost_set(*LOST)
    assert result.verdict is Verdict.INVALID
    assert result.reason.startswith(
        "4 of 5 acknowledged elements are lost: "
        "2 acknowledged by n1 during fault 0 (partition:leader on n1); "
        "1 by n1 up to 1.1 s after fault 0 (partition:leader on n1); "
        "1 by n2 up to 0.9 s before fault 1 (kill:leader on n2): "
        "Element 2 of set a was acknowledged (index 2) by n1 during fault 0 "
    )


def test_figures_count_losses_by_fault() -> None:
    result = lost_set(*LOST)
    assert result.figures["lost"] == 4
    assert result.figures["lost-during-faults"] == 2
    assert result.figures["lost-outside-faults"] == 2
    assert result.lists["lost-by-fault"] == (
        {"fault": 0, "when": "during", "node": "n1", "count": 2},
        {"fault": 0, "when": "after", "node": "n1", "count": 1},
        {"fault": 1, "when": "before", "node": "n2", "count": 1},
    )


def test_every_lost_element_is_listed_with_its_add_and_its_fault() -> None:
    listed = lost_set(*LOST).lists["lost"]
    assert [row["value"] for row in listed] == [2, 3, 4, 5]
    assert listed[0] == {
        "key": "a",
        "value": 2,
        "acknowledged": True,
        "index": 2,
        "time_ms": 15_100,
        "node": "n1",
        "fault": 0,
        "when": "during",
    }


def test_the_list_is_whole_where_the_violations_are_cut() -> None:
    adds = [add(number, 11 + number / 100, "n1") for number in range(100)]
    result = lost_set(*adds, final_read())
    assert len(result.violations) == set_full.NAMED_MAX
    assert len(result.lists["lost"]) == 100


def test_an_endless_list_is_cut_and_the_count_is_not() -> None:
    losses = Losses(())
    for number in range(LISTED_MAX + 5):
        losses.add(None, number, "a", None)
    assert len(losses.lists()["lost"]) == LISTED_MAX


def test_without_faults_the_reason_says_nothing_of_them() -> None:
    result = lost_set(*LOST, events=[])
    assert result.reason.startswith("4 of 5 acknowledged elements are lost: Element 2 of set a was")
    assert result.lists["lost-by-fault"] == (
        {"fault": None, "when": None, "node": "n1", "count": 3},
        {"fault": None, "when": None, "node": "n2", "count": 1},
    )


def test_elements_that_were_only_seen_are_counted_apart() -> None:
    seen = operation("read", None, [7], start=17 * S, end=18 * S)
    unanswered = operation("add", 7, start=12 * S, index=7, node="n1")
    result = lost_set(unanswered, seen, final_read())
    assert result.reason.startswith("1 that were only seen are lost: Element 7 of set a was seen")
    (row,) = result.lists["lost"]
    assert (row["acknowledged"], row["node"], row["fault"]) == (False, None, 0)


def test_a_set_that_lost_nothing_lists_nothing() -> None:
    result = lost_set(add(1, 5, "n1"), final_read(1))
    assert result.verdict is Verdict.VALID
    assert result.lists == {}
    assert "lost-during-faults" not in result.figures


def test_many_groups_are_told_in_part_and_counted_in_full() -> None:
    events = [event for n in range(7) for event in story(n, N1, (10 + 4 * n) * S, (11 + 4 * n) * S)]
    adds = [add(number, 10.2 + 4 * number, "n1") for number in range(7)]
    result = lost_set(*adds, final_read(), events=events)
    assert "; 3 elsewhere: " in result.reason
    assert len(result.lists["lost-by-fault"]) == 7


def test_lost_commits_are_told_by_fault_too() -> None:
    evidence = Evidence(operations=LOST, faults=tuple(TWO), voters=3)
    result = check_lost_commits(evidence, Unlimited())
    assert result.verdict is Verdict.INVALID
    assert result.reason.startswith(
        "4 of 5 acknowledged changes are lost: 2 acknowledged by n1 during fault 0 "
    )
    assert "was acknowledged by n1 during fault 0" in result.violations[0]["sentence"]
    assert [row["value"] for row in result.lists["lost"]] == [2, 3, 4, 5]


# --- mutants ---------------------------------------------------------------------------------


def nearest_ignores_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    original = losses.attribute
    monkeypatch.setattr(
        "tests.unit.checker.test_losses.attribute",
        lambda spans, time, _node: original(spans, time, None),
    )


def windows_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "gone_with", lambda _phases: None)


@pytest.mark.parametrize("mutate", [nearest_ignores_the_node, windows_never_end])
def test_a_mutant_gives_moments_to_other_faults(
    monkeypatch: pytest.MonkeyPatch, mutate: Any
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        test_a_moment_falls_to_its_fault("outside of all windows, the nearest of the node")


def test_a_checker_that_is_not_told_of_faults_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "splitbrain.checker.registry.check_set_full",
        lambda operations, budget, **_: check_set_full(operations, budget),
    )
    with pytest.raises(AssertionError):
        test_the_reason_says_how_much_is_lost_by_whom_and_during_what()
