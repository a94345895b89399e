"""Reads of everything that was touched, after the last heal, from every node.

One reader follows the leader, one is pinned to each node; ``harness.load.reading`` says when one
asks again, and when it gives up.
"""

import asyncio
from collections.abc import Callable, Sequence

from contracts.names import NodeName
from contracts.operations import Client, Operation
from contracts.system import Route
from harness.clients import US_PER_S, SlotClient
from harness.load.reading import Reading
from harness.load.seat import Books
from harness.stop import Stop


class FinalReads:
    """The final reads of one run."""

    def __init__(
        self,
        *,
        nodes: Sequence[NodeName],
        open_client: Callable[[Route], Client],
        books: Books,
        stop: Stop,
        observers: Sequence[NodeName] = (),
    ) -> None:
        self._nodes, self._observers = nodes, observers
        self._open_client, self._books, self._stop = open_client, books, stop

    async def run(self, operations: Sequence[Operation], observed: Sequence[Operation] = ()) -> int:
        """Perform them all; returns how many the leader-following reader could not settle.

        Args:
            operations: asked of the leader and of each node that votes.
            observed: asked of each other node.
        """
        readers = [Route("leader", self._nodes[0])]
        readers += [Route("pinned", node) for node in self._nodes]
        asked = [(route, operations) for route in readers]
        asked += [(Route("pinned", node), observed) for node in self._observers]
        unsettled = await asyncio.gather(
            *(self._read_all(place, route, reads) for place, (route, reads) in enumerate(asked))
        )
        return unsettled[0]

    async def _read_all(self, place: int, route: Route, operations: Sequence[Operation]) -> int:
        client = SlotClient(
            *(place, route), open_client=self._open_client, books=self._books, stop=self._stop
        )
        reading = Reading(route.kind, operations)
        try:
            while (operation := reading.next) is not None:
                if reading.pause_us:
                    await asyncio.sleep(reading.pause_us / US_PER_S)  # back-off
                reading.took(await client.perform(operation, final=True))
        finally:
            await client.close()
        return reading.unsettled_count
