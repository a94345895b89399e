"""A simulated system of a few lines: the first node that a majority reaches leads and serves.

Its clients are answered by the node they ask, so that what the driver does to nodes and links is
seen in the history; what it breaks on demand is chosen by the scenario's ``bugs``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.random_source import RandomSource
from splitbrain.contracts.scenario import NodeCrashed, Scenario
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView, Route
from splitbrain.simulation.world.world import SimulatedWorld

#: Names that ``bugs`` may have.
SILENT_AFTER_HEAL = "silent-after-heal"
COMMITS_NOTHING_AFTER_HEAL = "commits-nothing-after-heal"
EPOCHS_RISE = "epochs-rise"
NEVER_ALIKE = "never-alike"
RAISES = "raises"

TICK_US = 10_000
ANSWER_US = 400


class FakeFiles:
    """One file, which can be kept and changed."""

    def __init__(self, did: Callable[[str], str]) -> None:
        self._did = did
        self.now = {"log/0.log": b"records"}
        self._kept: dict[str, bytes] = {}

    def keep(self) -> None:
        self._kept = dict(self.now)

    def sizes(self) -> dict[str, int]:
        return {file: len(content) for file, content in self.now.items()}

    def kept(self) -> dict[str, int]:
        return {file: len(content) for file, content in self._kept.items()}

    def read(self, file: str, offset: int, length: int) -> bytes:
        return self.now[file][offset : offset + length]

    def write(self, file: str, offset: int, content: bytes) -> None:
        self._did("changed")
        before = self.now[file]
        self.now[file] = before[:offset] + content + before[offset + len(content) :]

    def truncate(self, file: str, size: int) -> None:
        raise AssertionError(f"{file} is cut off at {size}")

    def difference(self, file: str) -> int | None:
        pairs = zip(self.now[file], self._kept[file], strict=True)
        return next((place for place, (one, other) in enumerate(pairs) if one != other), None)

    def exchange(self, file: str) -> None:
        self._did("put-back")
        self.now[file], self._kept[file] = self._kept[file], self.now[file]


class FakeDisk:
    """Notes what was done to it."""

    def __init__(self, acts: list[str], node: NodeName) -> None:
        self._acts = acts
        self._node = node
        self.rots = True
        self.files = FakeFiles(self._did)

    def _did(self, what: str) -> str:
        self._acts.append(f"{self._node} {what}")
        return what

    def slow_down(self, factor: int) -> str:
        return self._did(f"slow {factor}")

    def fill(self, spare_bytes: int) -> str:
        return self._did(f"fill {spare_bytes}")

    def mend(self) -> str:
        return self._did("mend")

    def fail_calls(self, action: str, count: int | None) -> str:
        return self._did(f"fail-{action} {count}")

    def rot(self, draw: int, what: str) -> str | None:
        return self._did(f"rot {what}") if self.rots else None

    def roll_back(self) -> str | None:
        return self._did("roll-back")

    def remember(self) -> None:
        self._did("remember")
        self.files.keep()

    def wipe(self) -> str:
        return self._did("wipe")


class FakeClient:
    """Asks its node, or whoever leads."""

    def __init__(self, cluster: "FakeCluster", route: Route) -> None:
        self._cluster = cluster
        self._route = route
        self._is_closed = False

    def invoke(
        self, operation: Operation, timeout_us: int, done: Callable[[Completion], None]
    ) -> None:
        cluster = self._cluster
        cluster.invoked.append((cluster.world.now, operation))

        def finish(completion: Completion) -> None:
            if not self._is_closed:
                done(completion)

        def answer() -> None:
            leader = cluster.leader().leader
            asked = leader if self._route.kind == "leader" else self._route.node
            if leader is None or asked != leader or not cluster.serves():
                kind = "fail" if operation.f == "read" else "info"
                late = timeout_us - ANSWER_US
                cluster.world.after(late, lambda: finish(Completion(kind, error="timed-out")))
                return
            cluster.commit()
            finish(Completion("ok", operation.value, node=leader))

        cluster.world.after(ANSWER_US, answer)

    def close(self) -> None:
        self._is_closed = True


class FakeCluster:
    """Nodes that do nothing but lead."""

    def __init__(self, world: SimulatedWorld, muted: frozenset[str]) -> None:
        scenario = world.scenario
        self.world = world
        self.muted = muted
        self.nodes = tuple(
            NodeName(f"n{number + 1}") for number in range(scenario.nodes + scenario.observers)
        )
        self.observers: tuple[NodeName, ...] = ()
        self._voters = self.nodes[: scenario.nodes]
        self._up: dict[NodeName, bool] = dict.fromkeys(self.nodes, False)
        self._paused: dict[NodeName, bool] = dict.fromkeys(self.nodes, False)
        #: Everything that was done to it, in order.
        self.acts: list[str] = []
        self._disks = {node: FakeDisk(self.acts, node) for node in self.nodes}
        self.invoked: list[tuple[int, Operation]] = []
        #: Nodes that the promise can bear to forget.
        self.forgettable = dict.fromkeys(self.nodes, True)
        self.healed_nodes: tuple[NodeName, ...] | None = None
        self.is_finished = False
        #: Whether a node that is asked to end does.
        self.heeds_signals = True
        #: Node that refuses a file that is not as it was kept.
        self.refuses: NodeName | None = None
        #: Node whose own step is under way.
        self.stepping: NodeName | None = None
        self._leader: NodeName | None = None
        self._epoch = 0
        self._committed_us = -1
        self._healed_us = -1
        world.after(TICK_US, self._tick)

    def _has(self, bug: str) -> bool:
        return bug in self.world.scenario.bugs

    def _tick(self) -> None:
        if self._has(RAISES) and self.world.now > 100_000:
            raise ZeroDivisionError("a defect of the node")
        self._elect()
        if self._has(EPOCHS_RISE) and self.healed_nodes is not None:
            self._epoch += 1
        for node in self.nodes:
            if self._up[node] and not self._paused[node]:
                self.step(node, "ticks")
        self.world.after(TICK_US, self._tick)

    def step(self, node: NodeName, name: str) -> None:
        """A step of the node in which something happens."""
        self.stepping = node
        try:
            self.world.happened(node, name)
            self.acts.append(f"{node} went on after {name}")
        except NodeCrashed:
            pass
        finally:
            self.stepping = None

    def _elect(self) -> None:
        able = [node for node in self._voters if self._reaches_majority(node)]
        leader = able[0] if able else None
        if leader is not None and leader != self._leader:
            self._epoch += 1
        self._leader = leader

    def _reaches_majority(self, node: NodeName) -> bool:
        network: Any = self.world.network
        reached = [
            other
            for other in self._voters
            if self._runs(other)
            and not network.is_cut(node, other)
            and not network.is_cut(other, node)
        ]
        return self._runs(node) and len(reached) > len(self._voters) // 2

    def _runs(self, node: NodeName) -> bool:
        return self._up[node] and not self._paused[node]

    def serves(self) -> bool:
        return not (self._has(SILENT_AFTER_HEAL) and self.healed_nodes is not None)

    def commit(self) -> None:
        if not (self._has(COMMITS_NOTHING_AFTER_HEAL) and self.healed_nodes is not None):
            self._committed_us = self.world.now

    def start(self, node: NodeName) -> None:
        if not self._up[node]:
            self._up[node] = True
            self._paused[node] = False
            self.acts.append(f"{node} start")
            files = self._disks[node].files
            if node == self.refuses and files.kept() and files.difference("log/0.log") is not None:
                self._up[node] = False

    def terminate(self, node: NodeName, draw: int) -> None:
        self.acts.append(f"{node} terminate")
        if self.heeds_signals:
            self.world.after(TICK_US, lambda: self.kill(node, draw))

    def kill(self, node: NodeName, draw: int) -> None:
        if self._up[node]:
            self._up[node] = False
            self.acts.append(f"{node} kill")
            if node == self.stepping:
                raise NodeCrashed(f"{node}: killed")

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> str:
        own = self.stepping in nodes
        for node in nodes:
            self._up[node] = False
            self.acts.append(f"{node} power-off")
        if own:
            raise NodeCrashed("lost in a step")
        return "lost 3 bytes"

    def pause(self, node: NodeName) -> None:
        self._paused[node] = self._up[node]

    def resume(self, node: NodeName) -> None:
        """Undo pause; what came meanwhile is taken in within the call, as by real nodes."""
        if self._paused[node]:
            self._paused[node] = False
            self.step(node, "thaws")

    def jump_clock(self, node: NodeName, delta_us: int) -> None:
        self.acts.append(f"{node} clock {delta_us}")

    def is_up(self, node: NodeName) -> bool:
        return self._up[node]

    def is_paused(self, node: NodeName) -> bool:
        return self._paused[node]

    def ended(self, node: NodeName) -> str | None:
        return None

    def leader(self) -> LeaderView:
        self._elect()
        return LeaderView(self._leader, self._epoch if self._leader else None)

    def disk(self, node: NodeName) -> FakeDisk:
        return self._disks[node]

    def may_forget(self, node: NodeName) -> bool:
        return self.forgettable[node]

    def open_client(self, slot: int, route: Route) -> FakeClient:
        return FakeClient(self, route)

    def committed_past(self, time_us: int) -> bool:
        return self._committed_us > time_us

    def unlike(self, among: Sequence[NodeName]) -> str | None:
        return "n1 and n2 differ" if self._has(NEVER_ALIKE) else None

    def healed(self, among: Sequence[NodeName]) -> None:
        self.healed_nodes = tuple(among)

    def finish(self) -> None:
        self.is_finished = True

    def epoch(self, node: NodeName) -> int:
        return self._epoch

    def state_events(self, node: NodeName) -> tuple[StateEvent, ...]:
        return (StateEvent(str(node), 0, 0, "role", self._epoch, role="follower"),)

    def committed_log(self, node: NodeName) -> CommittedLog | None:
        return None

    def lie(self) -> str | None:
        return None

    def figures(self) -> dict[str, int]:
        return {"epochs": self._epoch}


class FakeSystem:
    """Makes the one cluster of a test, and keeps it to be looked at."""

    happenings: tuple[str, ...] = ("ticks",)
    happenings_undrawn: tuple[str, ...] = ("thaws",)
    invariants: tuple[str, ...] = ()

    def __init__(self, prepare: Callable[[FakeCluster], None] | None = None) -> None:
        self._prepare = prepare
        self.made: FakeCluster | None = None

    @property
    def cluster_made(self) -> FakeCluster:
        assert self.made is not None
        return self.made

    def planted(self, scenario: Scenario) -> "FakeSystem":
        return self

    def describe(self, message: Any) -> tuple[str, str, bool]:
        return (str(message), "", False)

    def draw_settings(self, stream: RandomSource, round_trip_us: int) -> dict[str, str]:
        return {"patience": str(int(stream.random() * 10) + round_trip_us)}

    def dressed(self, scenario: Scenario, state_machine: str, stream: RandomSource) -> Scenario:
        settings = {"above": state_machine, "drawn": str(int(stream.random() * 10))}
        return msgspec.structs.replace(scenario, settings=scenario.settings | settings)

    def traits(self, scenario: Scenario) -> dict[str, str]:
        return {"above": scenario.settings.get("above", "no")}

    def failover_us(self, settings: dict[str, str]) -> int:
        return 100_000

    def cluster(self, world: SimulatedWorld, *, muted: frozenset[str] = frozenset()) -> FakeCluster:
        self.made = FakeCluster(world, muted)
        if self._prepare is not None:
            self._prepare(self.made)
        return self.made


def scenario(**changes: Any) -> Scenario:
    """A short world with a small load."""
    from splitbrain.contracts.scenario import LoadOptions, RecoveryOptions

    chosen: dict[str, Any] = {
        "system": "fake",
        "seed": 7,
        "load": LoadOptions(clients=2, rate=50.0, timeout_us=50_000),
        "load_us": 1_000_000,
        "recovery": RecoveryOptions(patience_us=1_000_000, settle_us=200_000),
    }
    return Scenario(**{**chosen, **changes})
