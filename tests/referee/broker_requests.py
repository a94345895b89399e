"""Requests of brokers and controllers, right and wrong, by chance. Pure."""

from random import Random
from typing import Final

import msgspec

from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.metadata.partitions import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionState,
)
from splitbrain.nodes.metadata.records import RegisterBrokerRecord
from splitbrain.nodes.wire.calls import encode_call
from splitbrain.nodes.wire.controller_apis import CONTROLLER_FEATURES
from splitbrain.nodes.wire.families import brokers, cluster, controllers, partitions
from splitbrain.nodes.wire.principals import ANONYMOUS, encode_principal
from tests.referee.known import BROKER_IDS, NO_TOPIC_ID, NOBODY, Known, directory, incarnation

#: A controller that no process stands behind.
_CONTROLLER_ID: Final = 77
_DIRECTORIES: Final = 2
_RACKS: Final = (None, "r1", "r2")
_LISTENER: Final = brokers.AdvertisedListener(
    name="PLAINTEXT", host="127.0.0.1", port=9092, security_protocol=0
)
_SIZE_BYTES: Final = 4
_PRINCIPAL: Final = encode_principal(ANONYMOUS)
_FORWARDED: Final = encode_call(
    partitions.ListPartitionReassignmentsRequest(timeout_ms=1), 0, 7, "referee"
)[_SIZE_BYTES:]
_KEY_BYTES: Final = 2
_UNKNOWN_VERSION: Final = _FORWARDED[:_KEY_BYTES] + b"\x00\x63" + _FORWARDED[2 * _KEY_BYTES :]
#: Requests of brokers for themselves.
_NOT_FORWARDABLE: Final = encode_call(
    cluster.DescribeClusterRequest(include_cluster_authorized_operations=False), 0, 7, "referee"
)[_SIZE_BYTES:]
_FEATURES: Final = tuple(
    brokers.SupportedFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
    for name, (lowest, highest) in CONTROLLER_FEATURES.items()
    if name != "kraft.version"
)


def register(random: Random, known: Known) -> msgspec.Struct:
    """A broker that is not there, most often; another process of one that is; nonsense."""
    present = {broker.broker_id for broker in known.brokers}
    absent = [broker_id for broker_id in BROKER_IDS if broker_id not in present]
    # A broker on its way out does not come back as the same.
    others = [broker_id for broker_id in BROKER_IDS if not known.is_leaving(broker_id)]
    broker_id = random.choice(absent if absent and random.random() < 0.7 else others)
    return registration(broker_id, known.cluster_id, random)


def registration(
    broker_id: int, cluster_id: str, random: Random | None = None
) -> brokers.BrokerRegistrationRequest:
    """The broker as it should be; with a source of chance seldom otherwise.

    Never with a security protocol that there is not: at that a real controller fails and leads no
    more.
    """
    whole = brokers.BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation(broker_id, 1),
        listeners=(_LISTENER,),
        features=_FEATURES,
        rack=_RACKS[broker_id % len(_RACKS)],
        log_dirs=tuple(directory(broker_id, number) for number in range(_DIRECTORIES)),
    )
    if random is None:
        return whole
    replace = msgspec.structs.replace
    whole = replace(whole, incarnation_id=incarnation(broker_id, random.randint(1, 2)))
    if random.random() > 0.25:
        return whole
    odd_features = (
        _FEATURES[1:],
        tuple(each for each in _FEATURES if each.name != "metadata.version"),
        tuple(replace(each, max_supported_version=0) for each in _FEATURES),
        tuple(
            replace(each, max_supported_version=1) if each.name == "transaction.version" else each
            for each in _FEATURES
        ),
    )
    return random.choice(
        (
            replace(whole, cluster_id="another"),
            replace(whole, log_dirs=()),
            replace(whole, log_dirs=(LOST_DIRECTORY,)),
            replace(whole, log_dirs=whole.log_dirs + whole.log_dirs),
            replace(whole, log_dirs=(directory(BROKER_IDS[0], 0),)),
            replace(whole, log_dirs=whole.log_dirs[:1]),
            replace(whole, is_migrating_zk_broker=True),
            *(replace(whole, features=features) for features in odd_features),
            replace(whole, listeners=()),
            replace(whole, listeners=(_LISTENER, _LISTENER)),
            replace(whole, previous_broker_epoch=1),
        )
    )


