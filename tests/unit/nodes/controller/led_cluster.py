"""Clusters for the tests of the controller: an image, and who asks the handlers and appends."""

import random
from collections.abc import Iterable
from typing import Any

import msgspec

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.controller.basis.leaderships import Leaderships
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.roles.handlers import HANDLERS
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.transactions import Provenance
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId, Offset
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.families import brokers
from tests.unit.nodes.controller.clusters import partition

CLUSTER_ID = "cluster-of-the-tests"
TOPIC_ID = "ab" * 16
SECOND = 1_000_000
SESSION = Microseconds(9 * SECOND)
FEATURES = {"metadata.version": 30, "transaction.version": 2}


def directory(broker_id: int, number: int = 0) -> str:
    return f"1{broker_id:015x}{number:016x}"


def incarnation(number: int) -> str:
    return f"2{number:031x}"


class Cluster:
    """A controller that leads: it appends what is decided, and commits it at once."""

    def __init__(self, *brokers: int, **settings: Any) -> None:
        """A leader, and these brokers, registered and unfenced."""
        self.settings = ControllerSettings(**settings)
        self.contacts = Contacts()
        self.leaderships = Leaderships()
        self.random = random.Random(0)
        self.image = MetadataImage()
        self.next_offset = 0
        self.now = 0
        #: Everything that was appended.
        self.log: list[MetadataRecord] = []
        self.append(records.FeatureLevelRecord(name, level) for name, level in FEATURES.items())
        self.start(*brokers)

    @property
    def view(self) -> View:
        return View(
            image=self.image,
            next_offset=Offset(self.next_offset),
            now=Microseconds(self.now),
            settings=self.settings,
            contacts=self.contacts,
            random=self.random,
            cluster_id=CLUSTER_ID,
            node_id=NodeId(1),
            leaderships=self.leaderships,
        )

    def append(self, some: Iterable[MetadataRecord]) -> None:
        """Records are appended as one batch."""
        delta = MetadataDelta(self.image)
        for record in some:
            delta.replay(record)
            self.log.append(record)
            self.next_offset += 1
        self.image = delta.apply(
            Provenance(self.next_offset - 1, 1, self.next_offset)  # pyright: ignore[reportArgumentType]
        )

    def decide(self, api_key: ApiKey, request: msgspec.Struct, version: int = 0) -> Decision:
        """A decision that nobody acts on."""
        return HANDLERS[api_key](self.view, request, version)

    def ask(self, api_key: ApiKey, request: msgspec.Struct, version: int = 0) -> Any:
        """The answer, once the records are appended."""
        decision = self.decide(api_key, request, version)
        self.append(decision.records)
        return decision.answer

    def act(self, decision: Decision | None) -> Decision:
        """Append what time decided."""
        assert decision is not None
        assert decision.answer is None
        self.append(decision.records)
        return decision

    # --- brokers ---

    def register(self, broker_id: int, life: int = 1, **fields: Any) -> Any:
        return self.ask(ApiKey.BROKER_REGISTRATION, registration(broker_id, life, **fields), 4)

    def beat(self, broker_id: int, **fields: Any) -> Any:
        """A broker's heartbeat; by default it has applied everything."""
        return self.ask(ApiKey.BROKER_HEARTBEAT, self.heartbeat(broker_id, **fields), 2)

    def heartbeat(self, broker_id: int, **fields: Any) -> brokers.BrokerHeartbeatRequest:
        whole: dict[str, Any] = {
            "broker_id": broker_id,
            "broker_epoch": self.epoch(broker_id),
            "current_metadata_offset": self.next_offset - 1,
            "want_fence": False,
            "want_shut_down": False,
        }
        return brokers.BrokerHeartbeatRequest(**(whole | fields))

    def epoch(self, broker_id: int) -> int:
        known = self.image.brokers.get(broker_id)
        return -1 if known is None else known.broker_epoch

    def start(self, *broker_ids: int) -> None:
        """Brokers that are registered and unfenced."""
        for broker_id in broker_ids:
            assert self.register(broker_id).error_code == 0
            assert not self.beat(broker_id).is_fenced

    # --- partitions ---

    def add_topic(self, *assignments: tuple[int, ...], name: str = "t", **fields: Any) -> None:
        """A topic; each partition is led by its first replica, and all are in sync."""
        topic_id = TOPIC_ID if name == "t" else f"3{len(self.image.topics.by_id):031x}"
        made: list[MetadataRecord] = [records.TopicRecord(name, topic_id)]
        for number, replicas in enumerate(assignments):
            whole: dict[str, Any] = {"directories": tuple(directory(each) for each in replicas)}
            made.append(partition(topic_id, number, replicas, **(whole | fields)))
        self.append(made)

    def partition(self, number: int = 0, topic_id: str = TOPIC_ID) -> PartitionState:
        state = self.image.topics.partition(topic_id, number)
        assert state is not None
        return state

    def change(self, number: int = 0, **fields: Any) -> None:
        self.append([changed(number, **fields)])

    def allow_unclean(self, name: str = "t") -> None:
        self.append([records.ConfigRecord(2, name, "unclean.leader.election.enable", "true")])


def changed(number: int = 0, **fields: Any) -> records.PartitionChangeRecord:
    """Return the change of a partition of topic t."""
    return records.PartitionChangeRecord(partition_id=number, topic_id=TOPIC_ID, **fields)


def registration(broker_id: int, life: int = 1, **fields: Any) -> brokers.BrokerRegistrationRequest:
    whole: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": incarnation(life),
        "listeners": (listener(),),
        "features": (feature("metadata.version", 7, 30), feature("transaction.version", 0, 2)),
        "rack": None,
        "log_dirs": (directory(broker_id),),
    }
    return brokers.BrokerRegistrationRequest(**(whole | fields))


def listener(**fields: Any) -> brokers.AdvertisedListener:
    whole: dict[str, Any] = {
        "name": "PLAINTEXT",
        "host": "127.0.0.1",
        "port": 9092,
        "security_protocol": 0,
    }
    return brokers.AdvertisedListener(**(whole | fields))


def feature(name: str, lowest: int, highest: int) -> brokers.SupportedFeature:
    return brokers.SupportedFeature(
        name=name, min_supported_version=lowest, max_supported_version=highest
    )
