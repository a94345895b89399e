"""Synthetic run folders, drawn from a seed, for tests and benchmarks that need no cluster.

A small world: clients work on keyed registers, faults hit the leader, the next epoch follows after
an outage, every node's log holds what was committed. Nothing is wrong in it unless it is planted.
"""

import heapq
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.committed import CommittedRecord
from splitbrain.contracts.fault import FaultEvent, FaultPhase
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.records import Event, EventType
from splitbrain.history.run_folder import RunFolder

MS = 1_000_000
SECOND = 1_000_000_000


class Shape(msgspec.Struct, frozen=True):
    """Kind of run to draw."""

    seed: int = 0
    nodes: int = 3
    seconds: float = 10.0
    workers: int = 6
    #: Mean time between two operations of one worker, ms.
    pace_ms: float = 20.0
    faults: int = 3
    #: Share of acknowledged writes whose position the system did not return.
    positionless: float = 0.0
    #: Share of the writes whose value is not unique.
    repeated_values: float = 0.2
    #: Last node's log begins behind a snapshot that covers half of it.
    snapshot: bool = False
    #: Last node's log was not dumped.
    missing_log: bool = False
    #: History and fault file end in the middle of a line.
    torn: bool = False


class Reign(msgspec.Struct):
    """A leader of the synthetic world."""

    node: str
    epoch: int
    start: int


class Outage(msgspec.Struct, frozen=True):
    """A fault that hit the leader, and how long nobody led."""

    start: int
    end: int
    removed: int
    kind: str
    victim: str


