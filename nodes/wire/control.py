"""Control records: what raft itself writes into the log, apart from the state machine's records.

A new leader's first record says who leads, by whose votes; it exists so that something of the
leader's own epoch can commit. Types that are not known are skipped: real logs hold them.

Source: Kafka's ControlRecordType and LeaderChangeMessage; KIP-595, KIP-853.
"""

import struct
from typing import Annotated, Final

import msgspec

from splitbrain.nodes.quorum.identifiers import DirectoryId, NodeId
from splitbrain.nodes.wire.batches import Payload, Record
from splitbrain.nodes.wire.declared import IGNORABLE, NO_UUID, Int16, Int32, Uuid, kind_of, since
from splitbrain.nodes.wire.errors import WireError

LEADER_CHANGE_TYPE: Final = 2
#: The voters of a quorum whose voters change (KIP-853).
VOTERS_TYPE: Final = 6
_KEY_VERSION: Final = 0
_KEY: Final = struct.Struct(">hh")
#: A control record's value begins with its version.
_VERSION: Final = struct.Struct(">h")
_VERSIONS: Final = (0, 1)

VoterKey = tuple[NodeId, DirectoryId]


class LeaderChange(msgspec.Struct, frozen=True):
    """The record that opens a leader's epoch."""

    leader_id: NodeId
    voters: tuple[VoterKey, ...]
    #: Voters whose votes made it leader, itself included.
    granting_voters: tuple[VoterKey, ...]
    #: 0 carries no directory ids (what Kafka 4 writes and reads), 1 does.
    version: int = 0


class Voter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A voter as the record names it."""

    voter_id: Int32
    voter_directory_id: Annotated[Uuid, since(1), IGNORABLE] = NO_UUID


class LeaderChangeMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The record as Kafka has it."""

    version: Int16
    leader_id: Int32
    voters: tuple[Voter, ...]
    granting_voters: tuple[Voter, ...]


_KIND: Final = kind_of(LeaderChangeMessage, flexible=True)


def encode_leader_change(change: LeaderChange) -> Payload:
    """Key and value of the control record; raises ValueError for an unknown version."""
    if change.version not in _VERSIONS:
        raise ValueError(f"leader change version {change.version} does not exist")
    message = LeaderChangeMessage(
        version=change.version,
        leader_id=change.leader_id,
        voters=_voters(change.voters),
        granting_voters=_voters(change.granting_voters),
    )
    parts: list[bytes] = []
    _KIND.write(message, change.version, parts)
    return _KEY.pack(_KEY_VERSION, LEADER_CHANGE_TYPE), b"".join(parts)


def control_type(record: Record) -> int:
    """Return the type of a control batch's record; raises WireError where its key does not say."""
    if record.key is None or len(record.key) < _KEY.size:
        raise WireError(f"control record at offset {record.offset} has no type")
    _, record_type = _KEY.unpack_from(record.key)
    return int(record_type)


def decode_control(record: Record) -> LeaderChange | None:
    """Return the leader change in a control record; None for every other type. Raises WireError."""
    if control_type(record) != LEADER_CHANGE_TYPE:
        return None
    if record.value is None:
        raise WireError(f"leader change at offset {record.offset} is empty")
    if len(record.value) < _VERSION.size:
        raise WireError(f"leader change at offset {record.offset} is cut short")
    (version,) = _VERSION.unpack_from(record.value)
    if version not in _VERSIONS:
        raise WireError(f"leader change has version {version}")
    message, _ = _KIND.read(record.value, 0, version)
    return LeaderChange(
        leader_id=NodeId(message.leader_id),
        voters=_voter_keys(message.voters),
        granting_voters=_voter_keys(message.granting_voters),
        version=version,
    )


def _voters(keys: tuple[VoterKey, ...]) -> tuple[Voter, ...]:
    return tuple(Voter(voter_id=node_id, voter_directory_id=key) for node_id, key in keys)


def _voter_keys(voters: tuple[Voter, ...]) -> tuple[VoterKey, ...]:
    return tuple(
        (NodeId(voter.voter_id), DirectoryId(voter.voter_directory_id)) for voter in voters
    )
