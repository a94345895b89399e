"""Two leaders of one epoch, and logs that must not differ below both nodes' own commit position.

Each story is one thing that happened and what is told of it: the kinds of its violations, or the
verdict where there is none.
"""

from typing import Any

import pytest

from splitbrain.checker import committed_logs, split_brain
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.split_brain import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.fault import FaultEvent, FaultPhase
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from tests.unit.checker.operations import log, logs, operation, record, role

Fields = dict[str, Any]

TWICE_LED, DIFFERENT, GOES_BACK, MISSING, UNRECORDED = (
    "two-leaders-in-one-epoch",
    "different-committed-records",
    "epoch-goes-back",
    "committed-record-missing",
    "success-without-record",
)


def judged(**fields: Any) -> CheckResult:
    return check(Evidence(**{"operations": (), "voters": 3, **fields}), Unlimited())


def kinds_or_verdict(result: CheckResult) -> tuple[str, ...] | Verdict:
    kinds = tuple(violation["kind"] for violation in result.violations)
    return kinds or result.verdict


def events(*every: StateEvent) -> dict[str, tuple[StateEvent, ...]]:
    nodes = sorted({event.node for event in every})
    return {node: tuple(event for event in every if event.node == node) for node in nodes}


def cut(node: str, end: int, *records: Any, start: int = 0) -> CommittedLog:
    """A dump that goes on above its node's own commit position."""
    return CommittedLog(node=node, start_offset=start, end_offset=end, records=records)


def by_node(*dumps: CommittedLog) -> dict[str, CommittedLog]:
    return {dump.node: dump for dump in dumps}


ONE_LEADER_AT_A_TIME = events(
    role("n1", 0, "leader", 1, 10, leader=1),
    role("n1", 1, "follower", 2, 50, leader=2),
    role("n2", 0, "follower", 1, 11, leader=1),
    role("n2", 1, "leader", 2, 60, leader=2),
)
TWO_LEADERS = events(
    role("n1", 0, "leader", 3, 10, leader=1), role("n2", 0, "leader", 3, 400, leader=2)
)
#: Reigns of equal times, which no order of reigns tells apart.
TWO_LEADERS_OF_ONE_BATCH = events(
    role("n1", 0, "leader", 3, 10, leader=1),
    role("n1", 1, "follower", 4, 20, leader=3),
    role("n2", 0, "leader", 3, 10, leader=2),
    role("n2", 1, "follower", 4, 20, leader=3),
)
TWO_FOLLOWED = events(
    role("n1", 0, "follower", 3, 10, leader=1), role("n2", 0, "follower", 3, 40, leader=2)
)
ONE_LEADER_TWICE = events(
    role("n1", 0, "leader", 3, 10, leader=1), role("n1", 1, "leader", 3, 20, leader=1)
)

CONTROL, FIVE = record(0, 1, None, None), record(1, 1, "write", 5)
A, B, OTHER = record(0, 1, "write", 5), record(1, 1, "write", 6), record(1, 1, "write", 7)
LATER = record(2, 1, "write", 8)
ACKNOWLEDGED = operation("write", 5, start=0, end=9, position=(1, 1))
NAMELESS = operation("write", 5, start=0, end=9)
UNDECIDED = {
    "failed": operation("write", 5, start=0, end=9, outcome="fail"),
    "unanswered": operation("write", 5, start=0),
    "refused": operation("cas", [1, 2], [1, 2, False], start=0, end=9),
}
ONE_EPOCH_LATER = by_node(
    log("n1", record(1, 1, "write", 5, digest="d")), log("n2", record(1, 2, "write", 5, digest="d"))
)
EPOCHS_GO_BACK = by_node(log("n1", record(0, 3, "write", 5), record(1, 2, "write", 6)))
WHOLE_LOG, HOLED = cut("n1", 3, A, B, LATER), cut("n2", 3, A, LATER)


def success(done: Any, *records: Any, start: int = 0, **fields: Any) -> Fields:
    return {"operations": (done,), "committed_logs": logs(*records, start=start), **fields}


