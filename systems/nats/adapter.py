"""NATS JetStream as a system under test: a cluster of servers, asked by connections of our own.

Must never start or stop a node: the runtime does.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import HostProgram, ImageSource
from splitbrain.contracts.system import (
    CLIENT_PORT,
    PEER_PORT,
    AllowedAnomaly,
    Canary,
    LeaderView,
    ReadsSpeakFor,
    Route,
    Tempo,
)
from splitbrain.systems.nats.client import DIRECT, FENCED, LEADER, NatsClient
from splitbrain.systems.nats.members import NatsMembers
from splitbrain.systems.nats.status import (
    OPERATOR,
    Redelivery,
    ServerView,
    ask_cluster,
    ask_digest,
    ask_figures,
    ask_state,
    ask_view,
    problem_with_stream,
)
from splitbrain.systems.nats.streams import configuration, keeps_all, stream_of
from splitbrain.systems.questions import (
    Endpoints,
    ask_all,
    ask_leader,
    not_yet,
    views_under_one_leader,
)
from splitbrain.systems.servers import Server, ServerSystem

MONITOR_PORT: Final = "monitor"
#: How long the servers get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 2.0
#: Server's own longest time without a leader's word before a follower stands for election.
_ELECTION_S: Final = 9.0
_PACKAGE: Final = "github.com/nats-io/nats-server/v2"
_MIB: Final = 1024 * 1024
_CLIENTS: Final = "clients"
_DEFAULT, _ALWAYS = "default", "always"


class NatsSystem(ServerSystem):
    """Adapter of one run."""

    name = "nats"
    offered_versions = ("2.15.2", "2.12.1")
    ports: Mapping[str, int] = {CLIENT_PORT: 4222, PEER_PORT: 6222, MONITOR_PORT: 8222}
    #: A member that is cut off goes on answering such reads from its own copy.
    canary = Canary(nemesis="partition:follower", settings={"reads": DIRECT})
    #: A stream has at most five replicas, and one server alone has no groups to be asked about.
    node_counts = range(2, 6)
    #: Final reads of sets are answered by the asked member where it is current.
    reads_speak_for: ReadsSpeakFor = "converged"
    settings: Mapping[str, str | tuple[str, ...]] = {
        "sync_interval": (_DEFAULT, _ALWAYS),
        "reads": (FENCED, LEADER, DIRECT),
    }
    log_patterns = (
        LogPattern(r"\[FTL\]", "The server gave up."),
        LogPattern(r"^(?:panic|fatal error): ", "The server's program crashed."),
    )

    def __init__(self) -> None:
        self._redelivery = Redelivery()
        #: Each with the others.
        self._servers: dict[NodeName, tuple[Server, Sequence[Server]]] = {}
        #: How often each was removed and renamed.
        self._lives = Counter[NodeName]()

    @property
    def declares_digests(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Members drop acknowledged elements of queues each in its own time."""
        return self._workload != "queue"

    @property
    def image(self) -> ImageSource:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Recipe of the version's image; nothing in it is linked with a C library."""
        return ImageSource(
            f"splitbrain-nats-{self.version}",
            "nats",
            build=(
                *("go", "build", f"-modfile={self.version}.mod", "-trimpath", "-buildvcs=false"),
                *("-tags=netgo,osusergo", "-ldflags=-s -w", "-o", "nats-server", _PACKAGE),
            ),
            programs=(HostProgram("nats-server", package="nats-server"),),
        )

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Registers, sets and queues."""
        return ("register", "set", "queue")

    def allowed(self) -> Sequence[AllowedAnomaly]:
        """Return what direct gets and acknowledgements that are lost lead to."""
        old = "direct gets are served by any member, and promise nobody to read its own writes"
        # One that is in step and differs is found by its digest.
        behind = "direct gets are served by any member, also by one that has yet to catch up"
        twice = "delivers at least once, where consumers acknowledge"
        return (
            AllowedAnomaly("set-full", "stale", old),
            AllowedAnomaly("set-full", "missing-at-member", behind),
            AllowedAnomaly("queue-totals", "duplicated", twice),
        )

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)
        if options.runtime == "local" and self.chosen_version is not None:
            raise UsageError(
                "the runtime local starts whichever nats-server is on PATH, "
                f"not {self.chosen_version}",
                "Write --system nats, or use --runtime docker",
            )

    def tempo(self) -> Tempo:
        """Followers stand for election after four to nine seconds without a word."""
        return Tempo(
            started_s=30,
            resumed_s=30,
            converged_s=90,
            notices_s=_ELECTION_S,
            failover_s=_ELECTION_S + 1,
        )

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the start of a server that knows the others from the first moment."""
        self._servers[server.name] = (server, others)
        return ("nats-server", "-c", self._settings_file(server.name))

    def _server_name(self, node: NodeName) -> str:
        lives = self._lives[node]
        return f"{node}-{lives}" if lives else node

    def _rename(self, node: NodeName) -> None:
        self._lives[node] += 1
        self._settings_file(node)

    def _settings_file(self, node: NodeName) -> str:
        server, others = self._servers[node]
        jetstream: dict[str, object] = {
            "store_dir": f"{server.placement.data_path}/nats",
            "max_mem": 64 * _MIB,
            # Without it the limit is a part of the disk, and less once that fills.
            "max_file": 1024 * _MIB,
        }
        if self.setting("sync_interval") == _ALWAYS:
            jetstream["sync_interval"] = _ALWAYS
        content = {
            "server_name": self._server_name(node),
            "listen": server.listen_address(),
            "http": server.listen_address(MONITOR_PORT),
            "jetstream": jetstream,
            # Servers are removed in the system's own account. Clients log in as nobody.
            "authorization": {"users": [dict.fromkeys(("user", "password"), _CLIENTS)]},
            "no_auth_user": _CLIENTS,
            "accounts": {
                "$SYS": {"users": [{"user": OPERATOR["user"], "password": OPERATOR["pass"]}]}
            },
            "cluster": {
                "name": "splitbrain",
                "listen": server.listen_address(PEER_PORT),
                "routes": [f"nats://{other.address(PEER_PORT)}" for other in others],
            },
        }
        return server.json_file("nats.conf", content)

    def members(self, runtime: Endpoints) -> NatsMembers:
        """Return the means to remove servers."""
        return NatsMembers(runtime, MONITOR_PORT, self._server_name, self._rename)

    def ready(self, runtime: Endpoints) -> None:
        """Return when the servers are one cluster, and one of them leads the stream."""
        action = "wait for the servers to serve"
        self._make_stream(runtime, action)
        self._all_views(runtime, action)

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Ask the servers for the stream's leader; of several the highest term wins."""
        return ask_leader(tuple(runtime.nodes()), self._asking(runtime, timeout_s))

    def open_client(self, runtime: Endpoints, route: Route) -> NatsClient:
        """Return a fresh client, of the route's node or of it before all others."""
        others = [node for node in runtime.nodes() if node != route.node]
        nodes = [route.node, *(others if route.kind == "leader" else ())]
        there = {node: runtime.endpoint(node, CLIENT_PORT) for node in nodes}
        return NatsClient(there, self._workload, self.setting("reads"))

    def converged(self, runtime: Endpoints) -> None:
        """Return when one leads the stream and all have applied the same entries of its log.

        A stream that is gone is made again, and found empty then.
        """
        action = "wait for the servers to converge"
        self._make_stream(runtime, action)
        views = self._all_views(runtime, action)
        stream = stream_of(self._workload)
        states = ask_all(
            tuple(runtime.nodes()),
            lambda node: ask_state(runtime.endpoint(node, MONITOR_PORT), stream, STATUS_TIMEOUT_S),
        )
        if silent := sorted({*views} - {*states}):
            raise not_yet(self.name, action, f"{', '.join(silent)} has no part of the stream")
        places = {
            node: f"{node} at entry {view.applied} of term {view.epoch}, "
            f"message {states[node].last_seq}"
            for node, view in sorted(views.items())
        }
        if len({text.partition(" ")[2] for text in places.values()}) != 1:
            told = "; ".join(places.values())
            raise not_yet(self.name, action, f"the servers are not in step: {told}")
        if self._workload == "queue":
            there = runtime.endpoint(runtime.nodes()[0], CLIENT_PORT)
            if problem := self._redelivery.problem(there, stream, STATUS_TIMEOUT_S):
                raise not_yet(self.name, action, f"consumers are not through: {problem}")

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Numbers of the server's JetStream."""
        return ask_figures(runtime.endpoint(node, MONITOR_PORT), timeout_s)

    def digest(self, runtime: Endpoints, node: NodeName, timeout_s: float) -> MemberDigest | None:
        """Number and bytes of the messages that the server has, at its last message.

        A server that fetches what it lacks of a bucket drops messages that newer ones replace
        before it has these: until it is through its last message does not say what it has.
        """
        there, stream = runtime.endpoint(node, MONITOR_PORT), stream_of(self._workload)
        if keeps_all(self._workload):
            return ask_digest(there, stream, timeout_s)
        before = ask_view(there, timeout_s)
        if before is None or not before.is_settled:
            return None
        digest = ask_digest(there, stream, timeout_s)
        return digest if ask_view(there, timeout_s) == before else None

    def versions(self) -> dict[str, str]:
        """Return the version of the module; on a runtime without images nobody knows it."""
        if self.experiment is not None and self.experiment.runtime == "local":
            return {"nats": "of this machine"}
        return {"nats": self.version or ""}

    @property
    def _workload(self) -> str | None:
        return None if self.experiment is None else self.experiment.workload

    def _make_stream(self, runtime: Endpoints, action: str) -> None:
        """Make the stream unless it is there, once the servers are one cluster."""
        nodes = tuple(runtime.nodes())
        seen = ask_all(
            nodes, lambda node: ask_cluster(runtime.endpoint(node, MONITOR_PORT), STATUS_TIMEOUT_S)
        )
        for node in nodes:
            if node not in seen:
                raise not_yet(self.name, action, f"{node} does not serve")
            leader, size = seen[node]
            if not (leader and size == len(nodes)):
                found = f"{size} servers led by {leader or 'nobody'}"
                raise not_yet(self.name, action, f"{node} sees {found}")
        wanted = configuration(self._workload, len(nodes))
        there = runtime.endpoint(nodes[0], CLIENT_PORT)
        if problem := problem_with_stream(there, wanted, STATUS_TIMEOUT_S):
            raise not_yet(self.name, action, f"the stream was not made: {problem}")

    def _asking(
        self, runtime: Endpoints, timeout_s: float
    ) -> Callable[[NodeName], ServerView | None]:
        return lambda node: ask_view(runtime.endpoint(node, MONITOR_PORT), timeout_s)

    def _all_views(self, runtime: Endpoints, action: str) -> Mapping[NodeName, ServerView]:
        """The view of every server; one of them leads."""
        asking = self._asking(runtime, STATUS_TIMEOUT_S)
        return views_under_one_leader(self.name, action, tuple(runtime.nodes()), asking)
