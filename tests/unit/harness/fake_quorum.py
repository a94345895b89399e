"""A quorum in memory, with the system adapter around it, for tests of the runner.

No process, no engine: nodes are records under one lock, elections take a tenth of a second. It is
correct, so a run against it must come out valid, unless a planted bug is switched on:
``stale-leader-reads`` (a deposed leader answers reads from its own log) and ``ack-before-commit``
(a leader acknowledges what only it holds). The runtime can be told to do nothing when it injects
or heals, so that the harness must notice from outside.
"""

import asyncio
import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.committed import CommittedLog, CommittedRecord
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import DeploymentSpec, NodeSpec, NodeStatus
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView, Place, ReadsSpeakFor, Route, System
from splitbrain.history.run_folder import RunFolder

ELECTION_S = 0.1


class Entry(msgspec.Struct, frozen=True):
    epoch: int
    f: str | None
    key: str | None
    value: Any


class FakeNode:
    def __init__(self, name: NodeName, number: int) -> None:
        self.name = name
        self.number = number
        self.status: NodeStatus = "running"
        self.exit_code: int | None = None
        self.incarnation = 0
        self.sequence = 0
        #: Epoch in which the node believes to lead, 0 if it does not.
        self.leads_epoch = 0
        self.log: list[Entry] = []
        self.registers: dict[str, Any] = {}
        self.events: Path | None = None

    def append(self, entry: Entry) -> int:
        self.log.append(entry)
        self._apply(entry)
        return len(self.log) - 1

    def copy_log(self, other: "FakeNode") -> None:
        if self.log == other.log:
            return
        self.log, self.registers = list(other.log), {}
        for entry in self.log:
            self._apply(entry)

    def _apply(self, entry: Entry) -> None:
        if entry.key is None:
            return
        if entry.f == "add":
            self.registers[entry.key] = [*(self.registers.get(entry.key) or []), entry.value]
        elif entry.f == "cas":
            self.registers[entry.key] = entry.value[1]
        else:
            self.registers[entry.key] = entry.value


class FakeQuorum:
    """The nodes and what connects them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.nodes: dict[NodeName, FakeNode] = {}
        self.cut: set[Link] = set()
        self.bugs: tuple[str, ...] = ()
        self.epoch = 0
        self.leader: FakeNode | None = None
        self._leaderless_since = 0.0

    def settle(self) -> None:
        """Depose, elect and replicate as far as time and connections allow."""
        if self.leader is not None and not self._can_lead(self.leader):
            self.leader, self._leaderless_since = None, time.monotonic()
        if self.leader is None and time.monotonic() - self._leaderless_since >= ELECTION_S:
            able = [node for node in self.nodes.values() if self._can_lead(node)]
            if able:
                self._elect(max(able, key=self._committed))
        if self.leader is not None:
            for node in self._reached(self.leader):
                if node is not self.leader:
                    node.leads_epoch = 0
                    node.copy_log(self.leader)

    def ask(self, node: FakeNode, operation: Operation) -> Completion | None:
        """A node's answer, None while there is none."""
        with self.lock:
            self.settle()
            if node.status == "paused":
                return None
            if node.status != "running":
                return Completion("fail", error="not-sent", node=node.name)
            if node is self.leader:
                return self._perform(node, operation, self._reached(node))
            if node.leads_epoch:
                return self._ask_deposed(node, operation)
            return Completion("fail", error="not-leader", node=node.name)

    def _ask_deposed(self, node: FakeNode, operation: Operation) -> Completion | None:
        if operation.f == "read" and "stale-leader-reads" in self.bugs:
            return self._perform(node, operation, ())
        if operation.f != "read" and "ack-before-commit" in self.bugs:
            return self._perform(node, operation, ())
        return None

    def _perform(
        self, leader: FakeNode, operation: Operation, replicas: Iterable[FakeNode]
    ) -> Completion:
        key, value = operation.key or "", operation.value
        result = value
        if operation.f == "read":
            return Completion("ok", leader.registers.get(key), node=leader.name)
        if operation.f == "cas":
            expected, new = value
            succeeded = leader.registers.get(key) == expected
            result = [expected, new, succeeded]
            if not succeeded:
                return Completion("ok", result, node=leader.name)
        entry = Entry(leader.leads_epoch, operation.f, key, value)
        offset = leader.append(entry)
        for node in replicas:
            if node is not leader:
                node.append(entry)
        return Completion("ok", result, position=(entry.epoch, offset), node=leader.name)

    def _elect(self, node: FakeNode) -> None:
        self.epoch += 1
        self.leader = node
        node.leads_epoch = self.epoch
        node.append(Entry(self.epoch, None, None, None))
        self.tell(node, "role", role="leader", leader=node.number)

    def tell(self, node: FakeNode, kind: Any, **fields: Any) -> None:
        if node.events is None:
            return
        event = StateEvent(
            node.name, node.sequence, node.incarnation, kind, max(0, self.epoch), **fields
        )
        node.sequence += 1
        with node.events.open("ab") as file:
            file.write(msgspec.json.encode(event) + b"\n")

    def _committed(self, node: FakeNode) -> tuple[int, int]:
        return (node.log[-1].epoch if node.log else 0, len(node.log))

    def _can_lead(self, node: FakeNode) -> bool:
        return node.status == "running" and 2 * len(self._reached(node)) > len(self.nodes)

    def _reached(self, node: FakeNode) -> list[FakeNode]:
        return [
            other
            for other in self.nodes.values()
            if other.status == "running"
            and (
                other is node
                or not {Link(node.name, other.name), Link(other.name, node.name)} & self.cut
            )
        ]


