"""Brokers of a pretended Kafka with a share group, whose records one member has at a time."""

from typing import Any, ClassVar

import msgspec
from kafka.protocol.admin import (
    IncrementalAlterConfigsRequest,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    IncrementalAlterConfigsResponse,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)

from splitbrain.systems.kafka.members import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from splitbrain.systems.kafka.share_sessions import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tests.unit.systems.compose_file.fake_kafka import NOT_LEADER, Shared, batch
from tests.unit.systems.kafka.fake_groups import TOPIC, TOPIC_ID, GroupBroker

NO_SESSION, WRONG_NUMBER, WRONG_STATE = 122, 123, 121
LOCK_MS = 2000
ACCEPT, RELEASE, REJECT = 1, 2, 3


class Share(msgspec.Struct):
    """A share group as a leader has it; all partitions of a pretended broker are one."""

    #: Number of the last request of each member's session, and the partitions in it.
    sessions: dict[str, tuple[int, list[int]]] = {}
    holders: dict[int, str] = {}
    counts: dict[int, int] = {}
    #: Offsets that nobody is given any more.
    done: set[int] = set()
    #: Ranges and kind of each part of what was settled.
    settled: list[tuple[int, int, int]] = []
    #: Name and value of configurations of the group.
    configs: dict[str, str] = {}


class ShareBroker(GroupBroker):
    kinds: ClassVar[dict[Any, Any]] = {
        **GroupBroker.kinds,
        IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse,
        ShareGroupHeartbeatRequest: ShareGroupHeartbeatResponse,
        ShareFetchRequest: ShareFetchResponse,
        ShareAcknowledgeRequest: ShareAcknowledgeResponse,
    }

    def __init__(self, number: int, shared: Shared) -> None:
        super().__init__(number, shared)
        self.share = Share()
        #: Records that one answer gives.
        self.gives = 2
        #: Own view of the epoch that it leads in.
        self.epochs: list[int] = []

    def _metadata(self, request: Any, answer: Any) -> Any:
        told = super()._metadata(request, answer)
        if request.version >= 10:
            told.topics[0].topic_id = TOPIC_ID
        return told

    def _listoffsets(self, request: Any, answer: Any) -> Any:
        told = super()._listoffsets(request, answer)
        if self.epochs:
            told.topics[0].partitions[0].leader_epoch = self.epochs.pop(0)
        return told

    def _incrementalalterconfigs(self, request: Any, answer: Any) -> Any:
        (asked,) = request.resources
        self.share.configs |= {row.name: row.value for row in asked.configs}
        row = answer.AlterConfigsResourceResponse(
            error_code=0,
            error_message=None,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
        return answer(throttle_time_ms=0, responses=[row])

    def _sharegroupheartbeat(self, request: Any, answer: Any) -> Any:
        group, code = self.group, self._error("ShareGroupHeartbeat")
        assert request.subscribed_topic_names == [TOPIC]
        group.told.append((request.member_epoch, []))
        if request.member_epoch < 0:
            group.left.append(request.member_id)
        given = group.given.pop(0) if len(group.given) > 1 else group.given[0]
        kind = answer.Assignment
        row = kind.TopicPartitions(topic_id=TOPIC_ID, partitions=given)
        return answer(
            throttle_time_ms=0,
            error_code=code,
            error_message=None,
            member_id=request.member_id,
            member_epoch=0 if code else max(1, request.member_epoch),
            heartbeat_interval_ms=500,
            assignment=None if code else kind(topic_partitions=[row]),
        )

    def _in_session(self, request: Any, name: str) -> int:
        """Return the error of a request of a session, whose number goes up with each."""
        share, member = self.share, request.member_id
        if self.errors.get(name):
            return self.errors[name].pop(0)
        if request.share_session_epoch == 0:
            share.holders = {at: who for at, who in share.holders.items() if who != member}
            share.sessions[member] = (0, [])
            return 0
        if member not in share.sessions:
            return NO_SESSION
        last, partitions = share.sessions[member]
        share.sessions[member] = (last + 1, partitions)
        return 0 if request.share_session_epoch == last + 1 else WRONG_NUMBER

    def _sharefetch(self, request: Any, answer: Any) -> Any:
        code = self._in_session(request, "ShareFetch")
        topics = request.topics
        asked = [row.partition_index for topic in topics for row in topic.partitions]
        kind, rows = answer.ShareFetchableTopicResponse, []
        if not code:
            number, partitions = self.share.sessions[request.member_id]
            gone = [n for topic in request.forgotten_topics_data for n in topic.partitions]
            partitions = sorted({*partitions, *asked} - {*gone})
            self.share.sessions[request.member_id] = (number, partitions)
            assert {topic.topic_id for topic in topics} == {TOPIC_ID}
            rows = self._given(kind.PartitionData, request.member_id, partitions)
        return answer(
            throttle_time_ms=0,
            error_code=code,
            error_message=None,
            acquisition_lock_timeout_ms=LOCK_MS,
            responses=[kind(topic_id=TOPIC_ID, partitions=rows)] if rows else [],
            node_endpoints=[],
        )

    def _given(self, kind: Any, member: str, partitions: list[int]) -> list[Any]:
        """Give records as those of the first partition, and nothing of the others."""
        share = self.share
        if not self.leads:
            return [self._part(kind, number, NOT_LEADER, []) for number in partitions]
        free = [
            offset
            for offset in range(len(self.log))
            if offset not in share.holders and offset not in share.done
        ][: self.gives]
        for offset in free:
            share.holders[offset] = member
            share.counts[offset] = share.counts.get(offset, 0) + 1
        # Of the others nothing is told, as a session's later answers do.
        return [self._part(kind, partitions[0], 0, free)] if free else []

    def _part(self, kind: Any, partition: int, code: int, offsets: list[int]) -> Any:
        acquired = [
            kind.AcquiredRecords(
                first_offset=offset, last_offset=offset, delivery_count=self.share.counts[offset]
            )
            for offset in offsets
        ]
        # Batches are whole: they hold records of others, too.
        return kind(
            partition_index=partition,
            error_code=code,
            error_message=None,
            acknowledge_error_code=0,
            acknowledge_error_message=None,
            current_leader=kind.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
            records=batch(0, *self.log) if offsets else None,
            acquired_records=acquired,
        )

    def _shareacknowledge(self, request: Any, answer: Any) -> Any:
        code = self._in_session(request, "ShareAcknowledge")
        kind = answer.ShareAcknowledgeTopicResponse
        rows: list[Any] = []
        for topic in request.topics if not code else ():
            for row in topic.partitions:
                found = self._settle(request.member_id, row.acknowledgement_batches)
                rows.append(
                    kind.PartitionData(
                        partition_index=row.partition_index,
                        error_code=found,
                        error_message=None,
                        current_leader=kind.PartitionData.LeaderIdAndEpoch(
                            leader_id=-1, leader_epoch=-1
                        ),
                    )
                )
        return answer(
            throttle_time_ms=0,
            error_code=code,
            error_message=None,
            responses=[kind(topic_id=TOPIC_ID, partitions=rows)],
            node_endpoints=[],
        )

    def _settle(self, member: str, batches: list[Any]) -> int:
        if self.errors.get("Settle"):
            return self.errors["Settle"].pop(0)
        for part in batches:
            (kind,) = part.acknowledge_types
            self.share.settled.append((part.first_offset, part.last_offset, kind))
            for offset in range(part.first_offset, part.last_offset + 1):
                if self.share.holders.pop(offset, None) != member:
                    return WRONG_STATE
                if kind != RELEASE:
                    self.share.done.add(offset)
        return 0
