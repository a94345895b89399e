"""A system under test, as the harness sees it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from splitbrain.contracts.arms import MemberArm
from splitbrain.contracts.committed import CommittedLog, RecordForm, ReplicaLog
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment, check_settings
from splitbrain.contracts.explanation import Explanation
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import (
    SIMULATED,
    DeploymentSpec,
    ImageSource,
    Placement,
    Runtime,
)
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.contracts.state_event import Resigning, StateEvent

if TYPE_CHECKING:
    # A cycle: it imports ``Route`` and ``LeaderView`` from here.
    from splitbrain.contracts.simulation import SimulatedSystem


class Route(msgspec.Struct, frozen=True):
    """The node that a client talks to, or asks first."""

    kind: Literal["pinned", "leader"]
    #: For ``pinned``: the node. For ``leader``: where to ask first.
    node: NodeName


class LeaderView(msgspec.Struct, frozen=True):
    """The leader, as far as the nodes that answered say."""

    leader: NodeName | None
    epoch: int | None
    #: Node that decides about metadata, where the data have leaders of their own.
    controller: NodeName | None = None


class Tempo(msgspec.Struct, frozen=True, kw_only=True):
    """How long a system may take, in seconds; the harness waits and draws by it."""

    #: From the start of its nodes until it can serve.
    ready_s: float = 60.0
    #: Until its nodes agree, once every fault is healed.
    converged_s: float = 30.0
    #: Until a node that starts again answers; also until a heal has worked.
    started_s: float = 15.0
    #: Until clients are served again after a heal.
    resumed_s: float = 15.0
    #: Until it notices that a node is gone or cut off; every other fault that is drawn lasts half
    #: as long again, where the time limit lets it. None: within the usual length of a fault.
    notices_s: float | None = None
    #: Until another leads in place of a leader that is gone; None: nobody knows.
    failover_s: float | None = None


class AllowedAnomaly(msgspec.Struct, frozen=True):
    """Kind of violation that a system documents: counted and shown, and never an alarm."""

    #: As verdicts name it, without options: ``queue-totals``, ``linearizability:mutex``.
    checker: str
    #: Of the violation: ``duplicated``, ``not-linearizable``.
    kind: str
    #: Where the system documents it, or in which words; a clause.
    why: str


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in which a checker finds a violation, whatever the seed: a night must see it.

    By a planted bug, or by what the system is known to lose.
    """

    nemesis: str
    #: None: the usual one.
    workload: str | None = None
    #: Planted bugs, switched on together.
    bugs: tuple[str, ...] = ()
    #: Settings by which the system gives up what it promises else.
    settings: Mapping[str, str] = {}
    time_limit_s: float = 15.0


#: Scope of a read's answer about what the system still holds:
#: ``member``: for the member that answered, others may hold what it lacks;
#: ``converged``: for all members once ``System.converged`` has returned, else for that member;
#: ``cluster``: for all at any time, since reads go through a quorum.
ReadsSpeakFor = Literal["member", "converged", "cluster"]


#: Asks the runtime where a node will live: its name, its folder in the run folder, wanted ports.
Place = Callable[[NodeName, Path, Mapping[str, int]], Placement]


#: Of ``System.runtimes``.
ONLY_IMAGES: Sequence[str] = ("docker",)


