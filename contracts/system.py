"""A system under test, as the harness sees it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import DeploymentSpec, ImageSource, Placement, Runtime

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


class System(Protocol):
    """Adapter of one system under test; one instance per run."""

    name: str
    #: Whether nodes write state events.
    declares_state_events: bool
    #: Whether a stopped node's data folder shows its committed log.
    declares_committed_logs: bool
    #: Whether nodes tell what they have flushed (``NodeSpec.durable_lengths_path``), so that a
    #: runtime without disks of its own can cut their power.
    declares_durable_lengths: bool
    #: For whom an answered read speaks: where one member's answer speaks for all, what it lacks is
    #: lost; else it is lost once every member that votes has answered a final read without it.
    reads_speak_for: ReadsSpeakFor
    #: State machines above its log, the usual one first; empty where there is no choice.
    state_machines: Sequence[str]

    @property
    def planted_bugs(self) -> Mapping[str, str]:
        """Planted bugs of this build, kebab-case, each with what it does in one sentence."""
        ...

    def planted_patches(self, options: Experiment) -> Mapping[str, str]:
        """Patches of the nodes' source that plant the experiment's bugs, by the bugs' names."""
        ...

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Return the workloads for a state machine, the usual first; None: for the usual one."""
        ...

    def observers(self, options: Experiment) -> Sequence[NodeName]:
        """Return the nodes that do not vote; their names follow those of the voters.

        Clients that are pinned are pinned to them, where there are any. Faults that are aimed at a
        role or at chance pass them over; plans may name them.
        """
        ...

    def images(self) -> Sequence[ImageSource]:
        """Return the sources of the nodes' images."""
        ...

    def check_options(self, options: Experiment) -> None:
        """Raise UsageError for a number of nodes, a bug, a setting or a value that is unknown."""
        ...

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        """Describe the cluster; makes folders below the run folder, starts nothing."""
        ...

    def ready(self, runtime: Runtime) -> None:
        """Return when the cluster can serve, else raise an exception that says what is missing.

        Asked again and again by the harness (tenacity) until its patience ends.
        """
        ...

    def leader(self, runtime: Runtime, timeout_s: float) -> LeaderView:
        """Ask the nodes; of several that claim to lead the highest epoch wins."""
        ...

    def open_client(self, runtime: Runtime, route: Route) -> Client:
        """Return a fresh client, which connects at its first operation."""
        ...

    def state_event_file(self, run_folder: Path, node: NodeName) -> Path | None:
        """Return the file of the node's state events (unstamped), None if it writes none."""
        ...

    def converged(self, runtime: Runtime) -> None:
        """Return when all nodes hold the same committed log, else raise with what is missing."""
        ...

    def metrics(
        self, runtime: Runtime, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Ask one node for the system's own figures, by the system's own names.

        May be called from several threads at a time, for different nodes. Returns within
        ``timeout_s``, with None where the node does not answer.
        """
        ...

    def committed_log(self, node: NodeName, data_folder: Path) -> CommittedLog:
        """Read a stopped node's collected data folder; raises HarnessError if it is unreadable."""
        ...

    def record_at(self, file: str, before: bytes) -> str | None:
        """Return in words the system's record at a byte of a data file; None where it cannot tell.

        ``before`` are all bytes of the file up to that one; what follows may be damaged.
        """
        ...

    def versions(self) -> dict[str, str]:
        """Return the version of the system under test, for ``plan.json``."""
        ...

    def simulation(self) -> "SimulatedSystem | None":
        """Return the factory of its simulated nodes; None if it has none."""
        ...


#: Names of ports that adapters use.
CLIENT_PORT = "client"
PEER_PORT = "peer"

#: Kinds of routes in the order in which worker slots get them.
ROUTE_KINDS: Sequence[str] = ("leader", "pinned")