STORIES: dict[str, tuple[Fields, tuple[str, ...] | Verdict]] = {
    "nothing to look at": ({}, Verdict.UNKNOWN),
    "one leader in each epoch": ({"state_events": ONE_LEADER_AT_A_TIME}, Verdict.VALID),
    "two leaders, one long after the other": ({"state_events": TWO_LEADERS}, (TWICE_LED,)),
    "two leaders told of in one batch": (
        {"state_events": TWO_LEADERS_OF_ONE_BATCH},
        (TWICE_LED,),
    ),
    "two leaders that others followed": ({"state_events": TWO_FOLLOWED}, (TWICE_LED,)),
    "one node reports its leadership twice": ({"state_events": ONE_LEADER_TWICE}, Verdict.VALID),
    "other records at one offset": (
        {"committed_logs": by_node(log("n1", A, B), log("n2", A, OTHER))},
        (DIFFERENT,),
    ),
    "the same bytes in another epoch": ({"committed_logs": ONE_EPOCH_LATER}, (DIFFERENT,)),
    "another record on a node that does not vote": (
        {
            "committed_logs": by_node(log("n1", A, B), log("n2", A, B), log("n4", A, OTHER)),
            "observers": frozenset({"n4"}),
        },
        (DIFFERENT,),
    ),
    "logs of different length": (
        {"committed_logs": by_node(log("n1", A, B), log("n2", B, LATER, start=1))},
        Verdict.VALID,
    ),
    "a log whose epochs go back": ({"committed_logs": EPOCHS_GO_BACK}, (GOES_BACK,)),
    "a tail whose epochs go back": (
        {
            "committed_logs": by_node(
                cut("n1", 1, record(0, 3, "write", 5), record(1, 2, "write", 6))
            ),
            "voters": 1,
        },
        Verdict.VALID,
    ),
    "another record in a tail": (
        {"committed_logs": by_node(cut("n1", 2, A, B), cut("n2", 1, A, OTHER))},
        Verdict.VALID,
    ),
    "a hole": (
        {"committed_logs": {**by_node(WHOLE_LOG, HOLED), "n3": WHOLE_LOG}},
        (MISSING,),
    ),
    "offsets that no log has": (
        {"committed_logs": logs(record(3, 1, "write", 5), record(9, 1, "write", 6))},
        Verdict.VALID,
    ),
    "one log of three": ({"committed_logs": by_node(log("n1", A))}, Verdict.UNKNOWN),
    "the log of the only node": (
        {"committed_logs": by_node(log("n1", A)), "voters": 1},
        Verdict.VALID,
    ),
    "a success with its record": (success(ACKNOWLEDGED, CONTROL, FIVE), Verdict.VALID),
    **{
        f"a success at whose place is {what}": (
            success(ACKNOWLEDGED, CONTROL, there),
            (UNRECORDED,),
        )
        for what, there in {
            "another epoch": record(1, 2, "write", 5),
            "another value": record(1, 1, "write", 6),
            "another key": record(1, 1, "write", 5, key="b"),
            "another kind": record(1, 1, "cas", [4, 5]),
            "a control record": record(1, 1, None, None),
            "nothing": record(2, 1, "write", 5),
        }.items()
    },
    "a success without position and its value": (success(NAMELESS, A), Verdict.VALID),
    "a success without position and another value": (
        success(NAMELESS, record(0, 1, "write", 6)),
        (UNRECORDED,),
    ),
    "a success that a snapshot covers": (
        success(ACKNOWLEDGED, record(7, 2, "write", 9), start=7),
        Verdict.VALID,
    ),
    "a success in logs that did not converge": (
        success(ACKNOWLEDGED, CONTROL, converged=False),
        Verdict.VALID,
    ),
    **{
        f"{what}, which needs no record": (success(done, CONTROL), Verdict.VALID)
        for what, done in UNDECIDED.items()
    },
}


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_it_was(name: str) -> None:
    evidence, expected = STORIES[name]
    result = judged(**evidence)
    assert kinds_or_verdict(result) == expected
    assert ("did not converge" in result.reason) == (not evidence.get("converged", True))


@pytest.mark.parametrize(
    "second",
    [
        cut("n2", 1, A, OTHER),  # equal epoch, another digest
        cut("n2", 1, A, record(1, 2, "write", 6)),
        cut("n2", 1, A),  # behind
        cut("n2", 0),  # empty
        cut("n2", 0, record(0, 1, "write", 9), OTHER),  # nothing committed at all
        cut("n2", 2, B, start=1),  # begins with a snapshot
        cut("n2", 1, OTHER, start=1),  # a snapshot, and a tail
        cut("n2", 2, A, B, record(2, 9, "write", 1)),
    ],
)
def test_what_a_node_has_not_committed_convicts_nobody(second: CommittedLog) -> None:
    for other in ("n1", "n3"):
        result = judged(committed_logs=by_node(second, cut(other, 2, A, B)))
        assert result.verdict is Verdict.VALID, result.reason


