"""A register machine's state as a snapshot's records: nothing is lost, equals are equal bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.registers.commands import (
    Add,
    Command,
    UnknownCommandError,
    Write,
    encode_command,
)
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.registers.snapshot import RECORD_BYTES
from tests.unit.nodes.registers.test_commands import commands

keys = st.sampled_from(["a", "b", "c"])
values = (
    st.none() | st.integers(0, 3) | st.text(max_size=3) | st.lists(st.integers(0, 2), max_size=2)
)
operations = st.sampled_from([f"o{number}" for number in range(8)])
courses = commands(operations, keys, values)


def fed(course: list[Command], machine: RegisterMachine | None = None) -> RegisterMachine:
    machine = machine or RegisterMachine()
    for command in course:
        machine.apply(machine.end_offset, 1, encode_command(command))
    return machine


def copy_of(machine: RegisterMachine) -> RegisterMachine:
    copy = RegisterMachine()
    loading = copy.begin_loading()
    for value in machine.freeze()():
        loading.add(value)
    loading.install(machine.end_offset)
    return copy


def content(machine: RegisterMachine) -> tuple[Any, ...]:
    reads = [(machine.read(key), machine.read_set(key)) for key in "abc"]
    return machine.end_offset, machine.digest(), reads, list(machine.freeze()())


@given(st.lists(courses, max_size=30), st.lists(courses, max_size=10))
def test_a_copy_is_equal_and_stays_so(before: list[Command], after: list[Command]) -> None:
    machine = fed(before)
    copy = copy_of(machine)
    assert content(copy) == content(machine)
    for command in after:
        payload = encode_command(command)
        offset = machine.end_offset
        assert copy.apply(offset, 1, payload) == machine.apply(offset, 1, payload)
    assert content(copy) == content(machine)


@given(st.lists(courses, max_size=20), st.lists(courses, min_size=1, max_size=10))
def test_a_frozen_state_does_not_change_with_the_machine(
    before: list[Command], after: list[Command]
) -> None:
    machine = fed(before)
    state = machine.freeze()
    expected = list(state())
    fed(after, machine)
    assert list(state()) == expected


def test_a_machine_is_as_it_was_until_the_state_is_installed() -> None:
    machine = fed([Write("o1", "a", 1)])
    loading = machine.begin_loading()
    for value in fed([Write("o1", "a", 2), Write("o2", "a", 3)]).freeze()():
        loading.add(value)
    assert (machine.read("a"), machine.end_offset) == (1, 1)
    loading.install(2)
    assert (machine.read("a"), machine.end_offset) == (3, 2)


def test_large_sets_are_cut_into_records_of_bounded_size() -> None:
    machine = fed([Add(f"o{number}", "s", f"{number:08}" * 100) for number in range(300)])
    sizes = [len(value) for value in machine.freeze()()]
    assert len(sizes) > 3
    assert max(sizes) < 2 * RECORD_BYTES
    assert copy_of(machine).read_set("s") == machine.read_set("s")


@pytest.mark.parametrize("value", [b"", b"\x02", b"\x01\xc1", b"\x01\x92\xa4what\x01"])
def test_a_record_of_another_build_is_refused(value: bytes) -> None:
    with pytest.raises(UnknownCommandError):
        RegisterMachine().begin_loading().add(value)
