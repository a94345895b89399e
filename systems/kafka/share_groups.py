"""A client of Kafka that is a member of a share group, and sends to its logs besides.

It acquires what the leaders of its logs have for it, keeps that, and settles all of it at once. A
client that is closed leaves its membership behind, and its connections' end frees what it has.
Source: KIP-932; ``SharePartition`` and ``SharePartitionManager`` of Kafka 4.3.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from splitbrain.contracts.log import LOGS
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.share_groups import (
    ACCEPT,
    ACQUIRE,
    EPOCHS,
    LEAVE,
    LOCK_MS,
    MEMBER,
    RECORDS,
    REJECT,
    RELEASE,
    SETTLE,
    SETTLED,
    UNANSWERED,
    UNCLEAR,
)
from splitbrain.systems.kafka.access import OPEN, Access
from splitbrain.systems.kafka.brokers import Brokers
from splitbrain.systems.kafka.client import Attempt, KafkaClient, Topic, decoded
from splitbrain.systems.kafka.coordinator import Coordinator, GroupKind
from splitbrain.systems.kafka.errors import NO_ERROR, NotKafkaError, RefusedError, error_name
from splitbrain.systems.kafka.exchange import KafkaConnection
from splitbrain.systems.kafka.members import ShareMember
from splitbrain.systems.kafka.share_sessions import Record, ShareSessions, topic_id
from splitbrain.systems.servers import Refused, Unclear

_KINDS: Final[Mapping[str, int]] = {ACCEPT: 1, RELEASE: 2, REJECT: 3}
#: Of an operation's time.
_SHARE_OF_JOINS: Final = 0.3
_SHARE_OF_LEADERS: Final = 0.5
#: Errors of a leader that looks at what is settled before it changes anything.
_CERTAINLY_NOT_SETTLED: Final = frozenset(
    {
        3,  # UNKNOWN_TOPIC_OR_PARTITION
        121,  # INVALID_RECORD_STATE
        122,  # SHARE_SESSION_NOT_FOUND
        123,  # INVALID_SHARE_SESSION_EPOCH
    }
)
_AGAIN_S: Final = 0.05
_BROKEN: Final = (Refused, RefusedError, TimeoutError, OSError, EOFError, NotKafkaError)


class ShareGroupClient(KafkaClient):
    """Connections of one worker slot, its membership, and what it holds."""

    def __init__(
        self,
        node: NodeName,
        targets: Mapping[NodeName, Address],
        topic: Topic,
        group: GroupKind,
        access: Access = OPEN,
    ) -> None:
        super().__init__(node, targets, topic, access=access)
        self._coordinator = Coordinator(self._brokers, Brokers(node, targets, access), group)
        self._member = ShareMember(self._coordinator)
        self._sessions = ShareSessions(Brokers(node, targets, access), group.name)
        #: Offsets that are this member's, as far as it knows, by leader and partition.
        self._held: dict[NodeName, dict[int, set[int]]] = {}
        #: Why a leader gave nothing, the last time that one did.
        self._refusal = ""

    async def _perform(self, operation: Operation, timeout_s: float, attempt: Attempt) -> Any:
        if operation.f == ACQUIRE and operation.final:
            return await self._drain(timeout_s, attempt)
        if operation.f == ACQUIRE:
            return await self._acquire(timeout_s, attempt)
        if operation.f == SETTLE:
            return await self._settle(operation.value, timeout_s, attempt)
        if operation.f == LEAVE:
            return await self._leave(timeout_s, attempt)
        return await super()._perform(operation, timeout_s, attempt)

    def _forget(self) -> None:
        super()._forget()
        self._coordinator.forget()
        self._sessions.close()
        self._held.clear()

    async def _acquire(self, timeout_s: float, attempt: Attempt) -> dict[str, Any]:
        attempt.node = await self._coordinator.settled(timeout_s)
        async with asyncio.timeout(timeout_s * _SHARE_OF_JOINS):
            await self._member.attend()
        by_leader: dict[NodeName, list[int]] = {}
        for log in self._member.logs:
            with suppress(Refused):
                leader = await self._leader(int(log), timeout_s)
                by_leader.setdefault(leader, []).append(int(log))
        attempt.is_sent = bool(by_leader)
        return await self._acquire_at(by_leader, timeout_s)

    async def _acquire_at(
        self, by_leader: Mapping[NodeName, list[int]], timeout_s: float
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {
            MEMBER: self._member.name,
            RECORDS: {},
            EPOCHS: {},
            UNANSWERED: [],
        }
        each_s = timeout_s * _SHARE_OF_LEADERS / max(1, len(by_leader))
        for leader, partitions in by_leader.items():
            await self._acquire_of(leader, partitions, each_s, answer)
        return {**answer, LOCK_MS: self._sessions.lock_ms}

    async def _acquire_of(
        self,
        leader: NodeName,
        partitions: list[int],
        each_s: float,
        answer: dict[str, Any],
    ) -> None:
        async def ask() -> tuple[dict[int, list[Record]], dict[int, int]]:
            member, topic = self._member.name, self._member.topic_id
            return await self._sessions.acquire(leader, member, topic, partitions)

        try:
            async with asyncio.timeout(each_s):
                (found, refused), epochs = await self._between_epochs(leader, partitions, ask)
        except _BROKEN:
            self._lose(leader, partitions)
            answer[UNANSWERED] += map(str, partitions)
            self._refusal = "unanswered"
            return
        for partition, code in refused.items():
            # Another leads it, or its leader has yet to be told what became of its records.
            self._leaders.pop(partition, None)
            self._refusal = error_name(code)
        for partition, records in found.items():
            log = str(partition)
            answer[EPOCHS][log] = epochs[log]
            if records:
                held = self._held.setdefault(leader, {}).setdefault(partition, set())
                held |= {offset for offset, *_ in records}
                answer[RECORDS][log] = [
                    [offset, decoded(value)[1], count] for offset, value, count in records
                ]

    async def _between_epochs(
        self, leader: NodeName, partitions: list[int], ask: Callable[[], Any]
    ) -> tuple[Any, dict[str, list[int]]]:
        """Return an answer, and the epochs that the leader claimed before and after it."""
        connection = await self._brokers.connection(leader)
        before = [(await self._end(connection, number)).epoch for number in partitions]
        found = await ask()
        after = [(await self._end(connection, number)).epoch for number in partitions]
        pairs = zip(before, after, strict=True)
        return found, dict(zip(map(str, partitions), map(list, pairs), strict=True))

    def _lose(self, leader: NodeName, partitions: list[int]) -> None:
        """Give up the session with a leader, and with it what it gave."""
        self._sessions.drop(leader)
        self._brokers.drop(leader)
        self._held.pop(leader, None)
        for partition in partitions:
            self._leaders.pop(partition, None)

    async def _settle(self, kind: str, timeout_s: float, attempt: Attempt) -> dict[str, Any]:
        held, self._held = self._held, {}
        if not held:
            raise Refused("nothing-acquired")
        attempt.is_sent = True
        answer: dict[str, Any] = {MEMBER: self._member.name, SETTLED: {}, UNCLEAR: {}, EPOCHS: {}}
        each_s = timeout_s * _SHARE_OF_LEADERS / len(held)
        for leader, records in held.items():
            attempt.node = leader
            await self._settle_of(leader, records, kind, each_s, answer)
        return answer

    async def _settle_of(
        self,
        leader: NodeName,
        held: Mapping[int, set[int]],
        kind: str,
        each_s: float,
        answer: dict[str, Any],
    ) -> None:
        async def ask() -> dict[int, int]:
            member, topic = self._member.name, self._member.topic_id
            return await self._sessions.settle(leader, member, topic, held, _KINDS[kind])

        partitions = [*held]
        codes: dict[int, int] = {}
        try:
            async with asyncio.timeout(each_s):
                codes, epochs = await self._between_epochs(leader, partitions, ask)
        except _BROKEN:
            self._lose(leader, partitions)
        else:
            answer[EPOCHS].update(epochs)
        for partition, offsets in held.items():
            code = codes.get(partition)
            if code not in _CERTAINLY_NOT_SETTLED:
                answer[SETTLED if code == NO_ERROR else UNCLEAR][str(partition)] = sorted(offsets)

    async def _drain(self, timeout_s: float, attempt: Attempt) -> dict[str, Any] | None:
        """Acquire of all logs, whoever has them in the group, and accept; None: there was nothing.

        Leaders give records to any member; this one need not be any.
        """
        _, self._member.topic_id = await self._brokers.first(self._topic_id, timeout_s)
        gives_up = time.monotonic() + timeout_s * _SHARE_OF_LEADERS
        while True:
            by_leader: dict[NodeName, list[int]] = {}
            for log in LOGS:
                attempt.node = await self._leader(int(log), timeout_s)
                by_leader.setdefault(attempt.node, []).append(int(log))
            attempt.is_sent = True
            answer = await self._acquire_at(by_leader, timeout_s)
            if self._held:
                await self._settle(ACCEPT, timeout_s, attempt)
                return answer
            if not answer[UNANSWERED] and len(answer[EPOCHS]) == len(LOGS):
                return None
            if answer[UNANSWERED] or time.monotonic() > gives_up:
                raise Unclear(self._refusal)
            await asyncio.sleep(_AGAIN_S)

    async def _topic_id(self, connection: KafkaConnection) -> uuid.UUID:
        return await topic_id(connection, self._topic.name)

    async def _leave(self, timeout_s: float, attempt: Attempt) -> str | None:
        if not self._member.is_member:
            return None
        attempt.node = await self._coordinator.settled(timeout_s)
        name, attempt.is_sent = self._member.name, True
        self._held.clear()
        self._sessions.close()
        await self._member.leave()
        return name
