"""Reads of everything that was touched, after the last heal, from every node.

``harness.run.load.reading`` says who reads what, when one asks again, and when it gives up.
"""

import asyncio
from collections.abc import Callable, Sequence

from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.clients import US_PER_S, SlotClient
from splitbrain.harness.run.load.reading import Reading
from splitbrain.harness.run.load.seat import Books


class FinalReads:
    """The final reads of one run."""

    def __init__(
        self,
        *,
        open_client: Callable[[Route], Client],
        books: Books,
        stop: Stop,
    ) -> None:
        self._open_client, self._books, self._stop = open_client, books, stop

    async def run(self, asked: Sequence[tuple[Route, Sequence[Operation]]]) -> int:
        """Have each reader read its own; returns how many the first one could not settle."""
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