def heartbeat(random: Random, known: Known) -> msgspec.Struct:
    """Most often of one that is well."""
    broker_id = _some_broker(random, known)
    chance = random.random()
    offline = ()
    # Of a broker whose state changes besides a real controller looks past that change.
    if random.random() < 0.05 and chance > 0.16 and broker_id in known.unfenced:
        offline = (directory(broker_id, random.randint(0, _DIRECTORIES)),)
    cordoned = None
    if random.random() < 0.06:
        cordoned = random.choice(((), (directory(broker_id, 0),)))
    return brokers.BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=_epoch(random, known, broker_id),
        current_metadata_offset=random.choice((known.last_offset,) * 5 + (0,)),
        want_fence=chance < 0.08,
        # A broker that has begun to go never wants to stay again: a real controller would take it
        # for one that new replicas may go to, and then refuse to have them led by it.
        want_shut_down=0.06 < chance < 0.16 or known.is_leaving(broker_id),
        offline_log_dirs=offline,
        cordoned_log_dirs=cordoned,
    )


def well(broker_id: int, known: Known) -> brokers.BrokerHeartbeatRequest:
    """A broker that wants to serve."""
    return brokers.BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=known.epoch(broker_id),
        current_metadata_offset=known.last_offset,
        want_fence=False,
        want_shut_down=False,
    )


def unregister(random: Random, known: Known) -> msgspec.Struct:
    """Forgets one, most often one that has gone; seldom one that is not there."""
    gone = [
        broker.broker_id
        for broker in known.brokers
        if broker.fenced and broker.in_controlled_shutdown
    ]
    is_first = random.random() < 0.8
    broker_id = random.choice(gone) if gone and is_first else _some_broker(random, known)
    return brokers.UnregisterBrokerRequest(broker_id=broker_id)


def allocate_producer_ids(random: Random, known: Known) -> msgspec.Struct:
    """A block."""
    broker_id = _some_broker(random, known)
    return brokers.AllocateProducerIdsRequest(
        broker_id=broker_id, broker_epoch=_epoch(random, known, broker_id)
    )


def alter_partition(random: Random, known: Known) -> msgspec.Struct:
    """A leader's proposal for one partition; seldom of one that does not lead."""
    topic = random.choice(known.topics) if known.topics else None
    if topic is None or random.random() < 0.03:
        broker_id = _some_broker(random, known)
        state = PartitionState((), (), (), (), (), -1, 0, 0, 0)
        proposal = _proposal(random, known, 0, state)
        topic_id = NO_TOPIC_ID
    else:
        number, state = _some_partition(random, topic)
        leads = state.leader != -1 and random.random() < 0.93
        broker_id = state.leader if leads else _some_broker(random, known)
        proposal = _proposal(random, known, number, state)
        topic_id = topic.topic_id
    return partitions.AlterPartitionRequest(
        broker_id=broker_id,
        broker_epoch=_epoch(random, known, broker_id),
        topics=()
        if random.random() < 0.02
        else (partitions.TopicToAlter(topic_id=topic_id, partitions=(proposal,)),),
    )


def _some_partition(random: Random, topic: TopicImage) -> tuple[int, PartitionState]:
    number = random.randrange(len(topic.partitions))
    state = topic.partitions[number]
    return (number + 50, state) if random.random() < 0.02 else (number, state)


def _proposal(
    random: Random, known: Known, number: int, state: PartitionState
) -> partitions.PartitionToAlter:
    others = [broker_id for broker_id in state.replicas if broker_id != state.leader]
    if random.random() < 0.7:
        unfenced = known.unfenced
        others = [broker_id for broker_id in others if broker_id in unfenced]
    isr = [state.leader, *random.sample(others, random.randint(0, len(others)))]
    if random.random() < 0.05:
        isr = random.choice(([*isr, NOBODY], [*isr, isr[0]], isr[1:], []))
    recovery = state.leader_recovery_state if random.random() < 0.3 else 0
    return partitions.PartitionToAlter(
        partition_index=number,
        leader_epoch=state.leader_epoch + random.choice((0,) * 18 + (-1, 1)),
        new_isr_with_epochs=tuple(
            partitions.InSyncBroker(
                broker_id=broker_id,
                broker_epoch=random.choice((known.epoch(broker_id),) * 8 + (-1, 1)),
            )
            for broker_id in isr
        ),
        leader_recovery_state=random.choice((recovery,) * 15 + (1,)),
        partition_epoch=state.partition_epoch + random.choice((0,) * 18 + (-1, 1)),
    )


