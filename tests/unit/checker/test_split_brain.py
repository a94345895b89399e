from typing import Any

import pytest

from splitbrain.checker import committed_logs, split_brain
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.split_brain import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.fault import FaultEvent, FaultPhase
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history import leadership
from tests.unit.checker.operations import log, logs, operation, record, role


def judged(**fields: Any) -> CheckResult:
    return check(Evidence(**{"operations": (), "voters": 3, **fields}), Unlimited())


def kinds(result: CheckResult) -> list[str]:
    return [violation["kind"] for violation in result.violations]


def events(*every: StateEvent) -> dict[str, tuple[StateEvent, ...]]:
    nodes = sorted({event.node for event in every})
    return {node: tuple(event for event in every if event.node == node) for node in nodes}


ONE_LEADER_AT_A_TIME = events(
    role("n1", 0, "leader", 1, 10, leader=1),
    role("n1", 1, "follower", 2, 50, leader=2),
    role("n2", 0, "follower", 1, 11, leader=1),
    role("n2", 1, "leader", 2, 60, leader=2),
)
TWO_LEADERS = events(
    role("n1", 0, "leader", 3, 10, leader=1), role("n2", 0, "leader", 3, 400, leader=2)
)
TWO_FOLLOWED = events(
    role("n1", 0, "follower", 3, 10, leader=1), role("n2", 0, "follower", 3, 40, leader=2)
)


def test_one_leader_in_each_epoch_is_valid() -> None:
    result = judged(state_events=ONE_LEADER_AT_A_TIME)
    assert result.verdict is Verdict.VALID
    assert result.figures["epochs-led"] == 2
    assert not result.observations


def test_two_leaders_in_one_epoch_are_invalid_even_long_after_each_other() -> None:
    result = judged(state_events=TWO_LEADERS)
    assert kinds(result) == ["two-leaders-in-one-epoch"]
    assert result.reason == "n1 and n2 both led epoch 3."


def test_two_leaders_that_others_followed_in_one_epoch_are_invalid() -> None:
    assert kinds(judged(state_events=TWO_FOLLOWED)) == ["two-leaders-in-one-epoch"]


def test_one_node_may_report_its_leadership_twice() -> None:
    twice = events(
        role("n1", 0, "leader", 3, 10, leader=1), role("n1", 1, "leader", 3, 20, leader=1)
    )
    assert judged(state_events=twice).verdict is Verdict.VALID


def test_overlapping_beliefs_in_different_epochs_are_an_observation_with_their_duration() -> None:
    result = judged(
        state_events=events(
            role("n1", 0, "leader", 1, 1_000_000, leader=1),
            role("n1", 1, "follower", 2, 9_000_000, leader=2),
            role("n2", 0, "leader", 2, 4_000_000, leader=2),
        )
    )
    assert result.verdict is Verdict.VALID
    (overlap,) = result.observations
    assert overlap["duration_ms"] == 5.0
    assert result.figures["longest-overlap-ms"] == 5.0


def test_a_killed_leader_believes_no_longer() -> None:
    times: dict[FaultPhase, int] = {"invoked": 2, "verified": 2, "healing": 9}
    killed = [
        FaultEvent(at * 1_000_000, 0, "crash-loop", phase, "leader", (NodeName("n1"),))
        for phase, at in times.items()
    ]
    state_events = events(
        role("n1", 0, "leader", 1, 1_000_000, leader=1),
        role("n2", 0, "leader", 2, 4_000_000, leader=2),
        role("n1", 0, "follower", 2, 9_000_000, leader=2, incarnation=1),
    )
    assert judged(state_events=state_events, faults=tuple(killed)).figures["overlaps"] == 0
    assert judged(state_events=state_events).figures["overlaps"] == 1


def test_different_records_at_one_offset_are_invalid() -> None:
    first = log("n1", record(0, 1, None, None), record(1, 1, "write", 5))
    second = log("n2", record(0, 1, None, None), record(1, 2, "write", 6))
    result = judged(committed_logs={"n1": first, "n2": second})
    assert kinds(result) == ["different-committed-records"]
    assert result.violations[0]["offset"] == 1
    assert "n1 committed write 5 of epoch 1 and n2 committed write 6 of epoch 2" in result.reason


