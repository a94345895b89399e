"""All metadata records of Kafka 4.3 (metadata.version 30), as structs; fields in the wire's order.

Source: Kafka 4.3's record definitions; KIP-631, KIP-868 (transactions), KIP-919 (controllers),
KIP-858 (directories), KIP-966 (eligible leaders), KIP-1066 (cordoned directories).
"""

from typing import Annotated, Final

import msgspec

from splitbrain.nodes.wire.declared import (
    Boolean,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
    since,
    tag,
)
from splitbrain.nodes.wire.families.parts import AdvertisedListener, SupportedFeature

#: ``PartitionChangeRecord.leader``: the leader stays.
LEADER_UNCHANGED: Final = -2
#: There is no leader.
NO_LEADER: Final = -1


class MetadataRecord(msgspec.Struct, frozen=True, gc=False):
    """Any of the records below."""


class QuotaEntity(msgspec.Struct, frozen=True, gc=False):
    """One part of what a client quota is for."""

    entity_type: String
    #: None for the default of this type.
    entity_name: NullableString


class RegisterBrokerRecord(MetadataRecord, frozen=True, kw_only=True, gc=False):
    """A broker's new incarnation is part of the cluster."""

    broker_id: Int32
    is_migrating_zk_broker: Annotated[Boolean, since(2)] = False
    incarnation_id: Uuid
    #: Offset at which the controller registered it, and thereby newer than all before.
    broker_epoch: Int64
    end_points: tuple[AdvertisedListener, ...]
    features: tuple[SupportedFeature, ...]
    rack: NullableString
    fenced: Boolean = True
    in_controlled_shutdown: Annotated[Boolean, since(1)] = False
    log_dirs: Annotated[tuple[Uuid, ...], since(3), tag(0)] = ()
    #: None until the broker has said it.
    cordoned_log_dirs: Annotated[tuple[Uuid, ...] | None, since(4), tag(1)] = None


class UnregisterBrokerRecord(MetadataRecord, frozen=True, gc=False):
    """A broker is no longer part of the cluster."""

    broker_id: Int32
    broker_epoch: Int64


class TopicRecord(MetadataRecord, frozen=True, gc=False):
    """A topic; its partitions follow."""

    name: String
    topic_id: Uuid


class PartitionRecord(MetadataRecord, frozen=True, kw_only=True, gc=False):
    """A partition, whole."""

    partition_id: Int32 = -1
    topic_id: Uuid
    #: The preferred leader first.
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...]
    adding_replicas: tuple[Int32, ...]
    leader: Int32 = NO_LEADER
    #: 1 after an unclean election, until the leader has recovered.
    leader_recovery_state: Annotated[Int8, tag(0)] = 0
    leader_epoch: Int32 = -1
    #: Rises with every change of the partition.
    partition_epoch: Int32 = -1
    #: One for each replica, in their order.
    directories: Annotated[tuple[Uuid, ...], since(1)] = ()
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, since(2), tag(1)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, since(2), tag(2)] = None


class ConfigRecord(MetadataRecord, frozen=True, gc=False):
    """A configured value; None removes it."""

    #: 2 for a topic, 4 for a broker.
    resource_type: Int8
    resource_name: String
    name: String
    value: NullableString


class PartitionChangeRecord(MetadataRecord, frozen=True, kw_only=True, gc=False):
    """Change of a partition; a field that is None does not change."""

    partition_id: Int32 = -1
    topic_id: Uuid
    isr: Annotated[tuple[Int32, ...] | None, tag(0)] = None
    #: Naming one, even the same, starts a new leader epoch.
    leader: Annotated[Int32, tag(1)] = LEADER_UNCHANGED
    replicas: Annotated[tuple[Int32, ...] | None, tag(2)] = None
    removing_replicas: Annotated[tuple[Int32, ...] | None, tag(3)] = None
    adding_replicas: Annotated[tuple[Int32, ...] | None, tag(4)] = None
    #: -1 for no change.
    leader_recovery_state: Annotated[Int8, tag(5)] = -1
    directories: Annotated[tuple[Uuid, ...] | None, since(1), tag(8)] = None
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, since(2), tag(6)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, since(2), tag(7)] = None