def alter_partition_without_epochs(random: Random, known: Known) -> msgspec.Struct:
    """As versions ask that know no epochs of brokers."""
    request = alter_partition(random, known)
    assert isinstance(request, partitions.AlterPartitionRequest)
    return msgspec.structs.replace(
        request,
        topics=tuple(
            msgspec.structs.replace(
                topic,
                partitions=tuple(
                    msgspec.structs.replace(
                        proposal,
                        new_isr=tuple(each.broker_id for each in proposal.new_isr_with_epochs),
                        new_isr_with_epochs=(),
                    )
                    for proposal in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def assign_replicas(random: Random, known: Known) -> msgspec.Struct:
    """Some replicas lie in a directory."""
    broker_id = _some_broker(random, known)
    # Never in one that the broker has not: what comes of that a real controller decides by what
    # was before, ours by what is then.
    where = directory(broker_id, random.randrange(_DIRECTORIES))
    broker = known.image.brokers.get(broker_id)
    if broker is not None and where not in broker.log_dirs:
        where = UNASSIGNED_DIRECTORY
    wanted = random.sample(known.topics, min(len(known.topics), random.randint(1, 2)))
    asked = [
        brokers.TopicToAssign(
            topic_id=NO_TOPIC_ID if random.random() < 0.05 else topic.topic_id,
            partitions=tuple(
                brokers.PartitionNumber(partition_index=number)
                for number, state in enumerate(topic.partitions)
                if broker_id in state.replicas or random.random() < 0.1
            )
            + ((brokers.PartitionNumber(partition_index=70),) if random.random() < 0.05 else ()),
        )
        for topic in wanted
    ]
    return brokers.AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=_epoch(random, known, broker_id),
        directories=(brokers.DirectoryToAssign(id=where, topics=tuple(asked)),),
    )


def update_features(random: Random, known: Known) -> msgspec.Struct:
    """Levels that are, that could be, that cannot."""
    names = [
        random.choice((*CONTROLLER_FEATURES, "no.such.feature")),
        *random.sample(sorted(known.image.features), random.choice((0, 0, 0, 1))),
    ]
    return controllers.UpdateFeaturesRequest(
        # Of several wrong ones a real controller names any.
        feature_updates=(
            _update(random, known, names[0]),
            *(
                controllers.FeatureToUpdate(
                    feature=name, max_version_level=known.image.features.get(name, 0)
                )
                for name in names[1:]
                # On its level others depend.
                if names[0] != "metadata.version"
            ),
        ),
        validate_only=random.random() < 0.2,
    )


def _update(random: Random, known: Known, name: str) -> controllers.FeatureToUpdate:
    current = known.image.features.get(name, 0)
    # Ours runs without eligible leader replicas and with static voters alone, as is declared.
    highest = 2 if name not in ("eligible.leader.replicas.version", "kraft.version") else 0
    level = random.choice((current, current - 1, 0, random.randint(0, highest)))
    return controllers.FeatureToUpdate(
        feature=name, max_version_level=level, upgrade_type=random.choice((1, 1, 2, 3, 4))
    )


def describe_cluster(random: Random, known: Known) -> msgspec.Struct:
    """The controllers; seldom what a controller does not tell."""
    del known
    return cluster.DescribeClusterRequest(
        include_cluster_authorized_operations=random.random() < 0.5,
        endpoint_type=random.choice((2, 2, 2, 1, 3)),
        include_fenced_brokers=random.random() < 0.1,
    )


def register_controller(random: Random, known: Known) -> msgspec.Struct:
    """A controller beside the quorum."""
    del known
    return controller_registration(random.choice(("one", "two")))


def controller_registration(host: str) -> controllers.ControllerRegistrationRequest:
    """Of a controller that no process stands behind."""
    return controllers.ControllerRegistrationRequest(
        controller_id=_CONTROLLER_ID,
        incarnation_id=incarnation(_CONTROLLER_ID, 1),
        zk_migration_ready=False,
        listeners=(msgspec.structs.replace(_LISTENER, name="CONTROLLER", host=host),),
        features=tuple(
            brokers.SupportedFeature(
                name=name, min_supported_version=lowest, max_supported_version=highest
            )
            for name, (lowest, highest) in CONTROLLER_FEATURES.items()
        ),
    )


def malformed_envelope(random: Random, known: Known) -> msgspec.Struct:
    """An envelope whose principal, address or content nobody can read."""
    del known
    principal, address, content = random.choice(
        (
            (b"\x00\x07x", bytes(4), _FORWARDED),
            (b"", bytes(4), _FORWARDED),
            (_PRINCIPAL, bytes(3), _FORWARDED),
            (_PRINCIPAL, bytes(4), _NOT_FORWARDABLE),
            (_PRINCIPAL, bytes(4), _UNKNOWN_VERSION),
        )
    )
    return controllers.EnvelopeRequest(
        request_data=content, request_principal=principal, client_host_address=address
    )


def _some_broker(random: Random, known: Known) -> int:
    present: list[RegisterBrokerRecord] = list(known.brokers)
    if not present or random.random() < 0.05:
        return random.choice((*BROKER_IDS, NOBODY))
    return random.choice(present).broker_id


def _epoch(random: Random, known: Known, broker_id: int) -> int:
    return known.epoch(broker_id) + random.choice((0,) * 19 + (-1,))
