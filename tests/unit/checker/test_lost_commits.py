from typing import Any

import msgspec
import pytest

from splitbrain.checker import findings, lost_commits
from splitbrain.checker.committed_logs import NodeLog, Presence
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.lost_commits import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.committed import CommittedLog, RecordForm
from splitbrain.contracts.names import NO_EPOCH
from tests.unit.checker.operations import Ending, log, logs, operation, record


def judged(*operations: Any, **fields: Any) -> CheckResult:
    return check(Evidence(operations=operations, **{"voters": 3, **fields}), Unlimited())


WRITE = operation("write", 5, start=0, end=9, position=(1, 1))
HELD = record(1, 1, "write", 5)
OTHER = record(1, 2, "write", 6)
ADD = operation("add", 7, start=0, end=5, key="s")
NAMELESS = operation("write", 5, start=0, end=9)


def held_by(count: int, dumped: int = 3) -> dict[str, Any]:
    """Dumps of some of three nodes, of which ``count`` hold the record and the others nothing."""
    return {
        f"n{number}": log(f"n{number}", *([HELD] if number <= count else []))
        for number in range(1, dumped + 1)
    }


@pytest.mark.parametrize(
    ("count", "dumped", "verdict"),
    [
        (3, 3, Verdict.VALID),
        (2, 3, Verdict.VALID),
        (1, 3, Verdict.INVALID),
        (0, 3, Verdict.INVALID),
        (2, 2, Verdict.VALID),
        (0, 2, Verdict.INVALID),  # the third node alone is no majority
        (1, 2, Verdict.UNKNOWN),  # the third node may hold it
        (0, 1, Verdict.UNKNOWN),
    ],
)
def test_a_change_is_lost_when_no_majority_can_hold_it(
    count: int, dumped: int, verdict: Verdict
) -> None:
    result = judged(WRITE, committed_logs=held_by(count, dumped))
    assert result.verdict is verdict


def test_a_lost_change_is_told_with_its_place_and_holders() -> None:
    result = judged(WRITE, committed_logs=held_by(1))
    assert result.figures["lost"] == 1
    assert "write 5 of key a" in result.reason
    assert "at offset 1 in epoch 1" in result.reason
    assert "only 1 of 3 nodes hold it" in result.reason
    assert result.violations[0]["absent_from"] == ["n2", "n3"]


def test_a_record_is_found_in_the_form_that_the_adapter_tells() -> None:
    cas = operation("cas", [3, 5], [3, 5, True], start=0, end=9)
    placed = msgspec.structs.replace(cas, position=(1, 1))
    forms = {"cas": RecordForm("write", part=1)}
    for asked in (cas, placed):
        assert judged(asked, committed_logs=held_by(3)).verdict is Verdict.INVALID
        kept = judged(asked, committed_logs=held_by(3), record_forms=forms)
        assert kept.verdict is Verdict.VALID
        lost = judged(asked, committed_logs=held_by(1), record_forms=forms)
        assert lost.verdict is Verdict.INVALID
    # The value that was expected is not what was written.
    other = {"cas": RecordForm("write", part=0)}
    assert judged(cas, committed_logs=held_by(3), record_forms=other).verdict is Verdict.INVALID
    # A write and a compare-and-set of the same value cannot be told apart without positions.
    twice = judged(cas, NAMELESS, committed_logs=held_by(3), record_forms=forms)
    assert twice.verdict is not Verdict.VALID


def test_a_system_without_epochs_has_positions_and_no_epoch_is_told() -> None:
    write = msgspec.structs.replace(WRITE, position=(NO_EPOCH, 1))
    held = record(1, NO_EPOCH, "write", 5)
    there, lacking = log("n1", held), log("n2")
    result = judged(write, committed_logs={"n1": there, "n2": lacking, "n3": log("n3")})
    assert result.verdict is Verdict.INVALID
    assert "at position 1" in result.reason
    assert "epoch" not in result.reason
    assert judged(write, committed_logs=logs(held)).verdict is Verdict.VALID


