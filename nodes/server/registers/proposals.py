"""Writes under way: from the client's request to the record's fate.

A record is known by epoch and offset. Once the offset is applied its fate is certain, whoever leads
by then: the same epoch means that it was committed, another epoch that it never can be.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum.effects import AcceptProposal, RejectProposal
from splitbrain.nodes.quorum.events import ProposalId, RecordsProposed
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.registers.commands import Add, Command, CompareAndSet, Write, encode_command
from splitbrain.nodes.registers.machine import Applied
from splitbrain.nodes.transport.client_protocol import (
    AnswerOutcome,
    ClientAnswer,
    ClientRequest,
    Reply,
)

#: Commands that go into one batch at most, and their bytes.
BATCH_COUNT_MAX: Final = 1_000
BATCH_BYTES_MAX: Final = 512 * 1024


class InvalidRequestError(Exception):
    """The client asks for something that cannot be done; nothing happened."""


class PendingWrite(msgspec.Struct):
    """One client's command on its way."""

    request: ClientRequest
    reply: Reply
    payload: bytes
    deadline: Microseconds
    #: Set when the record is appended.
    epoch: int = -1
    answered: bool = False


def command_of(request: ClientRequest) -> Command:
    """Return the command of a request; raises InvalidRequestError where its value does not fit."""
    match request.kind:
        case "write":
            return Write(request.operation, request.key, request.value)
        case "add":
            return Add(request.operation, request.key, request.value)
        case "cas":
            match request.value:
                case [expected, value]:
                    return CompareAndSet(request.operation, request.key, expected, value)
                case _:
                    raise InvalidRequestError("cas needs a value [expected, new]")
        case _:
            raise InvalidRequestError(f"{request.kind} is no command")


class Proposals:
    """Gathers commands into batches and answers each when its fate is known."""

    def __init__(self, propose: Callable[[RecordsProposed], None]) -> None:
        """``propose`` gives an event to the replica, whose effects come back here."""
        self._propose = propose
        self._gathered: list[PendingWrite] = []
        self._proposed: dict[ProposalId, list[PendingWrite]] = {}
        #: By offset. Several where this node was deposed, cut back, and led again: the fate of the
        #: earlier record is open until the offset is applied.
        self._appended: dict[int, list[PendingWrite]] = {}
        self._proposal_count = 0

    @property
    def is_idle(self) -> bool:
        """Whether no client waits."""
        return not (self._gathered or self._proposed or self._appended)

    def add(self, request: ClientRequest, reply: Reply, deadline: Microseconds) -> None:
        """Take a request into the batch; raises InvalidRequestError, which the caller answers."""
        try:
            payload = encode_command(command_of(request))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidRequestError(f"the value cannot be stored: {error}") from error
        if len(payload) > BATCH_BYTES_MAX:
            raise InvalidRequestError(f"the value is longer than {BATCH_BYTES_MAX} bytes")
        self._gathered.append(PendingWrite(request, reply, payload, deadline))

    def flush(self) -> None:
        """Propose what was gathered."""
        while self._gathered:
            count = size_bytes = 0
            for pending in self._gathered:
                size_bytes += len(pending.payload)
                if count and (size_bytes > BATCH_BYTES_MAX or count == BATCH_COUNT_MAX):
                    break
                count += 1
            batch, self._gathered = self._gathered[:count], self._gathered[count:]
            self._proposal_count += 1
            proposal_id = ProposalId(self._proposal_count)
            self._proposed[proposal_id] = batch
            payloads = tuple(pending.payload for pending in batch)
            self._propose(RecordsProposed(proposal_id, payloads))

    def accepted(self, effect: AcceptProposal) -> None:
        """Note that the batch is in the leader's log, no more."""
        batch = self._proposed.pop(effect.proposal_id, [])
        for offset, pending in enumerate(batch, effect.base_offset):
            pending.epoch = effect.epoch
            self._appended.setdefault(offset, []).append(pending)

    def rejected(self, effect: RejectProposal) -> None:
        """Note that the batch was certainly not appended."""
        for pending in self._proposed.pop(effect.proposal_id, []):
            reason, leader_id = "this node does not lead", effect.leader_id
            _answer(pending, "not-leader", reason, leader_id=leader_id, epoch=effect.epoch)

    def applied(self, offset: int, epoch: int, result: Applied | None) -> None:
        """Note that a committed record was applied; ``result`` is None for a control record."""
        for pending in self._appended.pop(offset, ()):
            if pending.epoch == epoch and result is not None:
                _answer_ok(pending, offset, succeeded=result.succeeded)
            else:
                reason = f"epoch {epoch} has another record at offset {offset}"
                _answer(pending, "not-leader", reason, epoch=epoch)

    def passed_over(self, end_offset: int) -> None:
        """A snapshot took the place of the records below this offset: their fate stays unknown."""
        for offset in [offset for offset in self._appended if offset < end_offset]:
            for pending in self._appended.pop(offset):
                _answer_unknown(pending, "unknown", "a snapshot has taken the record's place")

    def expire(self, now: Microseconds) -> None:
        """Answer those whose time is up; what is appended may still be committed later."""
        for offset, waiting in list(self._appended.items()):
            kept = [pending for pending in waiting if pending.deadline > now]
            if len(kept) == len(waiting):
                continue
            for pending in waiting:
                if pending.deadline <= now:
                    _answer_unknown(pending, "timeout", "not committed within the time given")
            if kept:
                self._appended[offset] = kept
            else:
                del self._appended[offset]

    def stop(self) -> None:
        """Note that the node ends: nobody is left without an answer."""
        for batch in (self._gathered, *self._proposed.values()):
            for pending in batch:
                _answer(pending, "stopping", "the node stops")
        for waiting in self._appended.values():
            for pending in waiting:
                _answer_unknown(pending, "unknown", "the node stops before it was committed")
        self._gathered = []
        self._proposed = {}
        self._appended = {}


def _answer_ok(pending: PendingWrite, offset: int, *, succeeded: bool) -> None:
    _answer(pending, "ok", None, result=succeeded, epoch=pending.epoch, offset=offset)


def _answer_unknown(pending: PendingWrite, outcome: AnswerOutcome, reason: str) -> None:
    _answer(pending, outcome, reason, definite=False, epoch=pending.epoch)


def _answer(
    pending: PendingWrite,
    outcome: AnswerOutcome,
    reason: str | None,
    *,
    definite: bool = True,
    **facts: Any,
) -> None:
    if not pending.answered:
        pending.answered = True
        answer_id = pending.request.id
        pending.reply(ClientAnswer(answer_id, outcome, definite, reason=reason, **facts))
