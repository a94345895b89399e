"""A broker's life with the controller: registration, heartbeats, producer ids, directories.

Source: Kafka 4.3's message definitions; KIP-631 (registration and heartbeats), KIP-730 (producer
ids), KIP-858 (directories), KIP-966 (previous broker epoch), KIP-1066 (cordoned directories).
"""

from typing import Annotated

import msgspec

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    Boolean,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
    since,
    tag,
)
from splitbrain.nodes.wire.families.parts import (
    AdvertisedListener,
    IdentifiedTopic,
    Outcome,
    PartitionNumber,
    SupportedFeature,
)


class BrokerRegistrationRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A broker that starts says who it is; the answer gives it its epoch."""

    broker_id: Int32
    cluster_id: String
    #: Drawn anew at each start of the process.
    incarnation_id: Uuid
    listeners: tuple[AdvertisedListener, ...]
    features: tuple[SupportedFeature, ...]
    rack: NullableString
    is_migrating_zk_broker: Annotated[Boolean, since(1)] = False
    log_dirs: Annotated[tuple[Uuid, ...], since(2), IGNORABLE] = ()
    #: Epoch before a clean shutdown; -1 without one.
    previous_broker_epoch: Annotated[Int64, since(3), IGNORABLE] = -1


class BrokerRegistrationResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The epoch of the broker's incarnation."""

    throttle_time_ms: Int32
    error_code: Int16
    broker_epoch: Int64 = -1


class BrokerHeartbeatRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A broker is alive, and says what it wants."""

    broker_id: Int32
    broker_epoch: Int64 = -1
    #: Last offset that the broker has applied; -1 before any.
    current_metadata_offset: Int64
    want_fence: Boolean
    want_shut_down: Boolean
    #: Directories that have failed.
    offline_log_dirs: Annotated[tuple[Uuid, ...], since(1), tag(0)] = ()
    #: Directories that take no new replicas; null where the broker does not say.
    cordoned_log_dirs: Annotated[tuple[Uuid, ...] | None, since(2), tag(1)] = None


class BrokerHeartbeatResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """State of the broker as the controller sees it."""

    throttle_time_ms: Int32
    error_code: Int16
    #: Whether the broker has applied its own registration.
    is_caught_up: Boolean = False
    is_fenced: Boolean = True
    #: Whether it leads nothing any more and may go, as it asked.
    should_shut_down: Boolean


class UnregisterBrokerRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Forgets a broker that will not come back."""

    broker_id: Int32


class UnregisterBrokerResponse(Outcome, frozen=True, kw_only=True, gc=False):
    """Whether the broker is forgotten."""


class AllocateProducerIdsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A broker asks for a block of producer ids."""

    broker_id: Int32
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A block that no other broker has had or will have."""

    throttle_time_ms: Int32
    error_code: Int16
    producer_id_start: Int64
    #: How many, from the first one on.
    producer_id_len: Int32


TopicToAssign = IdentifiedTopic[PartitionNumber]


class DirectoryToAssign(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Replicas in one directory."""

    id: Uuid
    topics: tuple[TopicToAssign, ...]


class AssignReplicasToDirsRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A broker says in which of its directories replicas lie."""

    broker_id: Int32
    broker_epoch: Int64 = -1
    directories: tuple[DirectoryToAssign, ...]


class AssignedPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result for one replica."""

    partition_index: Int32
    error_code: Int16


AssignedTopic = IdentifiedTopic[AssignedPartition]


class AssignedDirectory(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results for one directory."""

    id: Uuid
    topics: tuple[AssignedTopic, ...]


class AssignReplicasToDirsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Results for each replica."""

    throttle_time_ms: Int32
    error_code: Int16
    directories: tuple[AssignedDirectory, ...]
