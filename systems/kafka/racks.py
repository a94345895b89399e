"""Reads at the replica that the leader names to a client for its rack; source: KIP-392.

The rack of a broker, and of the clients whose own node it is, is its name. A follower answers with
what it has below the high watermark that it knows, which may be less than the leader has. Whoever
is refused asks the leader again.
"""

from typing import Any, Final

from kafka.protocol.consumer import FetchRequest  # pyright: ignore[reportMissingTypeStubs]

from splitbrain.contracts.names import NodeName
from splitbrain.systems.kafka.brokers import Brokers
from splitbrain.systems.kafka.errors import NotKafkaError, require_none
from splitbrain.systems.kafka.exchange import READ_UNCOMMITTED
from splitbrain.systems.kafka.records import DamagedError, records_of

#: The first version in which a follower answers.
_VERSION: Final = 11
_NOBODY: Final = -1
_FETCH_BYTES: Final = 1_000_000


class RackReads:
    """A client's reads, and the replicas that it was sent to."""

    def __init__(self, brokers: Brokers, topic: str, rack: NodeName, isolation: int) -> None:
        self._brokers, self._topic = brokers, topic
        self._rack, self._isolation = rack, isolation
        self._named: dict[int, NodeName] = {}

    async def read(
        self, leader: NodeName, partition: int, start: int
    ) -> tuple[list[tuple[int, bytes]], int]:
        """Read on from an offset; return offsets and values, and the offset behind them.

        Raises RefusedError, NotKafkaError, and OSError or EOFError where a connection broke; then
        the leader is asked next time.
        """
        node = self._named.pop(partition, leader)
        row = await self._fetched(node, partition, start)
        if row.preferred_read_replica != _NOBODY:
            node = NodeName(f"n{row.preferred_read_replica}")
            row = await self._fetched(node, partition, start)
            if row.preferred_read_replica != _NOBODY:
                raise NotKafkaError(f"{node} is no replica to read from, and was named as one")
        end = row.high_watermark if self._isolation == READ_UNCOMMITTED else row.last_stable_offset
        aborted = row.aborted_transactions or ()
        try:
            found, offset = records_of(bytes(row.records or b""), aborted, start, end)
        except DamagedError as error:
            raise NotKafkaError(str(error)) from error
        if node != leader:
            self._named[partition] = node
        return found, max(start, min(offset, end))

    async def _fetched(self, node: NodeName, partition: int, start: int) -> Any:
        kind = FetchRequest.FetchTopic
        asked = kind.FetchPartition(
            partition=partition,
            # A follower may not have heard of the leader's epoch yet.
            current_leader_epoch=-1,
            fetch_offset=start,
            log_start_offset=-1,
            partition_max_bytes=_FETCH_BYTES,
        )
        connection = await self._brokers.connection(node)
        answer = await connection.ask(
            FetchRequest(
                version=_VERSION,
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=_FETCH_BYTES,
                isolation_level=self._isolation,
                session_id=0,
                session_epoch=-1,
                topics=[kind(topic=self._topic, partitions=[asked])],
                forgotten_topics_data=[],
                rack_id=self._rack,
            )
        )
        require_none(answer.error_code)
        row = answer.responses[0].partitions[0]
        require_none(row.error_code)
        return row
