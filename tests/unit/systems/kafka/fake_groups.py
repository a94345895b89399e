"""Brokers of a pretended Kafka that coordinate groups, and err as tests want it.

A group is the whole of what one broker knows: another that becomes the coordinator is told it.
"""

import uuid
from typing import Any, ClassVar

import msgspec
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from splitbrain.systems.kafka.members import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.unit.systems.compose_file.fake_kafka import ANSWERS, NOT_COORDINATOR, FakeBroker, Shared

ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING, NEEDS_NAME = 22, 25, 27, 79
FENCED_EPOCH, STALE_EPOCH = 110, 113
TOPIC_ID = uuid.UUID(int=7)
TOPIC = "splitbrain"


class Group(msgspec.Struct):
    """A group as its coordinator has it."""

    generation: int = 0
    #: Members besides those that join; whether the first of them leads.
    others: list[str] = []
    others_lead: bool = False
    members: list[str] = []
    named: int = 0
    #: Shares of the generation, as its leader told them; as others do, where they lead.
    shares: dict[str, list[int]] = {}
    committed: dict[int, int] = {}
    #: Member, generation or epoch, and offsets of each commit that was accepted.
    commits: list[tuple[str, int, dict[int, int]]] = []
    #: Logs that the member with epochs is given at each heartbeat, the last one for good.
    given: list[list[int]] = msgspec.field(default_factory=lambda: [[0, 1]])
    #: Heartbeats with epochs as they came: epoch, and what the member owned.
    told: list[tuple[int, list[int]]] = []
    #: Members that left.
    left: list[str] = []
    #: Standing that offsets were asked with; None: nobody's.
    asked_as: list[tuple[str, int] | None] = []


