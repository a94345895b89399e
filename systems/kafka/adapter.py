"""Apache Kafka as a system under test: brokers, and whoever decides about their metadata.

Must never start or stop a node: the runtime does.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from splitbrain.contracts.committed import ReplicaLog
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.groups import GROUPS
from splitbrain.contracts.log import LOG
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import ImageSource, NodeSpec
from splitbrain.contracts.share_groups import SHARE_GROUPS
from splitbrain.contracts.state_event import Resigning, StateEvent
from splitbrain.contracts.system import (
    CLIENT_PORT,
    ONLY_IMAGES,
    PEER_PORT,
    AllowedAnomaly,
    Canary,
    LeaderView,
    Tempo,
)
from splitbrain.contracts.transforms import TRANSFORM
from splitbrain.systems.kafka import printed_events, properties
from splitbrain.systems.kafka.cluster import OF_CLIENTS, USUAL_TOPIC, KafkaCluster
from splitbrain.systems.kafka.group_settings import (
    CLASSIC,
    GROUP_PROTOCOL,
    OF_TRANSFORMS,
)
from splitbrain.systems.kafka.properties import (
    BOUNDS,
    CLIENT_RACK,
    NUMBERS,
    OWN_RACK,
    QUORUM,
    RACKS,
)
from splitbrain.systems.kafka.releases import ELIGIBLE, RELEASES, SHARES, TRANSACTIONS, Release
from splitbrain.systems.kafka.segments import replica_logs
from splitbrain.systems.questions import Endpoints, not_yet
from splitbrain.systems.servers import Server, ServerSystem

if TYPE_CHECKING:
    from splitbrain.systems.kafka.beside import Beside

#: Any base64 UUID; the nodes of one cluster have the same.
_CLUSTER: Final = "q1Sh-9_ISia_zwGINzRvyQ"
_HEAP_MIB: Final = 160
_MIN_IN_SYNC: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"
#: How many nodes decide about metadata and are no brokers.
_CONTROLLERS: Final = "controllers"
#: Kind of these nodes.
_METADATA: Final = "metadata"
_KRAFT: Final = "kraft"
_OWN: Final = "splitbrain"
_ZOOKEEPER: Final = "zookeeper"
#: Our controllers are those of one release, with its features as they pin them; who may lead a
#: topic that nobody in sync leads is decided topic by topic.
_OWN_RELEASE: Final = "4.3.1"
#: Setting, and the promise that it makes: controllers that a majority has left resign, or may stay.
_DEPOSED: Final = "deposed.controllers"
_RESIGN, _STAY = "resign", "stay"
#: Of ``controller.quorum.fetch.timeout.ms``: a leader resigns after one and a half without a fetch
#: of a majority, and nobody else leads before one is over.
_TIMEOUTS_TO_RESIGN: Final = 5
_OF_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    ELIGIBLE: ("0",),
    SHARES: ("0",),
    TRANSACTIONS: ("2",),
    GROUP_PROTOCOL: (CLASSIC,),
    _UNCLEAN: ("false",),
}
#: How long a broker may take to name the controller.
_LOOK_S: Final = 5.0
#: Start of the names of nodes that are no brokers.
_BESIDE: Final = "c"


def image_of(version: str) -> ImageSource:
    """Recipe of a release's image."""
    return ImageSource(f"splitbrain-kafka-{version}", "kafka", has_wheels=True, jars=version)


IMAGE: Final = image_of(next(iter(RELEASES)))


