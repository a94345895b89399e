"""Two quorums of three that only the stream moves: nothing happens by itself."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import msgspec

from splitbrain.contracts.system import PEER_PORT
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.controller_apis import PINNED_LEVELS
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.families import brokers, configs, controllers, topics
from tests.referee.admin_streams import Side, codes
from tests.referee.broker_requests import controller_registration, registration, well
from tests.referee.cluster import Cluster
from tests.referee.controllers import COUNT, KafkaControllers, OwnControllers
from tests.referee.known import BROKER_IDS
from tests.referee.wire_client import Connection, DeposedError, Follower

_HOUR_MS: Final = "3600000"
_NEVER: Final = {
    "broker.session.timeout.ms": _HOUR_MS,
    "metadata.max.idle.interval.ms": "0",
    # A machine that has much to do deposes nobody.
    "controller.quorum.fetch.timeout.ms": "60000",
}
KAFKA: Final = KafkaControllers(
    settings={
        **_NEVER,
        "auto.leader.rebalance.enable": "false",
        "unclean.leader.election.interval.ms": _HOUR_MS,
    }
)
OWN: Final = OwnControllers(settings={**_NEVER, "leader.imbalance.check.interval.seconds": "0"})
_TIMEOUT_MS: Final = 60_000
_UNSAFE_DOWNGRADE: Final = 3
_UPGRADE: Final = 1
_ACTIVE_BROKERS: Final = 4

#: Node id to host and port, as this machine reaches it.
Addresses = Mapping[int, tuple[str, int]]


@contextmanager
def connected(cluster_id: str, addresses: Addresses) -> Generator[Side | None]:
    """The cluster under a stream; None while no controller is active or not all are registered."""
    with ExitStack() as stack:
        found: dict[bool, tuple[int, Connection]] = {}
        epoch = None
        for node_id, (host, port) in addresses.items():
            connection = stack.enter_context(Connection(host, port))
            described = connection.describe_quorum()
            is_active = described.error is ErrorCode.NONE and described.leader_id == node_id
            if is_active:
                epoch = described.epoch
            found[is_active] = node_id, connection
        if epoch is None:
            yield None
            return
        active_id, active = found[True]
        follower = Follower(active, cluster_id, epoch)
        side = Side(cluster_id, active_id, active, found[False][1], follower)
        yield side if len(side.image.controllers) >= COUNT else None


def is_whole(cluster: Cluster) -> bool:
    """Whether one of its controllers is active and all are registered."""
    try:
        with connected(cluster.cluster_id, addresses(cluster)) as side:
            return side is not None
    except (OSError, DeposedError):
        return False


def addresses(cluster: Cluster) -> Addresses:
    found = {node_id: cluster.address(node_id, PEER_PORT) for node_id in range(1, COUNT + 1)}
    return {node_id: (address.host, address.port) for node_id, address in found.items()}


def tidy(side: Side) -> None:
    """As at the beginning: some brokers that serve, no topics, no configs."""
    # Only of a broker that is registered can configs be removed.
    for broker_id in BROKER_IDS:
        if broker_id not in side.image.brokers:
            _expect(side, registration(broker_id, side.cluster_id), 4)
    side.image = side.follower.image()
    for request, version in _removals(side.image):
        _expect(side, request, version)
    for broker_id in BROKER_IDS[:_ACTIVE_BROKERS]:
        _expect(side, registration(broker_id, side.cluster_id), 4)
        side.image = side.follower.image()
        _expect(side, well(broker_id, side.known), 2)
    # Nothing takes back that a controller was registered and that producer ids were given.
    _expect(side, controller_registration("one"), 0)
    side.image = side.follower.image()
    first = BROKER_IDS[0]
    epoch = side.known.epoch(first)
    _expect(side, brokers.AllocateProducerIdsRequest(broker_id=first, broker_epoch=epoch), 0)


def _removals(image: MetadataImage) -> Sequence[tuple[msgspec.Struct, int]]:
    return [
        (
            topics.DeleteTopicsRequest(
                topics=tuple(
                    topics.TopicToDelete(name=name, topic_id=NO_UUID)
                    for name in sorted(image.topics.ids_by_name)
                ),
                timeout_ms=_TIMEOUT_MS,
            ),
            6,
        ),
        (
            configs.AlterConfigsRequest(
                resources=tuple(
                    configs.ResourceToSet(resource_type=kind, resource_name=name, configs=())
                    for kind, name in sorted(image.configs)
                    if (kind, name) != (2, name)
                ),
                validate_only=False,
            ),
            2,
        ),
        *(
            (brokers.UnregisterBrokerRequest(broker_id=broker_id), 0)
            for broker_id in sorted(image.brokers)
        ),
        *(
            (
                controllers.UpdateFeaturesRequest(
                    feature_updates=(
                        controllers.FeatureToUpdate(
                            feature=name,
                            max_version_level=level,
                            upgrade_type=_UPGRADE
                            if level > image.features.get(name, 0)
                            else _UNSAFE_DOWNGRADE,
                        ),
                    )
                ),
                1,
            )
            for name, level in PINNED_LEVELS.items()
            if name != "kraft.version" and image.features.get(name, 0) != level
        ),
    ]


def _expect(side: Side, request: msgspec.Struct, version: int) -> None:
    answer = side.active.ask(request, version)
    assert set(codes(msgspec.to_builtins(answer))) <= {0}, (request, answer)
