"""Controllers among themselves and for brokers: registration, features, envelopes, snapshots.

Source: Kafka 4.3's message definitions; KIP-919 (ControllerRegistration), KIP-584 and KIP-778
(UpdateFeatures), KIP-590 (Envelope), KIP-630 (FetchSnapshot).
"""

from typing import Annotated

import msgspec

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    NO_UUID,
    Boolean,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableBytes,
    NullableString,
    String,
    Uint16,
    Uuid,
    since,
    tag,
    until,
)
from splitbrain.nodes.wire.families.brokers import AdvertisedListener, SupportedFeature


class ControllerRegistrationRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A controller tells the active one who and where it is."""

    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Boolean
    listeners: tuple[AdvertisedListener, ...]
    features: tuple[SupportedFeature, ...]


class ControllerRegistrationResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whether the controller is registered."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString


class FeatureToUpdate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The level that a feature shall have."""

    feature: String
    #: 0 removes the feature.
    max_version_level: Int16
    allow_downgrade: Annotated[Boolean, until(0)] = False
    #: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade.
    upgrade_type: Annotated[Int8, since(1)] = 1


class UpdateFeaturesRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Sets levels of features."""

    timeout_ms: Int32 = 60000
    feature_updates: tuple[FeatureToUpdate, ...]
    validate_only: Annotated[Boolean, since(1)] = False


class UpdatedFeature(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of one feature."""

    feature: String
    error_code: Int16
    error_message: NullableString


class UpdateFeaturesResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of the update."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    results: Annotated[tuple[UpdatedFeature, ...], until(1), IGNORABLE] = ()


class EnvelopeRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A client's request as a broker forwards it: header and body as they came."""

    request_data: Bytes
    #: Who the client is, in the form of the broker's principal builder.
    request_principal: NullableBytes
    #: 4 or 16 bytes.
    client_host_address: Bytes


class EnvelopeResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer for the client, header and body; null where the envelope failed."""

    response_data: NullableBytes = None
    error_code: Int16


class SnapshotId(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which snapshot: where it ends, and the epoch of its last record."""

    #: One past the last offset that it holds.
    end_offset: Int64
    epoch: Int32


class SnapshotToFetch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """From where on the snapshot of one partition is wanted."""

    partition: Int32
    current_leader_epoch: Int32
    snapshot_id: SnapshotId
    #: First byte wanted.
    position: Int64
    replica_directory_id: Annotated[Uuid, since(1), tag(0), IGNORABLE] = NO_UUID


class TopicToFetch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic."""

    name: String
    partitions: tuple[SnapshotToFetch, ...]


class FetchSnapshotRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Asks for the next bytes of a snapshot."""

    cluster_id: Annotated[NullableString, tag(0)] = None
    replica_id: Int32 = -1
    max_bytes: Int32 = 0x7FFFFFFF
    topics: tuple[TopicToFetch, ...]


class LeaderIdAndEpoch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who leads, and since which epoch."""

    leader_id: Int32
    leader_epoch: Int32


class SnapshotChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Bytes of one snapshot, or why there are none."""

    index: Int32
    error_code: Int16
    snapshot_id: SnapshotId
    current_leader: Annotated[LeaderIdAndEpoch, tag(0)] = LeaderIdAndEpoch(
        leader_id=0, leader_epoch=0
    )
    #: Bytes of the whole snapshot.
    size: Int64
    position: Int64
    #: May begin and end within a batch.
    unaligned_records: Bytes


class FetchedTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic."""

    name: String
    partitions: tuple[SnapshotChunk, ...]


class NodeEndpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a quorum node is reached."""

    node_id: Int32
    host: String
    port: Uint16


class FetchSnapshotResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The next bytes of a snapshot."""

    throttle_time_ms: Int32
    error_code: Int16
    topics: tuple[FetchedTopic, ...]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(1), tag(0)] = ()
