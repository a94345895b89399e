"""Changes of the voter set: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter.

Source: Kafka 4.3's message definitions; KIP-853 (dynamic voters), KIP-1186 (acknowledged when
committed).
"""

from typing import Annotated

import msgspec

from splitbrain.nodes.wire.declared import (
    Boolean,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    since,
    tag,
)
from splitbrain.nodes.wire.families.parts import Listener, Outcome


class AddRaftVoterRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Makes an observer a voter."""

    cluster_id: NullableString
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: tuple[Listener, ...]
    #: Whether the answer waits for the commit, or only for the leader's append.
    ack_when_committed: Annotated[Boolean, since(1)] = True


class AddRaftVoterResponse(Outcome, frozen=True, kw_only=True, gc=False):
    """Whether it became one."""


class RemoveRaftVoterRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Takes a voter out of the set."""

    cluster_id: NullableString
    voter_id: Int32
    voter_directory_id: Uuid


class RemoveRaftVoterResponse(Outcome, frozen=True, kw_only=True, gc=False):
    """Whether it is out."""


class KRaftVersionRange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Levels of ``kraft.version`` that the voter can run with."""

    min_supported_version: Int16
    max_supported_version: Int16


class UpdateRaftVoterRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A voter tells the leader of its new endpoints and levels."""

    cluster_id: NullableString
    current_leader_epoch: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: tuple[Listener, ...]
    k_raft_version_feature: KRaftVersionRange


class CurrentLeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Leader and its address; the host is empty where nobody is known."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    host: String
    port: Int32


class UpdateRaftVoterResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whether the voter is updated."""

    throttle_time_ms: Int32
    error_code: Int16
    current_leader: Annotated[CurrentLeader, tag(0)] = CurrentLeader(host="", port=0)
