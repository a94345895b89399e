"""Moments that the faults of a world wait for: what nodes do, and the recovery of all of them."""

from collections.abc import Callable, Collection

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NodeCrashed
from splitbrain.contracts.simulation import SimulatedCluster
from splitbrain.simulation.world.world import SimulatedWorld


class _Waiting:
    __slots__ = ("fits", "left", "tell")

    def __init__(
        self, count: int, fits: Callable[[NodeName], bool], tell: Callable[[NodeName], None]
    ) -> None:
        #: How many happenings that fit must still come, the last one included.
        self.left = max(1, count)
        self.fits = fits
        self.tell = tell


class Happenings:
    """All that is waited for in one world: one watcher per kind of happening that somebody awaits.

    One told may end the very step in which it was called: everybody who waited for the same
    happening is told before ``NodeCrashed`` is let pass.
    """

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._waiting: dict[str, list[_Waiting]] = {}

    def wait(
        self,
        name: str,
        count: int,
        fits: Callable[[NodeName], bool],
        tell: Callable[[NodeName], None],
    ) -> None:
        """Tell of the ``count``-th happening of this name that fits, once, with its node."""
        waiting = self._waiting.get(name)
        if waiting is None:
            waiting = self._waiting[name] = []
            self._world.watch(name, self._happened)
        waiting.append(_Waiting(count, fits, tell))

    def _happened(self, node: NodeName, name: str) -> None:
        waiting = self._waiting[name]
        due: list[_Waiting] = []
        for each in waiting:
            if each.fits(node):
                each.left -= 1
                if each.left == 0:
                    due.append(each)
        if not due:
            return
        waiting[:] = [each for each in waiting if each.left]
        crash: NodeCrashed | None = None
        for each in due:
            try:
                each.tell(node)
            except NodeCrashed as crashed:
                crash = crashed
        if crash is not None:
            raise crash


class RecoveryLook:
    """Looks whether all nodes of a world take part again, one use."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        #: Up to where all nodes are to know that the log is committed: the end of the leader's when
        #: they were first seen to follow it. Under load no two of them know as much.
        self._mark: int | None = None

    def missing(self) -> str | None:
        """Return in words what is missing now, None where nothing is."""
        cluster = self._cluster
        for node in cluster.nodes:
            if not cluster.is_up(node) or cluster.is_paused(node):
                return f"{node} does not run"
        leader = cluster.leader().leader
        if leader is None:
            return "nobody leads"
        for node in cluster.nodes:
            if cluster.epoch(node) != cluster.epoch(leader):
                return f"{node} has not heard that {leader} leads"
        if self._mark is None:
            self._mark = log_ends(cluster).get(leader, 0)
        # A log may end further, with what its node is yet to cut off.
        known = _latest_offsets(cluster, ("high-watermark", "commit"))
        for node in cluster.nodes:
            if known.get(node, 0) < self._mark:
                return f"{node} has not caught up"
        return None


def log_ends(cluster: SimulatedCluster) -> dict[NodeName, int]:
    """Return the end offset of each node's log, of those that ever told."""
    return _latest_offsets(cluster, ("append", "truncate"))


def _latest_offsets(cluster: SimulatedCluster, kinds: Collection[str]) -> dict[NodeName, int]:
    found: dict[NodeName, int] = {}
    for node in cluster.nodes:
        for event in reversed(cluster.state_events(node)):
            if event.kind in kinds and event.offset is not None:
                found[node] = event.offset
                break
    return found
