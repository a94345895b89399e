"""The register machine: what each command does, and that equal logs give equal machines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.registers.commands import (
    Add,
    Command,
    CompareAndSet,
    UnknownCommandError,
    Write,
    encode_command,
)
from splitbrain.nodes.registers.machine import (
    REMEMBERED_OPERATIONS,
    OutOfOrderError,
    RegisterMachine,
)
from tests.unit.nodes.registers.test_commands import commands as commands_of

_KEYS = st.sampled_from(["a", "b"])
_VALUES = st.none() | st.integers(0, 3) | st.booleans()
_COMMANDS = commands_of(st.text(max_size=2), _KEYS, _VALUES)


def _apply(machine: RegisterMachine, *commands: Command) -> list[bool]:
    return [
        machine.apply(machine.end_offset, 1, encode_command(command)).succeeded
        for command in commands
    ]


def _fed(*commands: Command) -> RegisterMachine:
    machine = RegisterMachine()
    _apply(machine, *commands)
    return machine


def _same(left: Any, right: Any) -> bool:
    """Equality that tells 1 from True, as the record format does."""
    return type(left) is type(right) and left == right


@pytest.mark.parametrize(
    ("commands", "value", "elements"),
    [
        ((), None, []),
        ((Write("1", "k", 1), Write("2", "k", 2), Write("3", "other", 9)), 2, []),
        # Each element once, in the order of the log; a key that is a set only reads as its own.
        ((Add("1", "k", 3), Add("2", "k", 1), Add("3", "k", 3)), [3, 1], [3, 1]),
        # A register and a set of one name are apart.
        ((Add("1", "k", 3), Write("2", "k", 1)), 1, [3]),
    ],
)
def test_a_read_sees_what_was_written_last(
    commands: tuple[Command, ...], value: Any, elements: list[Any]
) -> None:
    machine = _fed(*commands)
    assert (machine.read("k"), machine.read_set("k")) == (value, elements)


def test_compare_and_set_changes_only_the_expected_value() -> None:
    machine = RegisterMachine()
    outcomes = _apply(
        machine,
        CompareAndSet("1", "k", 1, 2),
        CompareAndSet("2", "k", None, 5),
        CompareAndSet("3", "k", 5, 6),
        CompareAndSet("4", "k", 5, 7),
    )
    assert outcomes == [False, True, True, False]
    assert machine.read("k") == 6


def test_one_and_true_are_two_values() -> None:
    machine = RegisterMachine()
    assert _apply(machine, Write("1", "k", 1), CompareAndSet("2", "k", True, 2)) == [True, False]


def test_an_applied_offset_is_refused_the_second_time() -> None:
    machine = RegisterMachine()
    machine.apply(4, 1, encode_command(Write("1", "k", 1)))
    with pytest.raises(OutOfOrderError):
        machine.apply(4, 1, encode_command(Write("1", "k", 1)))


def test_a_malformed_record_changes_nothing() -> None:
    machine = RegisterMachine()
    before = machine.digest()
    with pytest.raises(UnknownCommandError):
        machine.apply(0, 1, b"\x01nonsense")
    assert (machine.digest(), machine.end_offset) == (before, 0)


def test_a_repeated_operation_is_applied_and_shown() -> None:
    machine = RegisterMachine()
    first = machine.apply(0, 1, encode_command(Write("same", "k", 1)))
    _apply(machine, Write("other", "k", 2))
    again = machine.apply(2, 1, encode_command(Write("same", "k", 1)))
    assert (first.repeats, again.repeats) == (None, 0)
    assert machine.read("k") == 1


def test_only_so_many_operations_are_remembered() -> None:
    machine = RegisterMachine()
    for number in range(REMEMBERED_OPERATIONS + 1):
        machine.apply(number, 1, encode_command(Write(str(number), "k", 0)))
    forgotten = machine.apply(machine.end_offset, 1, encode_command(Write("0", "k", 0)))
    assert forgotten.repeats is None


@given(st.lists(_COMMANDS, max_size=12))
def test_equal_logs_give_equal_machines(commands: list[Command]) -> None:
    left, right = RegisterMachine(), RegisterMachine()
    assert _apply(left, *commands) == _apply(right, *commands)
    assert left.digest() == right.digest()


@given(st.lists(_COMMANDS, max_size=12))
def test_a_plain_model_agrees(commands: list[Command]) -> None:
    machine = RegisterMachine()
    outcomes = _apply(machine, *commands)
    registers: dict[str, Any] = {}
    sets: dict[str, list[Any]] = {}
    for command, succeeded in zip(commands, outcomes, strict=True):
        match command:
            case Write(_, key, value):
                registers[key] = value
            case CompareAndSet(_, key, expected, value):
                assert succeeded == _same(registers.get(key), expected)
                if succeeded:
                    registers[key] = value
            case Add(_, key, element):
                elements = sets.setdefault(key, [])
                if not any(_same(element, known) for known in elements):
                    elements.append(element)
    for key in ("a", "b"):
        assert _same(machine.read(key), registers.get(key, sets.get(key)))
        assert machine.read_set(key) == sets.get(key, [])


@given(st.lists(_COMMANDS, max_size=8), _COMMANDS)
def test_a_different_state_has_a_different_digest(commands: list[Command], last: Command) -> None:
    left, right = _fed(*commands), _fed(*commands, last)
    same_content = all(
        _same(left.read(key), right.read(key))
        and sorted(map(repr, left.read_set(key))) == sorted(map(repr, right.read_set(key)))
        for key in ("a", "b")
    )
    written_none = isinstance(last, Write | CompareAndSet) and last.value is None
    if not written_none:
        assert (left.digest() == right.digest()) == same_content