def test_a_snapshot_may_hold_what_the_log_no_longer_has() -> None:
    result = judged(WRITE, committed_logs=logs(record(9, 2, "write", 6), start=9))
    assert result.verdict is Verdict.UNKNOWN
    assert result.figures["untold"] == 1


def test_unacknowledged_changes_and_refused_cas_cannot_be_lost() -> None:
    result = judged(
        operation("write", 1, start=0),
        operation("write", 2, start=1, end=4, outcome="fail"),
        operation("cas", [1, 2], [1, 2, False], start=2, end=5),
        operation("read", None, 3, start=3, end=6),
        committed_logs=logs(record(0, 1, None, None)),
    )
    assert result.verdict is Verdict.VALID
    assert result.figures["acknowledged"] == 0


def test_an_acknowledged_cas_is_found_by_its_place() -> None:
    swap = operation("cas", [1, 2], [1, 2, True], start=2, end=5, position=(1, 0))
    assert judged(swap, committed_logs=logs(record(0, 1, "cas", [1, 2]))).verdict is Verdict.VALID
    assert judged(swap, committed_logs=logs(record(0, 1, "cas", [1, 3]))).verdict is Verdict.INVALID


def test_without_positions_a_unique_value_tells() -> None:
    assert judged(NAMELESS, committed_logs=logs(HELD)).verdict is Verdict.VALID
    assert judged(NAMELESS, committed_logs=logs(OTHER)).verdict is Verdict.INVALID


def test_without_positions_equal_changes_are_counted() -> None:
    three = [operation("write", 5, start=start, end=start + 5) for start in (0, 10, 20)]
    enough = logs(*(record(offset, 1, "write", 5) for offset in range(3)))
    short = logs(*(record(offset, 1, "write", 5) for offset in range(2)))
    none = logs(record(0, 1, "write", 6))
    assert judged(*three, committed_logs=enough).verdict is Verdict.VALID
    result = judged(*three, committed_logs=short)
    assert result.verdict is Verdict.INVALID
    assert (result.figures["lost"], result.figures["held"]) == (1, 2)
    result = judged(*three, committed_logs=none)
    assert (result.verdict, result.figures["lost"]) == (Verdict.INVALID, 3)


def test_equal_changes_in_a_shortened_log_cannot_be_told() -> None:
    two = [operation("write", 5, start=start, end=start + 5) for start in (0, 10)]
    result = judged(*two, committed_logs=logs(record(9, 1, "write", 5), start=9))
    assert result.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("shown", "committed", "verdict"),
    [
        ([8], {}, Verdict.INVALID),
        ([7], {}, Verdict.VALID),
        ([7], logs(OTHER), Verdict.INVALID),  # shown by a read, but gone from the logs
    ],
)
def test_final_reads_tell_of_an_element_where_there_is_no_log(
    shown: list[int], committed: Any, verdict: Verdict
) -> None:
    read = operation("read", None, shown, start=10, end=12, key="s", final=True)
    result = judged(ADD, read, committed_logs=committed)
    assert result.verdict is verdict
    assert result.figures["lost"] == (verdict is Verdict.INVALID)
    assert ("no final read shows it" in result.reason) == (shown == [8])


def test_nothing_is_called_lost_before_the_nodes_converged() -> None:
    result = judged(WRITE, committed_logs=held_by(0), converged=False)
    assert result.verdict is Verdict.UNKNOWN
    assert "did not converge" in result.reason
    assert judged(WRITE).verdict is Verdict.UNKNOWN  # no log at all


def test_an_ended_budget_is_unknown_with_its_reason() -> None:
    result = check(Evidence(operations=(WRITE,), committed_logs=held_by(0), voters=3), Ending())
    assert result.verdict is Verdict.UNKNOWN
    assert "time budget" in result.reason


# --- mutants ---------------------------------------------------------------------------------


