"""Linearizable reads under way: gathered, confirmed by the quorum, answered once applied.

Must never answer from a state that has not applied everything below the offset that the replica
named.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from splitbrain.nodes.quorum.effects import AnswerRead, RejectRead
from splitbrain.nodes.quorum.events import ReadId, ReadRequested
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.transport.client_protocol import (
    AnswerOutcome,
    ClientAnswer,
    ClientRequest,
    Reply,
)


class Seen(NamedTuple):
    """Result of a read."""

    result: Any
    #: One past the last record that it saw; None where that is not to be told.
    end_offset: int | None


#: Reads the state as it is now, as the request says.
Look = Callable[[ClientRequest], Seen]


class PendingRead(msgspec.Struct):
    """One client's read on its way."""

    request: ClientRequest
    reply: Reply
    deadline: Microseconds


class _Confirmed(msgspec.Struct):
    offset: int
    epoch: int
    reads: list[PendingRead]


class Reads:
    """All reads that arrived together share one confirmation."""

    def __init__(
        self, ask: Callable[[ReadRequested], None], machine: StateMachine, look: Look
    ) -> None:
        """``ask`` gives an event to the replica, whose effects come back here."""
        self._ask = ask
        self._machine = machine
        self._look = look
        self._gathered: list[PendingRead] = []
        self._unconfirmed: dict[ReadId, list[PendingRead]] = {}
        self._confirmed: list[_Confirmed] = []
        self._read_count = 0

    @property
    def is_idle(self) -> bool:
        """Whether no client waits."""
        return not (self._gathered or self._unconfirmed or self._confirmed)

    def add(self, request: ClientRequest, reply: Reply, deadline: Microseconds) -> None:
        """Take a request into the group that is being gathered."""
        self._gathered.append(PendingRead(request, reply, deadline))

    def flush(self) -> None:
        """Ask the replica on behalf of those that were gathered."""
        if self._gathered:
            self._read_count += 1
            read_id = ReadId(self._read_count)
            self._unconfirmed[read_id], self._gathered = self._gathered, []
            self._ask(ReadRequested(read_id))

    def confirmed(self, effect: AnswerRead) -> None:
        """This node led when the reads were asked, and ``offset`` covers what was committed."""
        reads = self._unconfirmed.pop(effect.read_id, None)
        if reads:
            self._confirmed.append(_Confirmed(effect.offset, effect.epoch, reads))
            self.answer_applied()

    def rejected(self, effect: RejectRead) -> None:
        """This node does not lead, or did not stay leader."""
        for read in self._unconfirmed.pop(effect.read_id, ()):
            reason, leader_id = "this node does not lead", effect.leader_id
            _answer(read, "not-leader", reason=reason, leader_id=leader_id, epoch=effect.epoch)

    def answer_applied(self) -> None:
        """Answer the confirmed reads that the machine has caught up with."""
        if not self._confirmed:
            return
        applied_end = self._machine.end_offset
        waiting: list[_Confirmed] = []
        for group in self._confirmed:
            if group.offset > applied_end:
                waiting.append(group)
                continue
            for read in group.reads:
                seen = self._look(read.request)
                _answer(read, "ok", result=seen.result, epoch=group.epoch, offset=seen.end_offset)
        self._confirmed = waiting

    def expire(self, now: Microseconds) -> None:
        """Answer those whose time is up."""
        for read_id, reads in list(self._unconfirmed.items()):
            kept = _answer_expired(reads, now)
            if kept:
                self._unconfirmed[read_id] = kept
            else:
                del self._unconfirmed[read_id]
        for group in self._confirmed:
            group.reads = _answer_expired(group.reads, now)
        self._confirmed = [group for group in self._confirmed if group.reads]

    def stop(self) -> None:
        """Note that the node ends: nobody is left without an answer."""
        groups = [self._gathered, *self._unconfirmed.values()]
        groups += [group.reads for group in self._confirmed]
        for reads in groups:
            for read in reads:
                _answer(read, "stopping", reason="the node stops")
        self._gathered = []
        self._unconfirmed = {}
        self._confirmed = []


def _answer_expired(reads: list[PendingRead], now: Microseconds) -> list[PendingRead]:
    """Those whose time is not up; the others are told so."""
    kept: list[PendingRead] = []
    for read in reads:
        if read.deadline > now:
            kept.append(read)
            continue
        _answer(read, "timeout", reason="leadership was not confirmed within the time given")
    return kept


def _answer(read: PendingRead, outcome: AnswerOutcome, **facts: Any) -> None:
    read.reply(ClientAnswer(read.request.id, outcome, definite=True, **facts))
