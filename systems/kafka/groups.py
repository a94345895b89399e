"""A client of Kafka that is a member of a consumer group, and sends to its logs besides.

It commits what it was delivered by the last ``consume`` that was answered, and no more: after one
that failed there is nothing to commit, and the next begins at the committed offsets. A client that
is closed leaves its membership behind.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from splitbrain.contracts.groups import (
    ASSIGNED,
    BEGAN,
    COMMIT,
    CONSUME,
    EPOCH,
    FETCH_OFFSETS,
    GENERATION,
    LEAVE,
    MEMBER,
    OFFSETS,
    POSITIONS,
    RECORDS,
)
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.access import OPEN, Access
from splitbrain.systems.kafka.brokers import Brokers
from splitbrain.systems.kafka.client import Attempt, KafkaClient, Topic, decoded
from splitbrain.systems.kafka.coordinator import (
    CERTAINLY_NOT_COMMITTED,
    Coordinator,
    GroupKind,
    Standing,
)
from splitbrain.systems.kafka.errors import NO_ERROR, RefusedError, error_name
from splitbrain.systems.kafka.members import member_of
from splitbrain.systems.servers import Refused, Unclear

#: Records of a log that one ``consume`` is delivered, unless it is a final one.
_CONSUMED_MAX: Final = 50
#: Of an operation's time; the rest is for reading.
_SHARE_OF_JOINS: Final = 0.6


class GroupClient(KafkaClient):
    """Connections of one worker slot, and its membership."""

    def __init__(
        self,
        node: NodeName,
        targets: Mapping[NodeName, Address],
        topic: Topic,
        group: GroupKind,
        access: Access = OPEN,
    ) -> None:
        super().__init__(node, targets, topic, access=access)
        own = Brokers(node, targets, access)
        self._coordinator = Coordinator(self._brokers, own, group)
        self._member = member_of(self._coordinator)
        #: Of a member that waits for others to join, too.
        self._attending: asyncio.Task[None] | None = None

    async def _perform(self, operation: Operation, timeout_s: float, attempt: Attempt) -> Any:
        if operation.f == CONSUME:
            return await self._consume(timeout_s, attempt, is_final=operation.final)
        if operation.f == COMMIT:
            return await self._commit(timeout_s, attempt)
        if operation.f == LEAVE:
            return await self._leave(timeout_s, attempt)
        if operation.f == FETCH_OFFSETS:
            attempt.node, found = await self._coordinator.told(timeout_s)
            return found
        return await super()._perform(operation, timeout_s, attempt)

    def _forget(self) -> None:
        super()._forget()
        if self._attending:
            self._attending.cancel()
            self._attending = None
        self._coordinator.forget()
        self._member.positions = {}

    async def _consume(
        self, timeout_s: float, attempt: Attempt, *, is_final: bool
    ) -> dict[str, Any]:
        try:
            attempt.node = await self._coordinator.settled(timeout_s)
            return await self._consumed(timeout_s, is_final=is_final)
        except BaseException:
            # Nobody is told what it was delivered.
            self._member.positions = {}
            raise

    async def _consumed(self, timeout_s: float, *, is_final: bool) -> dict[str, Any]:
        member = self._member
        await self._attend(timeout_s * _SHARE_OF_JOINS)
        standing, positions = member.standing, dict(member.positions)
        if standing is None:
            raise Refused("not-a-member")
        fresh = [log for log in member.logs if log not in positions]
        began = await self._coordinator.offsets(fresh, standing) if fresh else {}
        records: dict[str, list[Any]] = {}
        for log in member.logs:
            place = (began[log] or 0) if log in began else positions[log]
            records[log], positions[log] = await self._read_on(
                log, place, timeout_s, is_final=is_final
            )
        member.positions = positions
        return {
            **_told(standing),
            ASSIGNED: [*member.logs],
            BEGAN: began,
            RECORDS: {log: read for log, read in records.items() if read},
            POSITIONS: positions,
        }

    async def _attend(self, most_s: float) -> None:
        """Be a member, or wait so long for it; the wait goes on in the next operation.

        Given up, it would leave a member behind for whom all others had to wait.
        """
        task = self._attending
        if task is None:
            task = self._attending = asyncio.create_task(self._member.attend())
            task.add_done_callback(_look)
        done, _ = await asyncio.wait({task}, timeout=most_s)
        if not done:
            raise Refused("rebalancing")
        self._attending = None
        task.result()

    async def _read_on(
        self, log: str, place: int, timeout_s: float, *, is_final: bool
    ) -> tuple[list[list[Any]], int]:
        """Return records of a log from a place on, and the place behind them."""
        partition, topic = int(log), self._topic
        try:
            leader = await self._leader(partition, timeout_s)
            connection = await self._brokers.connection(leader)
            end = await self._end(connection, partition)
            found, after = await connection.records(
                topic.name, partition, end, start=place, most=None if is_final else _CONSUMED_MAX
            )
        except (Refused, RefusedError):
            # The member's other logs have leaders of their own.
            self._leaders.pop(partition, None)
            return [], place
        return [[offset, decoded(value)[1]] for offset, value in found], after

    async def _commit(self, timeout_s: float, attempt: Attempt) -> dict[str, Any]:
        standing, offsets = self._member.standing, dict(self._member.positions)
        if standing is None or not offsets:
            raise Refused("nothing-delivered")
        attempt.node = await self._coordinator.settled(timeout_s)
        attempt.is_sent = True
        codes = await self._coordinator.commit(standing, offsets)
        if errors := sorted(codes - {NO_ERROR}):
            is_refused = codes <= CERTAINLY_NOT_COMMITTED
            raise (Refused if is_refused else Unclear)(error_name(errors[0]))
        return {**_told(standing), OFFSETS: offsets}

    async def _leave(self, timeout_s: float, attempt: Attempt) -> str | None:
        standing = self._member.standing
        if self._attending:
            raise Refused("rebalancing")
        if standing is None:
            return None
        attempt.node = await self._coordinator.settled(timeout_s)
        attempt.is_sent = True
        await self._member.leave()
        return standing.member


def _look(task: "asyncio.Task[None]") -> None:
    """Look at the end of a join that perhaps nobody waits for any more."""
    if not task.cancelled():
        task.exception()


def _told(standing: Standing) -> dict[str, Any]:
    return {MEMBER: standing.member, EPOCH if standing.has_epoch else GENERATION: standing.number}
