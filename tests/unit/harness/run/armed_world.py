"""A cluster in memory with every arm that a runtime can have, and a clock that nobody waits for.

Its acts do what they say, unless they are named in ``deaf``: then they do nothing at all, and the
harness must notice from outside. Five nodes; whoever reaches a majority leads, clients are served
and logs grow at each look at the clock.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_none

from splitbrain.contracts.arms import (
    ClockWarp,
    FileChange,
    FileChanged,
    LinkQuality,
    MemoryState,
    PowerLoss,
    Shape,
)
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import US_PER_MS, Link, in_ms
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeSample, NodeStatus
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.state_watch import StateWatch
from splitbrain.harness.run.traffic import Traffic
from tests.unit.harness.ended_operations import ended

NODES = tuple(NodeName(f"n{number}") for number in range(1, 6))
_STEP_NS = 60_000_000
_MIB = 1 << 20


def _undoing(act: str, kind: str) -> Any:
    """An act that takes what is bad of this kind from a node, or from some links."""

    def undo(self: "ArmedWorld", places: NodeName | Iterable[Link]) -> None:
        self._take(act, kind, [places] if isinstance(places, str) else places)

    return undo


class ArmedWorld:
    """Nodes, links, disks, clocks, their clients, and the runtime that reaches all of them."""

    name = "fake"

    def __init__(
        self, deaf: Iterable[str] = (), missed: Mapping[str, Container[int]] | None = None
    ) -> None:
        """Args beyond the acts that do nothing.

        Args:
            deaf: acts that never do anything.
            missed: of an act, the calls that do nothing, from 0.
        """
        self.deaf = frozenset(deaf)
        self.missed = missed or {}
        self.calls: list[str] = []
        self.now = 0
        self.traffic = Traffic()
        self.watch = StateWatch()
        self.states: dict[NodeName, NodeStatus] = dict.fromkeys(NODES, "running")
        self.bad: dict[str, dict[Any, Any]] = {
            kind: {}
            for kind in ("cut", "shape", "reset", "cpu", "memory", "disk", "clock", "removed")
        }
        self.files = dict.fromkeys(NODES, b"kept")
        #: Nodes that the kernel has ended since their memory was limited.
        self.short_of_memory: set[NodeName] = set()
        #: Whether nobody tells of members.
        self.is_mute = False
        self.leader: NodeName | None = None
        self.epoch = 0
        self._ends = dict.fromkeys(NODES, 0)
        self._sequence = 0
        self.links = self.processes = self.disks = self.clocks = self

    # The clock of the run: each look lets the world go on.

    def tick(self) -> int:
        self.now += _STEP_NS
        if self.leader is None or not self._leads(self.leader):
            able = [node for node in NODES if self._leads(node)]
            self.leader = able[0] if able else None
            if self.leader is not None:
                self.epoch += 1
                self._tell(self.leader, "role", role="leader")
        leader = self.leader
        if leader is not None:
            self.traffic.completed(ended("ok", leader), self.now)
            self._ends[leader] += 1
            for node in NODES:
                if node == leader or self._pass(leader, node):
                    # A node that was away comes after, by and by.
                    self._ends[node] = max(
                        self._ends[node], min(self._ends[node] + 2, self._ends[leader])
                    )
                    self._tell(node, "append", offset=self._ends[node])
            self._tell(leader, "commit", offset=self._ends[leader])
            for node in NODES:
                if node != leader and self._pass(leader, node):
                    self._tell(node, "high-watermark", offset=self._ends[node])
        self.watch.looked()
        return self.now

    def _tell(self, node: NodeName, kind: Any, **fields: Any) -> None:
        self._sequence += 1
        self.watch.heard(
            StateEvent(
                *(node, self._sequence, 0, kind, self.epoch),
                time=self.now,
                **fields,
                detail={"flushed": self._ends[node]},
            )
        )

    def _leads(self, node: NodeName) -> bool:
        reached = [other for other in NODES if other != node and self._pass(node, other)]
        return self.states[node] == "running" and 2 * (len(reached) + 1) > len(NODES)

    def _pass(self, one: NodeName, other: NodeName) -> bool:
        barred = False
        # Nearly always nothing is, and each look at the clock asks for every pair.
        if self.bad["cut"] or self.bad["reset"]:
            both = (Link(one, other), Link(other, one))
            barred = any(link in self.bad[kind] for kind in ("cut", "reset") for link in both)
        return not barred and self.states[one] == self.states[other] == "running"

    def ask_leader(self, _timeout_s: float) -> LeaderView:
        self.tick()
        return LeaderView(self.leader, self.epoch)

    def recovered(self) -> None:
        """As ``System.recovered``: who was away has all that the leader has."""
        for node in NODES:
            if self.states[node] != "running" or self._ends[node] < max(self._ends.values()):
                raise HarnessError("wait for recovery", "the nodes", f"{node} lags", "Wait")

    def answers(self, node: NodeName, _timeout_s: float) -> bool:
        return self.states[node] == "running"

    def _hears(self, act: str) -> bool:
        number = self.calls.count(act)
        self.calls.append(act)
        return act not in self.deaf and number not in self.missed.get(act, ())

    # Runtime.

    def nodes(self) -> Sequence[NodeName]:
        return NODES

    def start(self, node: NodeName) -> None:
        if self._hears("start") and self.states[node] == "exited":
            if node in self.bad["memory"]:
                self.short_of_memory.add(node)
                return
            self.states[node] = "running"

    def kill(self, node: NodeName) -> None:
        if self._hears("kill"):
            self.states[node] = "exited"

    def pause(self, node: NodeName) -> None:
        if self._hears("pause"):
            self.states[node] = "paused"

    def resume(self, node: NodeName) -> None:
        if self._hears("resume") and self.states[node] == "paused":
            self.states[node] = "running"

    def cut(self, links: Iterable[Link]) -> None:
        self._put("cut", "cut", links, True)

    def heal_all(self) -> None:
        self.calls.append("heal_all")

    def status(self, node: NodeName) -> NodeStatus:
        return self.states[node]

    def exit_code(self, node: NodeName) -> int | None:
        return None if self.states[node] == "running" else 137

    def reachable(self, link: Link, _port: str, _timeout_s: float) -> bool:
        return self._pass(link.source, link.destination)

    def sample(self, node: NodeName) -> NodeSample | None:
        return NodeSample(node, 0.1, 20 * _MIB) if self.states[node] == "running" else None

    def _put(self, act: str, kind: str, places: Iterable[Any], value: Any) -> None:
        if self._hears(act):
            self.bad[kind].update(dict.fromkeys(places, value))

    def _take(self, act: str, kind: str, places: Iterable[Any]) -> None:
        if self._hears(act):
            for place in list(places):
                self.bad[kind].pop(place, None)

    restore = _undoing("restore", "cut")
    unshape = _undoing("unshape", "shape")
    unreset = _undoing("unreset", "reset")
    unthrottle = _undoing("unthrottle", "cpu")
    drain = _undoing("drain", "disk")
    unstall = _undoing("unstall", "disk")
    unwarp = _undoing("unwarp", "clock")

    # Links.

    def shape(self, links: Iterable[Link], shape: Shape) -> str:
        self._put("shape", "shape", links, shape)
        return "a fake"

    def shaped(self) -> dict[Link, Shape]:
        return dict(self.bad["shape"])

    def reset(self, links: Iterable[Link]) -> None:
        self._put("reset", "reset", links, True)

    def measure(self, link: Link, probes: int, timeout_s: float) -> LinkQuality:
        shape = self.bad["shape"].get(link, Shape())
        large = probes // 2
        if link in self.bad["cut"]:
            return LinkQuality(probes, 0, 0, 0, None, large, 0)
        large_there = 0 if shape.bytes_max else round(large * (1 - shape.loss))
        small_there = round((probes - large) * (1 - shape.loss))
        return LinkQuality(
            *(probes, large_there + small_there, round(probes * shape.duplicate)),
            *(round(probes * shape.reorder / 2), 1.0 + in_ms(shape.delay_us), large, large_there),
            kbit=float(shape.rate_kbit or 3000),
        )

    # Processes.

    def terminate(self, node: NodeName, patience_s: float) -> int | None:
        if not self._hears("terminate"):
            return None
        self.states[node] = "exited"
        return 0

    def throttle(self, node: NodeName, cpu_share: float) -> None:
        self._put("throttle", "cpu", [node], cpu_share)

    def throttled(self, node: NodeName) -> float | None:
        return self.bad["cpu"].get(node)

    def limit_memory(self, node: NodeName, limit_mib: int) -> None:
        self._put("limit_memory", "memory", [node], limit_mib)
        if node in self.bad["memory"]:
            self.states[node] = "exited"

    def unlimit_memory(self, node: NodeName) -> None:
        self._take("unlimit_memory", "memory", [node])
        self.short_of_memory.discard(node)

    def memory(self, node: NodeName) -> MemoryState:
        limit_mib = self.bad["memory"].get(node)
        return MemoryState(limit_mib, node in self.short_of_memory)

    # Disks.

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> tuple[PowerLoss, ...]:
        hears = self._hears("power_off")
        for node in nodes:
            self.states[node] = "exited"
        return tuple(PowerLoss(node, True, not hears, "3 bytes") for node in nodes)

    def fill(self, node: NodeName) -> str:
        self._put("fill", "disk", [node], "full")
        return "filled"

    def stall(self, node: NodeName) -> None:
        self._put("stall", "disk", [node], "stalled")

    def fail(self, node: NodeName) -> str:
        self._put("fail", "disk", [node], "read-only")
        return "failed"

    def repair(self, node: NodeName) -> None:
        if self.states[node] != "exited":
            raise HarnessError("repair", node, "it runs", "Stop it.")
        self._take("repair", "disk", [node])

    def keep(self, node: NodeName) -> None:
        self._hears("keep")

    def change(self, node: NodeName, change: FileChange) -> FileChanged | None:
        before = self.files[node]
        after = b"kept" if change.kind == "restore" else b"kepT"
        if self._hears("change"):
            self.files[node] = after
        return FileChanged(change.kind, "a.log", 0, before.hex(), after.hex(), 4, 4)

    def read(self, node: NodeName, file: str, offset: int, length: int) -> bytes:
        return self.files[node][offset : offset + length]

    def wipe(self, node: NodeName) -> str:
        if self._hears("wipe"):
            self.files[node] = b""
        return "4 bytes"

    def state(self, node: NodeName, timeout_s: float) -> str:
        return str(self.bad["disk"].get(node, "writable"))

    # Members.

    def remove(self, node: NodeName) -> None:
        self._put("remove", "removed", [node], True)

    def add(self, node: NodeName) -> None:
        if self.states[node] != "exited":
            raise HarnessError("add", node, "it runs", "Stop it.")
        self._take("add", "removed", [node])

    def is_member(self, node: NodeName) -> bool | None:
        return None if self.is_mute else node not in self.bad["removed"]

    # Clocks.

    def warp(self, node: NodeName, warp: ClockWarp) -> None:
        self._put("warp", "clock", [node], warp.offset_us // US_PER_MS + warp.drift_ppm // 100)

    def offset_ms(self, node: NodeName) -> int:
        return int(self.bad["clock"].get(node, 0))


class WorldClock:
    """The run's clock: each look lets the world go on a little."""

    def __init__(self, world: ArmedWorld) -> None:
        self._world = world

    def now(self) -> int:
        return self._world.tick()

    def seconds(self) -> float:
        return self._world.now / 1e9


class WorldStop(Stop):
    """Waits in the world's time; what does not come in some looks does not come."""

    def __init__(self, world: ArmedWorld) -> None:
        super().__init__()
        self._world = world

    def wait(self, timeout_s: float) -> bool:
        end = self._world.now + int(max(0.0, timeout_s) * 1e9)
        while self._world.now < end:
            self._world.tick()
        return self.is_set()

    def retrying(self, patience_s: float, interval_s: float, *errors: type[Exception]) -> Retrying:
        return Retrying(
            stop=stop_after_attempt(8),
            wait=wait_none(),
            sleep=lambda _seconds: self._go_on(),
            retry=retry_if_exception_type(errors),
            reraise=True,
        )

    def _go_on(self) -> None:
        self._world.tick()
