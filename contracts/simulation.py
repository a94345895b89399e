"""Protocols of systems that can be simulated, so that who simulates them knows none by name.

Their hosts live in the generic world (``simulation.world``), which is made from data
(``contracts.scenario``). Times are integer microseconds of virtual time. Source: design, section 9.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from splitbrain.contracts.arms import DataFiles
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.random_source import RandomSource
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView, Route


class ClientEnd(Protocol):
    """Callbacks of the opener of a connection."""

    def answered(self, message: Any) -> None:
        """Take a message of the server."""
        ...

    def lost(self, reason: str, *, refused: bool) -> None:
        """Take the loss of the connection; ``refused``: nobody listens there."""
        ...


class ServerEnd(Protocol):
    """Callbacks of one incarnation of a listening process."""

    def requested(self, connection: int, source: str, message: Any) -> None:
        """Take a client's message, to be answered by the network's ``answer``."""
        ...

    def disconnected(self, connection: int) -> None:
        """Take the loss of the client's end."""
        ...


class SimulatedClient(Protocol):
    """Client of one worker slot; ``contracts.operations.Client`` in virtual time."""

    def invoke(
        self, operation: Operation, timeout_us: int, done: Callable[[Completion], None]
    ) -> None:
        """Perform one operation; ``done`` is called once."""
        ...

    def close(self) -> None:
        """Drop the connection; ``done`` of an open operation is never called."""
        ...


class SimulatedDisk(Protocol):
    """Faults of one node's disk; each returns in words the change, None if impossible."""

    @property
    def files(self) -> DataFiles:
        """Durable files of the data folder; change them only while the node is down."""
        ...

    def slow_down(self, factor: int) -> str:
        """Multiply the time of each job; 1 heals."""
        ...

    def fill(self, spare_bytes: int) -> str:
        """Leave room for so many bytes; negative heals."""
        ...

    def fail_calls(self, action: str, count: int | None) -> str:
        """Fail the next ``count`` calls with EIO, once each as Linux does; None: all of them.

        ``action``: ``write``, ``sync``, ``rename`` or ``read``, which is of the log alone.
        """
        ...

    def mend(self) -> str:
        """Let every call succeed again, with room enough."""
        ...

    def rot(self, draw: int, what: str) -> str | None:
        """Flip bits of a flushed byte of one of the node's files.

        ``what``: ``log``, ``state`` (epoch and vote), ``checkpoint`` (where epochs begin), ``mark``
        (how much was flushed) or ``identity`` (whose disk it is, and who votes).
        """
        ...

    def roll_back(self) -> str | None:
        """Put the disk back to the last ``remember``, which no format can detect."""
        ...

    def remember(self) -> None:
        """Keep a copy of the disk for ``roll_back``."""
        ...

    def wipe(self) -> str:
        """Empty the disk."""
        ...


