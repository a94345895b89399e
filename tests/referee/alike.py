"""Allowed differences between answers and images of two equal clusters. Pure.

Declared, and nothing beside it is renamed:

- a cluster's id;
- a topic's id is told by its name and by how many of that name were before it;
- a broker's epoch by how many registrations the broker had before;
- blocks of producer ids by where the first of them began;
- a controller's incarnation, in which order it says its features, and which one is active;
- where replicas lie of topics whose replicas the controller chose, which it does by chance: how
  many there are must be equal;
- offsets, epochs and times of the log.

Orders: those of a request are kept. Kafka keeps some answers in hash maps, or shuffles them; these
are sorted (``_UNORDERED``).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata.image import MetadataImage, TopicImage
from splitbrain.nodes.wire.declared import NO_UUID
from tests.referee.known import CHOSEN_PREFIX

_TOPIC_ID: Final = "topic_id"
_BROKER_EPOCH: Final = "broker_epoch"
#: By a message's type, arrays whose order means nothing, the inner ones first: a real controller
#: has shuffled them or kept them in hash maps.
_UNORDERED: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "DeleteTopicsResponse": (("responses",),),
    "AlterConfigsResponse": (("responses",),),
    "IncrementalAlterConfigsResponse": (("responses",),),
    "CreatePartitionsResponse": (("results",),),
    "DescribeConfigsResponse": (("results", "configs"),),
    "ElectLeadersResponse": (
        ("replica_election_results", "partition_result"),
        ("replica_election_results",),
    ),
    "ListPartitionReassignmentsResponse": (("topics", "partitions"), ("topics",)),
}
#: Words of refusals.
_WORDS: Final = (
    # The active one of three controllers.
    (re.compile(r"^(The active controller appears to be node )[123]\.$"), r"\1N."),
    # Nor who it is that cannot do a level.
    (re.compile(r"(?<=Local controller )[123](?= (?:only supports|does not))"), "N"),
    # Each real controller tells its own configuration too; ours tells that of all brokers alone.
    (re.compile(r"(?<=^Unexpected broker id, expected )[123] or (?=empty string)"), ""),
)
_NO_NUMBER: Final = -1


class Alike:
    """The renaming of one cluster: it has to see every image, in order."""

    def __init__(self, cluster_id: str, image: MetadataImage) -> None:
        """``image``: where what is compared begins."""
        self._cluster_id = cluster_id
        self._topics: dict[str, str] = {NO_UUID: NO_UUID}
        self._lives: dict[str, int] = {}
        self._epochs: dict[tuple[int, int], str] = {}
        self._registrations: dict[int, int] = {}
        self._first_producer_id = image.next_producer_id or 0
        self.see(image)

    def see(self, image: MetadataImage) -> None:
        """Learn what is new."""
        for topic_id, topic in image.topics.by_id.items():
            if topic_id not in self._topics:
                life = self._lives[topic.name] = self._lives.get(topic.name, 0) + 1
                self._topics[topic_id] = f"{topic.name}#{life}"
        for broker_id, broker in image.brokers.items():
            key = broker_id, broker.broker_epoch
            if key not in self._epochs:
                life = self._registrations[broker_id] = self._registrations.get(broker_id, 0) + 1
                self._epochs[key] = f"epoch {life} of {broker_id}"

    def image(self, image: MetadataImage) -> dict[str, Any]:
        """The image as every such cluster has it; ``see`` it first."""
        topics = sorted(image.topics.by_id.values(), key=lambda topic: topic.name)
        producer_id = image.next_producer_id
        return {
            "features": dict(image.features),
            "brokers": {
                broker_id: {
                    **msgspec.structs.asdict(broker),
                    _BROKER_EPOCH: self._epochs[broker_id, broker.broker_epoch],
                }
                for broker_id, broker in sorted(image.brokers.items())
            },
            "controllers": {
                controller_id: msgspec.structs.replace(
                    controller,
                    incarnation_id=NO_UUID,
                    features=tuple(sorted(controller.features, key=lambda each: each.name)),
                )
                for controller_id, controller in sorted(image.controllers.items())
            },
            "topics": {self._topics[topic.topic_id]: _topic(topic) for topic in topics},
            "configs": {resource: dict(image.configs[resource]) for resource in image.configs},
            "quotas": dict(image.quotas),
            "producer ids": producer_id and producer_id - self._first_producer_id,
            "acls": dict(image.acls),
            "scram": dict(image.scram),
            "delegation tokens": dict(image.delegation_tokens),
        }

    def request(self, message: msgspec.Struct) -> dict[str, Any]:
        """A request as every such cluster is asked it."""
        fields: dict[str, Any] = msgspec.to_builtins(message)
        broker_id: int = fields.get("broker_id", _NO_NUMBER)
        return {"type": type(message).__name__, **self._renamed(fields, broker_id)}

    def answer(self, message: msgspec.Struct, active: int, asked_of: int) -> dict[str, Any]:
        """An answer as every such cluster gives it; ``see`` the image after it first.

        ``active``: the active controller; ``asked_of``: broker id in the request, -1 without one.
        """
        fields: dict[str, Any] = msgspec.to_builtins(message)
        name = type(message).__name__
        for path in _UNORDERED.get(name, ()):
            _sort(fields, path)
        if name == "BrokerRegistrationResponse" and fields[_BROKER_EPOCH] != _NO_NUMBER:
            fields[_BROKER_EPOCH] = self._epoch(asked_of, fields[_BROKER_EPOCH])
        if name == "AllocateProducerIdsResponse" and not fields["error_code"]:
            fields["producer_id_start"] -= self._first_producer_id
        if name == "DescribeClusterResponse" and fields["controller_id"] == active:
            fields["controller_id"] = "active"
        return {"type": name, **self._renamed(fields)}

    def _renamed(self, value: Any, broker_id: int = _NO_NUMBER) -> Any:
        """Topic ids and epochs, wherever they are; ``broker_id``: whose epoch it is."""
        if isinstance(value, dict):
            items: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
            whose = items.get("broker_id", broker_id)
            return {key: self._renamed_field(key, item, whose) for key, item in items.items()}
        if isinstance(value, list | tuple):
            several: Sequence[Any] = value  # pyright: ignore[reportUnknownVariableType]
            return [self._renamed(item, broker_id) for item in several]
        return value

    def _renamed_field(self, key: str, value: Any, broker_id: int) -> Any:
        if key == _TOPIC_ID:
            return self._topic_id(value)
        if key == _BROKER_EPOCH and isinstance(value, int):
            return self._epoch(broker_id, value)
        if key == "error_message" and isinstance(value, str):
            return self._words(value)
        if key == "cluster_id" and value == self._cluster_id:
            return "this cluster"
        if key == "current_metadata_offset":
            return "all" if value else value
        return self._renamed(value, broker_id)

    def _words(self, text: str) -> str:
        for pattern, instead in _WORDS:
            text = pattern.sub(instead, text)
        return text

    def _epoch(self, broker_id: int, epoch: int) -> Any:
        known = self._epochs.get((broker_id, epoch))
        if known is not None or epoch == _NO_NUMBER:
            return known or epoch
        return "nobody's epoch"

    def _topic_id(self, topic_id: str) -> str:
        # Of a topic that was only tried, or that the request made up.
        return self._topics.get(topic_id, "no topic's")


def _sort(fields: dict[str, Any], path: tuple[str, ...]) -> None:
    """Bring the items of one array into an order of their own."""
    field, *inner = path
    if inner:
        for item in fields[field]:
            _sort(item, tuple(inner))
    else:
        fields[field] = sorted(
            fields[field], key=lambda item: [str(value) for _, value in sorted(item.items())]
        )


def _topic(topic: TopicImage) -> Any:
    if topic.name.startswith(CHOSEN_PREFIX):
        return [
            (len(state.replicas), len(set(state.replicas)), state.leader_epoch)
            for state in topic.partitions
        ]
    return [msgspec.structs.asdict(state) for state in topic.partitions]