def test_the_same_bytes_in_another_epoch_are_different_records() -> None:
    first = log("n1", record(1, 1, "write", 5, digest="d"))
    second = log("n2", record(1, 2, "write", 5, digest="d"))
    assert kinds(judged(committed_logs={"n1": first, "n2": second})) == [
        "different-committed-records"
    ]


def test_logs_of_different_length_agree_where_both_have_records() -> None:
    first = log("n1", record(0, 1, None, None), record(1, 1, "write", 5))
    second = log("n2", record(1, 1, "write", 5), record(2, 1, "write", 6), start=1)
    assert judged(committed_logs={"n1": first, "n2": second}).verdict is Verdict.VALID


def test_a_log_whose_epochs_go_back_is_invalid() -> None:
    broken = log("n1", record(0, 3, "write", 5), record(1, 2, "write", 6))
    assert kinds(judged(committed_logs={"n1": broken})) == ["epoch-goes-back"]


ACKNOWLEDGED = operation("write", 5, start=0, end=9, position=(1, 1))


def test_a_success_with_its_record_is_valid() -> None:
    held = logs(record(0, 1, None, None), record(1, 1, "write", 5))
    assert judged(operations=(ACKNOWLEDGED,), committed_logs=held).verdict is Verdict.VALID


@pytest.mark.parametrize(
    "there",
    [
        record(1, 2, "write", 5),  # another epoch
        record(1, 1, "write", 6),  # another value
        record(1, 1, "write", 5, key="b"),  # another key
        record(1, 1, "cas", [4, 5]),  # another kind
        record(1, 1, None, None),  # a control record
        record(2, 1, "write", 5),  # another offset
    ],
)
def test_a_success_whose_place_holds_something_else_is_invalid(there: Any) -> None:
    result = judged(
        operations=(ACKNOWLEDGED,), committed_logs=logs(record(0, 1, None, None), there)
    )
    assert kinds(result) == ["success-without-record"]
    assert "write 5 of key a" in result.violations[0]["sentence"]


def test_a_success_without_position_is_looked_up_by_its_value() -> None:
    nameless = operation("write", 5, start=0, end=9)
    assert judged(
        operations=(nameless,), committed_logs=logs(record(0, 1, "write", 5))
    ).verdict is (Verdict.VALID)
    assert kinds(judged(operations=(nameless,), committed_logs=logs(record(0, 1, "write", 6)))) == [
        "success-without-record"
    ]


def test_what_a_snapshot_covers_is_not_called_absent() -> None:
    covered = logs(record(7, 2, "write", 9), start=7)
    assert judged(operations=(ACKNOWLEDGED,), committed_logs=covered).verdict is Verdict.VALID


def test_successes_are_not_looked_up_in_logs_that_did_not_converge() -> None:
    result = judged(
        operations=(ACKNOWLEDGED,), committed_logs=logs(record(0, 1, None, None)), converged=False
    )
    assert result.verdict is Verdict.VALID
    assert "did not converge" in result.reason


@pytest.mark.parametrize("outcome", ["fail", "info"])
def test_only_successes_need_a_record(outcome: str) -> None:
    unacknowledged = operation(
        "write", 5, start=0, end=None if outcome == "info" else 9, outcome=outcome
    )
    assert judged(
        operations=(unacknowledged,), committed_logs=logs(record(0, 1, None, None))
    ).verdict is (Verdict.VALID)


def test_a_refused_cas_needs_no_record() -> None:
    refused = operation("cas", [1, 2], [1, 2, False], start=0, end=9)
    assert judged(operations=(refused,), committed_logs=logs(record(0, 1, None, None))).verdict is (
        Verdict.VALID
    )


def test_nothing_to_look_at_is_unknown() -> None:
    assert judged().verdict is Verdict.UNKNOWN


