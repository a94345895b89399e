"""Members of a consumer group, by both of its protocols: joining, staying and leaving.

A member says that it lives only when it is asked to read; one that is not asked is removed in time,
as a consumer is whose process is frozen. Source: KIP-62, KIP-394 (member ids), KIP-848.
"""

import base64
import uuid
from collections.abc import Sequence
from typing import Any, Final, Protocol

from kafka.protocol.api_message import (  # pyright: ignore[reportMissingTypeStubs]
    ApiMessage,
)
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from splitbrain.contracts.log import LOGS
from splitbrain.systems.kafka.coordinator import Coordinator, Standing
from splitbrain.systems.kafka.errors import NO_ERROR, NotKafkaError, require_none
from splitbrain.systems.kafka.group_settings import CONSUMER, REBALANCE_MS, SESSION_MS

_ILLEGAL_GENERATION: Final = 22
_UNKNOWN_MEMBER_ID: Final = 25
_REBALANCE_IN_PROGRESS: Final = 27
_MEMBER_ID_REQUIRED: Final = 79
_FENCED_MEMBER_EPOCH: Final = 110
_JOIN_VERSION: Final = 5
_VERSION: Final = 3
_EPOCH_VERSION: Final = 1
#: Of what members tell each other by way of the coordinator.
_WORDS_VERSION: Final = 0
_ASSIGNOR: Final = "range"
_TYPE: Final = "consumer"
_NOT_YET: Final = ""
_LEAVES: Final = -1
_MESSAGES: Final = f"{__package__}.messages"


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=_MESSAGES):
    """Request of KIP-848, which the library lacks."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=_MESSAGES):
    """Answer to it; registers itself."""


class ShareGroupHeartbeatRequest(ApiMessage, load_json=_MESSAGES):
    """Request of KIP-932, which the library lacks."""


class ShareGroupHeartbeatResponse(ApiMessage, load_json=_MESSAGES):
    """Answer to it; registers itself."""


class Member(Protocol):
    """A client's place in its group."""

    #: Next offset to read of each log that it owns; those that are missing are read from the
    #: committed offset.
    positions: dict[str, int]

    @property
    def standing(self) -> Standing | None:
        """As its requests tell it; None: it is no member that it knew of."""
        ...

    @property
    def logs(self) -> Sequence[str]:
        """Logs that it owns."""
        ...

    async def attend(self) -> None:
        """Become a member or stay one; raises RefusedError."""
        ...

    async def leave(self) -> None:
        """Leave the group; raises RefusedError."""
        ...


def member_of(coordinator: Coordinator) -> Member:
    """Return a client's place in a group, which is none yet."""
    is_new = coordinator.group.protocol == CONSUMER
    return EpochMember(coordinator) if is_new else GenerationMember(coordinator)


