"""Asks two clusters the same, request by request, and compares answers and images.

Every request is drawn from the seed and its number and built for each cluster from what is
committed there (``known``), so that both are asked the same up to the declared renaming
(``alike``). Images are compared after every request, so that a difference names who made it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any, Final

import msgspec

from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.wire.apis import METADATA_TOPIC, ApiKey
from splitbrain.nodes.wire.calls import TABLES, api_key_of_call, encode_call
from splitbrain.nodes.wire.envelopes import FORWARDABLE
from splitbrain.nodes.wire.families import configs, partitions, topics
from tests.referee import broker_requests, config_requests, topic_requests
from tests.referee.alike import Alike
from tests.referee.known import Known
from tests.referee.wire_client import Connection, DeposedError, Follower

Build = Callable[[Random, Known], msgspec.Struct]


class Way(Enum):
    """How a request reaches a controller."""

    #: The active one.
    DIRECT = "asked"
    #: The active one, in an envelope.
    FORWARDED = "asked in an envelope"
    #: Another one.
    STANDBY = "asked of a standby"


@dataclass(frozen=True)
class Question:
    """One request, for one cluster."""

    request: msgspec.Struct
    version: int
    way: Way

    @property
    def api_key(self) -> ApiKey:
        return api_key_of_call(self.request)


#: Builders of requests, and how often each is drawn.
_BUILDERS: Final[tuple[tuple[Build, int], ...]] = (
    (topic_requests.create_topics, 12),
    (topic_requests.create_chosen_topic, 2),
    (topic_requests.enlarge_chosen_topic, 2),
    (topic_requests.delete_topics, 4),
    (topic_requests.delete_topics_by_name, 1),
    (topic_requests.create_partitions, 6),
    (topic_requests.elect_leaders, 5),
    (topic_requests.alter_reassignments, 8),
    (topic_requests.list_reassignments, 4),
    (config_requests.alter_incrementally, 12),
    (config_requests.alter, 5),
    (config_requests.describe, 5),
    (broker_requests.register, 12),
    (broker_requests.heartbeat, 22),
    (broker_requests.unregister, 4),
    (broker_requests.allocate_producer_ids, 3),
    (broker_requests.alter_partition, 20),
    (broker_requests.alter_partition_without_epochs, 3),
    (broker_requests.assign_replicas, 6),
    (broker_requests.update_features, 5),
    (broker_requests.describe_cluster, 2),
    (broker_requests.register_controller, 4),
    (broker_requests.malformed_envelope, 4),
)
#: Of these nothing depends on which replicas a controller chose.
_WHILE_CHOSEN: Final[tuple[tuple[Build, int], ...]] = (
    (topic_requests.delete_chosen_topics, 6),
    (topic_requests.create_chosen_topic, 1),
    (topic_requests.enlarge_chosen_topic, 3),
    (topic_requests.create_topics, 2),
    (config_requests.alter_incrementally, 2),
    (config_requests.describe, 1),
)
#: Of resources whose configs controllers hold.
_KINDS: Final = frozenset(ResourceType) - {ResourceType.BROKER_LOGGER}
_FORWARDED_SHARE: Final = 0.2
_STANDBY_SHARE: Final = 0.05


def question(random: Random, known: Known) -> Question:
    """The next request for one cluster: of two that are alike, the same draws give the same."""
    builders, weights = zip(*(_WHILE_CHOSEN if known.chosen_topics else _BUILDERS), strict=True)
    build = random.choices(builders, weights)[0]
    request = build(random, known)
    chance = random.random()
    way = Way.DIRECT
    if chance < _STANDBY_SHARE and _is_for_active(request):
        way = Way.STANDBY
    elif chance < _STANDBY_SHARE + _FORWARDED_SHARE and api_key_of_call(request) in FORWARDABLE:
        way = Way.FORWARDED
    return Question(request, random.choice(versions_for(request)), way)


def _is_for_active(request: msgspec.Struct) -> bool:
    """Whether a real standby passes the whole request on to its controller, which is not active.

    It refuses some items itself before: topics that are not there, what is asked twice, or of a
    kind that there is not; and it grants what asks for nothing. Ours refuses the whole request at
    once.
    """
    match request:
        case topics.DeleteTopicsRequest():
            return False
        case partitions.AlterPartitionRequest():
            return bool(request.topics)
        case topics.CreateTopicsRequest() | topics.CreatePartitionsRequest():
            names = [topic.name for topic in request.topics]
            return len(set(names)) == len(names) and METADATA_TOPIC not in names
        case configs.AlterConfigsRequest() | configs.IncrementalAlterConfigsRequest():
            asked = [(each.resource_type, each.resource_name) for each in request.resources]
            kinds = {kind for kind, _ in asked}
            return len(set(asked)) == len(asked) > 0 and kinds <= _KINDS
        case _:
            return True


def versions_for(request: msgspec.Struct) -> Sequence[int]:
    """Versions that can say what the request says."""
    lowest, highest = TABLES[api_key_of_call(request)].versions
    found: list[int] = []
    for version in range(lowest, highest + 1):
        try:
            encode_call(request, version, 0, None)
        except ValueError:
            continue
        found.append(version)
    return found


@dataclass
class Side:
    """One cluster under the stream."""

    cluster_id: str
    active_id: int
    active: Connection
    standby: Connection
    follower: Follower

    def __post_init__(self) -> None:
        self.image: MetadataImage = self.follower.image()
        self._alike = Alike(self.cluster_id, self.image)

    @property
    def known(self) -> Known:
        return Known(self.cluster_id, self.image)

    def begin(self) -> None:
        """Begin the comparison here: nothing before is renamed."""
        self.image = self.follower.image()
        self._alike = Alike(self.cluster_id, self.image)

    def ask(self, asked: Question) -> msgspec.Struct:
        """The answer; the image is what is committed then."""
        if asked.way is Way.FORWARDED:
            answer = self.active.ask_forwarded(asked.request, asked.version)
        else:
            connection = self.standby if asked.way is Way.STANDBY else self.active
            answer = connection.ask(asked.request, asked.version)
        try:
            self.image = self.follower.image()
        except DeposedError as error:
            raise AssertionError(f"{asked} of {self.cluster_id}: {answer}: {error}") from error
        self._alike.see(self.image)
        return answer

    def renamed_request(self, request: msgspec.Struct) -> dict[str, Any]:
        """The request as every cluster is asked it; before it is asked."""
        return self._alike.request(request)

    def renamed_answer(self, asked: Question, answer: msgspec.Struct) -> dict[str, Any]:
        """The answer as every cluster gives it; after it was given."""
        broker_id: int = getattr(asked.request, "broker_id", -1)
        return self._alike.answer(answer, self.active_id, broker_id)

    def renamed_image(self) -> dict[str, Any]:
        """The image as every cluster has it."""
        return self._alike.image(self.image)


@dataclass(frozen=True)
class Difference:
    """Where two clusters are not the same after one request."""

    number: int
    way: Way
    version: int
    request: dict[str, Any]
    #: Paths, each with what is there of the one and of the other.
    places: tuple[str, ...]
    #: Whether their metadata differ: all that follows is of two different clusters.
    is_lasting: bool

    def __str__(self) -> str:
        what = f"request {self.number}, {self.way.value}, version {self.version}: {self.request}"
        return "\n  ".join((what, *self.places))


@dataclass
class Comparison:
    """Result of one stream."""

    asked: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])
    #: Every API with every error code that both answered.
    met: Counter[tuple[ApiKey, int]] = field(default_factory=Counter[tuple[ApiKey, int]])


def compare(one: Side, other: Side, seed: int, count: int) -> Comparison:
    """Ask both ``count`` requests of this seed; ends at a difference that lasts."""
    comparison = Comparison()
    for side in (one, other):
        side.begin()
    for number in range(count):
        asked = [question(Random(f"{seed}/{number}"), side.known) for side in (one, other)]
        first, second = asked
        requests = [
            side.renamed_request(each.request)
            for side, each in zip((one, other), asked, strict=True)
        ]
        unlike = list(differing("request", *requests))
        assert not unlike, f"request {number}: the generator asks the two differently: {unlike}"
        answers = [
            side.renamed_answer(each, side.ask(each))
            for side, each in zip((one, other), asked, strict=True)
        ]
        comparison.asked += 1
        said = tuple(differing("answer", *answers))
        held = tuple(differing("image", one.renamed_image(), other.renamed_image()))
        if said or held:
            comparison.differences.append(
                Difference(number, first.way, second.version, requests[0], said + held, bool(held))
            )
        else:
            for code in codes(answers[0]):
                comparison.met[first.api_key, code] += 1
            if first.way is Way.FORWARDED:
                comparison.met[ApiKey.ENVELOPE, 0] += 1
        if held:
            break
    return comparison


def differing(path: str, one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            nothing = "nothing"
            yield from differing(f"{path}.{key}", one.get(key, nothing), other.get(key, nothing))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differing(f"{path}[{index}]", left, right)
    elif one != other:
        yield f"{path}: {one!r} | {other!r}"


def codes(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "error_code":
                yield item
            yield from codes(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from codes(item)