class GroupBroker(FakeBroker):
    kinds: ClassVar[dict[Any, Any]] = {
        **ANSWERS,
        HeartbeatRequest: HeartbeatResponse,
        JoinGroupRequest: JoinGroupResponse,
        LeaveGroupRequest: LeaveGroupResponse,
        OffsetCommitRequest: OffsetCommitResponse,
        OffsetFetchRequest: OffsetFetchResponse,
        SyncGroupRequest: SyncGroupResponse,
        ConsumerGroupHeartbeatRequest: ConsumerGroupHeartbeatResponse,
    }

    def __init__(self, number: int, shared: Shared) -> None:
        super().__init__(number, shared)
        self.group = Group()
        #: Errors of the next answers, by the request; of a commit one for each log.
        self.errors: dict[str, list[Any]] = {}
        #: Topic and partition of each question about an end.
        self.ends_asked: list[tuple[str, int]] = []

    def _error(self, name: str) -> Any:
        if self.shared.coordinator != self.number:
            return NOT_COORDINATOR
        return self.errors[name].pop(0) if self.errors.get(name) else 0

    def _listoffsets(self, request: Any, answer: Any) -> Any:
        (topic,) = request.topics
        self.ends_asked += [(topic.name, row.partition_index) for row in topic.partitions]
        return super()._listoffsets(request, answer)

    def _findcoordinator(self, request: Any, answer: Any) -> Any:
        if request.key_type:
            return super()._findcoordinator(request, answer)
        found = {"node_id": self.shared.coordinator, "host": "elsewhere", "port": 9092}
        code = self._error("FindCoordinator")
        code = 0 if code == NOT_COORDINATOR else code
        return answer(throttle_time_ms=0, error_code=code, error_message=None, **found)

    def _joingroup(self, request: Any, answer: Any) -> Any:
        group, member = self.group, request.member_id
        code = self._error("JoinGroup")
        if not code and not member:
            group.named += 1
            code, member = NEEDS_NAME, f"m{group.named}"
        if not code:
            group.generation += 1
            group.members = [*dict.fromkeys((*group.members, member))]
        names = [*group.others, *group.members]
        leader = group.others[0] if group.others_lead else member
        (protocol,) = request.protocols
        words: Any = ConsumerProtocolSubscription.decode(bytes(protocol.metadata))
        assert words.topics == [TOPIC]
        kind = answer.JoinGroupResponseMember
        members = [kind(member_id=n, group_instance_id=None, metadata=b"") for n in names]
        return answer(
            throttle_time_ms=0,
            error_code=code,
            generation_id=group.generation,
            protocol_name="range",
            leader=leader,
            member_id=member,
            members=members if leader == member and not code else [],
        )

    def _syncgroup(self, request: Any, answer: Any) -> Any:
        code = self._error("SyncGroup")
        for share in request.assignments:
            given: Any = ConsumerProtocolAssignment.decode(bytes(share.assignment))
            (topic,) = given.assigned_partitions
            self.group.shares[share.member_id] = topic.partitions
        kind: Any = ConsumerProtocolAssignment
        partitions = self.group.shares.get(request.member_id, [])
        topics = [kind.TopicPartition(topic=TOPIC, partitions=partitions)]
        mine = kind(assigned_partitions=topics, user_data=None, version=0).encode()
        return answer(throttle_time_ms=0, error_code=code, assignment=b"" if code else mine)

    def _heartbeat(self, request: Any, answer: Any) -> Any:
        code = self._error("Heartbeat")
        if not code and request.member_id not in self.group.members:
            code = UNKNOWN_MEMBER
        if not code and request.generation_id != self.group.generation:
            code = ILLEGAL_GENERATION
        return answer(throttle_time_ms=0, error_code=code)

    def _leavegroup(self, request: Any, answer: Any) -> Any:
        (leaves,) = request.members
        self.group.left.append(leaves.member_id)
        row = answer.MemberResponse(
            member_id=leaves.member_id, group_instance_id=None, error_code=0
        )
        return answer(throttle_time_ms=0, error_code=self._error("LeaveGroup"), members=[row])

    def _offsetcommit(self, request: Any, answer: Any) -> Any:
        (topic,) = request.topics
        asked = {row.partition_index: row.committed_offset for row in topic.partitions}
        error = self._error("OffsetCommit")
        codes = error if isinstance(error, list) else [error] * len(asked)
        if not any(codes):
            self.group.committed.update(asked)
            number = request.generation_id_or_member_epoch
            self.group.commits.append((request.member_id, number, asked))
        kind = answer.OffsetCommitResponseTopic
        rows = [
            kind.OffsetCommitResponsePartition(partition_index=partition, error_code=code)
            for partition, code in zip(asked, codes, strict=True)
        ]
        return answer(throttle_time_ms=0, topics=[kind(name=topic.name, partitions=rows)])

    def _offsetfetch(self, request: Any, answer: Any) -> Any:
        code = self._error("OffsetFetch")
        if request.version < 8:
            self.group.asked_as.append(None)
            kind, (topic,) = answer.OffsetFetchResponseTopic, request.topics
            rows = self._offsets(kind.OffsetFetchResponsePartition, topic.partition_indexes)
            found = [kind(name=topic.name, partitions=rows)]
            return answer(throttle_time_ms=0, error_code=code, topics=found)
        (asked,) = request.groups
        (topic,) = asked.topics
        self.group.asked_as.append((asked.member_id, asked.member_epoch))
        group = answer.OffsetFetchResponseGroup
        kind = group.OffsetFetchResponseTopics
        rows = self._offsets(kind.OffsetFetchResponsePartitions, topic.partition_indexes)
        found = [kind(name=topic.name, partitions=rows)]
        whole = group(group_id=asked.group_id, topics=found, error_code=code)
        return answer(throttle_time_ms=0, groups=[whole])

    def _offsets(self, kind: Any, partitions: list[int]) -> list[Any]:
        return [
            kind(
                partition_index=partition,
                committed_offset=self.group.committed.get(partition, -1),
                committed_leader_epoch=-1,
                metadata="",
                error_code=0,
            )
            for partition in partitions
        ]

    def _consumergroupheartbeat(self, request: Any, answer: Any) -> Any:
        group, code = self.group, self._error("ConsumerGroupHeartbeat")
        owned = [n for topic in request.topic_partitions for n in topic.partitions]
        group.told.append((request.member_epoch, owned))
        assert request.subscribed_topic_names == [TOPIC]
        given = group.given.pop(0) if len(group.given) > 1 else group.given[0]
        kind = answer.Assignment
        row = kind.TopicPartitions(topic_id=TOPIC_ID, partitions=given)
        group.generation += owned != given
        return answer(
            throttle_time_ms=0,
            error_code=code,
            error_message=None,
            member_id=request.member_id,
            member_epoch=max(request.member_epoch, group.generation) if not code else 0,
            heartbeat_interval_ms=500,
            assignment=None if code else kind(topic_partitions=[row] if given else []),
        )
