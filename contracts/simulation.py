"""Protocols between the parts of an exact simulation.

These protocols let a system's hosts live in the generic world (``simulation.world``) without
either knowing the other. What a world is made from is data (``contracts.scenario``). Times are
integer microseconds of virtual time. The module is longer than 400 lines because every side of a
world has its protocol here. Source: design, section 9.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from splitbrain.contracts.arms import DataFiles
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.random_source import RandomSource
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView, Route

_Thing = TypeVar("_Thing")


class Timer(Protocol):
    """Something that will happen."""

    @property
    def is_pending(self) -> bool:
        """Whether it is still to come."""
        ...

    def cancel(self) -> None:
        """It will not; nothing happens if it has."""
        ...


class ClientEnd(Protocol):
    """Told what comes of a connection that it opened."""

    def answered(self, message: Any) -> None:
        """The server sent something."""
        ...

    def lost(self, reason: str, *, refused: bool) -> None:
        """The connection is gone. Refused: nobody listens there."""
        ...


class ServerEnd(Protocol):
    """One life of a process that listens."""

    def requested(self, connection: int, source: str, message: Any) -> None:
        """A client sent something; answered by ``Network.answer``."""
        ...

    def disconnected(self, connection: int) -> None:
        """The client's end is gone."""
        ...


class Connection(Protocol):
    """The opener's end of a connection: first in, first out."""

    def send(self, message: Any) -> None:
        """Towards the server; arrives, stalls, or the connection is lost."""
        ...

    def close(self) -> None:
        """Nothing is reported any more; the server hears of it after all that was sent."""
        ...


class Network(Protocol):
    """Connections between named places; nodes and clients alike."""

    def listen(self, place: str, server: ServerEnd) -> None:
        """A process takes connections at this place until ``crash``."""
        ...

    def connect(
        self,
        source: str,
        place: str,
        client: ClientEnd,
        *,
        opened: Callable[[], None] | None = None,
    ) -> Connection:
        """Open a connection; what comes of it is seen when something is sent.

        ``opened`` is called once when the opener's machine has heard that it is accepted, frozen
        or not as the process behind it may be; not where that is never heard.
        """
        ...

    def answer(self, place: str, connection: int, message: Any) -> None:
        """From the server to the opener of a connection; dropped if that is gone."""
        ...

    def crash(self, place: str) -> None:
        """The process at this place is gone, with both ends of its connections."""
        ...

    def hang_up(self, place: str) -> None:
        """The process at this place ends in order: its peers hear of it after all it had sent."""
        ...


class World(Protocol):
    """Means of everything in a simulated world."""

    @property
    def now(self) -> int:
        """Virtual time."""
        ...

    @property
    def step(self) -> int:
        """Number of the present step."""
        ...

    @property
    def network(self) -> Network:
        """Its connections."""
        ...

    @property
    def scenario(self) -> Scenario:
        """What the world was made from."""
        ...

    @property
    def is_recording(self) -> bool:
        """Whether somebody keeps the story of this run; look before making records for it."""
        ...

    def after(self, delay_us: int, action: Callable[[], None]) -> Timer:
        """Run an action later; equal times in the order of asking."""
        ...

    def stream(self, purpose: str) -> RandomSource:
        """The random stream of one purpose."""
        ...

    def between(self, purpose: str, low: int, high: int) -> int:
        """An integer, both bounds included."""
        ...

    def chance(self, purpose: str, probability: float) -> bool:
        """Whether something of this probability happens; draws nothing for 0."""
        ...

    def pick(self, purpose: str, things: Sequence[_Thing]) -> _Thing:
        """One of them."""
        ...

    def absorb(self, content: bytes) -> None:
        """Take something that just happened into the trace hash."""
        ...

    def happened(self, node: NodeName, name: str) -> None:
        """A node has just done something that a fault may wait for.

        Raises:
            NodeCrashed: a fault killed it at that.
        """
        ...

    def record(self, record: object) -> int:
        """Keep a record of ``history.timeline_records`` for the story; its number, -1 for none."""
        ...

    def amend(self, number: int, record: object) -> None:
        """Replace a record, once more is known of it."""
        ...


class SimulatedClient(Protocol):
    """One worker slot's client; as ``contracts.operations.Client``, in virtual time."""

    def invoke(
        self, operation: Operation, timeout_us: int, done: Callable[[Completion], None]
    ) -> None:
        """Perform one operation; ``done`` is called once."""
        ...

    def close(self) -> None:
        """Drop the connection; ``done`` of an open operation is not called any more."""
        ...


class SimulatedDisk(Protocol):
    """Faults of one node's disk; each returns what was done, in words, None: nothing could be."""

    @property
    def files(self) -> DataFiles:
        """The files of its data folder, as they are durable; changed only while it is down."""
        ...

    def slow_down(self, factor: int) -> str:
        """Jobs take so many times as long; 1 heals."""
        ...

    def fill(self, spare_bytes: int) -> str:
        """No more than so many bytes fit from now on; negative heals."""
        ...

    def fail_calls(self, action: str, count: int | None) -> str:
        """The next calls fail with EIO, once each as Linux does it; None: all of them.

        ``action``: ``write``, ``sync``, ``rename`` or ``read``, which is of the log alone.
        """
        ...

    def mend(self) -> str:
        """Every call succeeds again, and the disk is large enough."""
        ...

    def rot(self, draw: int, what: str) -> str | None:
        """Flip bits of a flushed byte of one of the node's files.

        ``what``: ``log``, ``state`` (epoch and vote), ``checkpoint`` (where epochs begin), ``mark``
        (how much was flushed) or ``identity`` (whose disk it is, and who votes).
        """
        ...

    def roll_back(self) -> str | None:
        """Put the disk back to what it was at the last ``remember``; a lie that nobody detects."""
        ...

    def remember(self) -> None:
        """Note what the disk holds."""
        ...

    def wipe(self) -> str:
        """Empty it; the node comes back as one without a past."""
        ...


