"""What invariants have seen is told in words, and ends of one cause are of one class."""

import pytest

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId
from splitbrain.nodes.quorum.persistent import EMPTY_STATE, QuorumState
from splitbrain.nodes.registers.commands import CompareAndSet, encode_command
from splitbrain.simulation.kraft.shadow import Entry
from splitbrain.simulation.kraft.wording import (
    class_of_end,
    record_in_words,
    state_in_words,
    value_in_words,
)

VOTED = QuorumState(Epoch(3), None, NodeId(2), DirectoryId("d"))
LED = QuorumState(Epoch(3), NodeId(1), None, None)


def test_states_are_told() -> None:
    assert state_in_words(EMPTY_STATE) == "epoch 0, with no vote"
    assert state_in_words(VOTED) == "epoch 3, with a vote for n2"
    assert state_in_words(LED) == "epoch 3 led by n1, with no vote"
    assert state_in_words(None) == "a quorum state that cannot be read"


def test_records_are_told() -> None:
    payload = encode_command(CompareAndSet("op-8", "k", None, [1]))
    assert record_in_words(Entry(2, payload)) == "the cas of [null,[1]] to k (op-8) of epoch 2"
    assert record_in_words(Entry(2, None)) == "raft's own record of epoch 2"
    told = "a record that is no command (1 bytes: 78) of epoch 2"
    assert record_in_words(Entry(2, b"x")) == told
    assert record_in_words(Entry(2, bytes(17))).endswith("00 00, ...) of epoch 2")
    assert record_in_words(None) == "nothing"
    assert [value_in_words(value) for value in (None, True, [1, "x"])] == [
        "nothing", "true", '[1,"x"]',
    ]  # fmt: skip


ENDS = [
    ("exit code 74: disk failed: a sync", "exit code 74"),
    (
        "exit code 71: leader 1 of epoch 3 wants the log truncated to 5",
        "leader # of epoch # wants the log truncated to #",
    ),
    ("leader 7 of epoch 44", "leader # of epoch #"),
    ("exit code 71: INV-23 violated: n2 leads without 4", "INV-23 violated: # leads without #"),
    (
        "could not start: /n1/00.log is corrupt at byte 17 (log offset 3): checksum is 0x1f",
        "could not start: # is corrupt",
    ),
    (
        "could not start: /n2/00.log is corrupt (log offset 9): no batch",
        "could not start: # is corrupt",
    ),
]


@pytest.mark.parametrize(("reason", "kind"), ENDS)
def test_an_end_is_of_a_class_without_numbers_and_names(reason: str, kind: str) -> None:
    assert class_of_end(reason) == kind
