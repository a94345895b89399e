"""A simulated world as data, and how it may end.

A ``Scenario`` says all that a simulated run depends on: options, faults, load. Same scenario, same
run, bit for bit; shrinking takes parts of it away. Times are integer microseconds of virtual time.
Source: design, section 9.
"""

import msgspec

from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import NodeName

#: Version of the scenario's form.
SCENARIO_SCHEMA = 3
#: Nodes that vote, and that only follow, in a run of any kind.
NODES_MAX = 9
#: Files of JSON and of other tools hold no larger whole number safely.
SEED_MAX = 2**63 - 1


class NetworkOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How messages travel. Chances are per message."""

    delay_us_min: int = 200
    delay_us_max: int = 1_000
    #: Chance to take up to ``slow_us_max``.
    slow_chance: float = 0.0
    slow_us_max: int = 300_000
    #: Chance that the connection is reset instead.
    reset_chance: float = 0.0
    #: Chance that an answer is lost after the request was executed, by a reset.
    lost_answer_chance: float = 0.0
    #: Chance that its connection stalls for a while in this direction.
    stall_chance: float = 0.0
    stall_us_max: int = 1_000_000
    #: Chance that a crash leaves the other end waiting instead of a reset.
    half_open_chance: float = 0.3


class DiskOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long jobs of the disk take, and what a crash leaves."""

    latency_us_min: int = 100
    latency_us_max: int = 2_000
    slow_chance: float = 0.0
    slow_us_max: int = 200_000
    #: Chance that a crash keeps part of the unsynced bytes; else all of them are lost.
    torn_chance: float = 0.5


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load of the clients."""

    workload: str = "register"
    workload_options: dict[str, str] = {}
    #: Worker slots; as in containers, half follow the leader and half are pinned.
    clients: int = 5
    #: The last so many of them only read where the workload can, pinned to the voters in turn.
    readers: int = 0
    #: Operations per second over all slots.
    rate: float = 50.0
    timeout_us: int = 1_000_000
    #: The same of those that only read; None: no other.
    readers_timeout_us: int | None = None
    #: Operations of a slot after which it ends; None: when the load is over.
    operations_per_slot: int | None = None
    #: Only these operations, as (slot, n); None: all. The work of the shrinker.
    kept: tuple[tuple[int, int], ...] | None = None


class RecoveryOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The course after the faults."""

    #: ``all``: every node and link; ``majority``: a random majority, the rest stays dead or cut.
    scope: str = "all"
    #: How long progress may take, and nodes to agree.
    patience_us: int = 10_000_000
    #: How long no further epoch may begin until epochs count as settled.
    settle_us: int = 2_000_000


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A whole simulated world."""

    schema: int = SCENARIO_SCHEMA
    system: str
    seed: int
    nodes: int = 3
    observers: int = 0
    bugs: tuple[str, ...] = ()
    #: The system's own settings by its own names.
    settings: dict[str, str] = {}
    segment_bytes: int = 64 * 1024 * 1024
    #: Whether every message between nodes goes through the wire codec.
    through_codec: bool = False
    #: Drift of each node's clock, parts per million; missing ones have none.
    drift_ppm: tuple[int, ...] = ()
    network: NetworkOptions = NetworkOptions()
    disk: DiskOptions = DiskOptions()
    load: LoadOptions = LoadOptions()
    faults: tuple[Fault, ...] = ()
    #: How long clients work and faults may strike.
    load_us: int = 3_000_000
    recovery: RecoveryOptions = RecoveryOptions()
    #: Whether faults may go beyond what Raft promises to survive.
    beyond_promise: bool = False
    #: No invariant watches: only what clients saw and what the nodes left is judged, as for a run
    #: in containers. A defect, something raised, ends the run all the same.
    unwatched: bool = False
    #: State machine above the logs, by the system's own names.
    state_machine: str = "registers"


class Violation(msgspec.Struct, frozen=True):
    """An invariant that did not hold; the run ends there."""

    #: Id in ``docs/invariants.md``.
    invariant: str
    problem: str
    time_us: int
    #: Number of the world's step in which it was seen.
    step: int
    node: NodeName | None = None
    #: Of an invariant that can be broken for many reasons, which of them; no numbers, no names.
    kind: str | None = None


class ViolationError(Exception):
    """Raised where an invariant does not hold."""

    def __init__(
        self, invariant: str, problem: str, node: NodeName | None = None, *, kind: str | None = None
    ) -> None:
        super().__init__(f"{invariant}: {problem}")
        self.invariant = invariant
        self.problem = problem
        self.node = node
        self.kind = kind


class NodeCrashed(BaseException):
    """Ends the present step of a node that a fault has just killed; no error of anybody.

    Not an ``Exception``, so that no handler within the node takes it for a defect.
    """