class SimulatedCluster(Protocol):
    """A system's nodes in a simulated world."""

    #: Voters first.
    nodes: tuple[NodeName, ...]
    #: Nodes that do not vote; see ``System.observers``.
    observers: tuple[NodeName, ...]

    def start(self, node: NodeName) -> None:
        """Start a node; do nothing if it is up."""
        ...

    def kill(self, node: NodeName, draw: int) -> None:
        """End its process; the page cache stays. Do nothing if it is down."""
        ...

    def terminate(self, node: NodeName, draw: int) -> None:
        """Ask its process to end, as SIGTERM does: it ends later, or never if it is frozen.

        A process that cannot be asked yet ends at once. Do nothing if it is down.
        """
        ...

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> str:
        """End their processes, lose unsynced bytes, and return in words the loss."""
        ...

    def pause(self, node: NodeName) -> None:
        """Freeze its process."""
        ...

    def resume(self, node: NodeName) -> None:
        """Undo pause."""
        ...

    def jump_clock(self, node: NodeName, delta_us: int) -> None:
        """Move its wall clock."""
        ...

    def is_up(self, node: NodeName) -> bool:
        """Whether its process exists, frozen or not."""
        ...

    def is_paused(self, node: NodeName) -> bool:
        """Whether it is frozen."""
        ...

    def ended(self, node: NodeName) -> str | None:
        """Return why it ended by itself, None if it did not."""
        ...

    def leader(self) -> LeaderView:
        """Return the running leader of the highest epoch."""
        ...

    def disk(self, node: NodeName) -> SimulatedDisk:
        """Return its disk."""
        ...

    def may_forget(self, node: NodeName) -> bool:
        """Return whether the promise holds even if this node loses its disk now.

        True if every electing set of the others has every committed record and every vote cast.
        """
        ...

    def open_client(self, slot: int, route: Route) -> SimulatedClient:
        """Return a fresh client, which connects at its first operation."""
        ...

    def committed_past(self, time_us: int) -> bool:
        """Return whether a record proposed after this time has been committed."""
        ...

    def unlike(self, among: Sequence[NodeName]) -> str | None:
        """Return how these nodes differ in log or applied state; None if they agree."""
        ...

    def healed(self, among: Sequence[NodeName]) -> None:
        """Expect progress from now on: faults are over, these nodes are up and connected."""
        ...

    def finish(self) -> None:
        """End the run.

        Raises:
            ViolationError: an invariant of the whole run does not hold.
        """
        ...

    def epoch(self, node: NodeName) -> int:
        """Return the epoch of its last state event; 0 before any."""
        ...

    def state_events(self, node: NodeName) -> tuple[StateEvent, ...]:
        """Return its state events, stamped with virtual time."""
        ...

    def committed_log(self, node: NodeName) -> CommittedLog | None:
        """Return the committed log on its disk; None where it is unknown."""
        ...

    def lie(self) -> str | None:
        """Return the first disk fault that no format can detect, if any."""
        ...

    def figures(self) -> dict[str, int]:
        """Return counts (commits, epochs, truncations, reads ...), for summaries."""
        ...


class SimulatedSystem(Protocol):
    """Factory of a system's nodes in a world."""

    #: Happenings that faults may wait for; drawn as often as they are listed.
    happenings: tuple[str, ...]
    #: Happenings that faults may wait for as well, and that only ``dressed`` draws.
    happenings_undrawn: tuple[str, ...]
    #: Ids of the invariants that watch its nodes; each may be muted.
    invariants: tuple[str, ...]

    def describe(self, message: Any) -> tuple[str, str, bool]:
        """Return a message's name and detail, and whether it carries nothing new."""
        ...

    def draw_settings(self, stream: RandomSource, round_trip_us: int) -> dict[str, str]:
        """Draw a world's settings, by the system's own names, from this stream alone.

        ``round_trip_us`` is what a request and its answer may take when nothing is wrong, with a
        flush in between; the timeouts must be well above it.
        """
        ...

    def dressed(self, scenario: Scenario, state_machine: str, stream: RandomSource) -> Scenario:
        """Return the world as drawn, with this state machine above its logs, and with its needs."""
        ...

    def traits(self, scenario: Scenario) -> dict[str, str]:
        """Return traits of a world that its settings tell, by name, for who chooses worlds."""
        ...

    def failover_us(self, settings: dict[str, str]) -> int:
        """Return about how long replacing a dead leader takes; the world's time scale."""
        ...

    def planted(self, scenario: Scenario) -> "SimulatedSystem":
        """Return the system with the planted bugs of a scenario, for its world alone.

        Raises:
            UsageError: there is no such bug, or it does not go with the others.
        """
        ...

    def cluster(self, world: Any, *, muted: frozenset[str] = frozenset()) -> SimulatedCluster:
        """Return all nodes, formatted and down; ``muted`` invariants do not watch.

        ``world`` is a ``simulation.world.world.SimulatedWorld``, which no contract may import.

        Raises:
            UsageError: a setting of the scenario does not exist.
        """
        ...
