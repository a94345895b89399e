"""Apache ZooKeeper as a system under test: an ensemble of voters, asked by sessions of our own.

Must never start or stop a node: the runtime does.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import ImageSource
from splitbrain.contracts.system import (
    CLIENT_PORT,
    ONLY_IMAGES,
    PEER_PORT,
    Canary,
    LeaderView,
    ReadsSpeakFor,
    Route,
    Tempo,
)
from splitbrain.systems.questions import (
    Endpoints,
    ask_leader,
    not_yet,
    views_under_one_leader,
)
from splitbrain.systems.servers import Server, ServerSystem
from splitbrain.systems.workload_client import client_for
from splitbrain.systems.zookeeper.client import LOCAL, READS, ZooKeeperClient
from splitbrain.systems.zookeeper.session import order_idle_transactions
from splitbrain.systems.zookeeper.status import (
    ServerView,
    ask_view,
    ask_word,
    digests_of,
    figures_of,
)

#: How long the nodes get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 2.0
#: Only the leader listens at it: the port for elections is that by which links are probed.
QUORUM_PORT: Final = "quorum"


class ZooKeeperSystem(ServerSystem):
    """Adapter of one run."""

    name = "zookeeper"
    runtimes = ONLY_IMAGES
    offered_versions = ("3.9.5", "3.8.6")
    ports: Mapping[str, int] = {CLIENT_PORT: 2181, PEER_PORT: 3888, QUORUM_PORT: 2888}
    #: A server that is cut off answers reads until it notices.
    canary = Canary(nemesis="partition:follower", settings={"reads": LOCAL})
    declares_digests = True
    #: Not at any time: where reads are local a server speaks for itself alone.
    reads_speak_for: ReadsSpeakFor = "converged"
    settings: Mapping[str, str | tuple[str, ...]] = {
        "reads": READS,
        "tickTime": "500",
        "syncLimit": "4",
        "initLimit": "20",
        "snapCount": "1000",
        "forceSync": ("yes", "no"),
        "first-snapshot": ("flushed", "as-written"),
    }
    bounds: Mapping[str, tuple[int, int]] = {
        "tickTime": (50, 60_000),
        "syncLimit": (1, 1000),
        "initLimit": (1, 1000),
        "snapCount": (2, 1_000_000_000),
    }
    log_patterns = (
        LogPattern("exiting abnormally", "The server gave up."),
        LogPattern("Unable to load database on disk", "The data on disk cannot be read."),
    )

    @property
    def image(self) -> ImageSource:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Recipe of the version's image."""
        name = f"splitbrain-zookeeper-{self.version}"
        return ImageSource(name, "zookeeper", has_wheels=True, jars=self.version)

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Registers first, and all that transactions and ephemeral nodes can do."""
        return (
            *("register", "set", "queue", "counter", "bank", "kv", "multi-register"),
            *("mutex", "lease", "unique-ids", "sessions"),
        )

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)

    def tempo(self) -> Tempo:
        """A leader is given up after ``syncLimit`` ticks without a word."""
        notices_s = int(self.setting("syncLimit")) * int(self.setting("tickTime")) / 1000
        return Tempo(
            ready_s=120, started_s=30, converged_s=60, notices_s=notices_s, failover_s=notices_s + 2
        )

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the server's start with its configuration, and properties that have no line."""
        configuration = server.file("zoo.cfg", self._configuration(server, others))
        return (
            "zookeeper-node",
            configuration,
            str(server.number),
            self.setting("first-snapshot"),
            f"-Dzookeeper.forceSync={self.setting('forceSync')}",
            # Each file of the log takes 64 MiB before its first transaction else.
            "-Dzookeeper.preAllocSize=1024",
            f"-Dzookeeper.snapCount={self.setting('snapCount')}",
        )

    def _configuration(self, server: Server, others: Sequence[Server]) -> str:
        placement = server.placement
        voters = sorted((server, *others), key=lambda voter: voter.number)
        lines = [
            *(f"{name}={self.setting(name)}" for name in ("tickTime", "syncLimit", "initLimit")),
            f"dataDir={placement.data_path}/zookeeper",
            f"clientPort={placement.ports[CLIENT_PORT]}",
            f"clientPortAddress={placement.listen_host}",
            "quorumListenOnAllIPs=true",
            "maxClientCnxns=0",
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr,mntr,hash",
        ]
        if others:
            lines += [
                f"server.{voter.number}={voter.address(QUORUM_PORT)}"
                f":{voter.placement.ports[PEER_PORT]}"
                for voter in voters
            ]
        return "\n".join(lines) + "\n"

    def ready(self, runtime: Endpoints) -> None:
        """Return when all serve, and one of them leads."""
        self._all_views(runtime, "wait for the ensemble to serve")

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Ask the servers; of several that believe to lead the highest epoch wins."""
        return ask_leader(tuple(runtime.nodes()), self._asking(runtime, timeout_s))

    def open_client(self, runtime: Endpoints, route: Route) -> Client:
        """Return a fresh client, of the route's node or of it before all others."""
        others = [node for node in runtime.nodes() if node != route.node]
        nodes = [route.node, *(others if route.kind == "leader" else ())]
        there = {node: runtime.endpoint(node, CLIENT_PORT) for node in nodes}
        workload = None if self.experiment is None else self.experiment.workload
        given = {} if self.experiment is None else self.experiment.settings
        # Sessions are what reads without more keep.
        is_plain = workload == "sessions" and "reads" not in given
        reads = LOCAL if is_plain else self.setting("reads")
        return client_for(workload, ZooKeeperClient(there, workload, reads))

    def converged(self, runtime: Endpoints) -> None:
        """Return when all serve, one leads, and all have applied the same transactions."""
        action = "wait for the servers to converge"
        views = self._all_views(runtime, action)
        if len({view.zxid for view in views.values()}) != 1:
            places = ", ".join(f"{node} at {view.zxid:#x}" for node, view in sorted(views.items()))
            raise not_yet(self.name, action, f"the servers are not in step: {places}")

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Numbers that ``mntr`` tells of a server that serves."""
        answer = ask_word(runtime.endpoint(node, CLIENT_PORT), "mntr", timeout_s)
        figures = {} if answer is None else figures_of(answer)
        return {name: figures[name] for name in _METRICS if name in figures} or None

    def digest(self, runtime: Endpoints, node: NodeName, timeout_s: float) -> MemberDigest | None:
        """The newest of the digests that the server notes every 128 transactions."""
        return next(reversed(self._digests(runtime, node, timeout_s)), None)

    def digest_at(
        self, runtime: Endpoints, node: NodeName, position: int, timeout_s: float
    ) -> MemberDigest | None:
        """One of those that it noted earlier."""
        noted = self._digests(runtime, node, timeout_s)
        return next((digest for digest in noted if digest.position == position), None)

    def provoke_digests(self, runtime: Endpoints, timeout_s: float) -> None:
        """Order transactions that change nothing, more than lie between two digests."""
        for node in runtime.nodes():
            try:
                asyncio.run(order_idle_transactions(runtime.endpoint(node, CLIENT_PORT), timeout_s))
            except (OSError, EOFError):  # a TimeoutError is an OSError
                continue
            return

    def _digests(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> Sequence[MemberDigest]:
        answer = ask_word(runtime.endpoint(node, CLIENT_PORT), "hash", timeout_s)
        return () if answer is None else digests_of(answer)

    def versions(self) -> dict[str, str]:
        """Return the version of the jars; ``plan.json`` has the image's digest."""
        return {"zookeeper": str(self.version)}

    def _asking(
        self, runtime: Endpoints, timeout_s: float
    ) -> Callable[[NodeName], ServerView | None]:
        return lambda node: ask_view(runtime.endpoint(node, CLIENT_PORT), timeout_s)

    def _all_views(self, runtime: Endpoints, action: str) -> Mapping[NodeName, ServerView]:
        """The view of every server; one of them leads."""
        asking = self._asking(runtime, STATUS_TIMEOUT_S)
        return views_under_one_leader(self.name, action, tuple(runtime.nodes()), asking)


_METRICS: Final = (
    "znode_count",
    "outstanding_requests",
    "num_alive_connections",
    "approximate_data_size",
    "synced_followers",
    "pending_syncs",
    "avg_latency",
    "max_latency",
    "global_sessions",
    "fsynctime_sum",
    "snapshottime_sum",
)