class KafkaSystem(KafkaCluster, ServerSystem):
    """Adapter of one run."""

    name = "kafka"
    runtimes = ONLY_IMAGES
    offered_versions = tuple(RELEASES)
    ports: Mapping[str, int] = {CLIENT_PORT: 9092, PEER_PORT: 9093}
    #: A leader that alone is in sync acknowledges what is gone once another leads.
    canary = Canary(nemesis="partition:leader", workload=LOG, settings={"acks": "1"})
    node_counts = range(1, 6)
    observers_serve = False
    names_controllers = True
    declares_replica_logs = True
    declares_state_events = True
    bounds = BOUNDS
    log_patterns = (
        LogPattern(r"\bFATAL\b", "The node gave up."),
        LogPattern("java.lang.OutOfMemoryError", "The node's heap is too small."),
        LogPattern("Found a corrupted index file", "An index was rebuilt.", harmless=True),
    )

    @property
    def settings(self) -> Mapping[str, str | tuple[str, ...]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those that the chosen release has."""
        release = self._release
        kinds = {
            _KRAFT: True,
            _ZOOKEEPER: release.has_zookeeper,
            _OWN: self.version == _OWN_RELEASE,
        }
        given = {} if self.experiment is None else self.experiment.settings
        is_own = given.get(_METADATA) == _OWN
        numbers = {name: text for name, text in NUMBERS.items() if not (is_own and name in QUORUM)}
        return {
            **OF_CLIENTS,
            _MIN_IN_SYNC: ("2", "1", "3"),
            _UNCLEAN: ("false", "true"),
            TRANSACTIONS: ("1",),
            GROUP_PROTOCOL: release.group_protocols,
            **OF_TRANSFORMS,
            CLIENT_RACK: RACKS,
            **numbers,
            **release.settings,
            **release.features,
            _DEPOSED: (_RESIGN, _STAY) if release.resigns else (_STAY, _RESIGN),
            _CONTROLLERS: ("0", "1", "3"),
            _METADATA: tuple(kind for kind, is_there in kinds.items() if is_there),
            **(_OF_OWN if is_own else {}),
        }

    @property
    def resigning(self) -> Resigning | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Promise of the controllers; those of the broker's program alone print who leads."""
        if self._beside or self.setting(_DEPOSED) == _STAY:
            return None
        timeout_ms = int(self.setting("controller.quorum.fetch.timeout.ms"))
        return Resigning(_TIMEOUTS_TO_RESIGN * timeout_ms, printed_events.METADATA)

    @property
    def image(self) -> ImageSource:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Recipe of the image of brokers."""
        return image_of(str(self.version))

    @property
    def _release(self) -> Release:
        return RELEASES[str(self.version)]

    @cached_property
    def _beside(self) -> "Beside | None":
        """Whoever decides about metadata and is no program of Kafka's."""
        kind = self.setting(_METADATA)
        if kind == _KRAFT:
            return None
        from splitbrain.systems.kafka import beside

        if kind == _ZOOKEEPER:
            return beside.ZooKeepers()
        return beside.OwnControllers(_CLUSTER, self.setting(_MIN_IN_SYNC))

    def observers(self, options: Experiment) -> Sequence[NodeName]:
        """Return the nodes that are no brokers."""
        count = int(options.settings.get(_CONTROLLERS, "0"))
        return tuple(NodeName(f"{_BESIDE}{number}") for number in range(1, count + 1))

    def images(self) -> Sequence[ImageSource]:
        """That of brokers, and of what lives beside them."""
        return (self.image, *((self._beside.image,) if self._beside else ()))

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)
        if self.setting(_METADATA) != _KRAFT and not self.observers(options):
            raise UsageError(
                f"{_METADATA}={self.setting(_METADATA)} is kept by nodes that are no brokers",
                f"Add --setting {_CONTROLLERS}=1 or 3",
            )
        assert self._driver, "it says which package is missing"

    def tempo(self) -> Tempo:
        """Brokers are fenced after three seconds; a JVM takes some more to start."""
        return Tempo(
            ready_s=180,
            converged_s=90,
            started_s=45,
            resumed_s=45,
            notices_s=properties.SESSION_S,
            failover_s=2 * properties.SESSION_S,
        )

    def environment(self, server: Server) -> dict[str, str]:
        """Return the size of a node's heap."""
        return {"KAFKA_HEAP": str(_HEAP_MIB)}

    def ports_of(self, node: NodeName) -> Mapping[str, int]:
        """Those of Kafka, or of what decides about its metadata."""
        return self._beside.ports if self._beside and _is_beside(node) else self.ports

    def node_spec(self, server: Server, others: Sequence[Server]) -> NodeSpec:
        """Describe a broker, or a node beside them."""
        if self._beside and _is_beside(server.name):
            return self._beside.node(server, [each for each in others if _is_beside(each.name)])
        return super().node_spec(server, others)

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the start of a node, whose folder is formatted in its first life, by KRaft."""
        members = sorted((server, *others), key=lambda each: each.number)
        lines = self._configuration(server, members)
        path = server.file("server.properties", properties.text_of(lines))
        if self.setting(_METADATA) == _ZOOKEEPER:
            return ("kafka-node", path)
        features = [
            ("--feature", f"{name}={self.setting(name)}") for name in self._release.features
        ]
        return ("kafka-node", path, _CLUSTER, *(word for pair in features for word in pair))

    def _configuration(self, server: Server, members: Sequence[Server]) -> dict[str, str]:
        beside = [each for each in members if _is_beside(each.name)]
        brokers = [each for each in members if each not in beside]
        advertises = self._release.advertises_controllers
        if server in beside:
            role = properties.controller(server, advertises_controllers=advertises)
        elif beside:
            has_zookeeper = self.setting(_METADATA) == _ZOOKEEPER
            role = properties.broker(server, has_zookeeper=has_zookeeper)
        else:
            role = properties.combined(server, advertises_controllers=advertises)
        has_racks = self.setting(CLIENT_RACK) == OWN_RACK
        known_as = self._beside.known_as if self._beside else properties.voters_of
        chosen = {
            name: self.setting(name)
            for name in (_UNCLEAN, *NUMBERS, *self._release.settings)
            if name in self.settings
        }
        return {
            **known_as(beside or brokers),
            **role,
            **properties.storing(server),
            **properties.replicating(len(brokers), self.setting(_MIN_IN_SYNC)),
            **(properties.in_own_rack(server) if server in brokers and has_racks else {}),
            **(properties.sharing(len(brokers)) if SHARES in self._release.features else {}),
            **chosen,
        }

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Return who leads the first log, or the group; and who decides about metadata."""
        driver, has_zookeeper = self._driver_at(runtime), self.setting(_METADATA) == _ZOOKEEPER

        async def look() -> tuple[LeaderView, dict[NodeName, tuple[int, int]]]:
            return await asyncio.gather(
                driver.leader_of_first(timeout_s),
                driver.controllers(timeout_s, has_zookeeper=has_zookeeper),
            )

        view, told = asyncio.run(look())
        # A node's number is its place among all of them; of several controllers the newest is it.
        named = dict(enumerate(runtime.nodes(), 1))
        _, number = max(told.values(), default=(0, 0))
        return msgspec.structs.replace(view, controller=named.get(number))

    def events_printed(
        self, node: NodeName, lines: Iterable[tuple[int | None, str]]
    ) -> Iterable[StateEvent]:
        """Return who leads what, as brokers and controllers print it.

        Of programs that are none of Kafka's only that they printed something.
        """
        if self._beside and _is_beside(node):
            return [StateEvent(node, 0, 0, "started", 0, time=time) for time, _ in islice(lines, 1)]
        topic, number = self._driver.first
        return printed_events.state_events(node, lines, f"{topic}-{number}")

    def recovered(self, runtime: Endpoints) -> None:
        """Return when all brokers name the same controller, too."""
        super().recovered(runtime)
        self._require_one_controller(runtime)

    def converged(self, runtime: Endpoints) -> None:
        """Return when all brokers name the same controller, too."""
        super().converged(runtime)
        self._require_one_controller(runtime)

    def _require_one_controller(self, runtime: Endpoints) -> None:
        driver, has_zookeeper = self._driver_at(runtime), self.setting(_METADATA) == _ZOOKEEPER
        told = asyncio.run(driver.controllers(_LOOK_S, has_zookeeper=has_zookeeper))
        missing = [node for node in driver.targets if told.get(node, (0, -1))[1] < 0]
        problem = f"{missing[0]} knows no controller" if missing else "brokers name several"
        if missing or len(set(told.values())) > 1:
            raise not_yet(self.name, "find the one controller", problem)

    def replica_logs(self, node: NodeName, data_folder: Path) -> Sequence[ReplicaLog]:
        """Read a broker's segments of the topic that clients use."""
        return () if _is_beside(node) else replica_logs(node, data_folder / "log", USUAL_TOPIC)

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Logs, sets whose elements are records, groups of consumers, and transforms."""
        shares = SHARES in self.settings and self.setting(SHARES) == "1"
        of_shares = (SHARE_GROUPS,) if shares else ()
        return (*super().workloads(state_machine), GROUPS, TRANSFORM, *of_shares)

    def allowed(self) -> Sequence[AllowedAnomaly]:
        """Return what a coordinator answers that was replaced and does not know it, too."""
        why = "a coordinator that was replaced and does not know it answers, too"
        why_too = "a leader that was replaced and does not know it delivers, too"
        return (
            *super().allowed(),
            AllowedAnomaly(GROUPS, "stale-offset", why),
            AllowedAnomaly(SHARE_GROUPS, "stale-delivery", why_too),
        )

    def driver_options(self) -> dict[str, str]:
        """Return what groups and transforms are told, too."""
        mine = {name: self.setting(name) for name in (GROUP_PROTOCOL, *OF_TRANSFORMS, CLIENT_RACK)}
        return {**super().driver_options(), **mine}

    def versions(self) -> dict[str, str]:
        """Return the release; ``plan.json`` has the digests of images."""
        return {"kafka": str(self.version)}


def _is_beside(node: NodeName) -> bool:
    return node.startswith(_BESIDE)
