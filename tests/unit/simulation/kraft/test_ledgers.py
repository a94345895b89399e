"""The ledgers of registers and of metadata tell what was so at every committed offset."""

import pytest

from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.metadata.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.registers.commands import Add, Command, CompareAndSet, Write, encode_command
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.batches import Record, RecordBatch
from splitbrain.simulation.kraft.ledger import Ledger, encoded
from splitbrain.simulation.kraft.metadata.ledger import MetadataLedger
from tests.unit.nodes.controller.clusters import partition

A, B = "a" * 32, "b" * 32
#: By offset; 0 is raft's own.
STORY: dict[int, MetadataRecord] = {
    1: TopicRecord("first", A),
    2: partition(A, 0, (4,)),
    3: partition(A, 1, (4,)),
    4: BeginTransactionRecord(None),
    5: TopicRecord("second", B),
    6: partition(B, 0, (4,)),
    7: EndTransactionRecord(),
    8: RemoveTopicRecord(A),
}


def ledger_of_story() -> MetadataLedger:
    ledger = MetadataLedger()
    for offset, record in STORY.items():
        ledger.apply(offset, encode_record(record))
    assert ledger.problem is None
    return ledger


def machine_after(end_offset: int) -> MetadataMachine:
    machine = MetadataMachine()
    for offset, record in STORY.items():
        if offset < end_offset:
            content = Record(Offset(offset), 0, None, encode_record(record))
            machine.apply_batch(
                RecordBatch(Offset(offset), Epoch(1), 0, 0, (content,)), lambda *_: None
            )
    return machine


def request(kind: str, key: str) -> ClientRequest:
    return ClientRequest(1, kind, key)  # type: ignore[arg-type]


def test_topics_are_what_they_were_at_each_offset() -> None:
    ledger = ledger_of_story()
    counts = [ledger.partition_count("first", end) for end in range(10)]
    assert counts == [None, None, 0, 1, 2, 2, 2, 2, 2, None]
    assert [ledger.partition_count("second", end) for end in (7, 8, 9)] == [None, 1, 1]
    assert ledger.answer(request("describe-topic", "first"), 4) == encoded(2)
    assert [ledger.changed_at("first", end) for end in (1, 2, 5, 9)] == [0, 2, 4, 9]
    assert ledger.changed_at("third", 9) == 0


def test_what_a_transaction_holds_changes_its_topic_when_it_ends() -> None:
    ledger = ledger_of_story()
    assert [ledger.changed_at("second", end) for end in (7, 8)] == [0, 8]
    assert ledger.known_keys() == ["first", "second"]


def test_a_record_is_the_request_s_that_asks_for_it() -> None:
    ledger = ledger_of_story()
    for offset, kind, key in [(1, "create-topic", "first"), (8, "delete-topic", "first")]:
        payload = encode_record(STORY[offset])
        assert ledger.is_of(request(kind, key), offset, payload)
        assert not ledger.is_of(request(kind, "second"), offset, payload)
        other = {"create-topic": "delete-topic", "delete-topic": "create-topic"}[kind]
        assert not ledger.is_of(request(other, key), offset, payload)
    assert not ledger.is_of(request("create-topic", "first"), 2, encode_record(STORY[2]))


def test_only_a_change_of_a_topic_may_be_answered_without_an_offset() -> None:
    ledger = ledger_of_story()
    answer = ClientAnswer(1, "ok", definite=True, result=True)
    for kind in ("create-topic", "delete-topic"):
        assert ledger.needs_no_offset(request(kind, "first"), answer)
    assert not ledger.needs_no_offset(request("describe-topic", "first"), answer)


def test_a_topic_was_there_at_some_time_since() -> None:
    ledger = ledger_of_story()
    assert ledger.was("first", 3, present=True)
    assert ledger.was("first", 3, present=False)
    assert not ledger.was("first", 9, present=True)
    assert not ledger.was("third", 0, present=True)
    assert not ledger.was("second", 8, present=False)


def test_equal_states_do_not_differ_and_others_do() -> None:
    ledger = ledger_of_story()
    for end in range(10):
        assert ledger.difference(machine_after(end), end) is None
    assert ledger.difference(machine_after(3), 4) == "no partition 1 of first"
    assert ledger.difference(machine_after(9), 8) == "no topic first"


def test_records_that_make_no_metadata_are_a_problem_and_no_more() -> None:
    ledger = ledger_of_story()
    ledger.apply(9, encode_record(RemoveTopicRecord("c" * 32)))
    assert ledger.problem is not None
    ledger.apply(10, encode_record(STORY[1]))
    assert ledger.partition_count("first", 11) is None


COMMANDS: list[Command] = [
    Write("a", "k", 1),
    CompareAndSet("b", "k", 1, 2),
    CompareAndSet("c", "k", 1, 3),
    Add("d", "s", 1),
    Add("e", "s", True),
    Add("f", "s", 1),
    CompareAndSet("g", "new", None, "x"),
    CompareAndSet("h", "s", 5, 6),
    Write("i", "s", 9),
]


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger()
    for offset, command in enumerate(COMMANDS):
        made.apply(offset, encode_command(command))
    return made


def test_a_key_is_read_as_the_state_machine_reads_it_at_every_offset(ledger: Ledger) -> None:
    machine = RegisterMachine()
    for offset, command in enumerate(COMMANDS):
        applied = machine.apply(offset, 1, encode_command(command))
        assert ledger.succeeded[offset] == applied.succeeded
        for key in ("k", "s", "new", "never"):
            assert ledger.read(key, offset + 1) == encoded(machine.read(key))
            assert ledger.read_set(key, offset + 1) == encoded(machine.read_set(key))


def test_a_change_is_known_by_its_offset(ledger: Ledger) -> None:
    assert [ledger.changed_at("k", end) for end in range(5)] == [0, 1, 2, 2, 2]
    assert ledger.changed_at("never", 9) == 0
    assert ledger.operations["c"] == 2
    assert ledger.operation_at[2] == "c"


def test_what_is_no_command_changes_nothing(ledger: Ledger) -> None:
    ledger.apply(9, b"\xffnothing")
    assert 9 not in ledger.succeeded
