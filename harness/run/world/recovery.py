"""After the faults: healing, and the demand for progress.

Safety must hold while faults strike; liveness can be demanded only once they are over. Two ways,
by the scenario: everything heals, or a drawn majority does and the rest stays dead or half-cut, as
in a data centre that has lost machines for good. Then, each within the scenario's patience:

- INV-40: an operation that a client invokes after the heal is acknowledged, and a record that was
  proposed after it is committed.
- INV-41: epochs come to rest: for a while none begins at the nodes that reach each other.
- INV-42: where everything healed, all nodes hold and have applied the same.

Clients go on until INV-40 holds; then the load rests. In some worlds who leads then loses one of a
bare majority that another member still reaches, and INV-40 is demanded once more: only where all of
them hold the same, for Raft does not promise to elect who is well connected but lacks records. The
world is looked at every few milliseconds, not after every step, so that waiting costs nothing. Must
never demand anything of a cluster whose voters' majority has forgotten.
"""

from collections.abc import Callable
from typing import Final

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import ViolationError
from splitbrain.contracts.words import counted
from splitbrain.harness.run.world.fault_driver import FaultDriver
from splitbrain.harness.run.world.load import SimulatedLoad, VirtualHistory
from splitbrain.nemesis.targets import shuffled
from splitbrain.simulation.world.world import SimulatedWorld

PROGRESS: Final = "INV-40"
SETTLED: Final = "INV-41"
ALIKE: Final = "INV-42"
#: Invariant that is demanded here; may be muted, and is then waited for all the same.
LIVENESS: Final = (PROGRESS, SETTLED, ALIKE)

_STREAM: Final = "recovery"
_NS_PER_US: Final = 1_000
#: How often the world is looked at.
_LOOK_US: Final = 5_000
#: Comparing nodes costs more, so it is done less often the longer they differ.
_COMPARE_US_MAX: Final = 200_000
_DRAW_LIMIT: Final = 1 << 31
#: Of the ways to draw a majority: it has who leads now.
_WITH_LEADER: Final = 1
#: Nodes of which two can be cut apart with a third one between them.
_APART_NODES: Final = 3
#: One in so many majorities that could lose a link does not.
_APART_IN: Final = 3


