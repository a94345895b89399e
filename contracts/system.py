"""A system under test, as the harness sees it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import DeploymentSpec, ImageSource, Placement, Runtime
from splitbrain.contracts.scenario import NODES_MAX

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


#: Scope of a read's answer about what the system still holds:
#: ``member``: for the member that answered, others may hold what it lacks;
#: ``converged``: for all members once ``System.converged`` has returned, else for that member;
#: ``cluster``: for all at any time, since reads go through a quorum.
ReadsSpeakFor = Literal["member", "converged", "cluster"]


#: Asks the runtime where a node will live: its name, its folder in the run folder, wanted ports.
Place = Callable[[NodeName, Path, Mapping[str, int]], Placement]


class System(ABC):
    """Adapter of one system under test; one instance per run.

    Adapters derive from it and say what their system has; all else defaults to what can be
    claimed of any system. Without defaults are its name, its deployment, when it is ready, and
    its client.
    """

    name: str
    #: Whether nodes write state events.
    declares_state_events: bool = False
    #: Whether a stopped node's data folder shows its committed log.
    declares_committed_logs: bool = False
    #: Whether nodes tell what they have flushed (``NodeSpec.durable_lengths_path``), so that a
    #: runtime without disks of its own can cut their power.
    declares_durable_lengths: bool = False
    #: For whom an answered read speaks: where one member's answer speaks for all, what it lacks is
    #: lost; else it is lost once every member that votes has answered a final read without it.
    reads_speak_for: ReadsSpeakFor = "member"
    #: State machines above its log, the usual one first; empty where there is no choice.
    state_machines: Sequence[str] = ()
    #: Numbers of nodes that ``check_options`` lets through.
    node_counts: Sequence[int] = range(1, NODES_MAX + 1)

    @property
    def planted_bugs(self) -> Mapping[str, str]:
        """Planted bugs of this build, kebab-case, each with what it does in one sentence."""
        return {}

    def planted_patches(self, options: Experiment) -> Mapping[str, str]:
        """Patches of the nodes' source that plant the experiment's bugs, by the bugs' names."""
        return {}

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Return the workloads for a state machine, the usual first; None: for the usual one."""
        return ("register",)

    def observers(self, options: Experiment) -> Sequence[NodeName]:
        """Return the nodes that do not vote; their names follow those of the voters.

        Clients that are pinned are pinned to them, where there are any. Faults that are aimed at a
        role or at chance pass them over; plans may name them.
        """
        return ()

    def images(self) -> Sequence[ImageSource]:
        """Return the sources of the nodes' images."""
        return ()

    def check_options(self, options: Experiment) -> None:
        """Raise UsageError for a number of nodes, a bug, a setting or a value that is unknown."""
        if options.nodes not in self.node_counts:
            counts = ", ".join(map(str, self.node_counts))
            raise UsageError(
                f"{self.name} does not run on {options.nodes} nodes",
                f"Give --nodes one of {counts}.",
            )
        for bug in options.bugs:
            raise UsageError(f"{self.name} has no planted bug {bug!r}", "Leave --bug out.")
        for setting in options.settings:
            raise UsageError(f"{self.name} has no setting {setting!r}", "Leave --setting out.")

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

    def leader(self, runtime: Runtime, timeout_s: float) -> LeaderView:
        """Ask the nodes; of several that claim to lead the highest epoch wins."""
        return LeaderView(None, None)

    @abstractmethod
    def open_client(self, runtime: Runtime, route: Route) -> Client:
        """Return a fresh client, which connects at its first operation."""
        ...

    def state_event_file(self, run_folder: Path, node: NodeName) -> Path | None:
        """Return the file of the node's state events (unstamped), None if it writes none."""
        return None

    def converged(self, runtime: Runtime) -> None:
        """Return when all nodes hold the same committed log, else raise with what is missing."""
        return

    def metrics(
        self, runtime: Runtime, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Ask one node for the system's own figures, by the system's own names.

        May be called from several threads at a time, for different nodes. Returns within
        ``timeout_s``, with None where the node does not answer.
        """
        return None

    def committed_log(self, node: NodeName, data_folder: Path) -> CommittedLog:
        """Read a stopped node's collected data folder; raises HarnessError if it is unreadable."""
        raise HarnessError(
            "read a committed log",
            f"{node}: {data_folder}",
            f"{self.name} keeps no log that the nodes agree on",
            "Judge its runs by their histories.",
        )

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