# --- mutants ---------------------------------------------------------------------------------


def missed(monkeypatch: pytest.MonkeyPatch, target: Any, name: str, value: Any) -> set[str]:
    """Kinds of violations that are still found with one part replaced."""
    monkeypatch.setattr(target, name, value)
    first = log("n1", record(1, 1, "write", 5, digest="d"))
    second = log("n2", record(1, 2, "write", 5, digest="d"))
    found: set[str] = set()
    for evidence in (
        {"state_events": TWO_LEADERS},
        {"committed_logs": {"n1": first, "n2": second}},
        {"committed_logs": {"n1": log("n1", record(0, 3, "write", 5), record(1, 2, "write", 6))}},
        {"operations": (ACKNOWLEDGED,), "committed_logs": logs(record(1, 1, "write", 6))},
    ):
        found.update(kinds(judged(**evidence)))
    return {
        "two-leaders-in-one-epoch",
        "different-committed-records",
        "epoch-goes-back",
        "success-without-record",
    } - found


@pytest.mark.parametrize(
    ("target", "name", "value", "kind"),
    [
        (split_brain, "_two_leaders", lambda *_: [], "two-leaders-in-one-epoch"),
        (split_brain, "conflicts_at", lambda *_: [], "different-committed-records"),
        (split_brain, "_epochs_going_back", lambda *_: [], "epoch-goes-back"),
        (
            committed_logs.NodeLog,
            "at",
            lambda self, position, _: (
                committed_logs.Presence.HELD
                if position[1] in self.by_offset
                else committed_logs.Presence.ABSENT
            ),
            "success-without-record",
        ),
    ],
)
def test_a_mutant_misses_its_kind(
    monkeypatch: pytest.MonkeyPatch, target: Any, name: str, value: Any, kind: str
) -> None:
    assert missed(monkeypatch, target, name, value) == {kind}


def test_the_unchanged_checker_misses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missed(monkeypatch, leadership, "_ENDS", leadership._ENDS) == set()


# --- equal times, and crashes ----------------------------------------------------------------


def test_two_leaders_told_of_in_one_batch_are_found() -> None:
    """Reigns of equal times, which no order of reigns tells apart."""
    batch = events(
        role("n1", 0, "leader", 3, 10, leader=1),
        role("n1", 1, "follower", 4, 20, leader=3),
        role("n2", 0, "leader", 3, 10, leader=2),
        role("n2", 1, "follower", 4, 20, leader=3),
    )
    assert kinds(judged(state_events=batch)) == ["two-leaders-in-one-epoch"]


@pytest.mark.parametrize(
    ("second", "overlapping"),
    [
        ((10, 20), 1),
        ((20, 30), 0),  # one ends where the other begins
        ((15, 15), 0),  # a belief of no length
        ((10, 10), 0),
        ((-20, 12), 1),
        ((-20, -10), 0),
        ((15, 12), 0),  # stamped backwards
        ((12, None), 1),
    ],
)
def test_beliefs_overlap_where_they_have_time_in_common(
    second: tuple[int, int | None], overlapping: int
) -> None:
    begin, end = second
    state_events = events(
        role("n1", 0, "leader", 1, 10, leader=1),
        role("n1", 1, "follower", 3, 20, leader=3),
        role("n2", 0, "leader", 2, begin, leader=2),
        *([] if end is None else [role("n2", 1, "follower", 3, end, leader=3)]),
    )
    result = judged(state_events=state_events)
    assert result.verdict is Verdict.VALID
    assert result.figures["overlaps"] == overlapping
    assert result.figures["longest-overlap-ms"] >= 0


def test_a_part_that_crashes_costs_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> Any:
        raise TypeError("a defect")

    monkeypatch.setattr(split_brain, "overlaps", crash)
    result = judged(state_events=TWO_LEADERS)
    assert result.verdict is Verdict.INVALID
    assert "TypeError('a defect')" in result.reason
    with pytest.raises(TypeError, match="a defect"):
        judged(state_events=ONE_LEADER_AT_A_TIME)
