"""A small simulated world for the quorum's core: virtual clock, network, disks, clients, faults.

One thread, one heap of (time, sequence, action), one random stream per purpose, so that a seed
replays exactly. It is a test double: production code never imports it. The full simulation grows
out of it in a later issue.
"""

import heapq
import random
from collections.abc import Callable
from typing import TypeVar

from nodes.quorum.bugs import NO_BUGS, PlantedBugs
from nodes.quorum.identifiers import DirectoryId, Epoch, NodeId
from nodes.quorum.persistent import QuorumState, Voter
from nodes.quorum.settings import QuorumSettings
from nodes.quorum.voters import ReplicaKey
from tests.simulation.clients import Client
from tests.simulation.disk import Disk
from tests.simulation.faults import Faults
from tests.simulation.host import Host
from tests.simulation.network import Network
from tests.simulation.oracle import Oracle
from tests.simulation.swarm import Swarm

CLUSTER_ID = "simulated-cluster-id"
MS = 1_000
Thing = TypeVar("Thing")


class World:
    """Voters (and observers), clients, faults and the oracle that watches them."""

    def __init__(
        self,
        seed: int,
        swarm: Swarm,
        bugs: PlantedBugs = NO_BUGS,
        muted: frozenset[str] = frozenset(),
        settings: QuorumSettings | None = None,
    ) -> None:
        self.seed = seed
        #: Ids of invariants that do not watch.
        self.muted = muted
        self.swarm = swarm
        self.now = 0
        #: Set when the clients shall begin nothing more.
        self.clients_rest = False
        self.event_count = 0
        self._sequence = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._streams: dict[str, random.Random] = {}
        #: What happened, for the story of a failure; cheap lines only.
        self.trace: list[str] | None = None
        self.settings = settings or QuorumSettings(
            fetch_timeout_ms=swarm.fetch_timeout_ms,
            election_timeout_ms_min=swarm.fetch_timeout_ms // 2,
            election_timeout_ms_max=swarm.fetch_timeout_ms,
            election_back_off_ms_max=swarm.fetch_timeout_ms,
            request_timeout_ms=swarm.fetch_timeout_ms * 3 // 5,
            retry_back_off_ms=swarm.fetch_timeout_ms // 15,
            fetch_max_wait_ms=swarm.fetch_timeout_ms // 5,
            bugs=bugs,
        )
        voter_ids = [NodeId(number) for number in range(1, swarm.voter_count + 1)]
        self.voters = tuple(
            Voter(number, directory_of(number), f"n{number}", 9093) for number in voter_ids
        )
        self.oracle = Oracle(self)
        self.network = Network(self)
        self.faults = Faults(self)
        self.hosts: dict[NodeId, Host] = {}
        for number in range(1, swarm.voter_count + swarm.observer_count + 1):
            key = ReplicaKey(NodeId(number), directory_of(number))
            disk = Disk(self, QuorumState(Epoch(0), None, None, None))
            self.hosts[key.node_id] = Host(self, key, disk)
        self.clients = [Client(self, number) for number in range(swarm.client_count)]

    def stream(self, purpose: str) -> random.Random:
        """The random stream of one purpose; only ``random()`` is ever called on it."""
        if purpose not in self._streams:
            self._streams[purpose] = random.Random(f"{self.seed}/{purpose}")
        return self._streams[purpose]

    def between(self, purpose: str, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int(self.stream(purpose).random() * (high - low + 1))

    def chance(self, purpose: str, probability: float) -> bool:
        return probability > 0 and self.stream(purpose).random() < probability

    def pick(self, purpose: str, things: list[Thing]) -> Thing:
        return things[int(self.stream(purpose).random() * len(things))]

    def after(self, delay: int, action: Callable[[], None]) -> None:
        """Runs an action so many microseconds from now."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now + max(delay, 0), self._sequence, action))

    def note(self, line: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.now / MS:10.3f} ms  {line}")

    def run_until(self, end: int, stop: Callable[[], bool] | None = None) -> None:
        """Runs until the clock shows ``end``, or until ``stop`` says so."""
        while self._heap and self._heap[0][0] <= end:
            self.now, _, action = heapq.heappop(self._heap)
            self.event_count += 1
            action()
            if stop is not None and stop():
                return
        self.now = end

    def start(self) -> None:
        for host in self.hosts.values():
            host.start()
        for client in self.clients:
            client.begin()
        self.faults.begin()

    def leader(self) -> Host | None:
        """The acting leader of the highest epoch."""
        leaders = [host for host in self.hosts.values() if host.leads]
        return max(leaders, key=lambda host: host.replica.epoch, default=None)


def directory_of(number: int) -> DirectoryId:
    return DirectoryId(f"{number:032x}")
