"""Reads that wait for proof that this node still leads.

A read is linearizable if a majority of voters was in this leader's epoch *after* it was asked: then
nobody else can have committed anything before. A fetch proves it if it was certainly sent after the
read was asked: it came on a connection on which an answer left after the read (the follower sends
the next request only after it has the answer). One already on its way proves nothing (INV-10).

The read is served from a state machine that has applied the leader's high watermark of when it was
asked, which is unknown before its first commit in its own epoch. Sources: design section 8,
Ongaro's thesis 6.4.
"""

from collections import deque

import msgspec

from splitbrain.nodes.quorum.events import ReadId
from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, ConnectionId, NodeId, Offset
from splitbrain.nodes.quorum.voters import VoterSet


class PendingRead(msgspec.Struct):
    """A read that is not answered yet."""

    read_id: ReadId
    #: Place in the order of reads of this leadership, from 1.
    number: int
    #: Offset that the state machine must have applied; UNKNOWN_OFFSET before the first own commit.
    offset: Offset


class LinearizableReads:
    """The reads of one leadership, oldest first."""

    def __init__(self, voters: VoterSet) -> None:
        self._voters = voters
        self._pending: deque[PendingRead] = deque()
        self._asked_count = 0
        #: How many reads had been asked when the last answer left on a connection.
        self._answered: dict[ConnectionId, int] = {}
        #: How many reads each other voter has confirmed.
        self._confirmed: dict[NodeId, int] = dict.fromkeys(voters.others, 0)

    @property
    def pending_count(self) -> int:
        """How many reads wait."""
        return len(self._pending)

    def ask(self, read_id: ReadId, high_watermark: Offset) -> None:
        """A read is asked; ``high_watermark`` is UNKNOWN_OFFSET before the first own commit."""
        self._asked_count += 1
        self._pending.append(PendingRead(read_id, self._asked_count, high_watermark))

    def first_commit(self, high_watermark: Offset) -> None:
        """The leader has committed in its own epoch: the waiting reads learn their offset."""
        for read in self._pending:
            if read.offset == UNKNOWN_OFFSET:
                read.offset = high_watermark

    def answered(self, connection: ConnectionId) -> None:
        """Note that a fetch answer of this leader leaves on the connection."""
        self._answered[connection] = self._asked_count

    def fetched(self, voter: NodeId, connection: ConnectionId) -> None:
        """Note that a fetch of a voter in this epoch arrived on the connection."""
        confirmed = self._answered.get(connection, 0)
        self._confirmed[voter] = max(self._confirmed[voter], confirmed)

    def needs(self, voter: NodeId) -> bool:
        """Whether a further fetch of this voter could confirm a pending read."""
        return bool(self._pending) and self._confirmed[voter] < self._pending[-1].number

    def closed(self, connection: ConnectionId) -> None:
        """Note that the connection is gone; a new one starts from nothing."""
        self._answered.pop(connection, None)

    def take_ready(self) -> list[PendingRead]:
        """Remove and return the reads that may be answered, oldest first."""
        if not self._pending:
            return []
        counts = [*self._confirmed.values(), self._asked_count]
        confirmed = sorted(counts, reverse=True)[self._voters.majority - 1]
        ready: list[PendingRead] = []
        while (
            self._pending
            and self._pending[0].number <= confirmed
            and self._pending[0].offset != UNKNOWN_OFFSET
        ):
            ready.append(self._pending.popleft())
        return ready

    def take_all(self) -> list[PendingRead]:
        """Remove and return every read: the leadership is over."""
        reads = list(self._pending)
        self._pending.clear()
        return reads
