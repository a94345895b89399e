"""A client of Kafka, for sets and for logs.

An element of a set is a record of a partition, a read is the whole partition. A log is a partition.

A record is sent once, without a producer's id: nothing of it is ever sent again, so that whoever
shows it twice was not told to. Before anything is sent, a broker must have said that it leads the
partition; that question only reads, and may be put to one broker after the other.
"""

import asyncio
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.exchange import (
    NO_ERROR,
    End,
    KafkaConnection,
    NotKafkaError,
    RefusedError,
    error_name,
)
from splitbrain.systems.servers import Refused, Unclear

#: Errors of a broker that looks at a record before it appends it. The others leave it open, above
#: all ``NOT_LEADER_OR_FOLLOWER``, ``REQUEST_TIMED_OUT`` and ``NOT_ENOUGH_REPLICAS_AFTER_APPEND``:
#: with acks=all they are answered, too, once the record is in the leader's log and waits for
#: followers, and a later leader may have it. Source: ``ReplicaManager.appendRecords``,
#: ``DelayedProduce`` and ``Partition.appendRecordsToLeader`` of Kafka 4.3.
CERTAINLY_NOT: Final = frozenset(
    {
        2,  # CORRUPT_MESSAGE
        3,  # UNKNOWN_TOPIC_OR_PARTITION
        10,  # MESSAGE_TOO_LARGE
        17,  # INVALID_TOPIC_EXCEPTION
        18,  # RECORD_LIST_TOO_LARGE
        19,  # NOT_ENOUGH_REPLICAS
        21,  # INVALID_REQUIRED_ACKS
        29,  # TOPIC_AUTHORIZATION_FAILED
        31,  # CLUSTER_AUTHORIZATION_FAILED
        32,  # INVALID_TIMESTAMP
        35,  # UNSUPPORTED_VERSION
        43,  # UNSUPPORTED_FOR_MESSAGE_FORMAT
        44,  # POLICY_VIOLATION
        87,  # INVALID_RECORD
    }
)
_MS: Final = 1000
#: Records of a log that one poll reads, unless it is a final one.
_POLLED_MAX: Final = 500


class Topic(msgspec.Struct, frozen=True):
    """The topic that all sets are in, and how it is written to."""

    name: str
    partitions: int
    #: -1: all that are in sync.
    acks: int

    def partition_of(self, key: str) -> int:
        """Return the partition of a set."""
        return zlib.crc32(key.encode()) % self.partitions