def verdicts() -> list[Verdict]:
    final = operation("read", None, [8], start=10, end=12, key="s", final=True)
    equal = [operation("write", 5, start=start, end=start + 5) for start in (0, 10)]
    return [
        judged(WRITE, committed_logs=held_by(1)).verdict,
        judged(WRITE, committed_logs=held_by(2)).verdict,
        judged(WRITE, committed_logs=logs(record(9, 2, "write", 6), start=9)).verdict,
        judged(ADD, final).verdict,
        judged(*equal, committed_logs=logs(HELD)).verdict,
    ]


EXPECTED = [Verdict(word) for word in ("invalid", "valid", "unknown", "invalid", "invalid")]


def snapshots_forgotten(self: NodeLog, position: tuple[int, int], _: Any) -> Presence:
    return Presence.HELD if position[1] in self.by_offset else Presence.ABSENT


def test_the_unchanged_checker_gives_the_expected_verdicts() -> None:
    assert verdicts() == EXPECTED


@pytest.mark.parametrize(
    ("target", "name", "value"),
    [
        (NodeLog, "at", lambda *_: Presence.HELD),
        (NodeLog, "at", snapshots_forgotten),
        (lost_commits, "_shown_by_final_reads", lambda operations: {}),
        (lost_commits, "_judge_counts", lambda *_: None),
        (lost_commits, "acknowledged_change", lambda operation, _: operation.position is not None),
    ],
)
def test_a_mutant_gives_another_verdict(
    monkeypatch: pytest.MonkeyPatch, target: Any, name: str, value: Any
) -> None:
    monkeypatch.setattr(target, name, value)
    assert verdicts() != EXPECTED


def test_nodes_that_do_not_vote_hold_nothing_for_a_majority() -> None:
    held = {"n1": log("n1"), "n2": log("n2"), "n4": log("n4", HELD)}
    fields = {"observers": frozenset({"n4", "n5"}), "voters": 3}
    assert judged(WRITE, committed_logs=held, **fields).verdict is Verdict.INVALID
    held = {"n1": log("n1", HELD), "n2": log("n2", HELD), "n4": log("n4")}
    assert judged(WRITE, committed_logs=held, **fields).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("f", "argument", "result", "verdict"),
    [
        ("create", 3, [3, True], Verdict.INVALID),
        ("create", 3, [3, False], Verdict.VALID),
        ("delete", None, True, Verdict.INVALID),
        ("delete", None, False, Verdict.VALID),
    ],
)
def test_a_topic_s_change_that_was_made_must_be_in_the_logs(
    f: str, argument: object, result: object, verdict: Verdict
) -> None:
    done = operation(
        f, argument, result, start=0, end=9, position=(1, 1) if verdict is Verdict.INVALID else None
    )
    assert judged(done, committed_logs=logs(OTHER)).verdict is verdict
    there = record(1, 1, f, argument)
    assert judged(done, committed_logs=logs(there)).verdict is Verdict.VALID


# --- logs that differ, and members that lack what others have ----------------------------------


@pytest.mark.parametrize("converged", [True, False])
def test_logs_that_differ_are_invalid_whether_they_converged_or_not(converged: bool) -> None:
    differing = {"n1": log("n1", HELD), "n2": log("n2", HELD), "n3": log("n3", OTHER)}
    result = judged(WRITE, committed_logs=differing, converged=converged)
    assert result.verdict is Verdict.INVALID
    assert [found["kind"] for found in result.violations] == ["different-committed-records"]
    assert result.reason.startswith(
        "The logs differ at 1 offset: At offset 1 n1 and n2 committed write 5 of epoch 1 and n3 "
        "committed write 6 of epoch 2."
    )
    assert ("did not converge" in result.reason) is not converged
    # For those who add up what is lost: nothing is.
    assert result.figures["lost"] == 0


def test_what_is_lost_and_what_differs_are_both_told_the_lost_first() -> None:
    differing = {"n1": log("n1", HELD), "n2": log("n2", OTHER), "n3": log("n3", OTHER)}
    result = judged(WRITE, committed_logs=differing)
    kinds = [found["kind"] for found in result.violations]
    assert kinds == ["lost", "different-committed-records"]
    assert (result.figures["lost"], result.figures["conflicting-offsets"]) == (1, 1)


