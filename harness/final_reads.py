"""Reads of everything that was touched, after the last heal, from every node.

One reader follows the leader and tries a few times, because a final read that is missing proves
nothing; when even that settles nothing, the cluster does not serve and the rest is left. One reader
is pinned to each node and asks once: what a follower refuses is no loss, what it answers must be
right.
"""

import asyncio
from collections.abc import Callable, Sequence

from contracts.names import NodeName
from contracts.operations import Client, Operation
from contracts.system import Route
from harness.clients import Performer, Seat
from harness.processes import Processes

#: Tries of the reader that follows the leader, for each key.
_TRIES = 5
#: Keys in a row that a reader did not settle, after which it stops: by kind of route.
_UNSETTLED_MAX = {"leader": 1, "pinned": 3}


class FinalReads:
    """The final reads of one run."""

    def __init__(
        self,
        *,
        nodes: Sequence[NodeName],
        open_client: Callable[[Route], Client],
        performer: Performer,
        processes: Processes,
        observers: Sequence[NodeName] = (),
    ) -> None:
        self._nodes = nodes
        self._observers = observers
        self._open_client = open_client
        self._performer = performer
        self._processes = processes

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
        tries = _TRIES if route.kind == "leader" else 1
        seat = Seat(
            *(place, route),
            open_client=self._open_client,
            performer=self._performer,
            processes=self._processes,
        )
        settled_count = unsettled_in_a_row = 0
        try:
            for operation in operations:
                settled = False
                for _ in range(tries):
                    completion = await seat.perform(operation, final=True)
                    settled = completion.type == "ok"
                    if settled:
                        break
                settled_count += settled
                unsettled_in_a_row = 0 if settled else unsettled_in_a_row + 1
                if unsettled_in_a_row >= _UNSETTLED_MAX[route.kind]:
                    break
        finally:
            await seat.close()
        return len(operations) - settled_count