class FenceBrokerRecord(MetadataRecord, frozen=True, gc=False):
    """A broker is fenced; older controllers wrote it, ours says it as a registration change."""

    id: Int32
    epoch: Int64


class UnfenceBrokerRecord(MetadataRecord, frozen=True, gc=False):
    """A broker is fenced no longer; see ``FenceBrokerRecord``."""

    id: Int32
    epoch: Int64


class RemoveTopicRecord(MetadataRecord, frozen=True, gc=False):
    """A topic goes, with its partitions and its configuration."""

    topic_id: Uuid


class DelegationTokenRecord(MetadataRecord, frozen=True, gc=False):
    """A delegation token; all times in milliseconds since 1970."""

    owner: String
    requester: String
    renewers: tuple[String, ...]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


class UserScramCredentialRecord(MetadataRecord, frozen=True, gc=False):
    """Salted form in which the cluster keeps a user's password."""

    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


class FeatureLevelRecord(MetadataRecord, frozen=True, gc=False):
    """The level at which the cluster works of one feature; 0 for none."""

    name: String
    feature_level: Int16


class ClientQuotaRecord(MetadataRecord, frozen=True, gc=False):
    """A limit for a client."""

    entity: tuple[QuotaEntity, ...]
    key: String
    #: In the key's unit; means nothing where it is removed.
    value: Float64
    remove: Boolean


class ProducerIdsRecord(MetadataRecord, frozen=True, kw_only=True, gc=False):
    """A block of producer ids was given to a broker."""

    broker_id: Int32
    broker_epoch: Int64 = -1
    #: First id of the block that is given next.
    next_producer_id: Int64


class BrokerRegistrationChangeRecord(MetadataRecord, frozen=True, gc=False):
    """Change of a broker's registration."""

    broker_id: Int32
    broker_epoch: Int64
    #: 1 fences, -1 unfences, 0 leaves it.
    fenced: Annotated[Int8, tag(0)] = 0
    #: 1 begins it, 0 leaves it; only a new registration ends it.
    in_controlled_shutdown: Annotated[Int8, since(1), tag(1)] = 0
    #: Empty for no change.
    log_dirs: Annotated[tuple[Uuid, ...], since(2), tag(2)] = ()
    #: None for no change.
    cordoned_log_dirs: Annotated[tuple[Uuid, ...] | None, since(3), tag(3)] = None


class AccessControlEntryRecord(MetadataRecord, frozen=True, gc=False):
    """One access rule."""

    id: Uuid
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class RemoveAccessControlEntryRecord(MetadataRecord, frozen=True, gc=False):
    """An access rule goes."""

    id: Uuid


class NoOpRecord(MetadataRecord, frozen=True, gc=False):
    """Nothing; it lets the end of the log move, so that lag can be seen."""


class ZkMigrationStateRecord(MetadataRecord, frozen=True, gc=False):
    """How far a cluster is that came from ZooKeeper; 0 for one that did not."""

    zk_migration_state: Int8


class RemoveUserScramCredentialRecord(MetadataRecord, frozen=True, gc=False):
    """A user's password goes."""

    name: String
    mechanism: Int8


class BeginTransactionRecord(MetadataRecord, frozen=True, gc=False):
    """The records up to the transaction's end count together, or not at all."""

    name: Annotated[NullableString, tag(0)] = None


class EndTransactionRecord(MetadataRecord, frozen=True, gc=False):
    """The open transaction's records count."""


class AbortTransactionRecord(MetadataRecord, frozen=True, gc=False):
    """The open transaction's records do not count."""

    reason: Annotated[NullableString, tag(0)] = None


class RemoveDelegationTokenRecord(MetadataRecord, frozen=True, gc=False):
    """A delegation token goes."""

    token_id: String


class RegisterControllerRecord(MetadataRecord, frozen=True, gc=False):
    """A controller's new incarnation, and where it can be reached."""

    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Boolean
    end_points: tuple[AdvertisedListener, ...]
    features: tuple[SupportedFeature, ...]


class ClearElrRecord(MetadataRecord, frozen=True, gc=False):
    """A topic's partitions forget their eligible leaders; those of all topics if unnamed."""

    topic_name: String
