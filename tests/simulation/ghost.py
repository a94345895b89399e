"""Ghost state: what is true of the whole simulated world and known to no node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.quorum.identifiers import ConnectionId, Epoch, NodeId, Offset
from nodes.quorum.messages import Request
from nodes.quorum.voters import ReplicaKey
from tests.simulation.disk import Entry

if TYPE_CHECKING:
    from tests.simulation.world import World


class Ghost:
    """Only ever grows; read and written by the invariants."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: Every record ever committed, by offset.
        self.committed: list[Entry] = []
        #: Epoch of the leader that committed each of them.
        self.commit_epochs: list[Epoch] = []
        #: When the last commit happened.
        self.committed_at = 0
        #: Epoch -> who led it, in which life.
        self.leaders: dict[Epoch, tuple[NodeId, int]] = {}
        #: (voter, epoch) -> for whom it voted; counts once the vote has left the node.
        self.votes: dict[tuple[NodeId, Epoch], ReplicaKey] = {}
        #: (epoch, offset) -> (payload, epoch of the record before).
        self.records: dict[tuple[Epoch, Offset], tuple[bytes | None, Epoch]] = {}
        #: Highest high watermark of each node in its present life.
        self.high_watermarks: dict[NodeId, int] = {}
        #: The request that each inbound connection carries.
        self.asked: dict[ConnectionId, Request] = {}
        #: Writes told to clients: (offset, payload).
        self.acknowledged: list[tuple[int, bytes]] = []
        self.read_count = 0
        self.truncation_count = 0
        #: Key -> offset that later reads must reflect.
        self.floors: dict[int, int] = {}

    def raise_floor(self, key: int, offset: int) -> None:
        self.floors[key] = max(self.floors.get(key, -1), offset)