# --- what is said ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        ({"state_events": TWO_LEADERS}, "n1 and n2 both led epoch 3."),
        (
            {"committed_logs": by_node(log("n1", A, FIVE), log("n2", A, record(1, 2, "write", 6)))},
            "At offset 1 n1 committed write 5 of epoch 1 and n2 committed write 6 of epoch 2.",
        ),
        (
            {"committed_logs": {**by_node(WHOLE_LOG, HOLED), "n3": WHOLE_LOG}},
            "At offset 1 n1 and n3 committed write 6 of epoch 1 and n2 has no record.",
        ),
        (
            {"committed_logs": logs(A)},
            "The logs of 3 nodes agree; who led is not known, as there are no state events.",
        ),
        (
            {
                "committed_logs": by_node(
                    log("n1", A),
                    log("n2", record(0, 1, "write", 6)),
                    log("n3", record(0, 2, "write", 7)),
                    log("n4", A),
                )
            },
            (
                "At offset 0 n1 and n4 committed write 5 of epoch 1, n2 committed write 6 of "
                "epoch 1 and n3 committed write 7 of epoch 2."
            ),
        ),
    ],
)
def test_the_reason_is_one_sentence_of_people(evidence: Fields, sentence: str) -> None:
    result = judged(**evidence)
    assert result.reason == sentence
    assert len(result.violations) <= 1


def test_a_violation_names_its_offset_records_and_operation() -> None:
    three = by_node(log("n1", A, B), log("n2", A, OTHER), log("n3", A, record(1, 2, "write", 9)))
    result = judged(committed_logs=three)
    assert result.figures["conflicting-offsets"] == 1
    assert result.violations[0]["offset"] == 1
    assert set(result.violations[0]["records"]) == {"n1", "n2", "n3"}
    absent = judged(**success(ACKNOWLEDGED, CONTROL))
    assert "write 5 of key a" in absent.violations[0]["sentence"]


def test_logs_alone_show_a_divergence_also_before_they_converged() -> None:
    first = log("n1", *(record(offset, 1, "write", offset) for offset in range(1_447)))
    second = log("n2", *(record(offset, 1, "write", -1 - offset) for offset in range(1_447)))
    result = judged(committed_logs=by_node(first, second), converged=False)
    assert result.verdict is Verdict.INVALID
    assert result.figures["conflicting-offsets"] == 1_447
    assert len(result.violations) == split_brain.NAMED_MAX
    assert "(1,447 violations in all)" in result.reason


# --- beliefs ---------------------------------------------------------------------------------


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
    assert overlap["duration_ms"] == result.figures["longest-overlap-ms"] == 5.0
    quiet = judged(state_events=ONE_LEADER_AT_A_TIME)
    assert (quiet.figures["epochs-led"], quiet.observations) == (2, ())


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


# --- mutants ---------------------------------------------------------------------------------


def _anything_at_the_place(self: committed_logs.NodeLog, position: Any, _: Any) -> Any:
    held = position[1] in self.by_offset
    return committed_logs.Presence.HELD if held else committed_logs.Presence.ABSENT


def _every_record(dump: CommittedLog) -> list[Any]:
    return list(dump.records)


#: A story that is told wrongly once this is replaced.
MUTANTS = {
    "two leaders that others followed": (split_brain, "_two_leaders", lambda *_: []),
    "the same bytes in another epoch": (split_brain, "conflicts_at", lambda *_: []),
    "a log whose epochs go back": (split_brain, "_epochs_going_back", lambda *_: []),
    "a success at whose place is another value": (
        committed_logs.NodeLog,
        "at",
        _anything_at_the_place,
    ),
    "another record in a tail": (committed_logs, "committed_records", _every_record),
    "other records at one offset": (committed_logs, "_identity", lambda one: one.epoch),
}


@pytest.mark.parametrize("story", MUTANTS)
def test_a_mutant_tells_its_story_wrongly_and_most_others_right(
    monkeypatch: pytest.MonkeyPatch, story: str
) -> None:
    target, name, value = MUTANTS[story]
    monkeypatch.setattr(target, name, value)
    wrong = {
        name for name in MUTANTS if kinds_or_verdict(judged(**STORIES[name][0])) != STORIES[name][1]
    }
    assert story in wrong
    assert len(wrong) <= 2
