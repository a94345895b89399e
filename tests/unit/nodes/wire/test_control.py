"""Control records against the schemas that ``kio`` generates from Kafka's definitions."""

import contextlib
import io
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, NodeId, Offset
from splitbrain.nodes.wire.batches import Record
from splitbrain.nodes.wire.control import LeaderChange, decode_control, encode_leader_change
from splitbrain.nodes.wire.errors import WireError

VOTERS = (
    (NodeId(1), DirectoryId("0123456789abcdef" * 2)),
    (NodeId(2), DirectoryId("ff" * 16)),
    (NodeId(3), DirectoryId("a0" * 16)),
)


def _record(key: bytes | None, value: bytes | None) -> Record:
    return Record(Offset(4), 0, key, value)


def _kio_bytes(change: LeaderChange) -> bytes:
    from kio.schema.leader_change_message.v0 import data as v0
    from kio.schema.leader_change_message.v1 import data as v1
    from kio.serial import entity_writer
    from kio.static.primitive import i32

    module = (v0, v1)[change.version]

    def voter(key: tuple[NodeId, DirectoryId]) -> object:
        if change.version == 0:
            return v0.Voter(voter_id=i32(key[0]))
        return v1.Voter(voter_id=i32(key[0]), voter_directory_id=UUID(hex=key[1]))

    message = module.LeaderChangeMessage(
        version=change.version,
        leader_id=change.leader_id,
        voters=tuple(voter(key) for key in change.voters),
        granting_voters=tuple(voter(key) for key in change.granting_voters),
    )
    buffer = io.BytesIO()
    entity_writer(module.LeaderChangeMessage)(buffer, message)
    return buffer.getvalue()


@pytest.mark.parametrize("version", [0, 1])
def test_leader_change_has_kafkas_bytes_and_comes_back(version: int) -> None:
    change = LeaderChange(NodeId(2), VOTERS, VOTERS[:2], version)
    key, value = encode_leader_change(change)
    assert key == b"\0\0\0\x02"
    assert value == _kio_bytes(change)
    if version == 0:
        bare = tuple((node_id, NO_DIRECTORY) for node_id, _ in VOTERS)
        change = LeaderChange(NodeId(2), bare, bare[:2], 0)
    assert decode_control(_record(key, value)) == change


def test_other_control_records_are_skipped() -> None:
    assert decode_control(_record(b"\0\0\0\x05", b"anything")) is None


def test_unknown_version_is_refused_both_ways() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        encode_leader_change(LeaderChange(NodeId(1), (), (), 2))
    with pytest.raises(WireError, match="version 2"):
        decode_control(_record(b"\0\0\0\x02", b"\0\x02" + bytes(20)))


@given(st.binary(max_size=80), st.none() | st.binary(max_size=80))
def test_garbage_raises_wire_errors_only(key: bytes, value: bytes | None) -> None:
    for start in (b"", b"\0\0\0\x02"):
        with contextlib.suppress(WireError):
            decode_control(_record(start + key, value))
