"""A client of Kafka, for sets and for logs.

An element of a set is a record of a partition, a read is the whole partition. A log is a partition.

Without a producer's id a record is sent once: nothing of it is ever sent again, so that whoever
shows it twice was not told to. With one it is sent again until it is acknowledged, as Kafka's own
producer does. Before anything is sent, a broker must have said that it leads the partition; that
question only reads, and may be put to one broker after the other.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.log import ABORT, POLL, SEND, TXN
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.access import OPEN, Access
from splitbrain.systems.kafka.brokers import Brokers
from splitbrain.systems.kafka.errors import NO_ERROR, NotKafkaError, RefusedError, error_name
from splitbrain.systems.kafka.exchange import READ_COMMITTED, READ_UNCOMMITTED, End, KafkaConnection
from splitbrain.systems.kafka.producer import CONCURRENT_TRANSACTIONS, Producer, ProducerKind
from splitbrain.systems.kafka.racks import RackReads
from splitbrain.systems.kafka.records import Stamp
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
        45,  # OUT_OF_ORDER_SEQUENCE_NUMBER
        47,  # INVALID_PRODUCER_EPOCH
        48,  # INVALID_TXN_STATE
        CONCURRENT_TRANSACTIONS,
        59,  # UNKNOWN_PRODUCER_ID
        87,  # INVALID_RECORD
        90,  # PRODUCER_FENCED
    }
)
#: Errors after which a producer with an id sends a record again, and it is there once.
_SENT_AGAIN: Final = frozenset(
    {
        3,  # UNKNOWN_TOPIC_OR_PARTITION
        5,  # LEADER_NOT_AVAILABLE
        6,  # NOT_LEADER_OR_FOLLOWER
        7,  # REQUEST_TIMED_OUT
        19,  # NOT_ENOUGH_REPLICAS
        20,  # NOT_ENOUGH_REPLICAS_AFTER_APPEND
        56,  # KAFKA_STORAGE_ERROR
        CONCURRENT_TRANSACTIONS,
    }
)
#: It is there already; the broker no longer knows at which offset.
_DUPLICATE: Final = 46
_AGAIN_S: Final = 0.02
_MS: Final = 1000
#: Records of a log that one poll reads, unless it is a final one.
_POLLED_MAX: Final = 500


class Topic(msgspec.Struct, frozen=True):
    """The topic that all sets are in, and how it is written to."""

    name: str
    partitions: int
    #: -1: all that are in sync.
    acks: int
    producers: ProducerKind = ProducerKind()
    #: Whether consumers read what is committed alone.
    reads_committed: bool = False
    #: Whether they read at the replica that is named for their rack, final reads aside.
    reads_in_rack: bool = False

    @property
    def isolation(self) -> int:
        """How far consumers read, as requests tell it."""
        return READ_COMMITTED if self.reads_committed else READ_UNCOMMITTED

    def partition_of(self, key: str) -> int:
        """Return the partition of a set."""
        return zlib.crc32(key.encode()) % self.partitions


class Attempt:
    """An operation under way."""

    #: Node that is named in its completion.
    node: NodeName | None = None
    #: Whether it may have happened from here on.
    is_sent = False


class KafkaClient:
    """Connections of one worker slot; its own node is asked first."""

    def __init__(
        self,
        node: NodeName,
        targets: Mapping[NodeName, Address],
        topic: Topic,
        transactional_id: str | None = None,
        give_back: Callable[[str], None] | None = None,
        access: Access = OPEN,
    ) -> None:
        self._brokers = Brokers(node, targets, access)
        self._racks = RackReads(self._brokers, topic.name, node, topic.isolation)
        self._each = 1 / len({node, *targets})
        self._topic = topic
        #: Its own until it is closed, and then the next client's.
        self._transactional_id, self._give_back = transactional_id, give_back
        #: Next offset to read of each log; empty: it may be anywhere.
        self._places: dict[int, int] = {}
        #: Node that last said to lead a partition.
        self._leaders: dict[int, NodeName] = {}
        #: By whether it is transactional.
        self._producers: dict[bool, Producer] = {}

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        attempt = Attempt()
        try:
            async with asyncio.timeout(timeout_s):
                done = await self._perform(operation, timeout_s, attempt)
                return Completion("ok", done, node=attempt.node)
        except (Refused, RefusedError) as answer:
            self._leaders.clear()
            self._producers.clear()
            return Completion("fail", error=str(answer), node=attempt.node)
        except Unclear as answer:
            error = str(answer)
        except TimeoutError:
            error = "timeout"
        except (OSError, EOFError):
            error = "connection-broken"
        except NotKafkaError:
            error = "unexpected-answer"
        # A late answer must never meet a later operation.
        self._forget()
        return Completion("info" if attempt.is_sent else "fail", error=error)

    async def _perform(self, operation: Operation, timeout_s: float, attempt: Attempt) -> Any:
        key, value = operation.key or "", operation.value
        if operation.f == POLL:
            return [await self._poll(value[0], timeout_s, is_final=operation.final)]
        if operation.f in (TXN, ABORT):
            return await self._transact(operation, timeout_s, attempt)
        if operation.f == SEND:
            return [await self._send(value[0], timeout_s, attempt, is_transactional=False)]
        partition = self._topic.partition_of(key)
        attempt.node = leader = await self._leader(partition, timeout_s)
        if operation.f == "read":
            return await self._read(await self._brokers.connection(leader), key)
        await self._add(partition, (key, value), timeout_s, attempt, None)
        return value

    async def _send(
        self, part: Sequence[Any], timeout_s: float, attempt: Attempt, *, is_transactional: bool
    ) -> list[Any]:
        _, key, value = part
        producer = None
        if is_transactional or self._topic.producers.is_idempotent:
            producer = self._producer(is_transactional=is_transactional)
        offset = await self._add(int(key), (key, value), timeout_s, attempt, producer)
        return [SEND, key, value if offset is None else [offset, value]]

    async def _transact(
        self, operation: Operation, timeout_s: float, attempt: Attempt
    ) -> list[Any]:
        """Send and read in a transaction; until its commit is asked for it certainly fails.

        Where it does, its producer goes, and the next one of this id has it aborted.
        """
        producer, within = self._producer(is_transactional=True), Attempt()
        last, is_late = operation.value[-1], self._topic.producers.has_late_records
        late = last if is_late and operation.f == ABORT and last[0] == SEND else None
        done: list[Any] = []
        for part in operation.value:
            if part[0] == POLL:
                done.append(await self._poll(part, timeout_s, is_final=False))
            elif part is not late:
                done.append(await self._send(part, timeout_s, within, is_transactional=True))
                await producer.send_late_end()
        attempt.node = within.node
        held_back = late and await self._held_back(late, timeout_s, producer)
        if producer.has_records:
            attempt.is_sent = operation.f == TXN
            await producer.end(timeout_s, commits=operation.f == TXN)
        if held_back:
            await held_back()
            done.append(late)
        return done

    async def _held_back(
        self, part: Sequence[Any], timeout_s: float, producer: Producer
    ) -> Callable[[], Awaitable[None]]:
        """Prepare a record of this transaction; returns how it is sent."""
        _, key, value = part
        partition = int(key)
        stamp = await producer.stamp(partition, timeout_s)
        connection = await self._brokers.connection(await self._leader(partition, timeout_s))

        async def send() -> None:
            record = msgspec.json.encode((key, value))
            code, _ = await self._sent(connection, partition, record, timeout_s, stamp)
            if code == NO_ERROR:
                producer.note_appended(partition, stamp)

        return send

    def _producer(self, *, is_transactional: bool) -> Producer:
        if is_transactional not in self._producers:
            self._producers[is_transactional] = Producer(
                self._brokers,
                self._topic.name,
                self._topic.producers,
                self._transactional_id if is_transactional else None,
            )
        return self._producers[is_transactional]

    async def close(self) -> None:
        """Drop the connections without waiting for outstanding answers."""
        self._forget()
        if self._transactional_id and self._give_back:
            self._give_back(self._transactional_id)
            self._give_back = None

    def _forget(self) -> None:
        self._brokers.close()
        self._leaders.clear()
        self._producers.clear()
        self._places = {}

    async def _leader(self, partition: int, timeout_s: float) -> NodeName:
        """Return who leads the partition, by its own word; raises Refused where nobody does."""
        if partition not in self._leaders:
            self._leaders[partition], _ = await self._brokers.first(
                lambda connection: self._end(connection, partition), timeout_s
            )
        return self._leaders[partition]

    async def _end(self, connection: KafkaConnection, partition: int) -> End:
        return await connection.end(self._topic.name, partition, self._topic.isolation)

    async def _read(self, connection: KafkaConnection, key: str) -> list[Any]:
        """Return the elements of a set up to the leader's high watermark, with repetitions."""
        partition = self._topic.partition_of(key)
        end = await self._end(connection, partition)
        found, _ = await connection.records(self._topic.name, partition, end)
        elements = [decoded(value) for _, value in found]
        return sorted(element for set_, element in elements if set_ == key)

    async def _poll(self, asked: Sequence[Any], timeout_s: float, *, is_final: bool) -> list[Any]:
        """Read on in all logs, or from the offsets asked for; a final read up to the end.

        Where the end of a final read lies behind a transaction that is open, it is told besides.
        """
        topic, places = self._topic, dict(self._places)
        if asked[1:]:
            places = {int(log): offset for log, offset in asked[1].items()}
        if not places:
            raise Refused("not-assigned")
        read: dict[str, list[Any]] = {}
        ends: dict[str, int] = {}
        for partition, place in places.items():
            leader = await self._leader(partition, timeout_s)
            if topic.reads_in_rack and not is_final:
                found, places[partition] = await self._racks.read(leader, partition, place)
                read[str(partition)] = [[offset, decoded(value)[1]] for offset, value in found]
                continue
            connection = await self._brokers.connection(leader)
            if is_final and topic.reads_committed:
                high = await connection.end(topic.name, partition)
                ends[str(partition)] = high.offset
            end = await self._end(connection, partition)
            found, places[partition] = await connection.records(
                topic.name,
                partition,
                end,
                start=place,
                most=None if is_final else _POLLED_MAX,
                isolation=topic.isolation,
            )
            read[str(partition)] = [[offset, decoded(value)[1]] for offset, value in found]
        self._places = places
        at = {str(partition): place for partition, place in places.items()}
        beyond = {log: end for log, end in ends.items() if end > at[log]}
        return [POLL, read, at, *([beyond] if beyond else [])]

    async def _add(
        self,
        partition: int,
        record: tuple[str, Any],
        timeout_s: float,
        attempt: Attempt,
        producer: Producer | None,
    ) -> int | None:
        """Have a record appended; returns its offset, None where the broker does not know it.

        Raises Refused where it is certainly not there, and Unclear.
        """
        value = msgspec.json.encode(record)
        while True:
            was_unclear = attempt.is_sent
            try:
                attempt.node = leader = await self._leader(partition, timeout_s)
                code, offset = await self._produce(
                    leader, partition, value, timeout_s, attempt, producer
                )
            except (Refused, TimeoutError, OSError, EOFError):
                if producer is None:
                    raise
            else:
                is_refused = code in CERTAINLY_NOT and offset < 0
                attempt.is_sent = was_unclear or not is_refused
                if code in (NO_ERROR, _DUPLICATE):
                    if producer:
                        producer.note_appended(partition)
                    return offset if code == NO_ERROR else None
                if producer is None or code not in _SENT_AGAIN:
                    raise (Unclear if attempt.is_sent else Refused)(error_name(code))
            # Another leads soon, or the former one is in touch again.
            self._leaders.pop(partition, None)
            await asyncio.sleep(_AGAIN_S)

    async def _produce(
        self,
        leader: NodeName,
        partition: int,
        value: bytes,
        timeout_s: float,
        attempt: Attempt,
        producer: Producer | None,
    ) -> tuple[int, int]:
        """Send a record once; whoever may send it again has less time for each try."""
        each_s = timeout_s * (1 if producer is None else self._each)
        stamp = producer and await producer.stamp(partition, timeout_s)
        connection = await self._brokers.connection(leader)
        attempt.is_sent = True
        try:
            async with asyncio.timeout(each_s):
                return await self._sent(connection, partition, value, each_s, stamp)
        except (TimeoutError, OSError, EOFError):
            self._brokers.drop(leader)
            raise

    async def _sent(
        self,
        connection: KafkaConnection,
        partition: int,
        value: bytes,
        timeout_s: float,
        stamp: Stamp | None,
    ) -> tuple[int, int]:
        topic, timeout_ms = self._topic, round(timeout_s * _MS)
        return await connection.produce(topic.name, partition, value, topic.acks, timeout_ms, stamp)


def decoded(value: bytes) -> tuple[str, Any]:
    """Return the set or log, and the element, of a record that is ours."""
    try:
        return msgspec.json.decode(value, type=tuple[str, Any])
    except UNREADABLE as error:
        raise Refused("record-of-others") from error