class System(ABC):
    """Adapter of one system under test; one instance per run, made without arguments.

    Adapters derive from it and say what their system has; all else defaults to what can be
    claimed of any system. Without defaults are its name, its deployment, when it is ready, and
    its client.
    """

    name: str
    #: Experiment that the instance is for, its settings among it; set before anything else is asked
    #: of it, None where it is only listed. ``workload`` is named once there is a plan.
    experiment: Experiment | None = None
    #: Whether nodes tell state events: to a file as they happen (``state_event_file``), or in what
    #: they print, which is read once the run is over (``events_printed``).
    declares_state_events: bool = False
    #: Promise about leaders, by these events; None: nobody promises anything.
    resigning: Resigning | None = None
    #: Whether a stopped node's data folder shows its committed log.
    declares_committed_logs: bool = False
    #: Whether it shows the replicas of partitioned logs, too (``replica_logs``).
    declares_replica_logs: bool = False
    #: Whether running nodes tell digests of their states (``digest``), which must be equal.
    declares_digests: bool = False
    #: Lines of its nodes' logs that are defects, or look like one and are harmless.
    log_patterns: Sequence[LogPattern] = ()
    #: Whether nodes tell what they have flushed (``NodeSpec.durable_lengths_path``), so that a
    #: runtime without disks of its own can cut their power.
    declares_durable_lengths: bool = False
    #: Kinds of operations whose records look otherwise than what was asked: of a store that logs a
    #: compare-and-set as the write that came of it, ``{"cas": RecordForm("write", part=1)}``.
    record_forms: Mapping[str, RecordForm] = {}
    #: For whom an answered read speaks: where one member's answer speaks for all, what it lacks is
    #: lost; else it is lost once every member that votes has answered a final read without it.
    reads_speak_for: ReadsSpeakFor = "member"
    #: Errors of operations that are refused for the sake of others at the same time, without any
    #: fault: ``("deadlock",)``.
    conflicts: Sequence[str] = ()
    #: State machines above its log, the usual one first; empty where there is no choice.
    state_machines: Sequence[str] = ()
    #: Numbers of nodes that ``check_options`` lets through.
    node_counts: Sequence[int] = range(1, NODES_MAX + 1)
    #: Settings that ``check_options`` lets through, each with the value that it has if none is
    #: given, or with all values that it can have, that one first.
    settings: Mapping[str, str | tuple[str, ...]] = {}
    #: The least and the largest value of those that are whole numbers, which it holds them to.
    bounds: Mapping[str, tuple[int, int]] = {}
    #: Versions that ``NAME@VERSION`` chooses from, the usual one first; empty: there is no choice.
    offered_versions: Sequence[str] = ()
    #: The chosen one; None: the usual one, if any.
    chosen_version: str | None = None
    #: Runtimes that its nodes can live in; ``ONLY_IMAGES`` where images alone bring its programs.
    runtimes: Sequence[str] = ("docker", "local", SIMULATED)
    #: Whether clients ask ``observers``.
    observers_serve: bool = True
    #: Whether ``leader`` tells a controller, too.
    names_controllers: bool = False
    canary: Canary | None = None

    @property
    def version(self) -> str | None:
        """Version that this instance deploys; None where there is no choice."""
        return self.chosen_version or next(iter(self.offered_versions), None)

    @property
    def planted_bugs(self) -> Mapping[str, str]:
        """Planted bugs of this build, kebab-case, each with what it does in one sentence."""
        return {}

    @property
    def explanations(self) -> Mapping[str, Sequence[Explanation]]:
        """Words on things of its own, by their group: "invariant", "planted bug", "exit code"."""
        return {}

    def planted_patches(self, options: Experiment) -> Mapping[str, str]:
        """Patches of the nodes' source that plant the experiment's bugs, by the bugs' names."""
        return {}

    def tempo(self) -> Tempo:
        """Return how long it may take, with the experiment's settings."""
        return Tempo()

    def allowed(self) -> Sequence[AllowedAnomaly]:
        """Return the anomalies that it documents, with the experiment's settings.

        They are kept in the run's plan. Everything else that a checker finds stays a violation.
        """
        return ()

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Return the workloads for a state machine, the usual first; None: for the usual one."""
        return ("register",)

    def workload_options(self, workload: str) -> Mapping[str, str]:
        """Return options that a workload has with this system where the user gives no others.

        By them a system promises more or less: ``{"promise": "fifo"}`` of an ordered ``queue``.
        """
        return {}

    def observers(self, options: Experiment) -> Sequence[NodeName]:
        """Return the nodes that do not vote; their names follow those of the voters.

        Clients that are pinned are pinned to them, unless ``observers_serve`` is false. Faults
        that are aimed at a role or at chance pass them over; plans may name them.
        """
        return ()

    def session_ms(self, options: Experiment) -> int | None:
        """Return how long an observer may be silent before the leader takes it out of service.

        Its committed log says so then (``contracts.committed.Standing``). In milliseconds; None:
        nobody promises that.
        """
        return None

    def images(self) -> Sequence[ImageSource]:
        """Return the sources of the nodes' images."""
        return ()

    def check_options(self, options: Experiment) -> None:
        """Raise UsageError for a number of nodes, a bug, a setting or a value that is unknown."""
        self.check_runtime(options.runtime)
        if options.nodes not in self.node_counts:
            counts = ", ".join(map(str, self.node_counts))
            raise UsageError(
                f"{self.name} does not run on {options.nodes} nodes",
                f"Give --nodes one of {counts}",
            )
        for bug in options.bugs:
            raise UsageError(f"{self.name} has no planted bug {bug!r}", "Leave --bug out")
        check_settings(self.name, options.settings, self.settings, self.bounds)

    def check_runtime(self, runtime: str) -> None:
        """Raise UsageError for a runtime that its nodes cannot live in."""
        if runtime not in self.runtimes:
            raise UsageError(
                f"{self.name} does not run on the runtime {runtime}",
                f"Use --runtime {' or '.join(self.runtimes)}",
            )

    def setting(self, name: str) -> str:
        """Return the value in force of one of ``settings``."""
        given = {} if self.experiment is None else self.experiment.settings
        usual = self.settings[name]
        return given.get(name, usual if isinstance(usual, str) else usual[0])

    @abstractmethod
    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        """Describe the cluster; makes folders below the run folder, starts nothing."""
        ...

    @abstractmethod
    def ready(self, runtime: Runtime) -> None:
        """Return when the cluster can serve, else raise an exception that says what is missing.

        Asked again and again by the harness (tenacity) until its patience ends.
        """
        ...

    def starts_again(self, node: NodeName) -> bool:
        """Whether a node that ends before the cluster is ready waits for others to be up.

        It is then started again, as long as the harness is patient.
        """
        return False

    def leader(self, runtime: Runtime, timeout_s: float) -> LeaderView:
        """Ask the nodes; of several that claim to lead the highest epoch wins."""
        return LeaderView(None, None)

    @abstractmethod
    def open_client(self, runtime: Runtime, route: Route) -> Client:
        """Return a fresh client, which connects at its first operation."""
        ...

    @property
    def names_leaders(self) -> bool:
        """Whether ``leader`` can say who leads; else faults hit by chance."""
        return type(self).leader is not System.leader

    def state_event_file(self, run_folder: Path, node: NodeName) -> Path | None:
        """Return the file of the node's state events (unstamped), None if it writes none."""
        return None

    @property
    def tells_events_at_once(self) -> bool:
        """Whether there are state events while a run goes on: faults may wait for one."""
        return self.declares_state_events and type(self).events_printed is System.events_printed

    def events_printed(
        self, node: NodeName, lines: Iterable[tuple[int | None, str]]
    ) -> Iterable[StateEvent]:
        """Return the state events in what a node printed in all its lives, in order.

        Each line comes with the time at which it was printed, nanoseconds since the run's start;
        None where nobody noted it.
        """
        return ()

    def recovered(self, runtime: Runtime) -> None:
        """Return when all nodes take part again while clients work, else raise as ``ready``."""
        self.ready(runtime)

    def converged(self, runtime: Runtime) -> None:
        """Return when all nodes hold the same committed log, else raise with what is missing."""
        return

    def members(self, runtime: Runtime) -> MemberArm | None:
        """Return the means to change its membership; None: faults leave that alone.

        Also asked for before the cluster is deployed: whether there are such means.
        """
        return None

    def metrics(
        self, runtime: Runtime, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Ask one node for the system's own figures, by the system's own names.

        May be called from several threads at a time, for different nodes. Returns within
        ``timeout_s``, with None where the node does not answer.
        """
        return None

    def digest(self, runtime: Runtime, node: NodeName, timeout_s: float) -> MemberDigest | None:
        """Ask one running node for the digest of its state, and the position that it stands at.

        Asked of systems that declare digests, every second and once the final reads are over, from
        several threads at a time for different nodes. Returns within ``timeout_s``, with None where
        the node does not answer, or cannot tell both as of one moment.
        """
        return None

    def digest_at(
        self, runtime: Runtime, node: NodeName, position: int, timeout_s: float
    ) -> MemberDigest | None:
        """Ask one node for the digest of its state as it was at an earlier position.

        Asked of nodes ahead of others, of systems that keep earlier states. Besides as ``digest``.
        """
        return None

    def provoke_digests(  # noqa: B027 - most members tell a digest at any time
        self, runtime: Runtime, timeout_s: float
    ) -> None:
        """Let the members move on until each of them notes a digest; leaves what clients see alone.

        Asked after the final reads while a running member tells none: where digests are noted every
        so many changes, one that came back late has not met one. Others leave it out.
        """

    def committed_log(self, node: NodeName, data_folder: Path) -> CommittedLog:
        """Read a stopped node's collected data folder; raises HarnessError if it is unreadable."""
        raise HarnessError(
            "read a committed log",
            f"{node}: {data_folder}",
            f"{self.name} keeps no log that the nodes agree on",
            "Judge its runs by their histories",
        )

    def replica_logs(self, node: NodeName, data_folder: Path) -> Sequence[ReplicaLog]:
        """Read a stopped node's replicas; raises HarnessError if its data are unreadable."""
        return ()

    def record_at(self, file: str, before: bytes) -> str | None:
        """Return in words the system's record at a byte of a data file; None where it cannot tell.

        ``before`` are all bytes of the file up to that one; what follows may be damaged.
        """
        return None

    def versions(self) -> dict[str, str]:
        """Return the version of the system under test, for ``plan.json``."""
        return {}

    def simulation(self) -> "SimulatedSystem | None":
        """Return the factory of its simulated nodes; None if it has none."""
        return None


#: Names of ports that adapters use.
CLIENT_PORT = "client"
PEER_PORT = "peer"

#: Kinds of routes in the order in which worker slots get them.
ROUTE_KINDS: Sequence[str] = ("leader", "pinned")
