"""Topics for clients of ours at the active controller: created, deleted, described; linearizable.

Creations and deletions go through the controller's queue as requests of Kafka's do, and are
answered once their records are committed. An answer that nothing was changed (there is such a topic
already, there is none) is a read: what it saw has to be committed, and the quorum has to confirm
that this node led when it looked. So it is where a creation or a deletion comes in Kafka's
protocol; a real controller does not ask for that confirmation.

Must never call definite what may be in the log, nor answer from an image that is not committed.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds
from splitbrain.nodes.server.controller.leading import Fate, Leading
from splitbrain.nodes.server.host.layer import ServiceNeeds
from splitbrain.nodes.server.host.surroundings import TimerHandle
from splitbrain.nodes.server.registers.client_service import EXPIRY_INTERVAL_US, TIMEOUT_MS_MAX
from splitbrain.nodes.server.registers.reads import Reads, Seen
from splitbrain.nodes.transport.client_protocol import (
    AnswerOutcome,
    ClientAnswer,
    ClientRequest,
    Reply,
)
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_CREATE_VERSION: Final = 7
#: The last one that has topics by name alone.
_DELETE_VERSION: Final = 5
#: Stands for the cluster's default: ``num.partitions``, ``default.replication.factor``. A client
#: does not count the brokers: how many there seem to be depends on when one looks, and where.
_DEFAULT: Final = -1
#: Errors that say that nothing was to be done.
NOTHING_TO_DO: Final = frozenset(
    {ApiError.TOPIC_ALREADY_EXISTS, ApiError.UNKNOWN_TOPIC_OR_PARTITION}
)
_PARTITIONS_MAX: Final = (1 << 31) - 1


def partitions_wanted(request: ClientRequest) -> int | None:
    """How many partitions a creation asks for, -1 for the default; None where it makes no sense."""
    value = _DEFAULT if request.value is None else request.value
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and abs(value) <= _PARTITIONS_MAX else None


def kafka_request(request: ClientRequest) -> tuple[ApiKey, msgspec.Struct, int] | None:
    """A creation or a deletion as a request of Kafka's: API, message, version; None if neither.

    A creation leaves the number of replicas to the cluster.
    """
    timeout_ms = min(max(request.timeout_ms, 1), TIMEOUT_MS_MAX)  # Kafka's field has 32 bits
    if request.kind == "delete-topic":
        deletion = DeleteTopicsRequest(topic_names=(request.key,), timeout_ms=timeout_ms)
        return ApiKey.DELETE_TOPICS, deletion, _DELETE_VERSION
    partitions = partitions_wanted(request)
    if request.kind != "create-topic" or partitions is None:
        return None
    topic = CreatableTopic(
        name=request.key,
        num_partitions=partitions,
        replication_factor=_DEFAULT,
        assignments=(),
        configs=(),
    )
    creation = CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms)
    return ApiKey.CREATE_TOPICS, creation, _CREATE_VERSION


def topic_outcome(answer: Any) -> tuple[ApiError, str | None]:
    """Code and message of the one topic in an answer."""
    topics: tuple[Any, ...] = ()
    if isinstance(answer, CreateTopicsResponse):
        topics = answer.topics
    elif isinstance(answer, DeleteTopicsResponse):
        topics = answer.responses
    (topic,) = topics
    return ApiError(topic.error_code), topic.error_message


def partition_count(image: MetadataImage, name: str) -> int | None:
    """Result of describe-topic."""
    topic = image.topics.named(name)
    return None if topic is None else len(topic.partitions)


class _Change(msgspec.Struct):
    """One client's creation or deletion on its way."""

    request: ClientRequest
    reply: Reply
    deadline: Microseconds
    #: Once records may be in the log.
    is_appended: bool = False
    is_answered: bool = False