class KafkaClient:
    """Connections of one worker slot; its own node is asked first."""

    def __init__(self, node: NodeName, targets: Mapping[NodeName, Address], topic: Topic) -> None:
        self._node, self._targets, self._topic = node, targets, topic
        self._connections: dict[NodeName, KafkaConnection] = {}
        #: Next offset to read of each log; empty: it may be anywhere.
        self._places: dict[int, int] = {}
        #: Node that last said to lead a partition.
        self._leaders: dict[int, NodeName] = {}

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        key, value = operation.key or "", operation.value
        if operation.f == "send":
            (_, key, value), partition = operation.value[0], int(operation.value[0][1])
        else:
            partition = self._topic.partition_of(key)
        leader: NodeName | None = None
        is_sent = False
        try:
            async with asyncio.timeout(timeout_s):
                if operation.f == "poll":
                    is_final = operation.final
                    polled = await self._poll(value[0], timeout_s, is_final=is_final)
                    return Completion("ok", [polled])
                leader = await self._leader(partition, timeout_s / len(self._targets))
                connection = await self._connection(leader)
                if operation.f == "read":
                    return Completion("ok", await self._read(connection, key), node=leader)
                is_sent = True
                offset = await self._add(connection, partition, (key, value), timeout_s)
                done = [["send", key, [offset, value]]] if operation.f == "send" else value
                return Completion("ok", done, node=leader)
        except (Refused, RefusedError) as answer:
            self._leaders.clear()
            return Completion("fail", error=str(answer), node=leader)
        except Unclear as answer:
            error = str(answer)
        except TimeoutError:
            error = "timeout"
        except (OSError, EOFError):
            error = "connection-broken"
        except NotKafkaError:
            error = "unexpected-answer"
        # A late answer must never meet a later operation.
        await self.close()
        return Completion("info" if is_sent else "fail", error=error)

    async def close(self) -> None:
        """Drop the connections without waiting for outstanding answers."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._leaders.clear()
        self._places = {}

    async def _leader(self, partition: int, each_s: float) -> NodeName:
        """Return who leads the partition, by its own word; raises Refused where nobody does."""
        if (known := self._leaders.get(partition)) is not None:
            return known
        problem = "no-leader"
        for node in self._in_order():
            try:
                async with asyncio.timeout(each_s):
                    await self._end(await self._connection(node), partition)
            except RefusedError as answer:
                problem = answer.name
            except TimeoutError:
                problem = "timeout"
                self._drop(node)
            except NotKafkaError:
                problem = "unexpected-answer"
                self._drop(node)
            except (OSError, EOFError):
                problem = "no-connection"
                self._drop(node)
            else:
                self._leaders[partition] = node
                return node
        raise Refused(problem)

    def _in_order(self) -> Iterator[NodeName]:
        yield self._node
        yield from (node for node in self._targets if node != self._node)

    async def _connection(self, node: NodeName) -> KafkaConnection:
        if node not in self._connections:
            self._connections[node] = await KafkaConnection.open(self._targets[node])
        return self._connections[node]

    def _drop(self, node: NodeName) -> None:
        with suppress(KeyError):
            self._connections.pop(node).close()

    async def _end(self, connection: KafkaConnection, partition: int) -> End:
        return await connection.end(self._topic.name, partition)

    async def _read(self, connection: KafkaConnection, key: str) -> list[Any]:
        """Return the elements of a set up to the leader's high watermark, with repetitions."""
        partition = self._topic.partition_of(key)
        end = await self._end(connection, partition)
        found, _ = await connection.records(self._topic.name, partition, end)
        elements = [_decoded(value) for _, value in found]
        return sorted(element for set_, element in elements if set_ == key)

    async def _poll(self, asked: Sequence[Any], timeout_s: float, *, is_final: bool) -> list[Any]:
        """Read on in all logs, or from the offsets asked for; a final read up to the end."""
        places = dict(self._places)
        if asked[1:]:
            places = {int(log): offset for log, offset in asked[1].items()}
        if not places:
            raise Refused("not-assigned")
        read: dict[str, list[Any]] = {}
        for partition, place in places.items():
            leader = await self._leader(partition, timeout_s / len(self._targets))
            connection = await self._connection(leader)
            end = await self._end(connection, partition)
            found, places[partition] = await connection.records(
                self._topic.name,
                partition,
                end,
                start=place,
                most=None if is_final else _POLLED_MAX,
            )
            read[str(partition)] = [[offset, _decoded(value)[1]] for offset, value in found]
        self._places = places
        return ["poll", read, {str(partition): place for partition, place in places.items()}]

    async def _add(
        self,
        connection: KafkaConnection,
        partition: int,
        record: tuple[str, Any],
        timeout_s: float,
    ) -> int:
        topic = self._topic
        code, offset = await connection.produce(
            topic.name,
            partition,
            msgspec.json.encode(record),
            topic.acks,
            round(timeout_s * _MS),
        )
        if code == NO_ERROR:
            return offset
        # An offset says that it was appended, whatever the error says.
        is_certain = code in CERTAINLY_NOT and offset < 0
        raise (Refused if is_certain else Unclear)(error_name(code))


def _decoded(value: bytes) -> tuple[str, Any]:
    """Return the set or log, and the element, of a record that is ours."""
    try:
        return msgspec.json.decode(value, type=tuple[str, Any])
    except UNREADABLE as error:
        raise Refused("record-of-others") from error