class FakeSystem(System):
    name = "fake"
    declares_state_events = True
    declares_committed_logs = True
    declares_durable_lengths = True
    reads_speak_for: ReadsSpeakFor = "cluster"

    def __init__(self, quorum: FakeQuorum) -> None:
        self.quorum = quorum
        self.client_raises = False
        #: Nodes that run and yet answer nothing.
        self.silent: set[NodeName] = set()

    @property
    def planted_bugs(self) -> Mapping[str, str]:
        return {
            "stale-leader-reads": "A deposed leader answers reads from its own log.",
            "ack-before-commit": "A leader acknowledges what only it holds.",
        }

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        return ("register", "set")

    def check_options(self, options: Experiment) -> None:
        for name in options.settings:
            if not name.endswith("_ms"):
                raise UsageError(f"the fake has no setting {name!r}", "Leave it out.")

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        self.quorum.bugs = options.bugs
        names = [NodeName(f"n{number}") for number in range(1, options.nodes + 1)]
        nodes = tuple(
            NodeSpec(name, "", (), {}, {"client": 1, "peer": 2}, "/data") for name in names
        )
        return DeploymentSpec(run_id, run_folder, nodes)

    def ready(self, runtime: Any) -> None:
        with self.quorum.lock:
            self.quorum.settle()
            if self.quorum.leader is None:
                raise RuntimeError("no leader yet")

    def leader(self, runtime: Any, timeout_s: float) -> LeaderView:
        with self.quorum.lock:
            self.quorum.settle()
            leader = self.quorum.leader
            return LeaderView(None if leader is None else leader.name, self.quorum.epoch)

    def open_client(self, runtime: Any, route: Route) -> "FakeClient":
        return FakeClient(self, route)

    def state_event_file(self, run_folder: Path, node: NodeName) -> Path | None:
        return RunFolder(run_folder).node(node) / "raw.jsonl"

    def converged(self, runtime: Any) -> None:
        with self.quorum.lock:
            self.quorum.settle()
            logs = [node.log for node in self.quorum.nodes.values() if node.status == "running"]
            if self.quorum.leader is None:
                raise RuntimeError("nobody leads")
            if len(logs) < len(self.quorum.nodes) or any(log != logs[0] for log in logs):
                raise RuntimeError("the logs differ")

    def metrics(self, runtime: Any, node: NodeName, timeout_s: float) -> dict[str, float] | None:
        fake = self.quorum.nodes[node]
        if fake.status != "running" or node in self.silent:
            time.sleep(timeout_s)  # as a node that accepts a connection and says nothing
            return None
        return {"epoch": self.quorum.epoch, "log_end_offset": len(fake.log)}

    def committed_log(self, node: NodeName, data_folder: Path) -> CommittedLog:
        entries = msgspec.json.decode((data_folder / "log.json").read_bytes(), type=list[Entry])
        records = tuple(
            CommittedRecord(
                offset, entry.epoch, entry.f, entry.key, entry.value, json.dumps(entry.value)
            )
            for offset, entry in enumerate(entries)
        )
        return CommittedLog(node, 0, len(records), records)

    def versions(self) -> dict[str, str]:
        return {"fake": "1"}


class FakeClient:
    """Counts how often it is used after it was closed: never, by the contract."""

    opened = 0

    def __init__(self, system: FakeSystem, route: Route) -> None:
        self._system = system
        self._quorum = system.quorum
        self._route = route
        self._closed = False
        FakeClient.opened += 1

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        assert not self._closed
        if self._system.client_raises:
            raise ValueError("a defect of the adapter")
        deadline = time.monotonic() + timeout_s
        node = self._quorum.nodes[self._route.node]
        while time.monotonic() < deadline:
            await asyncio.sleep(0.002)
            if self._route.kind == "leader":
                with self._quorum.lock:
                    self._quorum.settle()
                    if self._quorum.leader is None:
                        continue
                    node = self._quorum.leader
            answer = self._quorum.ask(node, operation)
            if answer is not None:
                return answer
        outcome = "fail" if operation.f == "read" else "info"
        return Completion(outcome, error="timed-out", node=node.name)

    async def close(self) -> None:
        self._closed = True