class GenerationMember:
    """Member of generations: one of each shares out the logs, and all begin anew with them."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._id = _NOT_YET
        self._generation: int | None = None
        self.logs: Sequence[str] = ()
        self.positions: dict[str, int] = {}

    @property
    def standing(self) -> Standing | None:
        """Of the generation that it was told last."""
        if self._generation is None:
            return None
        return Standing(self._id, self._generation, has_epoch=False)

    async def attend(self) -> None:
        """Say that it lives; join anew where the group has gone on."""
        if self._generation is None or not await self._is_current(self._generation):
            await self._join()

    async def leave(self) -> None:
        """Leave; whatever the answer, it is no member any more."""
        kind = LeaveGroupRequest.MemberIdentity
        member = kind(member_id=self._id, group_instance_id=None)
        self._lose()
        self._id = _NOT_YET
        answer = await self._coordinator.ask(
            LeaveGroupRequest(
                version=_VERSION, group_id=self._coordinator.group.name, members=[member]
            )
        )
        require_none(answer.error_code)
        require_none(answer.members[0].error_code)

    async def _is_current(self, generation: int) -> bool:
        answer = await self._coordinator.ask(
            HeartbeatRequest(
                version=_VERSION,
                group_id=self._coordinator.group.name,
                generation_id=generation,
                member_id=self._id,
                group_instance_id=None,
            )
        )
        code = answer.error_code
        if not self._is_to_join(code):
            require_none(code)
        return code == NO_ERROR

    def _is_to_join(self, code: int) -> bool:
        if code in (_UNKNOWN_MEMBER_ID, _MEMBER_ID_REQUIRED):
            self._id = _NOT_YET
        return code in (
            *(_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS),
            _MEMBER_ID_REQUIRED,
        )

    async def _join(self) -> None:
        self._lose()
        while True:
            joined = await self._coordinator.ask(self._joining())
            if self._is_to_join(joined.error_code):
                # A newcomer is given a name before it is one.
                self._id = self._id or joined.member_id
                continue
            require_none(joined.error_code)
            self._id = joined.member_id
            synced = await self._coordinator.ask(self._syncing(joined))
            if self._is_to_join(synced.error_code):
                continue
            require_none(synced.error_code)
            self._generation = joined.generation_id
            self.logs = _logs_in(synced.assignment)
            return

    def _joining(self) -> Any:
        words: Any = ConsumerProtocolSubscription(
            topics=[self._coordinator.group.topic], user_data=None, version=_WORDS_VERSION
        )
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name=_ASSIGNOR, metadata=words.encode()
        )
        return JoinGroupRequest(
            version=_JOIN_VERSION,
            group_id=self._coordinator.group.name,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._id,
            group_instance_id=None,
            protocol_type=_TYPE,
            protocols=[protocol],
        )

    def _syncing(self, joined: Any) -> Any:
        """Return the request that tells, of the leader, and asks for who gets what."""
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        shares = shared_out(sorted(each.member_id for each in joined.members))
        topic = self._coordinator.group.topic
        return SyncGroupRequest(
            version=_VERSION,
            group_id=self._coordinator.group.name,
            generation_id=joined.generation_id,
            member_id=self._id,
            group_instance_id=None,
            assignments=[
                kind(member_id=member, assignment=_assignment(topic, partitions))
                for member, partitions in shares.items()
            ],
        )

    def _lose(self) -> None:
        self._generation, self.logs, self.positions = None, (), {}


class EpochMember:
    """Member with an epoch of its own, which gives up what it is to lose before others get it."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._id = _new_id()
        self._epoch = 0
        #: Of the topic; any of its messages has it.
        self.topic_id = uuid.UUID(int=0)
        self.logs: Sequence[str] = ()
        self.positions: dict[str, int] = {}

    @property
    def standing(self) -> Standing | None:
        """Of the epoch that it was told last."""
        return Standing(self._id, self._epoch, has_epoch=True) if self._epoch else None

    async def attend(self) -> None:
        """Say what it owns, until that is what the coordinator gives it."""
        while True:
            answer = await self._coordinator.ask(self._heartbeat(self._epoch))
            if answer.error_code in (_UNKNOWN_MEMBER_ID, _FENCED_MEMBER_EPOCH):
                was_member = self._epoch > 0
                self._lose()
                if was_member:
                    continue
                self._id = _new_id()
            require_none(answer.error_code)
            self._epoch = answer.member_epoch
            if answer.assignment is None:
                return
            before, self.logs = self.logs, self._given(answer.assignment)
            self.positions = {log: at for log, at in self.positions.items() if log in self.logs}
            if self.logs == before:
                return

    async def leave(self) -> None:
        """Leave; whatever the answer, it is no member any more."""
        request = self._heartbeat(_LEAVES)
        self._lose()
        self._id = _new_id()
        require_none((await self._coordinator.ask(request)).error_code)

    def _given(self, assignment: Any) -> tuple[str, ...]:
        partitions: list[int] = []
        for topic in assignment.topic_partitions:
            self.topic_id = topic.topic_id
            partitions += topic.partitions
        return tuple(map(str, sorted(partitions)))

    def _heartbeat(self, epoch: int) -> Any:
        """Return a request with all that there is to tell, whose answer has the whole, too."""
        kind: Any = ConsumerGroupHeartbeatRequest
        owned = kind.TopicPartitions(
            topic_id=self.topic_id, partitions=[int(log) for log in self.logs]
        )
        return kind(
            version=_EPOCH_VERSION,
            group_id=self._coordinator.group.name,
            member_id=self._id,
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=[self._coordinator.group.topic],
            topic_partitions=[owned] if self.logs else [],
        )

    def _lose(self) -> None:
        self._epoch, self.logs, self.positions = 0, (), {}


class ShareMember(EpochMember):
    """Member of a share group: whoever gets its logs besides, it gives nothing up."""

    @property
    def name(self) -> str:
        """Its id, which it chose."""
        return self._id

    @property
    def is_member(self) -> bool:
        """Whether it is one as far as it knows."""
        return self._epoch > 0

    def _heartbeat(self, epoch: int) -> Any:
        kind: Any = ShareGroupHeartbeatRequest
        return kind(
            version=_EPOCH_VERSION,
            group_id=self._coordinator.group.name,
            member_id=self._id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=[self._coordinator.group.topic],
        )


def _new_id() -> str:
    """Return an id in Kafka's form: its releases before 4.2 take no other of a share group."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def shared_out(members: Sequence[str]) -> dict[str, list[int]]:
    """Return the logs of each member: as many as the others, or one more, one behind the other."""
    least, more = divmod(len(LOGS), max(1, len(members)))
    shares: dict[str, list[int]] = {}
    first = 0
    for place, member in enumerate(members):
        count = least + (place < more)
        shares[member] = [*range(first, first + count)]
        first += count
    return shares


def _assignment(topic: str, partitions: Sequence[int]) -> bytes:
    kind: Any = ConsumerProtocolAssignment
    given = [kind.TopicPartition(topic=topic, partitions=[*partitions])]
    return kind(assigned_partitions=given, user_data=None, version=_WORDS_VERSION).encode()


def _logs_in(assignment: Any) -> tuple[str, ...]:
    if not assignment:
        return ()
    kind: Any = ConsumerProtocolAssignment
    try:
        given = kind.decode(bytes(assignment)).assigned_partitions
    except (ValueError, IndexError) as error:
        raise NotKafkaError("an assignment that is none") from error
    return tuple(str(number) for topic in given for number in topic.partitions)
