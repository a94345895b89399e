"""Courses of metadata: records that a controller might write one after the other.

Each is drawn from what the image holds at that moment, so that it can follow.
"""

import random
from collections.abc import Callable

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.transactions import Provenance

BROKERS = 6
USERS = ("ann", "bob", None)
RACKS = (None, "r1", "r2")

Draw = Callable[[random.Random, MetadataImage, int], MetadataRecord | None]


def uuid_of(source: random.Random) -> str:
    # Small first digits: a signed order and an unsigned one are the same.
    return "1" + source.randbytes(16).hex()[1:]


def replicas(source: random.Random) -> tuple[int, ...]:
    return tuple(source.sample(range(1, BROKERS + 1), source.randrange(1, 4)))


def register_broker(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    broker_id = source.randrange(1, BROKERS + 1)
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid_of(source),
        broker_epoch=at,
        end_points=(records.AdvertisedListener("PLAINTEXT", f"b{broker_id}", 9092, 0),),
        features=(records.SupportedFeature("metadata.version", 7, 30),),
        rack=source.choice(RACKS),
        fenced=source.random() < 0.8,
        in_controlled_shutdown=source.random() < 0.2,
        log_dirs=tuple(sorted(uuid_of(source) for _ in range(source.randrange(3)))),
        cordoned_log_dirs=source.choice([None, (), (uuid_of(source),)]),
    )


