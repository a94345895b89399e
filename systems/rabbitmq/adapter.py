"""RabbitMQ as a system under test: a cluster of brokers, asked by channels of our own.

Nobody leads the cluster: each queue has a leader, so faults hit brokers by chance. Must never start
or stop a node: the runtime does.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import ImageSource
from splitbrain.contracts.system import (
    CLIENT_PORT,
    ONLY_IMAGES,
    PEER_PORT,
    AllowedAnomaly,
    ReadsSpeakFor,
    Route,
    Tempo,
)
from splitbrain.systems.questions import Endpoints, ask_all, not_yet
from splitbrain.systems.rabbitmq.client import Declarations, RabbitClient
from splitbrain.systems.rabbitmq.status import (
    NodeRow,
    QueueRow,
    ask_nodes,
    ask_queues,
    put_policy,
)
from splitbrain.systems.servers import Server, ServerSystem

IMAGE: Final = ImageSource("splitbrain-rabbitmq", "rabbitmq", has_packages=True)
MANAGEMENT_PORT: Final = "management"
#: How long the nodes get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 5.0
QUORUM, MIRRORED = "quorum", "mirrored"
_TICK_S_MAX: Final = 600
#: Policy that mirrors each queue to all nodes, and copies what a new mirror lacks.
_MIRRORS: Final = {
    "pattern": ".*",
    "definition": {"ha-mode": "all", "ha-sync-mode": "automatic"},
    "apply-to": "queues",
}


class RabbitSystem(ServerSystem):
    """Adapter of one run."""

    name = "rabbitmq"
    runtimes = ONLY_IMAGES
    image = IMAGE
    ports: Mapping[str, int] = {CLIENT_PORT: 5672, PEER_PORT: 25672, MANAGEMENT_PORT: 15672}
    #: A member that is apart may have what the others lack.
    reads_speak_for: ReadsSpeakFor = "converged"
    settings: Mapping[str, str | tuple[str, ...]] = {
        "queue": (QUORUM, MIRRORED),
        "cluster_partition_handling": ("autoheal", "pause_minority", "ignore"),
        "net_ticktime": "8",
        "declarations": ("shared", "own"),
    }
    log_patterns = (
        LogPattern("BOOT FAILED", "The broker could not start."),
        LogPattern("Kernel pid terminated", "The broker's machine gave up."),
    )

    def __init__(self) -> None:
        self._declarations: Declarations | None = None

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Queues."""
        return ("queue",)

    def allowed(self) -> Sequence[AllowedAnomaly]:
        """Return what acknowledgements that are lost lead to."""
        why = "delivers at least once, where consumers acknowledge"
        return (AllowedAnomaly("queue-totals", "duplicated", why),)

    def check_options(self, options: Experiment) -> None:
        """Refuse what cannot be deployed."""
        super().check_options(options)
        tick_s = options.settings.get("net_ticktime", "8")
        if not (tick_s.isascii() and tick_s.isdigit() and 1 <= int(tick_s) <= _TICK_S_MAX):
            raise UsageError(
                f"the setting net_ticktime of rabbitmq cannot be {tick_s!r}",
                f"It takes seconds, a whole number between 1 and {_TICK_S_MAX}",
            )

    def tempo(self) -> Tempo:
        """A node without a sign of life is given up after ``net_ticktime`` and a quarter more."""
        notices_s = int(self.setting("net_ticktime")) * 1.25
        return Tempo(ready_s=240, started_s=90, resumed_s=90, converged_s=150, notices_s=notices_s)

    def command(self, server: Server, others: Sequence[Server]) -> Sequence[str]:
        """Return the broker's start; its variables name its files."""
        server.file("rabbitmq.conf", self._configuration(server, others))
        server.file("enabled_plugins", "[rabbitmq_management].\n")
        return ("rabbitmq-node",)

    def environment(self, server: Server) -> dict[str, str]:
        """Return the variables by which the broker finds its files."""
        config, data = server.placement.config_path, server.placement.data_path
        return {
            "HOME": f"{data}/home",
            "RABBITMQ_NODENAME": _broker(server.placement.peer_host),
            "RABBITMQ_CONFIG_FILE": f"{config}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{config}/enabled_plugins",
            "RABBITMQ_MNESIA_BASE": f"{data}/mnesia",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_DIST_PORT": str(server.placement.ports[PEER_PORT]),
            # One scheduler, which sleeps where there is nothing to do.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        }

    def _configuration(self, server: Server, others: Sequence[Server]) -> str:
        placement = server.placement
        brokers = sorted((server, *others), key=lambda broker: broker.number)
        lines = [
            f"listeners.tcp.1 = {placement.listen_host}:{placement.ports[CLIENT_PORT]}",
            f"management.tcp.port = {placement.ports[MANAGEMENT_PORT]}",
            "loopback_users = none",
            "cluster_formation.peer_discovery_backend = classic_config",
            *(
                f"cluster_formation.classic_config.nodes.{broker.number} = "
                f"{_broker(broker.placement.peer_host)}"
                for broker in brokers
            ),
            f"cluster_partition_handling = {self.setting('cluster_partition_handling')}",
            f"net_ticktime = {self.setting('net_ticktime')}",
            # The disks of nodes are small where there are faults of disks.
            "disk_free_limit.absolute = 20MB",
            "raft.wal_max_size_bytes = 16777216",
        ]
        return "\n".join(lines) + "\n"

    def ready(self, runtime: Endpoints) -> None:
        """Return when each broker sees all others; sets the policy of mirrored queues."""
        action = "wait for the brokers to form a cluster"
        self._require_one_cluster(runtime, action)
        if self.setting("queue") == MIRRORED:
            there = runtime.endpoint(runtime.nodes()[0], MANAGEMENT_PORT)
            if not put_policy(there, MIRRORED, _MIRRORS, STATUS_TIMEOUT_S):
                raise not_yet(self.name, action, "the policy of mirrored queues was not taken")

    def open_client(self, runtime: Endpoints, route: Route) -> RabbitClient:
        """Return a fresh client, of the route's node or of it before all others."""
        others = [node for node in runtime.nodes() if node != route.node]
        nodes = [route.node, *(others if route.kind == "leader" else ())]
        there = {node: runtime.endpoint(node, CLIENT_PORT) for node in nodes}
        if self._declarations is None:
            arguments = {"x-queue-type": QUORUM} if self.setting("queue") == QUORUM else {}
            are_shared = self.setting("declarations") == "shared"
            self._declarations = Declarations(arguments, are_shared=are_shared)
        return RabbitClient(there, self._declarations)

    def converged(self, runtime: Endpoints) -> None:
        """Return when the brokers are one cluster and no member of a queue lags or is missing."""
        action = "wait for the brokers to converge"
        self._require_one_cluster(runtime, action)
        nodes = tuple(runtime.nodes())
        views = ask_all(
            nodes,
            lambda node: ask_queues(runtime.endpoint(node, MANAGEMENT_PORT), STATUS_TIMEOUT_S),
        )
        for node in nodes:
            if node not in views:
                raise not_yet(self.name, action, f"{node} does not list its queues")
            for queue in views[node]:
                if problem := self._problem_of(queue, len(nodes)):
                    raise not_yet(self.name, action, f"{node}: queue {queue.name} {problem}")

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """A broker's view of the others, and its memory."""
        rows = ask_nodes(runtime.endpoint(node, MANAGEMENT_PORT), timeout_s)
        if rows is None:
            return None
        figures: dict[str, float] = {
            "running_nodes": sum(row.running for row in rows),
            "partitions": sum(len(row.partitions) for row in rows),
        }
        own = next((row for row in rows if row.name == _broker(node)), None)
        if own is not None and own.mem_used is not None:
            figures["mem_used"] = own.mem_used
        return figures

    def versions(self) -> dict[str, str]:
        """Return the version that the adapter is made for; ``plan.json`` has the image's digest."""
        return {"rabbitmq": "3.10 (Debian's packages)"}

    def _problem_of(self, queue: QueueRow, nodes: int) -> str | None:
        if queue.state != "running":
            return f"is {queue.state or 'without a state'}"
        if queue.messages_unacknowledged:
            return f"has {queue.messages_unacknowledged} elements out"
        if self.setting("queue") == QUORUM:
            has = len(queue.online)
            return None if has == nodes else f"has {has} members online"
        has = len(queue.synchronised_slave_nodes)
        return None if has == nodes - 1 else f"has {has} mirrors in step"

    def _require_one_cluster(self, runtime: Endpoints, action: str) -> None:
        nodes = tuple(runtime.nodes())

        def ask(node: NodeName) -> Sequence[NodeRow] | None:
            return ask_nodes(runtime.endpoint(node, MANAGEMENT_PORT), STATUS_TIMEOUT_S)

        views = ask_all(nodes, ask)
        for node in nodes:
            rows = views.get(node)
            if rows is None:
                raise not_yet(self.name, action, f"{node} does not answer")
            running = sum(row.running for row in rows)
            if running != len(nodes):
                raise not_yet(self.name, action, f"{node} sees {running} brokers that run")
            if apart := sorted({name for row in rows for name in row.partitions}):
                raise not_yet(self.name, action, f"{node} sees {', '.join(apart)} cut off")


def _broker(host: str) -> str:
    return f"rabbit@{host}"
