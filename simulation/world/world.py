"""One simulated world: clock, random streams, network, trace hash and story.

Owns nothing of a system: ``populate`` takes the nodes that a system makes for it. Faults that wait
for a happening are told of it here. Must never be used twice.
"""

import hashlib
from collections.abc import Callable

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import Scenario, Violation, ViolationError
from splitbrain.contracts.simulation import SimulatedCluster, SimulatedSystem
from splitbrain.simulation.world.network import SimulatedNetwork
from splitbrain.simulation.world.scheduler import Scheduler
from splitbrain.simulation.world.streams import Streams

#: Told of a happening: node and name.
Watcher = Callable[[NodeName, str], None]


class SimulatedWorld(Scheduler):
    """The world of one scenario; implements ``contracts.simulation.World``.

    It is its own clock, for everything in it asks for the time, again and again.
    """

    def __init__(
        self,
        scenario: Scenario,
        system: SimulatedSystem,
        *,
        muted: frozenset[str] = frozenset(),
        is_recording: bool = False,
    ) -> None:
        """A world with its nodes, formatted and down.

        Args:
            scenario: all that the world depends on.
            system: makes the nodes.
            muted: ids of invariants that do not watch.
            is_recording: keep the story of the run.

        Raises:
            UsageError: a setting or a bug of the scenario does not exist.
        """
        super().__init__()
        self.scenario = scenario
        self.is_recording = is_recording
        streams = Streams(scenario.seed, "world")
        self.stream, self.pick = streams.stream, streams.pick
        self.between, self.chance = streams.between, streams.chance
        self._hash = hashlib.blake2b(digest_size=16)
        #: Records of ``history.timeline_records``, in the order in which they began.
        self.story: list[object] = []
        self._watchers: dict[str, list[Watcher]] = {}
        self.network = SimulatedNetwork(self, scenario.network, system.describe)
        self.cluster: SimulatedCluster = system.cluster(self, muted=muted)

    @property
    def trace_hash(self) -> str:
        """Of all that has happened so far, 32 hex digits."""
        return self._hash.hexdigest()

    def absorb(self, content: bytes) -> None:
        """Take something that just happened into the trace hash."""
        self._hash.update(self.now.to_bytes(8, "big") + content)

    def watch(self, name: str, watcher: Watcher) -> None:
        """Tell ``watcher`` of every happening of this name."""
        self._watchers.setdefault(name, []).append(watcher)

    def forget_watchers(self) -> None:
        """Nobody waits for a happening any more."""
        self._watchers.clear()

    def happened(self, node: NodeName, name: str) -> None:
        """A node has just done something; ``NodeCrashed`` where a fault kills it at that."""
        for watcher in self._watchers.get(name, ()):
            watcher(node, name)

    def record(self, record: object) -> int:
        """Keep a record for the story; its number, -1 where nobody keeps the story."""
        if not self.is_recording:
            return -1
        self.story.append(record)
        return len(self.story) - 1

    def amend(self, number: int, record: object) -> None:
        """Replace a record, once more is known of it."""
        if number >= 0:
            self.story[number] = record

    def violation(self, error: ViolationError) -> Violation:
        """The violation as a record, as of now."""
        return Violation(
            error.invariant, error.problem, self.now, self.step, error.node, error.kind
        )
