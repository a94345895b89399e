"""Redis 7 with Sentinel as a system under test.

Finds the primary by asking Sentinels and servers, describes the cluster, opens clients. Servers
write no state events, and their data folders show no log that was ever agreed on: what is lost is
told by the clients' history alone. Must never start or stop a node: the runtime does.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import DeploymentSpec, ImageSource
from splitbrain.contracts.system import Canary, LeaderView, Place, ReadsSpeakFor, Route, System
from splitbrain.systems.questions import Endpoints, ask_all, not_yet
from splitbrain.systems.redis import deployment as deploy
from splitbrain.systems.redis.client import RedisClient
from splitbrain.systems.redis.settings import Membership, Settings, settings
from splitbrain.systems.redis.status import NodeView, ask, ask_digest
from splitbrain.systems.workload_client import client_for

#: How long the nodes get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 2.0
_ALL_USABLE: Final = "OK {count} usable Sentinels"


class RedisSystem(System):
    """Adapter of one run, for any runtime with endpoints."""

    name = "redis"
    # It replicates asynchronously: an isolated primary acknowledges what is gone after the heal.
    canary = Canary(nemesis="isolate-leader-8s", workload="set")
    declares_digests = True
    #: Replicas may have had what the primary lacks, until they follow it to the same offset.
    reads_speak_for: ReadsSpeakFor = "converged"

    def __init__(self) -> None:
        self._membership = Membership(())
        self._settings: Settings = settings({}, 3)

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Registers first, and all that one command or one script can do."""
        return (
            *("register", "set", "queue", "counter", "bank", "kv", "multi-register"),
            *("mutex", "lease", "unique-ids", "sessions"),
        )

    def images(self) -> Sequence[ImageSource]:
        """One image: the base and Debian's packages."""
        return (deploy.IMAGE,)

    def check_options(self, options: Experiment) -> None:
        """Refuse a number of nodes, a bug or a setting that does not exist."""
        deploy.check_options(options)

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        """Write the nodes' configuration and describe the cluster; ``n1`` is the first primary."""
        spec, self._membership = deploy.deployment(run_id, run_folder, options, place)
        self._settings = settings(options.settings, options.nodes)
        return spec

    def ready(self, runtime: Endpoints) -> None:
        """Return when a primary has all replicas in step and all Sentinels see all of them."""
        action = "wait for the cluster to serve"
        views, primary = self._all_views(runtime, action)
        self._require_replicas(views, primary, action)
        for node, view in views.items():
            seen = view.sentinel
            assert seen is not None, "a node without one is refused above"
            if not seen.primary_is_fine or seen.fine_replicas != len(views) - 1:
                problem = f"the Sentinel of {node} sees {seen.fine_replicas} replicas in order"
                raise not_yet(self.name, action, problem)
            if not seen.quorum.startswith(_ALL_USABLE.format(count=len(views))):
                raise not_yet(self.name, action, f"the Sentinel of {node} says: {seen.quorum}")

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Ask the nodes; of several primaries that of the highest epoch of the Sentinels wins."""
        nodes = tuple(runtime.nodes())

        def enough(views: Mapping[NodeName, NodeView]) -> bool:
            # A majority was asked, and nobody in it knows an epoch above the claimed one.
            return 2 * len(views) > len(nodes) and self._claim(views, newest_only=True) is not None

        views = ask_all(nodes, lambda node: ask(runtime.endpoint, node, timeout_s), enough)
        claim = self._claim(views, newest_only=True) or self._claim(views, newest_only=False)
        if claim is None:
            return LeaderView(None, _newest_epoch(views))
        epoch, node = claim
        return LeaderView(node, epoch)

    def open_client(self, runtime: Endpoints, route: Route) -> Client:
        """Return a fresh client; connects at its first operation."""
        client = RedisClient(runtime.endpoint, self._membership, route, self._settings)
        return client_for(None if self.experiment is None else self.experiment.workload, client)

    def converged(self, runtime: Endpoints) -> None:
        """Return when all follow one primary, to the same offset, in all Sentinels' view."""
        action = "wait for the nodes to converge"
        views, primary = self._all_views(runtime, action)
        self._require_replicas(views, primary, action)
        offsets = {node: view.server.offset for node, view in views.items() if view.server}
        if len(set(offsets.values())) != 1:
            positions = ", ".join(f"{node} at {offset}" for node, offset in sorted(offsets.items()))
            raise not_yet(self.name, action, f"the replicas are not in step: {positions}")

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Where the node stands, None if its server does not answer within the time.

        ``leads`` is 1 while the server claims to be the primary; ``config_epoch`` is what the
        node's own Sentinel believes, left out where that does not answer.
        """
        view = ask(runtime.endpoint, node, timeout_s)
        if view is None or view.server is None:
            return None
        server = view.server
        figures: dict[str, float] = {
            "leads": int(server.is_primary),
            "replication_offset": server.offset,
            "connected_replicas": server.online_replicas,
            "primary_link_up": int(server.link_is_up),
            "used_memory_bytes": server.used_memory_bytes,
        }
        if view.sentinel is not None:
            figures["config_epoch"] = view.sentinel.config_epoch
        return figures

    def digest(self, runtime: Endpoints, node: NodeName, timeout_s: float) -> MemberDigest | None:
        """Digest of its data at its offset of the replication, within the replication's id."""
        return ask_digest(runtime.endpoint, node, timeout_s)

    def versions(self) -> dict[str, str]:
        """Return the version that the adapter is made for; ``plan.json`` has the image's digest.

        Each server prints its build first. Runtimes without images start the host's.
        """
        return {"redis": "7 (Debian's packages)"}

    def _all_views(
        self, runtime: Endpoints, action: str
    ) -> tuple[dict[NodeName, NodeView], NodeName]:
        """Every node's whole view, and the one primary that all Sentinels name."""
        nodes = tuple(runtime.nodes())
        views = ask_all(nodes, lambda node: ask(runtime.endpoint, node, STATUS_TIMEOUT_S))
        for node in nodes:
            view = views.get(node)
            if view is None or view.server is None or view.sentinel is None:
                part = "Sentinel" if view is not None and view.server is not None else "server"
                raise not_yet(self.name, action, f"no answer from the {part} of {node}")
        named = {self._named(view) for view in views.values()}
        primaries = [node for node, view in views.items() if view.server and view.server.is_primary]
        if len(primaries) != 1 or len(named) != 1:
            claims = ", ".join(primaries) or "nobody"
            names = ", ".join(sorted(f"{name} (epoch {epoch})" for epoch, name in named))
            raise not_yet(
                self.name, action, f"{claims} claims to be primary, the Sentinels name {names}"
            )
        ((_, name),) = named
        if name != primaries[0]:
            raise not_yet(
                self.name, action, f"{primaries[0]} is primary, the Sentinels name {name}"
            )
        return {node: views[node] for node in nodes}, primaries[0]

    def _require_replicas(
        self, views: Mapping[NodeName, NodeView], primary: NodeName, action: str
    ) -> None:
        for node, view in views.items():
            server = view.server
            assert server is not None, "a node without one is refused before"
            if node == primary:
                if server.online_replicas != len(views) - 1:
                    raise not_yet(
                        self.name, action, f"{primary} has {server.online_replicas} replicas"
                    )
            elif not server.link_is_up:
                raise not_yet(self.name, action, f"{node} has no link to its primary")
            elif self._membership.node_at(server.primary_host, server.primary_port) != primary:
                raise not_yet(self.name, action, f"{node} is a replica of {server.primary_host}")

    def _named(self, view: NodeView) -> tuple[int, str]:
        """Configuration epoch and name of the primary, as this node's Sentinel has them."""
        seen = view.sentinel
        assert seen is not None, "a node without one is refused before"
        return seen.config_epoch, str(self._membership.node_at(seen.host, seen.port))

    def _claim(
        self, views: Mapping[NodeName, NodeView], *, newest_only: bool
    ) -> tuple[int, NodeName] | None:
        """The highest epoch whose primary claims to be one, or None if that is not the newest."""
        newest = _newest_epoch(views)
        claims: list[tuple[int, NodeName]] = []
        for view in views.values():
            seen = view.sentinel
            if seen is None or (newest_only and seen.config_epoch != newest):
                continue
            named = self._membership.node_at(seen.host, seen.port)
            server = views[named].server if named is not None and named in views else None
            if named is not None and server is not None and server.is_primary:
                claims.append((seen.config_epoch, named))
        return max(claims, default=None)


def _newest_epoch(views: Mapping[NodeName, NodeView]) -> int | None:
    return max(
        (view.sentinel.config_epoch for view in views.values() if view.sentinel), default=None
    )
