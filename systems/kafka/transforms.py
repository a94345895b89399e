"""A client of Kafka that reads records, writes others, and commits both in one transaction.

Whoever begins with an input takes its transactional id: the coordinator ends what the one before
left open, and fences it. The committed offset is asked for only then, and only once no transaction
can commit another (KIP-447); from there on the client reads on by itself, until something fails.

A coordinator of groups answers from memory. One that was paused or cut off, and does not know yet
that another coordinates, tells what was committed before, and inputs that are done would be done
again. Members of a group have joined it, which is on disk; nobody joins here, so the question
follows a commit on the same connection: only a coordinator whose followers have it acknowledges it.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.groups import FETCH_OFFSETS
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.transforms import (
    ABANDON,
    BEGAN_AT,
    ENDED_AT,
    LOG_OF,
    OUTPUTS,
    READ_INPUTS,
    TAKEN_AS,
    TRANSFORM,
)
from splitbrain.systems.kafka.access import OPEN, Access
from splitbrain.systems.kafka.client import Attempt, KafkaClient, Topic, decoded
from splitbrain.systems.kafka.coordinator import GroupKind, commit_as_nobody, committed_offsets
from splitbrain.systems.kafka.errors import RefusedError
from splitbrain.systems.kafka.exchange import KafkaConnection
from splitbrain.systems.kafka.producer import Producer
from splitbrain.systems.servers import Refused

#: Records that one transaction reads.
_INPUTS_MAX: Final = 8
_AGAIN_S: Final = 0.02
#: Two that take an input from each other again and again would never come to an end.
_GIVES_UP_S: Final = 1.0
#: The group reads no output.
_NOBODYS_INPUT: Final = OUTPUTS[0]
_FENCED: Final = ("invalid-producer-epoch", "producer-fenced")


class _Work(msgspec.Struct):
    """An input that this client has, as far as it knows."""

    producer: Producer
    #: Next offset to read.
    position: int


class TransformClient(KafkaClient):
    """Connections of one worker slot, and the inputs that it has."""

    def __init__(
        self,
        node: NodeName,
        targets: Mapping[NodeName, Address],
        topic: Topic,
        group: GroupKind,
        access: Access = OPEN,
    ) -> None:
        super().__init__(node, targets, topic, access=access)
        self._group = group
        self._work: dict[str, _Work] = {}
        #: Moments until which inputs are left to whoever took them.
        self._gave_up_until: dict[str, float] = {}

    async def _perform(self, operation: Operation, timeout_s: float, attempt: Attempt) -> Any:
        if operation.f in (TRANSFORM, ABANDON):
            log = str(operation.value)
            if time.monotonic() < self._gave_up_until.get(log, 0):
                raise Refused("input-of-another")
            try:
                return await self._step(operation.f, log, timeout_s, attempt)
            except (Refused, RefusedError) as error:
                if str(error) in _FENCED:
                    self._gave_up_until[log] = time.monotonic() + _GIVES_UP_S
                raise
        if operation.f == FETCH_OFFSETS:
            attempt.node, found = await self._brokers.first(
                lambda connection: committed_offsets(connection, self._group), timeout_s
            )
            return found
        return await super()._perform(operation, timeout_s, attempt)

    async def _step(self, f: str, log: str, timeout_s: float, attempt: Attempt) -> dict[str, Any]:
        # Whatever fails, it begins anew.
        work = self._work.pop(log, None) or await self._begin(log, timeout_s)
        answer = await self._transform(log, work, timeout_s, attempt, commits=f == TRANSFORM)
        if f == TRANSFORM:
            self._work[log] = work
        return answer

    def _forget(self) -> None:
        super()._forget()
        self._work.clear()

    async def _begin(self, log: str, timeout_s: float) -> _Work:
        """Take an input from whoever has it."""
        name, kind = f"splitbrain-transform-{log}", self._topic.producers
        producer = Producer(self._brokers, self._topic.name, kind, name)
        await producer.begin(timeout_s)
        while True:
            try:
                _, offsets = await self._brokers.first(self._stable_offsets, timeout_s)
            except Refused:
                # The end of the transaction before has yet to come to the offsets.
                await asyncio.sleep(_AGAIN_S)
            else:
                return _Work(producer, offsets.get(log) or 0)

    async def _stable_offsets(self, connection: KafkaConnection) -> dict[str, int | None]:
        if not self._topic.producers.reads_offsets_plainly:
            await commit_as_nobody(connection, self._group, _NOBODYS_INPUT, 0)
        return await committed_offsets(connection, self._group, stable=True)

    async def _transform(
        self, log: str, work: _Work, timeout_s: float, attempt: Attempt, *, commits: bool
    ) -> dict[str, Any]:
        began, within = work.position, Attempt()
        leader = await self._leader(int(log), timeout_s)
        connection = await self._brokers.connection(leader)
        end = await self._end(connection, int(log))
        found, work.position = await connection.records(
            self._topic.name,
            int(log),
            end,
            start=began,
            most=_INPUTS_MAX,
            isolation=self._topic.isolation,
        )
        inputs = [[offset, decoded(value)[1]] for offset, value in found]
        for offset, value in inputs:
            output = OUTPUTS[offset % len(OUTPUTS)]
            record = (output, [log, offset, value])
            await self._add(int(output), record, timeout_s, within, work.producer)
        if inputs:
            offset, is_apart = work.position, self._topic.producers.commits_offsets_apart
            if not is_apart:
                await work.producer.add_offset(self._group, log, offset, timeout_s)
            attempt.is_sent = commits
            await work.producer.end(timeout_s, commits=commits)
            if is_apart and commits:
                await self._brokers.first(
                    lambda connection: commit_as_nobody(connection, self._group, log, offset),
                    timeout_s,
                )
        attempt.node = leader
        return {
            LOG_OF: log,
            BEGAN_AT: began,
            ENDED_AT: work.position,
            READ_INPUTS: inputs,
            TAKEN_AS: [*work.producer.began_as],
        }
