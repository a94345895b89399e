"""The ledger tells what every key held at every offset, as the nodes' state machine does."""

import pytest

from splitbrain.nodes.registers.commands import Add, Command, CompareAndSet, Write, encode_command
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.simulation.kraft.ledger import Ledger, encoded

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
