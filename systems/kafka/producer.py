"""A producer with an id: what it sends again is there once, and what it sends in a transaction.

Requests go to whichever broker does not refuse them, and are sent again until it answers, as those
of Kafka's own producer are; the time limit is the caller's. After an error that leaves something
open a producer is of no more use: the next one with its transactional id ends what it left. Source:
KIP-98, KIP-890, and the request handling of Kafka 4.3.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest
from kafka.protocol.producer import ProduceRequest  # pyright: ignore[reportMissingTypeStubs]
from kafka.protocol.producer.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from splitbrain.contracts.names import NodeName
from splitbrain.systems.kafka.brokers import Brokers
from splitbrain.systems.kafka.coordinator import GroupKind
from splitbrain.systems.kafka.errors import RefusedError, require_none
from splitbrain.systems.kafka.exchange import VERSIONS, KafkaConnection
from splitbrain.systems.kafka.records import Stamp
from splitbrain.systems.servers import Refused, Unclear

#: A coordinator whose producer is silent so long ends its transaction. Kafka's own is a minute.
TRANSACTION_TIMEOUT_MS: Final = 4000
#: By ``transaction.version``, which all of a cluster have: without it records are in a transaction
#: once its coordinator was told of their partition, and epochs stay as they are from one to the
#: next. With it (KIP-890) brokers tell the coordinator, and each end of a transaction raises the
#: epoch, so that a late request of an earlier one is known as such.
TRANSACTION_VERSIONS: Final = ("2", "1")
_RAISES_EPOCHS: Final = "2"
_PRODUCE_VERSION: Final = 12
_END_VERSION: Final = 5
_END_VERSION_BEFORE: Final = 1
_OFFSETS_VERSION: Final = 5
_OFFSETS_VERSION_BEFORE: Final = 3
_INIT_VERSION: Final = 1
_ADD_VERSION: Final = 1
_FIND_VERSION: Final = 2
_OF_TRANSACTIONS: Final = 1
#: The coordinator is another, or none yet.
_ELSEWHERE: Final = frozenset({14, 15, 16})
#: The transaction before is not through yet.
CONCURRENT_TRANSACTIONS: Final = 51
_AGAIN_S: Final = 0.02
_NO_ID: Final = -1

Request = Callable[[], Any]


class ProducerKind(msgspec.Struct, frozen=True, kw_only=True):
    """Traits that all producers of a run share."""

    is_idempotent: bool = False
    #: Of the cluster; one of ``TRANSACTION_VERSIONS``.
    transaction_version: str = _RAISES_EPOCHS
    #: A request that ends a transaction arrives once more in the one behind it, as where the
    #: network held a copy of it back (KAFKA-17754).
    has_late_ends: bool = False
    #: The last record of a transaction that is aborted arrives behind its end (KAFKA-14402).
    has_late_records: bool = False
    #: Offsets of what was read are committed behind the transaction and not with it.
    commits_offsets_apart: bool = False
    #: Whoever takes an input asks for its offset without a commit before.
    reads_offsets_plainly: bool = False


class Producer:
    """Id, epoch and sequence numbers of a client's records in one topic; and its transaction."""

    def __init__(
        self, brokers: Brokers, topic: str, kind: ProducerKind, transactional_id: str | None
    ) -> None:
        self._brokers, self._topic, self._kind = brokers, topic, kind
        self._transactional_id = transactional_id
        self._raises_epochs = kind.transaction_version == _RAISES_EPOCHS
        self._id, self._epoch = _NO_ID, _NO_ID
        #: The first ones that it had.
        self.began_as = (_NO_ID, _NO_ID)
        self._sequences: Counter[int] = Counter()
        self._coordinator: NodeName | None = None
        #: Partitions of the transaction that is open.
        self._joined: set[int] = set()
        #: Request that ended the transaction before, as it was sent.
        self._last_end: Request | None = None
        #: How often the coordinator was asked for the same, one way or another.
        self._asks = 0

    async def begin(self, timeout_s: float) -> None:
        """Have an id, and with it whatever the producer before had open aborted; raises Refused."""
        if self._id == _NO_ID:
            await self._begin(timeout_s)

    async def stamp(self, partition: int, timeout_s: float) -> Stamp:
        """Return the mark of the next record of a partition; raises Refused where none is had."""
        await self.begin(timeout_s)
        in_transaction = self._transactional_id is not None
        if in_transaction and partition not in self._joined:
            if not self._raises_epochs:
                await self._ask_coordinator(lambda: self._joining(partition), timeout_s)
            self._joined.add(partition)
        is_new = in_transaction and self._raises_epochs
        return Stamp(
            producer_id=self._id,
            epoch=self._epoch,
            sequence=self._sequences[partition],
            transactional_id=self._transactional_id,
            produce_version=_PRODUCE_VERSION if is_new else VERSIONS[ProduceRequest],
        )

    def note_appended(self, partition: int, stamp: Stamp | None = None) -> None:
        """Go on to the partition's next sequence number, unless the epoch is another by now."""
        if stamp is None or stamp.epoch == self._epoch:
            self._sequences[partition] += 1

    @property
    def has_records(self) -> bool:
        """Whether anything was sent in the transaction that is open."""
        return bool(self._joined)

    async def add_offset(self, group: GroupKind, log: str, offset: int, timeout_s: float) -> None:
        """Have an offset committed with the transaction; raises RefusedError."""
        if not self._raises_epochs:
            await self._ask_coordinator(lambda: self._joining_offsets(group), timeout_s)
        kind = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        row = kind.TxnOffsetCommitRequestPartition(
            partition_index=int(log),
            committed_offset=offset,
            committed_leader_epoch=_NO_ID,
            committed_metadata="",
        )

        async def ask(connection: KafkaConnection) -> int:
            answer = await connection.ask(
                TxnOffsetCommitRequest(
                    version=_OFFSETS_VERSION if self._raises_epochs else _OFFSETS_VERSION_BEFORE,
                    transactional_id=self._transactional_id or "",
                    group_id=group.name,
                    producer_id=self._id,
                    producer_epoch=self._epoch,
                    generation_id=_NO_ID,
                    member_id="",
                    group_instance_id=None,
                    topics=[kind(name=group.topic, partitions=[row])],
                )
            )
            code = answer.topics[0].partitions[0].error_code
            if code in _ELSEWHERE:
                raise RefusedError(code)
            return code

        while True:
            with suppress(Refused):
                _, code = await self._brokers.first(ask, timeout_s)
                if code != CONCURRENT_TRANSACTIONS:
                    return require_none(code)
            await asyncio.sleep(_AGAIN_S)

    def _joining_offsets(self, group: GroupKind) -> Any:
        return AddOffsetsToTxnRequest(
            version=_ADD_VERSION,
            transactional_id=self._transactional_id or "",
            producer_id=self._id,
            producer_epoch=self._epoch,
            group_id=group.name,
        )

    async def end(self, timeout_s: float, *, commits: bool) -> None:
        """Commit or abort the transaction.

        Raises:
            Refused: the coordinator that was asked, once, answered that it does not.
            Unclear: so it answered, and may have done it when it was asked before.
        """
        producer_id, epoch = self._id, self._epoch

        def request() -> Any:
            return EndTxnRequest(
                version=_END_VERSION if self._raises_epochs else _END_VERSION_BEFORE,
                transactional_id=self._transactional_id or "",
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=commits,
            )

        try:
            answer = await self._ask_coordinator(request, timeout_s)
        except RefusedError as error:
            raise (Refused if self._asks == 1 else Unclear)(error.name) from error
        self._joined.clear()
        self._last_end = request
        if self._raises_epochs and (answer.producer_id, answer.producer_epoch) != (_NO_ID, _NO_ID):
            self._id, self._epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    async def send_late_end(self) -> None:
        """Let the end of the transaction before arrive once more, whatever the answer."""
        if self._kind.has_late_ends and self._last_end and self._coordinator:
            with suppress(RefusedError):
                connection = await self._brokers.connection(self._coordinator)
                await connection.ask(self._last_end())

    async def _begin(self, timeout_s: float) -> None:
        if self._transactional_id is None:
            # Any broker gives out ids.
            _, answer = await self._brokers.first(self._ask_for_id, timeout_s)
        else:
            answer = await self._ask_coordinator(self._initial, timeout_s)
        self._id, self._epoch = self.began_as = answer.producer_id, answer.producer_epoch

    async def _ask_for_id(self, connection: KafkaConnection) -> Any:
        answer = await connection.ask(self._initial())
        require_none(answer.error_code)
        return answer

    async def _ask_coordinator(self, request: Request, timeout_s: float) -> Any:
        """Return the coordinator's answer; raises RefusedError for an error that will not pass."""
        self._asks = 0

        async def ask(connection: KafkaConnection) -> Any:
            self._asks += 1
            answer = await connection.ask(request())
            if _code_of(answer) in _ELSEWHERE:
                raise RefusedError(_code_of(answer))
            return answer

        while True:
            with suppress(Refused):
                if self._coordinator is None:
                    await self._brokers.first(self._find_coordinator, timeout_s)
                self._coordinator, answer = await self._brokers.first(
                    ask, timeout_s, before=self._coordinator
                )
                if (code := _code_of(answer)) != CONCURRENT_TRANSACTIONS:
                    require_none(code)
                    return answer
            # Nobody says when there is a coordinator again, or the transaction before is through.
            await asyncio.sleep(_AGAIN_S)

    async def _find_coordinator(self, connection: KafkaConnection) -> None:
        """Have a coordinator settled, who is then asked for by his own word."""
        answer = await connection.ask(
            FindCoordinatorRequest(
                version=_FIND_VERSION,
                key=self._transactional_id or "",
                key_type=_OF_TRANSACTIONS,
            )
        )
        require_none(answer.error_code)

    def _initial(self) -> Any:
        return InitProducerIdRequest(
            version=_INIT_VERSION,
            transactional_id=self._transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )

    def _joining(self, partition: int) -> Any:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=self._topic, partitions=[partition]
        )
        return AddPartitionsToTxnRequest(
            version=_ADD_VERSION,
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )


def _code_of(answer: Any) -> int:
    if hasattr(answer, "results_by_topic_v3_and_below"):
        (topic,) = answer.results_by_topic_v3_and_below
        (partition,) = topic.results_by_partition
        return partition.partition_error_code
    return answer.error_code
