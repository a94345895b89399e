"""MariaDB with Galera as a system under test: each server takes changes, and all certify them.

The first node makes the cluster, once; the others join it. Must never start or stop a node: the
runtime does.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import ImageSource
from splitbrain.contracts.system import CLIENT_PORT, ONLY_IMAGES, ReadsSpeakFor, Route, Tempo
from splitbrain.systems.mariadb.client import ISOLATIONS, Manner, MariadbClient
from splitbrain.systems.mariadb.library import library
from splitbrain.systems.mariadb.statements import TABLES
from splitbrain.systems.mariadb.status import NodeView, ask, make_tables
from splitbrain.systems.questions import Endpoints, ask_all, not_yet
from splitbrain.systems.rows import OF_KEYS, WORKLOADS
from splitbrain.systems.servers import Server, ServerSystem
from splitbrain.systems.workload_client import client_for

IMAGE: Final = ImageSource("splitbrain-mariadb", "mariadb", has_packages=True)
#: How long the nodes get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 3.0
#: All clients ask the first node.
ONE: Final = "one"
#: Values of ``wsrep_sync_wait``: sums of 1 (reads), 2 (UPDATE, DELETE), 4 (INSERT) and 8 (SHOW).
_SYNC_WAITS: Final = tuple(map(str, range(16)))
#: Handed to the servers as they are.
_HANDED_ON: Final = (
    "innodb_snapshot_isolation",
    "innodb_flush_log_at_trx_commit",
    "wsrep_sync_wait",
)
#: Of Galera. Clients wait for a second, and a cluster waits by default five for a node that is
#: gone; a node that starts alone waits for the others however long they take.
_PROVIDER: Final[Mapping[str, str]] = {
    "evs.keepalive_period": "PT0.5S",
    "evs.suspect_timeout": "PT2S",
    "evs.inactive_timeout": "PT6S",
    "evs.install_timeout": "PT3S",
    "gcache.size": "32M",
    "pc.recovery": "true",
    "pc.wait_prim_timeout": "PT600S",
}
#: Of all servers; the disks of nodes are small where there are faults of disks.
_CONFIGURATION: Final[Mapping[str, str]] = {
    "max_connections": "200",
    "skip_name_resolve": "ON",
    "socket": "/var/lib/mysql/mariadb.sock",
    "character_set_server": "utf8mb4",
    "default_storage_engine": "InnoDB",
    "binlog_format": "ROW",
    "innodb_autoinc_lock_mode": "2",
    "innodb_buffer_pool_size": "64M",
    "innodb_log_file_size": "16M",
    # A client that gave up leaves its locks once its statement has ended.
    "innodb_lock_wait_timeout": "1",
    "performance_schema": "OFF",
    "wsrep_on": "ON",
    "wsrep_provider": "/usr/lib/galera/libgalera_smm.so",
    "wsrep_cluster_name": "splitbrain",
    "wsrep_sst_method": "rsync",
}


class MariadbSystem(ServerSystem):
    """Adapter of one run."""

    name = "mariadb"
    runtimes = ONLY_IMAGES
    image = IMAGE
    ports: Mapping[str, int] = {CLIENT_PORT: 3306}
    reads_speak_for: ReadsSpeakFor = "converged"
    settings: Mapping[str, str | tuple[str, ...]] = {
        "isolation": tuple(ISOLATIONS),
        "clients": ("all", ONE),
        "innodb_snapshot_isolation": ("OFF", "ON"),
        "innodb_flush_log_at_trx_commit": ("1", "0", "2"),
        "wsrep_sync_wait": _SYNC_WAITS,
    }
    #: Certification and snapshots refuse transactions beside which others committed.
    conflicts = ("deadlock", "record-changed")
    log_patterns = (
        LogPattern("Inconsistency detected", "The node's data is not the cluster's any more."),
        LogPattern("Database page corruption", "A table is damaged."),
        LogPattern("mariadbd got signal|InnoDB: Assertion failure", "The server gave up."),
    )

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Transactions first, and what one of them can do."""
        return WORKLOADS

    def workload_options(self, workload: str) -> Mapping[str, str]:
        """Return the level that transactions promise.

        InnoDB's REPEATABLE READ writes what is newer than what it read, unless
        ``innodb_snapshot_isolation`` is on; SERIALIZABLE is by locks, of which other nodes know
        nothing (MariaDB's documentation: innodb_snapshot_isolation; Galera's: isolation levels).
        """
        return {"level": self._level()} if workload in OF_KEYS else {}

    def _level(self) -> str:
        isolation = self.setting("isolation")
        if isolation == "serializable" and self.setting("clients") == ONE:
            return "serializable"
        if isolation != "read-committed" and self.setting("innodb_snapshot_isolation") == "ON":
            return "snapshot-isolation"
        return "read-committed"

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)
        library("the system mariadb")

    def tempo(self) -> Tempo:
        """Joiners copy the files of a member, and a start reads the log twice."""
        return Tempo(ready_s=180, started_s=45, resumed_s=45, converged_s=90)

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the start of a server; the first makes the cluster."""
        server.file("server.cnf", self._configuration(server, others))
        placement = server.placement
        start = ("mariadb-node", placement.config_path, placement.data_path)
        return (*start, "first") if server.number == 1 else start

    def _configuration(self, server: Server, others: Sequence[Server]) -> str:
        placement = server.placement
        members = sorted((server, *others), key=lambda each: each.number)
        hosts = ",".join(each.placement.peer_host for each in members)
        provider = ";".join(f"{name}={value}" for name, value in _PROVIDER.items())
        lines = {
            "datadir": f"{placement.data_path}/data",
            "bind_address": placement.listen_host,
            "port": str(placement.ports[CLIENT_PORT]),
            **_CONFIGURATION,
            **{name: self.setting(name) for name in _HANDED_ON},
            "wsrep_cluster_address": f"gcomm://{hosts}",
            "wsrep_node_name": server.name,
            "wsrep_node_address": placement.peer_host,
            "wsrep_provider_options": f'"{provider}"',
        }
        return "[mysqld]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())

    def ready(self, runtime: Endpoints) -> None:
        """Return when all are in one component and in step, and the tables are there."""
        action = "wait for the servers to serve"
        first, *_ = self._all_views(runtime, action)
        there = runtime.endpoint(first, CLIENT_PORT)
        if not make_tables(there, TABLES, STATUS_TIMEOUT_S):
            raise not_yet(self.name, action, f"{first} did not make the tables")

    def open_client(self, runtime: Endpoints, route: Route) -> Client:
        """Return a fresh client: of the route's node, of that before others, or of the first."""
        nodes = tuple(runtime.nodes())
        if self.setting("clients") == ONE:
            asks = nodes[:1]
        elif route.kind == "pinned":
            asks = (route.node,)
        else:
            asks = (route.node, *(node for node in nodes if node != route.node))
        there = {node: runtime.endpoint(node, CLIENT_PORT) for node in asks}
        workload = None if self.experiment is None else self.experiment.workload
        manner = Manner(workload=workload, isolation=self.setting("isolation"))
        return client_for(workload, MariadbClient(there, manner))

    def converged(self, runtime: Endpoints) -> None:
        """Return when all are in one component, and have committed what any of them had."""
        action = "wait for the servers to converge"
        views = self._all_views(runtime, action)
        reached = max(view.last_committed for view in views.values())
        for node, view in self._all_views(runtime, action).items():
            if view.last_committed < reached:
                place = f"{node} is at {view.last_committed}"
                raise not_yet(self.name, action, f"{place}, another was at {reached}")

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Where the server stands, and how many of its transactions others' made it give up."""
        view = self._ask(runtime, node, timeout_s)
        if view is None:
            return None
        return {
            "cluster_size": view.cluster_size,
            "last_committed": view.last_committed,
            "local_cert_failures": view.local_cert_failures,
            "local_bf_aborts": view.local_bf_aborts,
        }

    def versions(self) -> dict[str, str]:
        """Return the versions that it is made for; ``plan.json`` has the image's digest."""
        return {"mariadb": "10.11 (Debian's packages)", "galera": "26.4 (Debian's packages)"}

    def _ask(self, runtime: Endpoints, node: NodeName, timeout_s: float) -> NodeView | None:
        return ask(runtime.endpoint(node, CLIENT_PORT), timeout_s)

    def _all_views(self, runtime: Endpoints, action: str) -> Mapping[NodeName, NodeView]:
        """Return the view of every node; raises unless all are in step and see each other."""
        nodes = tuple(runtime.nodes())
        views = ask_all(nodes, lambda node: self._ask(runtime, node, STATUS_TIMEOUT_S))
        for node in nodes:
            view = views.get(node)
            problem = "does not serve" if view is None else view.problem
            if view is not None and problem is None and view.cluster_size != len(nodes):
                problem = f"sees {view.cluster_size} of {len(nodes)}"
            if problem is not None:
                raise not_yet(self.name, action, f"{node} {problem}")
        return {node: views[node] for node in nodes}
