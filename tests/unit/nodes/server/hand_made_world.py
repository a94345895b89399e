"""Surroundings of one node, made by hand: one thread, no loop, a clock that the test turns."""

import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Microseconds,
    NodeId,
)
from splitbrain.nodes.quorum.messages import Answer, Request
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.host.layer import Layer
from splitbrain.nodes.server.host.node import Node, NodeParts
from splitbrain.nodes.server.host.surroundings import (
    Action,
    CallPeer,
    DiskJob,
    DiskJobDone,
    Surroundings,
)
from splitbrain.nodes.server.start.assembling import NodeMaterials, assemble, begin_life
from splitbrain.nodes.server.start.formatting import format_if_empty
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.disk.file_system import MemoryFileSystem

FOLDER = Path("/data")
SETTINGS = QuorumSettings()
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


def voter(node_id: int) -> Voter:
    return Voter(NodeId(node_id), DirectoryId(f"{node_id:032x}"), "127.0.0.1", node_id)


class Handle:
    """An action to come, at its time."""

    def __init__(self, time_us: int, action: Action) -> None:
        self.time_us = time_us
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None


class World:
    """Surroundings of one node: time goes on when the test says so, disk jobs run in turns."""

    #: How the node asks voters what is no matter of the quorum.
    call_peer: CallPeer | None = None

    def __init__(self, voter_ids: tuple[int, ...] = (1,), node_id: int = 1) -> None:
        self.filesystem = MemoryFileSystem()
        self.time_us = 1_000_000
        self.turns: deque[Action] = deque()
        self.handles: list[Handle] = []
        self.jobs: deque[tuple[DiskJob, DiskJobDone]] = deque()
        self.sent: list[tuple[NodeId, CorrelationId, Request]] = []
        self.is_idle = True
        self.events: list[tuple[str, int, str | None]] = []
        self.lines: list[str] = []
        self.ends: list[tuple[int, str]] = []
        self.defects: list[Exception] = []
        self.answers: list[ClientAnswer] = []
        #: Answers to calls on the quorum's listener, by correlation.
        self.replies: dict[int, msgspec.Struct] = {}
        self.identity = StorageIdentity(
            CLUSTER,
            NodeId(node_id),
            voter(node_id).directory_id,
            tuple(voter(each) for each in voter_ids),
        )
        self.format(has_lived=False)

    def format(self, *, has_lived: bool) -> DirectoryId | None:
        return format_if_empty(
            self.filesystem,
            FOLDER,
            self.identity,
            has_lived=has_lived,
            token_hex=lambda count: "f" * 2 * count,
        )

    def assemble(
        self,
        make_node: Callable[[NodeParts, Surroundings], Node] = Node,
        *,
        segment_bytes: int = 1 << 20,
        settings: QuorumSettings = SETTINGS,
        make_layer: Callable[[], Layer] | None = None,
    ) -> Node:
        materials = NodeMaterials(
            filesystem=self.filesystem,
            data_folder=FOLDER,
            cluster_id=CLUSTER,
            node_id=self.identity.node_id,
            settings=settings,
            random=random.Random(1),
            make_layer=make_layer,
            segment_bytes=segment_bytes,
        )
        surroundings = Surroundings(
            timers=self,
            disk_jobs=self,
            peer_links=self,
            peer_answers=self,
            reply_to_call=self.reply,
            call_peer=self.call_peer,
            state_events=Sink(self.events),
            log_lines=Lines(self.lines),
            ended=lambda code, reason: self.ends.append((code, reason)),
            defect=self.defects.append,
        )
        return assemble(materials, begin_life(materials), surroundings, make_node)

    # Timers.

    def now(self) -> Microseconds:
        return Microseconds(self.time_us)

    def wall_clock_ms(self) -> int:
        return 1_700_000_000_000 + self.time_us // 1_000

    def call_soon(self, action: Action) -> None:
        self.turns.append(action)

    def call_later(self, delay_us: int, action: Action) -> Handle:
        handle = Handle(self.time_us + delay_us, action)
        self.handles.append(handle)
        return handle

    # Disk jobs.

    def submit(self, job: DiskJob, done: DiskJobDone) -> None:
        self.jobs.append((job, done))

    def stop(self) -> None:
        while self.jobs:
            self.jobs.popleft()[0]()

    # Links and answers.

    def send(
        self, peer: NodeId, correlation: CorrelationId, request: Request, timeout_ms: int
    ) -> None:
        self.sent.append((peer, correlation, request))
        self.is_idle = False

    def abandon(self, peer: NodeId, correlation: CorrelationId) -> None:
        self.is_idle = True

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        raise AssertionError("nobody asked")

    def reply(
        self, _: ConnectionId, correlation: CorrelationId, reply: msgspec.Struct | bytes | None
    ) -> None:
        assert correlation not in self.replies, "answered twice"
        assert isinstance(reply, msgspec.Struct)
        self.replies[correlation] = reply

    def close(self) -> None:
        self.is_idle = True

    # Acts of the test.

    def crash(self) -> None:
        self.turns.clear()
        self.handles.clear()
        self.jobs.clear()
        self.filesystem.crash()

    def turn(self) -> bool:
        """One turn, one disk job or one timer, in this order; whether there was any."""
        if self.turns:
            self.turns.popleft()()
            return True
        if self.jobs:
            job, done = self.jobs.popleft()
            failure: Exception | None = None
            try:
                job()
            except Exception as error:  # noqa: BLE001 - as the disk thread does
                failure = error
                self.jobs.clear()
            self.turns.append(lambda: done(failure))
            return True
        waiting = [handle for handle in self.handles if handle.action is not None]
        if not waiting:
            return False
        handle = min(waiting, key=lambda each: each.time_us)
        self.handles = [each for each in waiting if each is not handle]
        self.time_us = max(self.time_us, handle.time_us)
        assert handle.action is not None
        handle.action()
        return True

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if condition():
                return
            assert self.turn(), "nothing is left to happen"
        raise AssertionError("it did not come about")

    def ask(self, node: Node, request: ClientRequest) -> ClientAnswer:
        """Invoke one request and run until it is answered."""
        count = len(self.answers)
        node.handle(request, self.answers.append)
        self.until(lambda: len(self.answers) > count)
        return self.answers[-1]

    def lead(self, node: Node) -> None:
        node.start()
        self.until(lambda: node.replica.role == "leader" and node.replica.high_watermark > 0)


class Sink:
    def __init__(self, events: list[tuple[str, int, str | None]]) -> None:
        self.events = events

    def write(self, kind: str, epoch: int, *, reason: str | None = None, **_: Any) -> None:
        self.events.append((kind, epoch, reason))

    def close(self) -> None:
        self.events.append(("closed", -1, None))


class Lines:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def write(self, level: str, message: str, **fields: Any) -> None:
        self.lines.append(f"{level} {message}")


def write(number: int) -> ClientRequest:
    return ClientRequest(number, "write", "r", number, f"o{number}")