class Recovery:
    """The end of one world."""

    def __init__(
        self,
        world: SimulatedWorld,
        faults: FaultDriver,
        load: SimulatedLoad,
        history: VirtualHistory,
        run_until: Callable[[int], None],
        muted: frozenset[str] = frozenset(),
    ) -> None:
        """``run_until`` lets the world run up to a time; ``muted`` demands are given up quietly."""
        self._muted, self._run_until = muted, run_until
        self._world, self._cluster = world, world.cluster
        self._faults, self._load, self._history = faults, load, history
        self._options = world.scenario.recovery
        #: Nodes that are up and reach each other after the heal.
        self.healed: tuple[NodeName, ...] = ()
        self._healed_us = 0
        #: Highest epoch that a healed node was seen in, and since when.
        self._epoch: int = -1
        self._epoch_since_us = 0
        #: Why the nodes did not agree, None if they did or were not asked.
        self.unlike: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether progress can be demanded: enough voters still know what they promised."""
        voters = self._cluster.nodes[: self._world.scenario.nodes]
        forgot = self._faults.arms.forgot
        sound = sum(1 for node in self.healed if node in voters and node not in forgot)
        return sound > len(voters) // 2

    def heal(self) -> None:
        """End all faults; from now on progress is due."""
        world, cluster, arms = self._world, self._cluster, self._faults.arms
        self._faults.end()
        world.network.calm_down()
        for node in cluster.nodes:
            cluster.resume(node)
            if arms.forgot.get(node) == "rotten":
                self._replace(node)
            else:
                arms.revive(node)
        if self._options.scope == "majority":
            self.healed = self._draw_majority()
            for node in cluster.nodes:
                if node not in self.healed:
                    self._leave_broken(node)
        else:
            self.healed = tuple(node for node in cluster.nodes if node not in arms.out_of_service)
        self._healed_us = self._epoch_since_us = world.now
        if self.is_due:
            cluster.healed(self.healed)

    def await_progress(self) -> None:
        """INV-40, then the load rests.

        Raises:
            ViolationError: no progress within the patience.
        """
        self._load.demand_progress()
        since_us = self._healed_us

        def missing() -> str | None:
            self._note_epoch()
            history = self._history
            if not history.traffic.acknowledged_since(since_us * _NS_PER_US - 1):
                return "no operation that was invoked after the heal was acknowledged"
            for kind in history.kinds:
                if history.acknowledged_by_kind.get(kind, -1) < since_us:
                    return f"no {kind} that was invoked after the heal was acknowledged"
            if not self._cluster.committed_past(since_us):
                return "no record that was proposed after the heal was committed"
            return None

        self._await(PROGRESS, missing, lambda: _LOOK_US)
        self._load.rest()

    def await_progress_apart(self) -> None:
        """INV-40 again, after who leads has lost one of those that its majority needs.

        Raises:
            ViolationError: no progress within the patience.
        """
        world, healed = self._world, self.healed
        if self._options.scope != "majority" or len(healed) < _APART_NODES:
            return
        if world.between(_STREAM, 0, _APART_IN - 1) == 0 or not self._become_alike():
            return
        leader = self._cluster.leader().leader
        if leader is None or leader not in healed:
            return
        others = [node for node in healed if node != leader]
        lost = others[world.between(_STREAM, 0, len(others) - 1)]
        world.network.cut([Link(leader, lost), Link(lost, leader)])
        # Nobody asks meanwhile: with a record that the others lack it could not be replaced.
        self._run_until(world.now + self._options.settle_us)
        self._healed_us = world.now
        self.await_progress()

    def _become_alike(self) -> bool:
        """Let the nodes that reach each other become so, without demanding it."""
        world = self._world
        until_us = world.now + self._options.settle_us
        while self._load.open_count or self._cluster.unlike(self.healed) is not None:
            if world.now >= until_us:
                return False
            self._run_until(world.now + 4 * _LOOK_US)
        return True

    def await_rest(self) -> None:
        """INV-41 and, where everything healed, INV-42.

        Raises:
            ViolationError: one does not hold within the patience.
        """
        self._await(SETTLED, self._unsettled, lambda: 4 * _LOOK_US)
        if self._options.scope != "majority":
            pause_us = _LOOK_US

            def pause() -> int:
                nonlocal pause_us
                pause_us = min(2 * pause_us, _COMPARE_US_MAX)
                return pause_us

            self._await(ALIKE, self._differ, pause)

    def _await(
        self, invariant: str, missing: Callable[[], str | None], pause_us: Callable[[], int]
    ) -> None:
        """Let the world run until nothing is missing."""
        world = self._world
        until_us = world.now + self._options.patience_us
        while (problem := missing()) is not None:
            if world.now >= until_us:
                if invariant in self._muted:
                    return
                patience_ms = self._options.patience_us // 1_000
                raise ViolationError(
                    invariant,
                    f"{problem}, {patience_ms} ms after everything that was to heal had healed "
                    f"({', '.join(self.healed)})",
                )
            self._run_until(min(world.now + pause_us(), until_us))
            self._revive_late()

    def _revive_late(self) -> None:
        """Start nodes that a disk's fault ended only after its heal, in a job that was slow.

        Whether a node had a reason to end is the invariants' to say.
        """
        for node in self.healed:
            if self._cluster.ended(node) is not None:
                self._faults.arms.revive(node)

    def _unsettled(self) -> str | None:
        self._note_epoch()
        if self._world.now - self._epoch_since_us < self._options.settle_us:
            return f"epochs go on rising, the last one is {self._epoch}"
        if self._load.open_count:
            return f"{counted(self._load.open_count, 'operation')} still open"
        return None

    def _note_epoch(self) -> None:
        """See whether a healed node is in a higher epoch than any was at the last look."""
        cluster = self._cluster
        epoch = cluster.leader().epoch or 0
        epoch = max([epoch, *(cluster.epoch(node) for node in self.healed)])
        if epoch != self._epoch:
            self._epoch, self._epoch_since_us = epoch, self._world.now

    def _differ(self) -> str | None:
        self.unlike = self._cluster.unlike(self.healed)
        return self.unlike

    def _replace(self, node: NodeName) -> None:
        """A node whose disk has forgotten comes back without a past, if the promise allows it."""
        arms, cluster = self._faults.arms, self._cluster
        arms.end(node)
        if cluster.may_forget(node):
            cluster.disk(node).wipe()
            arms.revive(node)
        else:
            arms.out_of_service[node] = None

    def _draw_majority(self) -> tuple[NodeName, ...]:
        """Return a smallest majority of the voters that still know what they promised, drawn.

        By another draw with who leads now, or without: both are harder than it being anybody.
        """
        voters = self._cluster.nodes[: self._world.scenario.nodes]
        forgot = self._faults.arms.forgot
        sound = [node for node in voters if node not in forgot]
        draw = self._world.between(_STREAM, 0, _DRAW_LIMIT)
        drawn = list(shuffled(sound, draw))
        leader = self._cluster.leader().leader
        way = self._world.between(_STREAM, 0, 2)
        if leader is not None and leader in drawn and way:
            drawn.remove(leader)
            drawn.insert(0 if way == _WITH_LEADER else len(drawn), leader)
        chosen = drawn[: len(voters) // 2 + 1]
        return tuple(node for node in voters if node in chosen)

    def _leave_broken(self, node: NodeName) -> None:
        """Dead for good, deaf, or dumb, by draw; clients reach it unless it is dead."""
        world, cluster = self._world, self._cluster
        way = world.between(_STREAM, 0, 2)
        others = [other for other in cluster.nodes if other != node]
        if way == 0:
            cluster.kill(node, world.between(_STREAM, 0, _DRAW_LIMIT))
        elif way == 1:
            world.network.cut([Link(other, node) for other in others])
        else:
            world.network.cut([Link(node, other) for other in others])