class SimulatedCluster(Protocol):
    """A system's nodes in a simulated world; what runs them is the system's business."""

    #: Voters first.
    nodes: tuple[NodeName, ...]
    #: Those that do not vote and that clients are pinned to, as ``System.observers`` says of them.
    observers: tuple[NodeName, ...]

    def start(self, node: NodeName) -> None:
        """Start a node that is down; nothing happens if it is up."""
        ...

    def kill(self, node: NodeName, draw: int) -> None:
        """End its process: memory gone, page cache stays. Nothing happens if it is down."""
        ...

    def terminate(self, node: NodeName, draw: int) -> None:
        """Ask its process to end, as SIGTERM does: it ends later, or never if it is frozen.

        One that cannot be asked yet ends at once. Nothing happens if it is down.
        """
        ...

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> str:
        """End their processes and lose what they had not synced; what was lost, in words."""
        ...

    def pause(self, node: NodeName) -> None:
        """Freeze it."""
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
        """Why it ended by itself, None if it did not."""
        ...

    def leader(self) -> LeaderView:
        """The running leader of the highest epoch."""
        ...

    def disk(self, node: NodeName) -> SimulatedDisk:
        """Its disk."""
        ...

    def may_forget(self, node: NodeName) -> bool:
        """Whether the promise holds even if this node forgets all that its disk holds now.

        True where every set of others that can elect still has a copy of every committed record
        and of every vote cast.
        """
        ...

    def open_client(self, slot: int, route: Route) -> SimulatedClient:
        """A fresh client; connects at its first operation."""
        ...

    def committed_past(self, time_us: int) -> bool:
        """Whether a record was committed after this time that was proposed after it."""
        ...

    def unlike(self, among: Sequence[NodeName]) -> str | None:
        """Why these nodes do not hold, and have not applied, the same; None if they do."""
        ...

    def healed(self, among: Sequence[NodeName]) -> None:
        """No fault from now on; these nodes are up and reach each other: progress is due."""
        ...

    def finish(self) -> None:
        """The run is over.

        Raises:
            ViolationError: an invariant of the whole run does not hold.
        """
        ...

    def epoch(self, node: NodeName) -> int:
        """Epoch that it last said to be in; 0 before it has said anything."""
        ...

    def state_events(self, node: NodeName) -> tuple[StateEvent, ...]:
        """What it said of itself, stamped with virtual time."""
        ...

    def committed_log(self, node: NodeName) -> CommittedLog | None:
        """What its disk holds of the committed log; None where nothing tells."""
        ...

    def lie(self) -> str | None:
        """The first fault by which a disk told its node what no format can detect; None: none."""
        ...

    def figures(self) -> dict[str, int]:
        """Counts of what happened (commits, epochs, truncations, reads ...), for summaries."""
        ...


class SimulatedSystem(Protocol):
    """Makes a system's nodes in a world."""

    #: Happenings that faults may wait for; drawn as often as they are listed.
    happenings: tuple[str, ...]
    #: Happenings that faults may wait for as well, and that only ``dressed`` draws.
    happenings_undrawn: tuple[str, ...]
    #: Ids of the invariants that watch its nodes; each may be muted.
    invariants: tuple[str, ...]

    def describe(self, message: Any) -> tuple[str, str, bool]:
        """Name and detail of a message on the network, and whether it carries nothing new."""
        ...

    def draw_settings(self, stream: RandomSource, round_trip_us: int) -> dict[str, str]:
        """Settings drawn for a world; by the system's own names.

        Args:
            stream: the only source of chance.
            round_trip_us: what a request and its answer may take when nothing is wrong, with a
                flush in between; the timeouts must be well above it.
        """
        ...

    def dressed(self, scenario: Scenario, state_machine: str, stream: RandomSource) -> Scenario:
        """The world with something else above the log of its nodes, and what that needs.

        Args:
            scenario: as it was drawn.
            state_machine: one of ``System.state_machines``.
            stream: the only source of chance.
        """
        ...

    def failover_us(self, settings: dict[str, str]) -> int:
        """About how long these settings take to replace a dead leader; the world's time scale."""
        ...

    def planted(self, scenario: Scenario) -> "SimulatedSystem":
        """The same with the planted bugs of a scenario; used for its world alone.

        Raises:
            UsageError: there is no such bug, or it does not go with the others.
        """
        ...

    def cluster(self, world: World, *, muted: frozenset[str] = frozenset()) -> SimulatedCluster:
        """All nodes, formatted and down. ``muted`` invariants do not watch.

        Raises:
            UsageError: a setting of the scenario does not exist.
        """
        ...
