"""PostgreSQL as a system under test: a primary, and standbys that stream its log.

The first node is the primary for good, unless Patroni runs the servers. Must never start or stop a
node: the runtime does.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import ImageSource
from splitbrain.contracts.system import (
    CLIENT_PORT,
    ONLY_IMAGES,
    Canary,
    LeaderView,
    ReadsSpeakFor,
    Route,
    Tempo,
)
from splitbrain.systems.asyncpg_library import library
from splitbrain.systems.postgresql.client import (
    ISOLATIONS,
    Manner,
    PostgresClient,
    ReadsHereClient,
)
from splitbrain.systems.postgresql.patroni import MODES, TTL_S, asked_of, etcd_of, patroni_of
from splitbrain.systems.postgresql.statements import TABLES
from splitbrain.systems.postgresql.status import NodeView, ask, make_tables
from splitbrain.systems.questions import (
    Endpoints,
    ask_leader,
    not_yet,
    views_under_one_leader,
)
from splitbrain.systems.rows import OF_KEYS, WORKLOADS
from splitbrain.systems.servers import Server, ServerSystem
from splitbrain.systems.workload_client import client_for

#: Debian's packages; the other versions are a server's programs alone, in jars.
PACKAGED: Final = "15"
#: Of ``failover``: another server takes over.
PATRONI: Final = "patroni"
#: How long the nodes get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 3.0
#: Of ``synchronous_standby_names``: no commit waits for a standby.
NOBODY: Final = "none"
#: Every other transaction of a client does not wait for any disk, as applications do with what they
#: can afford to lose.
MIXED: Final = "mixed"
_STANDBY_NAMES: Final = re.compile(r"(?:(?:FIRST|ANY) [0-9]+ \([a-z0-9*, ]+\)|[a-z0-9*, ]+)")
#: Levels that transactions promise, by the setting ``isolation``; PostgreSQL's manual, 13.2.
_LEVELS: Final[Mapping[str, str]] = {
    "serializable": "serializable",
    "repeatable-read": "snapshot-isolation",
    "read-committed": "read-committed",
}
#: Of all servers; the disks of nodes are small where there are faults of disks.
_CONFIGURATION: Final[Mapping[str, str]] = {
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "hot_standby": "on",
    "max_wal_senders": "10",
    "max_wal_size": "48MB",
    "min_wal_size": "16MB",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "500ms",
    "wal_sender_timeout": "10s",
    "wal_receiver_timeout": "10s",
    # Clients wait for a second, which is how long a deadlock stands by default.
    "deadlock_timeout": "100ms",
    "unix_socket_directories": "''",
    "lc_messages": "'C'",
    "log_timezone": "'UTC'",
    "log_line_prefix": "'%m '",
    # A refused transaction is no news.
    "log_min_error_statement": "panic",
    "log_min_messages": "log",
    "jit": "off",
    # A small table would be read whole, and whoever reads it whole conflicts with every write.
    "enable_seqscan": "off",
    # Two rows of a page that are read would count as all of them.
    "max_pred_locks_per_page": "64",
}
#: For standbys that were down for a while.
_KEPT_LOG: Final = ("wal_keep_size", "64MB")
#: The oldest version has no such setting by size, and its segments have 1 MB.
_KEPT_LOG_OF_OLD: Final = ("wal_keep_segments", "64")
#: The fewest of which a majority outlives one.
_NODES_OF_FAILOVER: Final = 3
_HOSTS: Final = "host all all all trust\nhost replication all all trust\n"


class PostgresSystem(ServerSystem):
    """Adapter of one run."""

    name = "postgresql"
    runtimes = ONLY_IMAGES
    offered_versions = (PACKAGED, "18.1", "12.3")
    ports: Mapping[str, int] = {CLIENT_PORT: 5432}
    #: A commit that waits for no flush is lost with the server's memory.
    canary = Canary(nemesis="kill:leader", workload="set", settings={"synchronous_commit": "off"})
    reads_speak_for: ReadsSpeakFor = "converged"
    settings: Mapping[str, str | tuple[str, ...]] = {
        "isolation": tuple(ISOLATIONS),
        "reads": ("primary", "any"),
        "writes": ("update", "on-conflict"),
        "synchronous_commit": ("on", "remote_apply", "remote_write", "local", "off", MIXED),
        "synchronous_standby_names": "*",
        "fsync": ("on", "off"),
        "max_connections": "200",
        "think_time_ms": "0",
        "long_transaction": ("no", "yes"),
        "unanswered_commits": ("leave", "cancel"),
        "failover": ("none", PATRONI),
        "synchronous_mode": tuple(MODES),
        "etcd_asked": ("any", "others"),
    }
    bounds: Mapping[str, tuple[int, int]] = {
        "max_connections": (10, 1_000),
        "think_time_ms": (0, 1_000),
    }
    conflicts = ("serialization-failure", "deadlock", "unique-violation")
    log_patterns = (
        LogPattern("PANIC: ", "The server gave up."),
        LogPattern("invalid page in block|could not read block", "A table is damaged."),
        LogPattern("requested WAL segment .* has already been removed", "A standby came too late."),
    )

    @property
    def image(self) -> ImageSource:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Recipe of the version's image."""
        if self.version == PACKAGED:
            return ImageSource("splitbrain-postgresql", "postgresql", has_packages=True)
        return ImageSource(
            f"splitbrain-postgresql-{self.version}",
            "postgresql-binaries",
            sources=("docker/postgresql/node.sh",),
            jars=self.version,
        )

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Transactions first, and what one of them can do."""
        return WORKLOADS

    def workload_options(self, workload: str) -> Mapping[str, str]:
        """Return the level that transactions promise.

        A standby shows a snapshot of the primary's, but may be of a state that no serial order has
        (PostgreSQL's manual, chapter 13, Caveats).
        """
        if workload not in OF_KEYS:
            return {}
        level = _LEVELS[self.setting("isolation")]
        reads_anywhere = self.setting("reads") == "any"
        if reads_anywhere and level == "serializable":
            level = "snapshot-isolation"
        return {"level": level}

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)
        library("the system postgresql")
        if self.version != PACKAGED and options.nodes > 1:
            raise UsageError(
                f"postgresql@{self.version} has no program that copies a primary",
                f"Give --nodes 1, or leave @{self.version} out",
            )
        self._check_failover(options)
        names = options.settings.get("synchronous_standby_names", NOBODY)
        if not _STANDBY_NAMES.fullmatch(names):
            raise UsageError(
                f"the setting synchronous_standby_names of postgresql cannot be {names!r}",
                f"It takes {NOBODY}, *, or as in 'ANY 1 (n2, n3)'",
            )

    def _check_failover(self, options: Experiment) -> None:
        if options.settings.get("failover", "none") != PATRONI:
            for name in ("synchronous_mode", "etcd_asked"):
                if name in options.settings:
                    raise UsageError(
                        f"the setting {name} is Patroni's, which does not run here",
                        "Give --setting failover=patroni, too",
                    )
            return
        if "synchronous_standby_names" in options.settings:
            raise UsageError(
                "the setting synchronous_standby_names is Patroni's own with failover=patroni",
                "Give --setting synchronous_mode=on or strict instead",
            )
        if options.nodes < _NODES_OF_FAILOVER:
            raise UsageError(
                f"postgresql does not fail over on {options.nodes} nodes",
                f"Give --nodes {_NODES_OF_FAILOVER} or more: etcd needs a majority",
            )

    def tempo(self) -> Tempo:
        """Files are made at the first start, and the log is read at every other one.

        With Patroni a former primary may copy the new one anew.
        """
        if self._fails_over:
            return Tempo(
                ready_s=120,
                started_s=45,
                resumed_s=45,
                converged_s=90,
                notices_s=TTL_S,
                failover_s=2 * TTL_S,
            )
        return Tempo(ready_s=90, started_s=30, resumed_s=30, converged_s=60)

    @property
    def _fails_over(self) -> bool:
        return self.setting("failover") == PATRONI

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the start of a server; all but the first are standbys of the first.

        Where one may take over, Patroni says who is the primary.
        """
        if self._fails_over:
            asks_others = self.setting("etcd_asked") == "others"
            asked = asked_of(server, others, asks_others=asks_others)
            mode, parameters = self.setting("synchronous_mode"), self._parameters()
            patroni = patroni_of(server, asked, mode, parameters, alone=asks_others)
            server.json_file("etcd.yml", etcd_of(server, others))
            server.json_file("patroni.yml", patroni)
            folders = (server.placement.config_path, server.placement.data_path)
            return ("patroni-node", *folders, *(f"http://{each}" for each in asked))
        server.file("postgresql.conf", self._configuration(server, others))
        server.file("pg_hba.conf", _HOSTS)
        start = ("postgresql-node", server.placement.config_path, server.placement.data_path)
        primary = min((server, *others), key=lambda each: each.number)
        if primary is server:
            return start
        return (*start, *primary.address().rsplit(":", 1), server.name)

    def _configuration(self, server: Server, others: Sequence[Server]) -> str:
        names = self.setting("synchronous_standby_names")
        # A single server would wait for ever.
        waits_for = names if others and names != NOBODY else ""
        placement = server.placement
        lines = {
            "listen_addresses": f"'{placement.listen_host}'",
            "port": str(placement.ports[CLIENT_PORT]),
            **self._parameters(),
            "synchronous_standby_names": f"'{waits_for}'",
        }
        return "".join(f"{name} = {value}\n" for name, value in lines.items())

    def _parameters(self) -> dict[str, str]:
        """Return those that are alike on all servers, as a line of configuration has them."""
        kept, size = _KEPT_LOG_OF_OLD if self.version == "12.3" else _KEPT_LOG
        commit = self.setting("synchronous_commit")
        return {
            **_CONFIGURATION,
            kept: size,
            "max_connections": self.setting("max_connections"),
            "fsync": self.setting("fsync"),
            "synchronous_commit": "on" if commit == MIXED else commit,
        }

    def ready(self, runtime: Endpoints) -> None:
        """Return when every standby streams from the primary, and the tables are there."""
        action = "wait for the servers to serve"
        views, primary = self._all_views(runtime, action)
        there = runtime.endpoint(primary, CLIENT_PORT)
        if not make_tables(there, TABLES, STATUS_TIMEOUT_S):
            raise not_yet(self.name, action, f"{primary} did not make the tables")
        self._require_streams(views, primary, action)

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Ask the servers; of several that take changes the highest timeline wins."""
        nodes = tuple(runtime.nodes())
        return ask_leader(nodes, lambda node: self._ask(runtime, node, timeout_s))

    def open_client(self, runtime: Endpoints, route: Route) -> Client:
        """Return a fresh client, of the route's node or of the primary, wherever that is."""
        others = [node for node in runtime.nodes() if node != route.node]
        workload = None if self.experiment is None else self.experiment.workload
        manner = Manner(
            workload=workload,
            isolation=self.setting("isolation"),
            reads_anywhere=self.setting("reads") == "any",
            inserts_first=self.setting("writes") == "on-conflict",
            think_time_s=int(self.setting("think_time_ms")) / 1000,
            holds_open=self.setting("long_transaction") == "yes",
            cancels=self.setting("unanswered_commits") == "cancel",
            mixes_commits=self.setting("synchronous_commit") == MIXED,
        )

        def client(*nodes: NodeName) -> PostgresClient:
            there = {node: runtime.endpoint(node, CLIENT_PORT) for node in nodes}
            return PostgresClient(there, manner)

        if route.kind == "leader":
            return client_for(workload, client(route.node, *others))
        if not manner.reads_anywhere or not others:
            return client_for(workload, client(route.node))
        primary = client(route.node, *others)
        return client_for(workload, ReadsHereClient(client(route.node), primary))

    def converged(self, runtime: Endpoints) -> None:
        """Return when every standby streams and shows all that the primary has."""
        action = "wait for the servers to converge"
        views, primary = self._all_views(runtime, action)
        self._require_streams(views, primary, action)
        reached = views[primary].position
        for node in views:
            # Asked after the primary, which goes on writing a little by itself.
            view = self._ask(runtime, node, STATUS_TIMEOUT_S)
            if view is None or view.position < reached:
                place = "nowhere" if view is None else f"at {view.position}"
                raise not_yet(self.name, action, f"{node} is {place}, {primary} was at {reached}")

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Where the server stands in the log; ``leads`` is 1 while it takes changes."""
        view = self._ask(runtime, node, timeout_s)
        if view is None:
            return None
        return {
            "leads": int(view.leads),
            "position": view.position,
            "streams": view.streams,
            "sync_streams": view.sync_streams,
        }

    def versions(self) -> dict[str, str]:
        """Return the chosen version; ``plan.json`` has the image's digest."""
        packaged = " (Debian's packages)" if self.version == PACKAGED else ""
        return {"postgresql": f"{self.version}{packaged}"}

    def _ask(self, runtime: Endpoints, node: NodeName, timeout_s: float) -> NodeView | None:
        return ask(runtime.endpoint(node, CLIENT_PORT), timeout_s)

    def _all_views(
        self, runtime: Endpoints, action: str
    ) -> tuple[Mapping[NodeName, NodeView], NodeName]:
        nodes = tuple(runtime.nodes())
        views = views_under_one_leader(
            self.name, action, nodes, lambda node: self._ask(runtime, node, STATUS_TIMEOUT_S)
        )
        return views, next(node for node, view in views.items() if view.leads)

    def _require_streams(
        self, views: Mapping[NodeName, NodeView], primary: NodeName, action: str
    ) -> None:
        if views[primary].streams != len(views) - 1:
            has = views[primary].streams
            raise not_yet(self.name, action, f"{has} standbys stream from {primary}")
        if self._waits_by_mode and not views[primary].sync_streams:
            raise not_yet(self.name, action, f"{primary} has no synchronous standby yet")

    @property
    def _waits_by_mode(self) -> bool:
        return self._fails_over and self.setting("synchronous_mode") != "off"
