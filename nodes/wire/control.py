"""Control records: what raft itself writes into the log, apart from the state machine's records.

A new leader's first record says who leads, by whose votes; it exists so that something of the
leader's own epoch can commit. Key: version 0 and the record's type, two 16-bit integers. Value: a
message that starts with its own version. Must never refuse a type it does not know: real logs
hold snapshot and voter-set records too, which are skipped.

Source: Kafka's ControlRecordType and LeaderChangeMessage; KIP-595, KIP-853.
"""

import struct
from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, NodeId
from splitbrain.nodes.wire.batches import Payload, Record
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.varints import decode_unsigned, encode_unsigned, skip_tagged_fields

LEADER_CHANGE_TYPE: Final = 2
#: The voters of a quorum whose voters change (KIP-853).
VOTERS_TYPE: Final = 6
_KEY_VERSION: Final = 0
_KEY: Final = struct.Struct(">hh")
_HEAD: Final = struct.Struct(">hi")
_VOTER_ID: Final = struct.Struct(">i")
_DIRECTORY_BYTES: Final = 16

VoterKey = tuple[NodeId, DirectoryId]


class LeaderChange(msgspec.Struct, frozen=True):
    """The record that opens a leader's epoch."""

    leader_id: NodeId
    voters: tuple[VoterKey, ...]
    #: Voters whose votes made it leader, itself included.
    granting_voters: tuple[VoterKey, ...]
    #: 0 carries no directory ids (what Kafka 4 writes and reads), 1 does.
    version: int = 0


def encode_leader_change(change: LeaderChange) -> Payload:
    """Key and value of the control record.

    Raises:
        ValueError: the version is neither 0 nor 1.
    """
    if change.version not in (0, 1):
        raise ValueError(f"leader change version {change.version} does not exist")
    value = (
        _HEAD.pack(change.version, change.leader_id)
        + _encode_voters(change.voters, change.version)
        + _encode_voters(change.granting_voters, change.version)
        + b"\0"
    )
    return _KEY.pack(_KEY_VERSION, LEADER_CHANGE_TYPE), value


def control_type(record: Record) -> int:
    """What sort of record of a control batch it is.

    Raises:
        WireError: its key does not say.
    """
    if record.key is None or len(record.key) < _KEY.size:
        raise WireError(f"control record at offset {record.offset} has no type")
    _, record_type = _KEY.unpack_from(record.key)
    return int(record_type)


def decode_control(record: Record) -> LeaderChange | None:
    """The leader change in a record of a control batch; None for every other type.

    Raises:
        WireError: the key or a leader change's value is malformed.
    """
    if control_type(record) != LEADER_CHANGE_TYPE:
        return None
    if record.value is None:
        raise WireError(f"leader change at offset {record.offset} is empty")
    try:
        return _decode_leader_change(record.value)
    except struct.error as error:
        raise WireError(f"leader change at offset {record.offset} is cut short") from error


def _encode_voters(voters: tuple[VoterKey, ...], version: int) -> bytes:
    parts = [encode_unsigned(len(voters) + 1)]
    for node_id, directory_id in voters:
        parts.append(_VOTER_ID.pack(node_id))
        if version == 1:
            parts.append(bytes.fromhex(directory_id))
        parts.append(b"\0")
    return b"".join(parts)


def _decode_leader_change(value: bytes) -> LeaderChange:
    version, leader_id = _HEAD.unpack_from(value)
    if version not in (0, 1):
        raise WireError(f"leader change has version {version}")
    voters, position = _decode_voters(value, _HEAD.size, version)
    granting, position = _decode_voters(value, position, version)
    skip_tagged_fields(value, position)
    return LeaderChange(
        leader_id=NodeId(leader_id), voters=voters, granting_voters=granting, version=version
    )


def _decode_voters(value: bytes, position: int, version: int) -> tuple[tuple[VoterKey, ...], int]:
    count, position = decode_unsigned(value, position)
    if not 1 <= count <= len(value):
        raise WireError(f"leader change announces {count - 1} voters")
    voters: list[VoterKey] = []
    for _ in range(count - 1):
        (node_id,) = _VOTER_ID.unpack_from(value, position)
        position += _VOTER_ID.size
        directory_id = NO_DIRECTORY
        if version == 1:
            raw = value[position : position + _DIRECTORY_BYTES]
            if len(raw) < _DIRECTORY_BYTES:
                raise WireError("leader change is cut short within a directory id")
            directory_id = DirectoryId(raw.hex())
            position += _DIRECTORY_BYTES
        position = skip_tagged_fields(value, position)
        voters.append((NodeId(node_id), directory_id))
    return tuple(voters), position