def test_a_member_that_lacks_what_a_majority_holds_is_told_node_by_node() -> None:
    result = judged(WRITE, committed_logs=held_by(2))
    assert result.verdict is Verdict.VALID
    (found,) = result.observations
    assert (found["kind"], found["node"], found["count"]) == ("missing-at-member", "n3", 1)
    assert found["sentence"] == (
        "The log of n3, which ends at offset 0, lacks 1 acknowledged change that a majority holds; "
        "the first is write 5 of key a (index 0, process 0)."
    )


def test_equal_changes_that_a_member_lacks_are_told_too() -> None:
    two = [operation("write", 5, start=start, end=start + 5) for start in (0, 10)]
    both = record(0, 1, "write", 5), record(1, 1, "write", 5)
    held = {"n1": log("n1", *both), "n2": log("n2", *both), "n3": log("n3", both[0])}
    result = judged(*two, committed_logs=held)
    assert result.verdict is Verdict.VALID
    assert [found["node"] for found in result.observations] == ["n3"]


def test_what_was_done_last_may_still_be_on_its_way_to_a_member() -> None:
    last = operation("write", 5, start=0, end=9, position=(1, 1), final=True)
    assert judged(last, committed_logs=held_by(2)).observations == ()


def tailed(node: str, *records: Any, end: int) -> CommittedLog:
    return CommittedLog(node=node, start_offset=0, end_offset=end, records=records)


@pytest.mark.parametrize("write", [WRITE, NAMELESS])
def test_a_record_above_a_node_s_commit_position_is_neither_held_nor_absent(write: Any) -> None:
    held = {"n1": log("n1", HELD), "n2": tailed("n2", HELD, end=1), "n3": log("n3")}
    assert judged(write, committed_logs=held).verdict is Verdict.UNKNOWN
    tail_of_another = {**held, "n2": tailed("n2", OTHER, end=1)}
    assert judged(write, committed_logs=tail_of_another).verdict is Verdict.INVALID


# --- members that were not read ----------------------------------------------------------------

MEMBERS = frozenset({"n1", "n2", "n3"})


def final(node: str | None, *elements: int, **fields: Any) -> Any:
    return operation(
        "read", None, [*elements], start=10, end=12, key="s", final=True, node=node, **fields
    )


def test_an_element_is_not_lost_while_a_member_that_may_hold_it_was_not_read() -> None:
    reads = final("n1"), final("n2")
    assert judged(ADD, *reads, members=MEMBERS).verdict is Verdict.UNKNOWN
    assert judged(ADD, *reads, final("n3"), members=MEMBERS).verdict is Verdict.INVALID
    assert judged(ADD, *reads).verdict is Verdict.INVALID  # one speaks for all


def test_what_some_member_shows_is_held_though_others_were_not_read() -> None:
    assert judged(ADD, final("n1", 7), members=MEMBERS).verdict is Verdict.VALID


def test_final_reads_that_failed_read_nobody() -> None:
    failed = final("n3", outcome="fail")
    reads = final("n1"), final("n2"), failed
    assert judged(ADD, *reads, members=MEMBERS).verdict is Verdict.UNKNOWN
    assert judged(ADD, failed, members=MEMBERS).verdict is Verdict.UNKNOWN


def test_a_violation_that_was_found_outlives_the_budget() -> None:
    lost_commits_in_two_polls = [
        operation("write", number, start=number, end=number + 1)
        for number in range(findings.POLL_INTERVAL + 1)
    ]
    evidence = Evidence(tuple(lost_commits_in_two_polls), committed_logs=logs(OTHER), voters=3)
    result = check(evidence, Ending(1))
    assert result.verdict is Verdict.INVALID
    assert "Not finished: time budget of 1 s used up." in result.reason
