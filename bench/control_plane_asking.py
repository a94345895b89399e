"""Straight questions to controllers and brokers, in Kafka's protocol, from this machine.

Through links of the nodes' own (``nodes.transport.control_links``), so that every make is asked in
the same bytes and no client library's retries are measured along.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import msgspec

from splitbrain.contracts.runtime import Address
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.control_links import ControlLinks
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from splitbrain.nodes.wire.families.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.referee.one_config import set_config

#: Whoever asks here is no node.
_NOBODY: Final = NodeId(-1)
#: Between two questions to one that could not answer.
PAUSE_S: Final = 0.02
_TIMEOUT_MS: Final = 4_000
_TAKEN: Final = (ApiError.NONE, ApiError.TOPIC_ALREADY_EXISTS)


class Asker:
    """One connection to each of some nodes, one question at a time on each."""

    def __init__(self, addresses: Mapping[int, Address]) -> None:
        """Nothing is connected yet; on the loop that will ask."""
        self._links = ControlLinks(
            _NOBODY,
            tuple(
                Voter(NodeId(node_id), NO_DIRECTORY, address.host, address.port)
                for node_id, address in addresses.items()
            ),
        )

    async def ask(self, node_id: int, message: msgspec.Struct) -> msgspec.Struct | None:
        """Return the node's answer; None without one."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[msgspec.Struct | None] = loop.create_future()

        def told(answer: msgspec.Struct | None) -> None:
            if not answered.done():
                answered.set_result(answer)

        self._links.call(NodeId(node_id), message, told)
        return await answered

    def close(self) -> None:
        """Drop the connections."""
        self._links.close()


def creation(name: str) -> CreateTopicsRequest:
    """Return a topic of one partition with one replica."""
    topic = CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)


def is_created(answer: msgspec.Struct | None) -> bool:
    """Whether the topic is there: by this request, or by an earlier one without an answer."""
    return isinstance(answer, CreateTopicsResponse) and answer.topics[0].error_code in _TAKEN


def config_change(number: int) -> IncrementalAlterConfigsRequest:
    """Return a change that needs no broker: a default of all brokers."""
    return set_config(ResourceType.BROKER, "", "log.retention.ms", str(86_400_000 + number))


def is_changed(answer: msgspec.Struct | None) -> bool:
    """Whether the change was made."""
    return (
        isinstance(answer, IncrementalAlterConfigsResponse)
        and answer.responses[0].error_code == ApiError.NONE
    )


class Probe:
    """Asks some nodes again and again, and notes when one took what it was asked."""

    def __init__(
        self,
        asker: Asker,
        node_ids: tuple[int, ...],
        question: Callable[[int], msgspec.Struct],
        taken: Callable[[msgspec.Struct | None], bool],
    ) -> None:
        """Nothing is asked yet; ``question`` makes the n-th request."""
        self._asker = asker
        self._question = question
        self._taken = taken
        self._count = 0
        #: Monotonic times; when what was asked was sent, when it was taken, and by whom.
        self.acknowledged: list[tuple[float, float, int]] = []
        self._node_ids = node_ids
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to ask every node."""
        self._tasks = [asyncio.create_task(self._ask(node_id)) for node_id in self._node_ids]

    async def stop(self) -> None:
        """Ask no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def longest_gap_s(self) -> float:
        """Longest time between two acknowledgements."""
        times = sorted(taken for _, taken, _ in self.acknowledged)
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    async def _ask(self, node_id: int) -> None:
        self._count += 1
        question = self._question(self._count)
        while True:
            sent = time.monotonic()
            if self._taken(await self._asker.ask(node_id, question)):
                self.acknowledged.append((sent, time.monotonic(), node_id))
                self._count += 1
                question = self._question(self._count)
            await asyncio.sleep(PAUSE_S)  # another process, of which nothing tells
