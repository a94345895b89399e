"""Share sessions of one member with the leaders of partitions, and what it holds of each (KIP-932).

A session is one connection's: where that breaks, the leader frees what the member has, and numbers
of requests begin anew with the next one. So whatever fails, the connection goes.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, cast

import msgspec
from kafka.protocol.admin import (
    IncrementalAlterConfigsRequest,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)
from kafka.protocol.api_message import (  # pyright: ignore[reportMissingTypeStubs]
    ApiMessage,
)
from kafka.protocol.metadata import MetadataRequest

from splitbrain.contracts.names import NodeName
from splitbrain.systems.kafka.brokers import Brokers
from splitbrain.systems.kafka.errors import NO_ERROR, NotKafkaError, require_none
from splitbrain.systems.kafka.exchange import KafkaConnection
from splitbrain.systems.kafka.records import DamagedError, records_of

_MESSAGES: Final = f"{__package__}.messages"
_VERSION: Final = 1
#: The first one that is told ids of topics by their names.
_METADATA_VERSION: Final = 12
#: Of configurations.
_OF_GROUP: Final = 32
_SET: Final = 0
#: How long a leader may wait for records, which it reads in another thread.
_WAIT_MS: Final = 100
_FETCH_BYTES: Final = 1_000_000
#: Records of one answer, which may be some more.
_RECORDS_MAX: Final = 20


class ShareFetchRequest(ApiMessage, load_json=_MESSAGES):
    """Request for records of partitions; the library lacks it."""


class ShareFetchResponse(ApiMessage, load_json=_MESSAGES):
    """Answer to it; registers itself."""


class ShareAcknowledgeRequest(ApiMessage, load_json=_MESSAGES):
    """Request that says what became of records; the library lacks it."""


class ShareAcknowledgeResponse(ApiMessage, load_json=_MESSAGES):
    """Answer to it; registers itself."""


#: Offset, value, and how often it was delivered, this time included.
Record = tuple[int, bytes, int]


class _Session(msgspec.Struct):
    #: Number of the next request; 0 opens it.
    number: int = 0
    partitions: frozenset[int] = frozenset()


class ShareSessions:
    """Sessions of one member; methods raise as those of ``KafkaConnection``."""

    def __init__(self, brokers: Brokers, group: str) -> None:
        self._brokers, self._group = brokers, group
        self._sessions: dict[NodeName, _Session] = {}
        #: Duration of locks that a leader told last, milliseconds.
        self.lock_ms = 0

    async def acquire(
        self,
        node: NodeName,
        member: str,
        topic: uuid.UUID,
        partitions: Sequence[int],
    ) -> tuple[dict[int, list[Record]], dict[int, int]]:
        """Acquire records of partitions that a node leads; returns them, and the others' errors."""
        session = self._sessions.setdefault(node, _Session())
        request: Any = ShareFetchRequest
        kind = request.FetchTopic
        asked = [
            kind.FetchPartition(partition_index=number, acknowledgement_batches=[])
            for number in partitions
        ]
        others = sorted(session.partitions - {*partitions})
        forgotten = [request.ForgottenTopic(topic_id=topic, partitions=others)] if others else []
        answer = await self._ask(
            node,
            session,
            request(
                version=_VERSION,
                group_id=self._group,
                member_id=member,
                share_session_epoch=session.number,
                max_wait_ms=_WAIT_MS,
                min_bytes=1,
                max_bytes=_FETCH_BYTES,
                max_records=_RECORDS_MAX,
                batch_size=_RECORDS_MAX,
                topics=[kind(topic_id=topic, partitions=asked)],
                forgotten_topics_data=forgotten,
            ),
        )
        session.partitions = frozenset(partitions)
        self.lock_ms = answer.acquisition_lock_timeout_ms
        rows = [row for found in answer.responses for row in found.partitions]
        refused = {
            row.partition_index: row.error_code for row in rows if row.error_code != NO_ERROR
        }
        acquired = {row.partition_index: _acquired(row) for row in rows}
        # A session's later answers leave out partitions of which there is nothing.
        found = {number: acquired.get(number, []) for number in partitions if number not in refused}
        return found, refused

    async def settle(
        self,
        node: NodeName,
        member: str,
        topic: uuid.UUID,
        records: Mapping[int, Iterable[int]],
        kind: int,
    ) -> dict[int, int]:
        """Say what became of offsets of partitions; returns the code of each partition."""
        session = self._sessions.setdefault(node, _Session())
        request: Any = ShareAcknowledgeRequest
        topics = request.AcknowledgeTopic
        rows = [
            topics.AcknowledgePartition(
                partition_index=number,
                acknowledgement_batches=[
                    topics.AcknowledgePartition.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=[kind]
                    )
                    for first, last in _ranges(offsets)
                ],
            )
            for number, offsets in records.items()
        ]
        answer = await self._ask(
            node,
            session,
            request(
                version=_VERSION,
                group_id=self._group,
                member_id=member,
                share_session_epoch=session.number,
                topics=[topics(topic_id=topic, partitions=rows)],
            ),
        )
        return {
            row.partition_index: row.error_code
            for found in answer.responses
            for row in found.partitions
        }

    async def _ask(self, node: NodeName, session: _Session, request: Any) -> Any:
        answer = await (await self._brokers.connection(node)).ask(request)
        require_none(answer.error_code)
        session.number += 1
        return answer

    def drop(self, node: NodeName) -> None:
        """End the session with a node, which frees what it gave."""
        self._sessions.pop(node, None)
        self._brokers.drop(node)

    def close(self) -> None:
        """End all sessions."""
        self._sessions.clear()
        self._brokers.close()


async def topic_id(connection: KafkaConnection, name: str) -> uuid.UUID:
    """Ask for a topic's id; raises RefusedError."""
    asked = MetadataRequest.MetadataRequestTopic(topic_id=uuid.UUID(int=0), name=name)
    answer = await connection.ask(
        MetadataRequest(
            version=_METADATA_VERSION,
            topics=[asked],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    )
    (found,) = answer.topics
    require_none(found.error_code)
    return found.topic_id


async def begin_at_the_start(connection: KafkaConnection, group: str) -> None:
    """Have a group read its logs from their start on; raises RefusedError.

    Its leaders settle where it begins when they are first asked for records, by default behind all
    that is there.
    """
    request = cast("Any", IncrementalAlterConfigsRequest)
    kind = request.AlterConfigsResource
    config = kind.AlterableConfig(
        name="share.auto.offset.reset", config_operation=_SET, value="earliest"
    )
    resource = kind(resource_type=_OF_GROUP, resource_name=group, configs=[config])
    answer = await connection.ask(request(version=1, resources=[resource], validate_only=False))
    for row in answer.responses:
        require_none(row.error_code)


def _acquired(row: Any) -> list[Record]:
    counts = {
        offset: part.delivery_count
        for part in row.acquired_records or ()
        for offset in range(part.first_offset, part.last_offset + 1)
    }
    if not counts:
        return []
    try:
        found, _ = records_of(bytes(row.records or b""), (), min(counts), max(counts) + 1)
    except DamagedError as error:
        raise NotKafkaError(str(error)) from error
    # Batches are whole, and hold records of others, too.
    return [(offset, value, counts[offset]) for offset, value in found if offset in counts]


def _ranges(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of offsets that follow each other."""
    in_order = sorted({*offsets})
    for _, group in groupby(enumerate(in_order), lambda pair: pair[1] - pair[0]):
        run = [offset for _, offset in group]
        yield run[0], run[-1]
