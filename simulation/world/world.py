"""One simulated world: clock, random streams, network, trace hash and story.

Owns nothing of a system: ``populate`` takes the nodes that a system makes for it. Faults that wait
for a happening are told of it here. Must never be used twice.
"""

import hashlib
import heapq
from collections.abc import Callable
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import Scenario, Violation, ViolationError
from splitbrain.contracts.simulation import SimulatedCluster, SimulatedSystem
from splitbrain.simulation.world.network import SimulatedNetwork
from splitbrain.simulation.world.streams import Streams

#: Actions at one instant above which a world is taken to spin.
ACTIONS_AT_ONCE_MAX: Final = 20_000
#: Id of the invariant in ``docs/invariants.md``.
SPINNING: Final = "INV-30"


class Pending(msgspec.Struct, eq=False):
    """An action that waits for its time."""

    action: Callable[[], None] | None

    @property
    def is_pending(self) -> bool:
        """Whether it is still to come."""
        return self.action is not None

    def cancel(self) -> None:
        """Forget the action; nothing happens if it has run."""
        self.action = None


class Scheduler:
    """One world's clock: actions in the order of their time, where equal of their asking.

    Time moves only between actions and is an integer of microseconds. A world in which one instant
    never ends is broken, and is told so. The machine is never asked for the time.
    """

    def __init__(self) -> None:
        #: Microseconds since the start of the world.
        self.now = 0
        #: Actions that have run.
        self.step = 0
        self._asked = 0
        self._heap: list[tuple[int, int, Pending]] = []

    def after(self, delay_us: int, action: Callable[[], None]) -> Pending:
        """Run an action later; a negative delay is none."""
        self._asked += 1
        pending = Pending(action)
        time = self.now + delay_us if delay_us > 0 else self.now
        heapq.heappush(self._heap, (time, self._asked, pending))
        return pending

    def run(self, until: int, stop: Callable[[], bool] | None = None) -> bool:
        """Run what is due up to ``until``, included; the clock then shows it.

        ``stop`` is asked after each action; true ends the run with the clock where it is.

        Raises:
            ViolationError: one instant does not end (``INV-30``).
        """
        heap = self._heap
        at_once = 0
        while heap and heap[0][0] <= until:
            time, _, pending = heapq.heappop(heap)
            action = pending.action
            if action is None:
                continue
            if time != self.now:
                self.now = time
                at_once = 0
            at_once += 1
            if at_once > ACTIONS_AT_ONCE_MAX:
                raise ViolationError(
                    SPINNING, f"more than {ACTIONS_AT_ONCE_MAX:,} steps at {time / 1_000:,.3f} ms"
                )
            self.step += 1
            pending.action = None
            action()
            if stop is not None and stop():
                return True
        self.now = max(self.now, until)
        return False


#: Told of a happening: node and name.
Watcher = Callable[[NodeName, str], None]


class SimulatedWorld(Scheduler):
    """The world of one scenario.

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

        ``muted``: ids of invariants that do not watch.

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
        #: Whether anybody waits for a happening.
        self.is_watched = False
        self._watchers: dict[str, list[Watcher]] = {}
        system = system.planted(scenario)
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
        self.is_watched = True
        self._watchers.setdefault(name, []).append(watcher)

    def forget_watchers(self) -> None:
        """Nobody waits for a happening any more."""
        self.is_watched = False
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
        """Return the violation as a record, as of now."""
        return Violation(
            error.invariant, error.problem, self.now, self.step, error.node, error.kind
        )
