"""Committed logs must not differ below both nodes' own commit position, whatever else is known."""

from typing import Any

import pytest

from splitbrain.checker import committed_logs, split_brain
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.committed import CommittedLog
from tests.unit.checker.operations import log, logs, record
from tests.unit.checker.test_split_brain import judged, kinds


def test_logs_alone_show_a_divergence_also_before_they_converged() -> None:
    first = log("n1", *(record(offset, 1, "write", offset) for offset in range(1_447)))
    second = log("n2", *(record(offset, 1, "write", -1 - offset) for offset in range(1_447)))
    result = judged(committed_logs={"n1": first, "n2": second}, converged=False)
    assert result.verdict is Verdict.INVALID
    assert result.figures["conflicting-offsets"] == 1_447
    assert len(result.violations) == split_brain.NAMED_MAX
    assert "(1,447 violations in all)" in result.reason


def test_logs_alone_that_agree_are_valid_and_say_what_is_not_known() -> None:
    result = judged(committed_logs=logs(record(0, 1, "write", 5)))
    assert result.verdict is Verdict.VALID
    assert result.reason == (
        "The logs of 3 nodes agree; who led is not known, as there are no state events."
    )


@pytest.mark.parametrize(("voters", "verdict"), [(1, Verdict.VALID), (3, Verdict.UNKNOWN)])
def test_one_log_alone_agrees_with_itself_only_where_there_is_no_other(
    voters: int, verdict: Verdict
) -> None:
    alone = {"n1": log("n1", record(0, 1, "write", 5))}
    assert judged(committed_logs=alone, voters=voters).verdict is verdict


def cut(node: str, end: int, *records: Any, start: int = 0) -> CommittedLog:
    """A dump that goes on above its node's own commit position."""
    return CommittedLog(node=node, start_offset=start, end_offset=end, records=records)


A, B = record(0, 1, "write", 5), record(1, 1, "write", 6)
OTHER = record(1, 1, "write", 7)


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
    for committed in (
        {"n1": cut("n1", 2, A, B), "n2": second},
        {"n0": second, "n1": cut("n1", 2, A, B)},
    ):
        result = judged(committed_logs=committed)
        assert result.verdict is Verdict.VALID, result.reason


def test_a_tail_that_goes_back_in_its_epoch_is_no_violation() -> None:
    goes_back = cut("n1", 1, record(0, 3, "write", 5), record(1, 2, "write", 6))
    assert judged(committed_logs={"n1": goes_back}, voters=1).verdict is Verdict.VALID


def test_a_hole_in_one_committed_log_is_a_difference() -> None:
    holed = cut("n2", 3, A, record(2, 1, "write", 8))
    whole = cut("n1", 3, A, B, record(2, 1, "write", 8))
    result = judged(committed_logs={"n1": whole, "n2": holed, "n3": whole})
    assert kinds(result) == ["committed-record-missing"]
    assert result.reason == (
        "At offset 1 n1 and n3 committed write 6 of epoch 1 and n2 has no record."
    )


def test_offsets_that_no_log_has_are_no_holes() -> None:
    sparse = (record(3, 1, "write", 5), record(9, 1, "write", 6))
    assert judged(committed_logs=logs(*sparse)).verdict is Verdict.VALID


def test_three_records_at_one_offset_are_one_violation_that_names_all() -> None:
    result = judged(
        committed_logs={
            "n1": log("n1", record(0, 1, "write", 5)),
            "n2": log("n2", record(0, 1, "write", 6)),
            "n3": log("n3", record(0, 2, "write", 7)),
            "n4": log("n4", record(0, 1, "write", 5)),
        }
    )
    assert result.figures["conflicting-offsets"] == 1
    assert result.reason == (
        "At offset 0 n1 and n4 committed write 5 of epoch 1, n2 committed write 6 of epoch 1 and "
        "n3 committed write 7 of epoch 2."
    )
    assert set(result.violations[0]["records"]) == {"n1", "n2", "n3"}


def test_a_node_that_does_not_vote_must_agree_as_well() -> None:
    committed = {"n1": log("n1", A, B), "n2": log("n2", A, B), "n4": log("n4", A, OTHER)}
    result = judged(committed_logs=committed, observers=frozenset({"n4"}))
    assert kinds(result) == ["different-committed-records"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("committed_records", lambda log: list(log.records)),  # tails convict
        ("_identity", lambda record: record.epoch),  # digests are not looked at
    ],
)
def test_a_mutant_of_the_comparison_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    tail = {"n1": cut("n1", 2, A, B), "n2": cut("n2", 1, A, OTHER)}
    differing = {"n1": cut("n1", 2, A, B), "n2": cut("n2", 2, A, OTHER)}

    def verdicts() -> list[Verdict]:
        return [judged(committed_logs=each).verdict for each in (tail, differing)]

    assert verdicts() == [Verdict.VALID, Verdict.INVALID]
    monkeypatch.setattr(committed_logs, name, value)
    assert verdicts() != [Verdict.VALID, Verdict.INVALID]