def change_broker(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord | None:
    if not image.brokers:
        return None
    broker = image.brokers[source.choice(sorted(image.brokers))]
    kind = source.randrange(4)
    if kind == 0:
        of_old = source.choice([records.FenceBrokerRecord, records.UnfenceBrokerRecord])
        return of_old(broker.broker_id, broker.broker_epoch)
    if kind == 1 and source.random() < 0.3:
        return records.UnregisterBrokerRecord(broker.broker_id, broker.broker_epoch)
    return records.BrokerRegistrationChangeRecord(
        broker.broker_id,
        broker.broker_epoch,
        fenced=source.choice([-1, 0, 1]),
        in_controlled_shutdown=source.choice([0, 0, 1]),
        log_dirs=source.choice([(), (uuid_of(source),)]),
        cordoned_log_dirs=source.choice([None, (), (uuid_of(source),)]),
    )


def register_controller(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    controller_id = source.randrange(100, 103)
    return records.RegisterControllerRecord(
        controller_id,
        uuid_of(source),
        False,
        (records.AdvertisedListener("CONTROLLER", "c", 9093, 0),),
        (records.SupportedFeature("kraft.version", 0, 1),),
    )


def add_topic(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord | None:
    name = f"topic-{source.randrange(8)}"
    if name in image.topics.ids_by_name:
        return None
    return records.TopicRecord(name, uuid_of(source))


def put_partition(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord | None:
    if not image.topics.by_id:
        return None
    topic = image.topics.by_id[source.choice(sorted(image.topics.by_id))]
    on = replicas(source)
    return records.PartitionRecord(
        partition_id=source.randrange(len(topic.partitions) + 1),
        topic_id=topic.topic_id,
        replicas=on,
        isr=on[: source.randrange(1, len(on) + 1)],
        removing_replicas=source.choice([(), on[:1]]),
        adding_replicas=source.choice([(), on[-1:]]),
        leader=source.choice([-1, on[0]]),
        leader_recovery_state=source.randrange(2),
        leader_epoch=source.randrange(9),
        partition_epoch=source.randrange(9),
        directories=source.choice([(), tuple(uuid_of(source) for _ in on)]),
        eligible_leader_replicas=source.choice([None, (), on[1:]]),
        last_known_elr=source.choice([None, (), on[-1:]]),
    )


def change_partition(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord | None:
    full = [topic for _, topic in sorted(image.topics.by_id.items()) if topic.partitions]
    if not full:
        return None
    topic = source.choice(full)
    partition_id = source.randrange(len(topic.partitions))
    on = topic.partitions[partition_id].replicas
    moved = source.random() < 0.3
    new = replicas(source) if moved else on
    return records.PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic.topic_id,
        isr=source.choice([None, new[:1], new]),
        leader=source.choice([-2, -1, new[0]]),
        replicas=new if moved else None,
        removing_replicas=source.choice([None, (), new[:1]]),
        adding_replicas=source.choice([None, (), new[-1:]]),
        leader_recovery_state=source.choice([-1, 0, 1]),
        directories=tuple(uuid_of(source) for _ in new) if moved else None,
        eligible_leader_replicas=source.choice([None, (), new[1:]]),
        last_known_elr=source.choice([None, (), new[-1:]]),
    )


def remove_topic(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord | None:
    if not image.topics.by_id or source.random() < 0.5:
        return None
    return records.RemoveTopicRecord(source.choice(sorted(image.topics.by_id)))


def clear_elr(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord | None:
    if not image.topics.ids_by_name or source.random() < 0.7:
        return None
    return records.ClearElrRecord(source.choice(["", *sorted(image.topics.ids_by_name)]))


def set_config(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    # Topics' and brokers'.
    resource = source.choice([(2, f"topic-{source.randrange(8)}"), (4, ""), (4, "1")])
    name = source.choice(["retention.ms", "min.insync.replicas"])
    return records.ConfigRecord(*resource, name, source.choice([None, "", str(at)]))


def set_quota(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    parts = [
        records.QuotaEntity("user", source.choice(USERS)),
        records.QuotaEntity("client-id", source.choice(USERS)),
    ]
    source.shuffle(parts)
    entity = tuple(parts[: source.randrange(1, 3)])
    is_removal = source.random() < 0.3
    return records.ClientQuotaRecord(entity, "producer_byte_rate", float(at), is_removal)


def give_producer_ids(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    return records.ProducerIdsRecord(
        broker_id=1, broker_epoch=at, next_producer_id=(image.next_producer_id or 0) + 1000
    )


def change_acl(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    if image.acls and source.random() < 0.4:
        return records.RemoveAccessControlEntryRecord(source.choice(sorted(image.acls)))
    return records.AccessControlEntryRecord(
        uuid_of(source), 2, f"topic-{at}", 3, "User:ann", "*", 3, 3
    )


def change_password(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    user, mechanism = source.choice(["ann", "bob"]), source.choice([1, 2])
    if (mechanism, user) in image.scram and source.random() < 0.5:
        return records.RemoveUserScramCredentialRecord(user, mechanism)
    return records.UserScramCredentialRecord(user, mechanism, b"salt", b"stored", b"server", 4096)


def change_token(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    token = f"token-{source.randrange(3)}"
    if token in image.delegation_tokens and source.random() < 0.5:
        return records.RemoveDelegationTokenRecord(token)
    return records.DelegationTokenRecord("User:ann", "User:bob", ("User:eve",), 1, 3, 2, token)


def set_feature(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    name = source.choice(["transaction.version", "group.version", "kraft.version"])
    return records.FeatureLevelRecord(name, source.randrange(2))


def note_nothing(source: random.Random, image: MetadataImage, at: int) -> MetadataRecord:
    return source.choice([records.NoOpRecord(), records.ZkMigrationStateRecord(0)])


DRAWS: tuple[Draw, ...] = (
    register_broker,
    change_broker,
    register_controller,
    add_topic,
    put_partition,
    put_partition,
    change_partition,
    change_partition,
    remove_topic,
    clear_elr,
    set_config,
    set_quota,
    give_producer_ids,
    change_acl,
    change_password,
    change_token,
    set_feature,
    note_nothing,
)


def at_offset(offset: int) -> Provenance:
    return Provenance(offset, 1, 1000 + offset)  # pyright: ignore[reportArgumentType]


def course(seed: int, count: int) -> tuple[list[MetadataRecord], list[MetadataImage]]:
    """Records, and the image after each; the first says the metadata version."""
    source = random.Random(seed)
    written: list[MetadataRecord] = [records.FeatureLevelRecord("metadata.version", 30)]
    images = [after(MetadataImage(), written, 0)]
    while len(written) < count:
        at = len(written)
        record = source.choice(DRAWS)(source, images[-1], at)
        if record is not None:
            written.append(record)
            images.append(after(images[-1], [record], at))
    return written, images


def after(image: MetadataImage, some: list[MetadataRecord], last_offset: int) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in some:
        delta.replay(record)
    return delta.apply(at_offset(last_offset))