class TopicRequests:
    """The requests of all clients of one node."""

    def __init__(self, needs: ServiceNeeds, machine: MetadataMachine, leading: Leading) -> None:
        """Nobody has asked yet."""
        self._replica = needs.replica
        self._timers = needs.surroundings.timers
        self._machine = machine
        self._leading = leading
        #: Told of the quorum's answers to reads, and when the image has all that is committed.
        self.reads = Reads(needs.feed, machine, self._look)
        self._changes: list[_Change] = []
        self._flush_is_due = False
        self._expiry: TimerHandle | None = None
        self._stopping = False

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """Take one request; ``reply`` is called once, at once or later."""
        timeout_ms = min(max(request.timeout_ms, 1), TIMEOUT_MS_MAX)
        deadline = Microseconds(self._timers.now() + timeout_ms * 1_000)
        change = _Change(request, reply, deadline)
        if request.kind not in {"create-topic", "delete-topic", "describe-topic"}:
            _refuse(change, "this node holds Kafka's metadata, no registers")
        elif self._stopping:
            _answer(change, "stopping", definite=True, reason="the node stops")
        elif request.kind == "describe-topic":
            self._confirm(change)
        elif request.kind == "create-topic" and partitions_wanted(request) is None:
            _refuse(change, "create-topic needs a number of partitions")
        elif self._leading.active is None:
            self._say_not_leader(change)
        else:
            self._changes.append(change)
            self._leading.submit(lambda: self._decide(change))
            self._watch()

    def prove_leadership(self, proven: Callable[[bool], None]) -> None:
        """Told once whether this node certainly led until now."""

        def reply(answer: ClientAnswer) -> None:
            proven(answer.outcome == "ok")

        deadline = Microseconds(self._timers.now() + TIMEOUT_MS_MAX * 1_000)
        self._confirm(_Change(ClientRequest(0, "delete-topic"), reply, deadline))

    def stop(self) -> None:
        """Refuse what comes from now on; what the queue holds, the queue's end answers."""
        self._stopping = True
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self.reads.stop()

    def _decide(self, change: _Change) -> None:
        """The event of the queue."""
        if change.is_answered:
            return
        if self._leading.active is None:
            self._say_not_leader(change)
            return
        request = kafka_request(change.request)
        assert request is not None
        api_key, message, version = request
        decision = self._leading.decide(api_key, message, version)
        code, reason = topic_outcome(decision.answer)
        if code not in NOTHING_TO_DO and code is not ApiError.NONE:
            _refuse(change, f"{code.name}: {reason}")
            return
        epoch, offset = self._leading.epoch, self._replica.log_end_offset
        change.is_appended = bool(decision.records)

        def done(fate: Fate) -> None:
            if fate == "committed" and code is ApiError.NONE:
                _answer_ok(change, epoch, offset)
            elif fate == "committed":
                self._confirm(change)
            elif change.is_appended:
                reason = "leadership was lost before the records were committed"
                _answer(change, "unknown", definite=False, reason=reason)
            else:
                self._say_not_leader(change)

        self._leading.carry_out(decision, api_key, done)

    # Reads.

    def _confirm(self, change: _Change) -> None:
        """Answer what was, or will be, seen once it is certain that nobody else leads."""
        if change.is_answered:
            return

        def reply(answer: ClientAnswer) -> None:
            if not change.is_answered:
                change.is_answered = True
                change.reply(answer)

        self.reads.add(change.request, reply, change.deadline)
        if not self._flush_is_due:
            self._flush_is_due = True
            self._timers.call_soon(self._flush)
        self._watch()

    def _flush(self) -> None:
        self._flush_is_due = False
        if not self._stopping:
            self.reads.flush()

    def _look(self, request: ClientRequest) -> Seen:
        if request.kind != "describe-topic":
            return Seen(False, None)  # decided, and confirmed by now
        image = self._machine.image
        return Seen(partition_count(image, request.key), image.provenance.end_offset)

    # Time.

    def _watch(self) -> None:
        if self._expiry is None and not self._stopping:
            self._expiry = self._timers.call_later(EXPIRY_INTERVAL_US, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        now = self._timers.now()
        self.reads.expire(now)
        for change in self._changes:
            if change.deadline <= now:
                reason = "not committed within the time given"
                _answer(change, "timeout", definite=not change.is_appended, reason=reason)
        self._changes = [change for change in self._changes if not change.is_answered]
        if self._changes or not self.reads.is_idle:
            self._watch()

    def _say_not_leader(self, change: _Change) -> None:
        if self._stopping:
            _answer(change, "stopping", definite=True, reason="the node stops")
            return
        _answer(
            change,
            "not-leader",
            definite=True,
            leader_id=self._replica.leader_id,
            epoch=self._replica.epoch,
            reason="this node is not the active controller",
        )


def _refuse(change: _Change, reason: str) -> None:
    _answer(change, "invalid-request", definite=True, reason=reason)


def _answer_ok(change: _Change, epoch: Epoch, offset: int) -> None:
    _answer(change, "ok", definite=True, result=True, epoch=epoch, offset=offset)


def _answer(change: _Change, outcome: AnswerOutcome, *, definite: bool, **fields: Any) -> None:
    if not change.is_answered:
        change.is_answered = True
        change.reply(ClientAnswer(change.request.id, outcome, definite, **fields))
