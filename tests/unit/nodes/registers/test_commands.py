"""The private record format: what goes in comes out, what is unknown is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.registers.commands import (
    FORMAT_VERSION,
    Add,
    Command,
    CompareAndSet,
    UnknownCommandError,
    Write,
    command_fields,
    decode_command,
    encode_command,
)

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3),
    max_leaves=5,
)
_TEXT = st.text(max_size=12)


def commands(
    operations: st.SearchStrategy[str], keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Command]:
    return st.one_of(
        st.builds(Write, operations, keys, values),
        st.builds(CompareAndSet, operations, keys, values, values),
        st.builds(Add, operations, keys, values),
    )


@given(commands(_TEXT, _TEXT, _VALUES))
def test_a_command_survives_its_record(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


@given(st.binary(max_size=40))
def test_any_bytes_are_a_command_or_refused(payload: bytes) -> None:
    try:
        command = decode_command(payload)
    except UnknownCommandError:
        return
    assert isinstance(command, Write | CompareAndSet | Add)


@pytest.mark.parametrize("cut", [0, 1, 2, -1])
def test_a_cut_payload_is_refused(cut: int) -> None:
    payload = encode_command(Write("o", "k", "value"))[:cut]
    with pytest.raises(UnknownCommandError):
        decode_command(payload)


def test_a_later_format_is_refused_by_its_number() -> None:
    payload = bytes((FORMAT_VERSION + 1,)) + encode_command(Write("o", "k", 1))[1:]
    with pytest.raises(UnknownCommandError, match="02"):
        decode_command(payload)


def test_the_dump_shows_kind_key_and_value() -> None:
    assert command_fields(Write("o", "k", 1)) == ("write", "k", 1)
    assert command_fields(CompareAndSet("o", "k", 1, 2)) == ("cas", "k", [1, 2])
    assert command_fields(Add("o", "s", 3)) == ("add", "s", 3)