class World:
    """One synthetic run, in memory; change it, then ``write`` it."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.random = random.Random(shape.seed)
        self.nodes = [f"n{number}" for number in range(1, shape.nodes + 1)]
        self.end = int(shape.seconds * SECOND)
        self.reigns: list[Reign] = []
        self.outages: list[Outage] = []
        self.faults: list[FaultEvent] = []
        self.events: list[Event] = []
        self.state_events: dict[str, list[StateEvent]] = {node: [] for node in self.nodes}
        self.logs: dict[str, list[CommittedRecord]] = {}
        self.start_offsets = dict.fromkeys(self.nodes, 0)
        self._draw_leaders()
        self._draw_load()
        self._draw_final_reads()

    # --- the cluster ------------------------------------------------------------------------

    def _draw_leaders(self) -> None:
        leader = self.nodes[0]
        epoch = 1
        for node in self.nodes:
            self._says(node, "started", 0, 0)
            self._says(node, "role", 20 * MS, 0, role="follower")
        self._elect(leader, epoch, 150 * MS)
        stretch = self.end // (self.shape.faults + 1)
        for index in range(self.shape.faults):
            start = stretch * (index + 1) + self.random.randrange(200 * MS)
            kind = self.random.choice(["partition", "pause", "kill"])
            outage = self.random.randrange(150 * MS, 900 * MS)
            removed = start + outage + self.random.randrange(100 * MS, max(stretch // 3, 101 * MS))
            self._hit(index, kind, "leader", leader, start, removed, end=start + outage)
            victim = leader
            leader = self.random.choice([node for node in self.nodes if node != victim])
            epoch += self.random.choice([1, 1, 2])
            self._elect(leader, epoch, start + outage)
            if kind == "kill":
                self._says(victim, "started", removed, epoch, incarnation=1)
                self._says(victim, "role", removed + MS, epoch, role="follower", incarnation=1)
            else:
                # A partitioned leader gives up while it is cut off, a paused one when it wakes.
                gives_up = start + outage // 2 if kind == "partition" else removed + MS
                self._says(victim, "role", gives_up, epoch, role="follower")
        self._draw_harmless_faults(stretch)

    def _draw_harmless_faults(self, stretch: int) -> None:
        """A fault without a target, and one that was never seen to bite."""
        first = self.shape.faults
        at = self.end - stretch // 4
        self._fault(first, "pause", "follower", at, "not-applicable")
        phases: dict[FaultPhase, int] = {
            "invoked": 5,
            "not-bitten": 65,
            "healing": 205,
            "removed": 215,
        }
        for phase, later in phases.items():
            self._fault(first + 1, "kill", "follower", at + later * MS, phase, self.nodes[-1:])

    def _hit(
        self, index: int, kind: str, target: str, node: str, start: int, removed: int, *, end: int
    ) -> None:
        self.outages.append(Outage(start, end, removed, kind, node))
        phases: dict[FaultPhase, int] = {
            "invoked": start,
            "verified": start + 40 * MS,
            "healing": removed - 20 * MS,
            "removed": removed,
            "resumed": removed + 30 * MS,
        }
        # Whatever kind kills the leader, its reign ends by it.
        named = "crash-loop" if kind == "kill" and index % 2 else kind
        for phase, at in phases.items():
            self._fault(index, named, target, at, phase, [node])

    def _fault(
        self,
        index: int,
        kind: str,
        target: str,
        at: int,
        phase: FaultPhase,
        nodes: list[str] | None = None,
    ) -> None:
        hit = tuple(NodeName(node) for node in nodes or [])
        self.faults.append(FaultEvent(at, index, kind, phase, target, hit))

    def _elect(self, node: str, epoch: int, at: int) -> None:
        self.reigns.append(Reign(node, epoch, at))
        self._says(node, "role", at, epoch, role="leader")
        self._says(node, "high-watermark", at + MS, epoch)

    def _says(
        self,
        node: str,
        kind: Any,
        at: int,
        epoch: int,
        *,
        role: str | None = None,
        incarnation: int | None = None,
    ) -> None:
        said = self.state_events[node]
        before = said[-1].incarnation if said else 0
        number = before if incarnation is None else before + (kind == "started")
        sequence = sum(event.incarnation == number for event in said)
        said.append(StateEvent(node, sequence, number, kind, epoch, role=role, time=at))

    # --- the clients ------------------------------------------------------------------------

    def _draw_load(self) -> None:
        """Invocations worker by worker, then offsets in the order of commit."""
        operations = list(self._invocations())
        commits: list[tuple[int, int]] = [
            (operation["commit"], number)
            for number, operation in enumerate(operations)
            if operation["commit"] is not None
        ]
        changes = [(reign.start, -1, reign) for reign in self.reigns]
        log: list[CommittedRecord] = []
        epoch = 0
        for at, number, reign in heapq.merge(
            sorted((at, number, None) for at, number in commits),
            changes,
            key=lambda entry: (entry[0], entry[1]),
        ):
            if reign is not None:
                epoch = reign.epoch
                log.append(self._record(len(log), epoch, None, None, None))
                continue
            operation = operations[number]
            if operation["type"] == "ok" and self.random.random() >= self.shape.positionless:
                operation["position"] = (epoch, len(log))
            log.append(
                self._record(
                    len(log), epoch, operation["f"], operation["key"], operation["argument"]
                )
            )
            assert at >= operation["start"]
        self.logs = {node: list(log) for node in self.nodes}
        self._record_history(operations)

    @staticmethod
    def _record(
        offset: int, epoch: int, f: str | None, key: str | None, value: Any
    ) -> CommittedRecord:
        digest = f"{zlib.crc32(repr((offset, epoch, f, key, value)).encode()):08x}"
        return CommittedRecord(offset, epoch, f, key, value, digest)

    def _invocations(self) -> Iterator[dict[str, Any]]:
        shape, draw = self.shape, self.random
        heap = [(draw.randrange(100 * MS, 200 * MS), worker) for worker in range(shape.workers)]
        heapq.heapify(heap)
        process_by_worker = list(range(shape.workers))
        number = 0
        while heap:
            start, worker = heapq.heappop(heap)
            if start >= self.end:
                continue
            number += 1
            operation = self._operation(number, process_by_worker[worker], start)
            if operation["type"] == "info":
                process_by_worker[worker] += shape.workers
            yield operation
            pause = int(draw.expovariate(1 / shape.pace_ms) * MS)
            heapq.heappush(heap, (operation["seen"] + 1 + pause, worker))

    def _operation(self, number: int, process: int, start: int) -> dict[str, Any]:
        draw = self.random
        f = draw.choice(["read", "write", "write", "cas"])
        key = f"r{draw.randrange(4)}"
        value = draw.randrange(3) if draw.random() < self.shape.repeated_values else number + 10
        argument = {"read": None, "write": value, "cas": [draw.randrange(3), value]}[f]
        latency = int(draw.lognormvariate(1.0, 0.8) * MS) + 1
        outage = next(
            (one for one in self.outages if one.start <= start + latency // 2 < one.end), None
        )
        first_reign = self.reigns[0].start
        kind: EventType = "ok"
        commit: int | None = start + latency // 2
        if start < first_reign or (outage and draw.random() < 0.6):
            kind, commit = "fail", None
            latency = int(draw.uniform(1, 50) * MS)
        elif outage and draw.random() < 0.6:
            kind = "info"
            # It may have happened, now or later, or never.
            commit = draw.choice([None, None, outage.end + draw.randrange(50 * MS)])
            latency = 400 * MS
        elif outage:
            # The client waits until somebody leads again.
            commit = outage.end + draw.randrange(1, 30 * MS)
            latency = commit - start + draw.randrange(1, 5 * MS)
        if f == "read":
            commit = None
            kind = "fail" if kind == "info" else kind
        result = {"read": value, "write": argument}.get(f)
        if f == "cas":
            result = [*argument, draw.random() < 0.5]
        return {
            "f": f,
            "key": key,
            "argument": argument,
            "result": result,
            "process": process,
            "start": start,
            "seen": start + latency,
            "type": kind,
            "commit": commit,
            "position": None,
            "node": draw.choice(self.nodes),
        }

    def _record_history(self, operations: list[dict[str, Any]]) -> None:
        """Invocations and completions by time; the very last info never gets its line."""
        moments: list[tuple[int, int, EventType, dict[str, Any]]] = []
        for number, operation in enumerate(operations):
            moments.append((operation["start"], number, "invoke", operation))
            moments.append((operation["seen"], number, operation["type"], operation))
        for at, _, kind, operation in sorted(moments, key=lambda moment: moment[:2]):
            self.record(at, kind, operation)

    def record(self, at: int, kind: EventType, operation: dict[str, Any]) -> None:
        """Append one event to the history."""
        invoked = kind == "invoke"
        self.events.append(
            Event(
                index=len(self.events),
                time=at,
                process=operation["process"],
                type=kind,
                f=operation["f"],
                key=operation["key"],
                value=operation["result"] if kind == "ok" else operation["argument"],
                node=operation["node"],
                error=None if kind in ("invoke", "ok") else "not-leader",
                position=None if invoked or kind != "ok" else operation["position"],
                final=operation.get("final", False),
            )
        )

    def _draw_final_reads(self) -> None:
        at = max(event.time for event in self.events) + SECOND if self.events else SECOND
        for number, node in enumerate(self.nodes):
            read = {
                "f": "read",
                "key": "r0",
                "argument": None,
                "result": 1,
                "process": 1_000_000 + number,
                "node": node,
                "position": None,
                "final": True,
            }
            self.record(at + number * MS, "invoke", read)
            self.record(at + number * MS + MS // 2, "ok", read)

    # --- planted anomalies ------------------------------------------------------------------

    def acknowledged(self) -> list[Event]:
        """Completions of writes that say where the log holds them."""
        return [event for event in self.events if event.type == "ok" and event.position is not None]

    def lose(self, event: Event, nodes: int) -> None:
        """Take an acknowledged record from the logs of so many nodes."""
        assert event.position is not None
        for node in self.nodes[:nodes]:
            self.logs[node] = [
                record for record in self.logs[node] if record.offset != event.position[1]
            ]

    def commit(self, f: str, key: str, value: Any) -> CommittedRecord:
        """Append a record to every log that no operation has asked for."""
        last = self.logs[self.nodes[0]][-1]
        record = self._record(last.offset + 1, last.epoch, f, key, value)
        for node in self.nodes:
            self.logs[node].append(record)
        return record

    def lead_as_well(self, node: str, epoch: int, at: int) -> None:
        """Let a node say that it leads an epoch, at its place in time, until its next change."""
        said = self.state_events[node]
        place = sum(event.time is not None and event.time <= at for event in said)
        incarnation = said[place - 1].incarnation
        said.insert(place, StateEvent(node, 0, incarnation, "role", epoch, role="leader", time=at))
        over = StateEvent(node, 0, incarnation, "role", epoch, role="follower", time=at + 40 * MS)
        said.insert(place + 1, over)
        sequences: dict[int, int] = {}
        for index, event in enumerate(said):
            sequence = sequences.get(event.incarnation, 0)
            sequences[event.incarnation] = sequence + 1
            said[index] = msgspec.structs.replace(event, sequence=sequence)

    # --- files ------------------------------------------------------------------------------

    def write(self, root: Path) -> Path:
        """Write the run folder; returns it."""
        folder = RunFolder(root)
        root.mkdir(parents=True, exist_ok=True)
        tail = b'{"index": 99999, "ti' if self.shape.torn else b""
        folder.history.write_bytes(_lines(self.events) + tail)
        folder.faults.write_bytes(_lines(sorted(self.faults, key=lambda event: event.time)) + tail)
        for node in self.nodes:
            name = NodeName(node)
            folder.node(name).mkdir(parents=True, exist_ok=True)
            folder.state_events(name).write_bytes(_lines(self.state_events[node]))
            self._write_log(folder, name)
        return root

    def _write_log(self, folder: RunFolder, node: NodeName) -> None:
        records = self.logs[node]
        is_last = node == self.nodes[-1]
        if is_last and self.shape.missing_log:
            return
        start = len(records) // 2 if is_last and self.shape.snapshot else 0
        end = max((record.offset for record in records), default=-1) + 1
        header = {"node": node, "start_offset": start, "end_offset": end}
        kept = [record for record in records if record.offset >= start]
        folder.committed_log(node).write_bytes(msgspec.json.encode(header) + b"\n" + _lines(kept))


def _lines(records: list[Any]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)
