"""etcd as a system under test: a cluster of members, asked by their JSON gateway.

Must never start or stop a node: the runtime does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import HostProgram, ImageSource
from splitbrain.contracts.system import (
    CLIENT_PORT,
    PEER_PORT,
    Canary,
    LeaderView,
    ReadsSpeakFor,
    Route,
    Tempo,
)
from splitbrain.systems.etcd.client import EtcdClient, Manner
from splitbrain.systems.etcd.members import EtcdMembers
from splitbrain.systems.etcd.status import (
    MemberView,
    ask_digest,
    ask_figures,
    ask_view,
    count_compared,
    put_compared,
)
from splitbrain.systems.questions import (
    Endpoints,
    ask_leader,
    not_yet,
    views_under_one_leader,
)
from splitbrain.systems.servers import Server, ServerSystem
from splitbrain.systems.workload_client import client_for

LINEARIZABLE, SERIALIZABLE = "linearizable", "serializable"
#: How long the members get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 2.0
#: For transactions that put a hundred keys each.
_FILLING_TIMEOUT_S: Final = 10.0
#: Those that are etcd's own, by its own names.
_NUMBERS: Final = ("heartbeat-interval", "election-timeout", "snapshot-count")
#: etcd refuses to start with fewer heartbeats before an election.
_HEARTBEATS_MIN: Final = 5


class EtcdSystem(ServerSystem):
    """Adapter of one run."""

    name = "etcd"
    offered_versions = ("3.6.16", "3.5.35", "3.5.2")
    ports: Mapping[str, int] = {CLIENT_PORT: 2379, PEER_PORT: 2380}
    #: A member that is cut off goes on answering such reads from its own copy.
    canary = Canary(nemesis="partition:follower", settings={"reads": SERIALIZABLE})
    declares_digests = True
    settings: Mapping[str, str | tuple[str, ...]] = {
        "reads": (LINEARIZABLE, SERIALIZABLE),
        "heartbeat-interval": "100",
        "election-timeout": "1000",
        "snapshot-count": "1000",
        "fsync": ("yes", "no"),
        "write-compares": "0",
    }
    bounds: Mapping[str, tuple[int, int]] = {
        "heartbeat-interval": (10, 10_000),
        "election-timeout": (50, 50_000),
        "snapshot-count": (10, 1_000_000_000),
        "write-compares": (0, 100_000),
    }
    log_patterns = (
        LogPattern(r'^\{"level":"(?:panic|fatal)"', "The server gave up."),
        LogPattern(r"^(?:panic|fatal error): ", "The server's program crashed."),
        LogPattern('"msg":"server error".* permanently removed', "The others removed the member."),
        LogPattern("found (?:data inconsistency|hash mismatch)", "Members have diverged."),
    )

    def __init__(self) -> None:
        self._servers: dict[NodeName, Server] = {}
        #: Where members reach each node.
        self._peer_urls: Mapping[NodeName, str] = {}

    @property
    def image(self) -> ImageSource:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Recipe of the version's image; nothing in it is linked with a C library."""
        return ImageSource(
            f"splitbrain-etcd-{self.version}",
            "etcd",
            build=(
                *("go", "build", f"-modfile={self.version}.mod", "-trimpath", "-buildvcs=false"),
                *("-tags=netgo,osusergo", "-ldflags=-s -w", "-o", "etcd", "."),
            ),
            programs=(HostProgram("etcd", package="etcd-server"),),
        )

    @property
    def reads_speak_for(self) -> ReadsSpeakFor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Linearizable reads go through a quorum."""
        return "cluster" if self.setting("reads") == LINEARIZABLE else "converged"

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Registers first, and all that transactions and leases can do."""
        return (
            *("register", "set", "queue", "counter", "bank", "kv", "multi-register"),
            *("mutex", "lease", "unique-ids", "sessions"),
        )

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)
        if options.runtime == "local" and self.chosen_version is not None:
            raise UsageError(
                f"the runtime local starts whichever etcd is on PATH, not {self.chosen_version}",
                "Write --system etcd, or use --runtime docker",
            )
        heartbeat_ms, election_ms = (
            int(options.settings.get(name, str(self.settings[name])))
            for name in ("heartbeat-interval", "election-timeout")
        )
        if election_ms < _HEARTBEATS_MIN * heartbeat_ms:
            raise UsageError(
                f"etcd does not start with election-timeout={election_ms} "
                f"and heartbeat-interval={heartbeat_ms}",
                f"Let the first be at least {_HEARTBEATS_MIN} times the second",
            )

    def tempo(self) -> Tempo:
        """Followers stand for election after one to two timeouts without a word."""
        notices_s = 2 * int(self.setting("election-timeout")) / 1000
        return Tempo(notices_s=notices_s, failover_s=notices_s + 1)

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the start of a member that knows the others from the first moment."""
        self._servers[server.name] = server
        members = sorted((server, *others), key=lambda member: member.number)
        self._peer_urls = {each.name: f"http://{each.address(PEER_PORT)}" for each in members}
        return ("etcd", f"--config-file={self._settings_file(server.name, 'new')}")

    def _settings_file(self, node: NodeName, cluster_state: str) -> str:
        server, urls = self._servers[node], self._peer_urls
        content = {
            "name": server.name,
            "data-dir": f"{server.placement.data_path}/etcd",
            "listen-client-urls": f"http://{server.listen_address()}",
            "advertise-client-urls": f"http://{server.address()}",
            "listen-peer-urls": f"http://{server.listen_address(PEER_PORT)}",
            "initial-advertise-peer-urls": urls[node],
            "initial-cluster": ",".join(f"{name}={url}" for name, url in urls.items()),
            "initial-cluster-state": cluster_state,
            "logger": "zap",
            **{name: int(self.setting(name)) for name in _NUMBERS},
            "unsafe-no-fsync": self.setting("fsync") == "no",
        }
        return server.json_file("etcd.conf", content)

    def members(self, runtime: Endpoints) -> EtcdMembers:
        """Return the means to remove members and add new ones in their places."""
        return EtcdMembers(
            runtime, self._peer_urls, lambda node: self._settings_file(node, "existing")
        )

    def ready(self, runtime: Endpoints) -> None:
        """Return when all serve, one of them leads, and the keys to compare are there."""
        action = "wait for the members to serve"
        self._all_views(runtime, action)
        wanted = int(self.setting("write-compares"))
        if not wanted:
            return
        there = runtime.endpoint(runtime.nodes()[0], CLIENT_PORT)
        found = count_compared(there, _FILLING_TIMEOUT_S)
        if found is None or not put_compared(there, found, wanted, _FILLING_TIMEOUT_S):
            raise not_yet(self.name, action, "the keys to compare were not taken")

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Ask the members; of several that believe to lead the highest term wins."""
        return ask_leader(tuple(runtime.nodes()), self._asking(runtime, timeout_s))

    def open_client(self, runtime: Endpoints, route: Route) -> Client:
        """Return a fresh client, of the route's node or of it before all others."""
        others = [node for node in runtime.nodes() if node != route.node]
        nodes = [route.node, *(others if route.kind == "leader" else ())]
        manner = Manner(
            workload=None if self.experiment is None else self.experiment.workload,
            is_serializable=self.setting("reads") == SERIALIZABLE,
            compares=self.setting("write-compares") != "0",
        )
        there = {node: runtime.endpoint(node, CLIENT_PORT) for node in nodes}
        return client_for(manner.workload, EtcdClient(there, manner))

    def converged(self, runtime: Endpoints) -> None:
        """Return when all serve in one term, one leads, and all have applied the same entries."""
        action = "wait for the members to converge"
        views = self._all_views(runtime, action)
        if len({(view.term, view.applied) for view in views.values()}) != 1:
            places = ", ".join(
                f"{node} at entry {view.applied} of term {view.term}"
                for node, view in sorted(views.items())
            )
            raise not_yet(self.name, action, f"the members are not in step: {places}")

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Numbers of the member's own metrics."""
        return ask_figures(runtime.endpoint(node, CLIENT_PORT), timeout_s)

    def digest(self, runtime: Endpoints, node: NodeName, timeout_s: float) -> MemberDigest | None:
        """Hash of all keys and their revisions, at the member's newest revision."""
        return ask_digest(runtime.endpoint(node, PEER_PORT), timeout_s)

    def digest_at(
        self, runtime: Endpoints, node: NodeName, position: int, timeout_s: float
    ) -> MemberDigest | None:
        """The same as of an earlier revision."""
        return ask_digest(runtime.endpoint(node, PEER_PORT), timeout_s, position)

    def versions(self) -> dict[str, str]:
        """Return the version of the module; on a runtime without images nobody knows it."""
        if self.experiment is not None and self.experiment.runtime == "local":
            return {"etcd": "of this machine"}
        return {"etcd": self.version or ""}

    def _asking(
        self, runtime: Endpoints, timeout_s: float
    ) -> Callable[[NodeName], MemberView | None]:
        return lambda node: ask_view(runtime.endpoint(node, CLIENT_PORT), timeout_s)

    def _all_views(self, runtime: Endpoints, action: str) -> Mapping[NodeName, MemberView]:
        """The view of every member; one of them leads."""
        asking = self._asking(runtime, STATUS_TIMEOUT_S)
        return views_under_one_leader(self.name, action, tuple(runtime.nodes()), asking)
