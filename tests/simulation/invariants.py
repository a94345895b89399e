"""What must hold in the whole quorum, checked after each effect against ghost state.

One small class per invariant, with its id in ``docs/invariants.md``. Each raises
InvariantViolation; none looks at a role's private parts, so that each is true of any correct
implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nodes.quorum.effects import (
    AdvanceHighWatermark,
    AppendBatches,
    AppendLeaderChange,
    AppendRecords,
    Effect,
    Halt,
    PersistQuorumState,
    ReportState,
    SendAnswer,
    SendRequest,
    TruncateLog,
)
from nodes.quorum.errors import InvariantViolation
from nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from nodes.quorum.messages import FetchRequest, VoteAnswer, VoteRequest
from nodes.quorum.voters import ReplicaKey
from tests.simulation.ghost import Ghost

if TYPE_CHECKING:
    from tests.simulation.clients import Operation
    from tests.simulation.host import Host


class Invariant:
    """Watches some effects, before or after they are performed."""

    id: ClassVar[str]
    before_effects: ClassVar[tuple[type, ...]] = ()
    after_effects: ClassVar[tuple[type, ...]] = ()

    def __init__(self, ghost: Ghost) -> None:
        self.ghost = ghost

    def violated(self, problem: str) -> InvariantViolation:
        return InvariantViolation(self.id, problem)

    def started(self, host: Host) -> None: ...
    def before(self, host: Host, effect: Effect) -> None: ...
    def after(self, host: Host, effect: Effect) -> None: ...
    def acknowledged(self, operation: Operation, offset: int) -> None: ...
    def read(self, operation: Operation, result: tuple[int, int]) -> None: ...
    def finished(self, healed_at: int) -> None: ...


class ElectionSafety(Invariant):
    """At most one node, in one life, leads an epoch."""

    id = "INV-01"
    before_effects = (ReportState,)

    def before(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, ReportState) and effect.kind == "role" and effect.role == "leader":
            who = (host.node_id, int(host.incarnation))
            first = self.ghost.leaders.setdefault(effect.epoch, who)
            if first != who:
                raise self.violated(f"epoch {effect.epoch} is led by {first} and by {who}")


class LeaderCompleteness(Invariant):
    """A new leader has every record that an earlier epoch committed.

    Not those of later epochs: a candidate that slept may count its votes long after others went
    on without it; it leads an epoch that is over, and can commit nothing.
    """

    id = "INV-02"
    before_effects = (ReportState,)

    def before(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, ReportState) and effect.kind == "role" and effect.role == "leader":
            committed = self.ghost.committed
            log = host.disk.log
            for offset, commit_epoch in enumerate(self.ghost.commit_epochs):
                if commit_epoch >= effect.epoch:
                    break
                if offset >= len(log) or log[offset] != committed[offset]:
                    raise self.violated(
                        f"n{host.node_id} leads epoch {effect.epoch} without committed {offset}"
                    )


class LogMatching(Invariant):
    """A record of one epoch at one offset is the same everywhere, and so is all before it."""

    id = "INV-03"
    after_effects = (AppendBatches, AppendRecords, AppendLeaderChange)

    def after(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, AppendBatches | AppendRecords | AppendLeaderChange)
        log = host.disk.log
        for offset in range(effect.base_offset, len(log)):
            entry = log[offset]
            before = log[offset - 1].epoch if offset else NO_EPOCH
            record = (entry.payload, before)
            known = self.ghost.records.setdefault((entry.epoch, Offset(offset)), record)
            if known != record:
                raise self.violated(
                    f"n{host.node_id} has {record} at {offset} of epoch {entry.epoch}, not {known}"
                )


class OneVote(Invariant):
    """A node votes once per epoch, and neither its epoch nor its vote is ever taken back."""

    id = "INV-04"
    before_effects = (SendAnswer, SendRequest, PersistQuorumState)

    def before(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, PersistQuorumState):
            old, new = host.disk.durable_state, effect.state
            same_vote = old.voted_id in (None, new.voted_id)
            if new.epoch < old.epoch or (new.epoch == old.epoch and not same_vote):
                raise self.violated(f"n{host.node_id} overwrites {old} with {new}")
            return
        vote = cast_vote(self.ghost, host, effect)
        if vote is None:
            return
        epoch, candidate = vote
        first = self.ghost.votes.setdefault((host.node_id, epoch), candidate)
        if first != candidate:
            raise self.violated(
                f"n{host.node_id} votes for {candidate.node_id} in epoch {epoch} after"
                f" {first.node_id}"
            )


class DurableBeforeSaid(Invariant):
    """No message leaves before the epoch it names, and the vote it gives, are on disk."""

    id = "INV-05"
    before_effects = (SendAnswer, SendRequest)

    def before(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, SendAnswer | SendRequest)
        message = effect.answer if isinstance(effect, SendAnswer) else effect.request
        state = host.disk.durable_state
        epoch = getattr(message, "epoch", state.epoch)
        if epoch > state.epoch:
            raise self.violated(f"n{host.node_id} speaks in epoch {epoch} with {state} on disk")
        vote = cast_vote(self.ghost, host, effect)
        if vote is not None and vote[0] == state.epoch and state.voted_id != vote[1].node_id:
            raise self.violated(f"n{host.node_id} votes {vote} with {state} on disk")


class HighWatermarkRises(Invariant):
    """A node's high watermark never falls within a life, and never passes its own log."""

    id = "INV-06"
    before_effects = (AdvanceHighWatermark,)

    def before(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, AdvanceHighWatermark)
        known = self.ghost.high_watermarks[host.node_id]
        if not known < effect.offset <= len(host.disk.log):
            raise self.violated(
                f"n{host.node_id} moves its high watermark from {known} to {effect.offset}"
            )
        self.ghost.high_watermarks[host.node_id] = effect.offset


class CommittedIsDurable(Invariant):
    """What a leader commits is, at that moment, on the disks of a majority; and so is what a
    follower promises by its fetch offset on its own."""

    id = "INV-07"
    before_effects = (AdvanceHighWatermark, SendRequest)

    def before(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, AdvanceHighWatermark):
            if host.replica.role == "leader":
                self._check_majority(host, effect.offset)
        elif isinstance(effect, SendRequest) and isinstance(effect.request, FetchRequest):
            promised = effect.request.fetch_offset
            if host.disk.durable_log[:promised] != host.disk.log[:promised]:
                raise self.violated(
                    f"n{host.node_id} fetches from {promised}, not all of it synced"
                )

    def _check_majority(self, host: Host, offset: Offset) -> None:
        first = len(self.ghost.committed)
        expected = host.disk.log[first:offset]
        voters = self.ghost.world.voters
        holders = [
            voter.node_id
            for voter in voters
            if self.ghost.world.hosts[voter.node_id].disk.durable_log[first:offset] == expected
        ]
        if len(holders) <= len(voters) // 2:
            raise self.violated(
                f"n{host.node_id} commits [{first}, {offset}) that only {holders} have on disk"
            )


class CommittedStays(Invariant):
    """No truncation drops a committed record, and none goes below the node's high watermark."""

    id = "INV-08"
    before_effects = (TruncateLog,)

    def before(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, TruncateLog)
        self.ghost.truncation_count += 1
        known = self.ghost.high_watermarks[host.node_id]
        if effect.end_offset < known:
            raise self.violated(
                f"n{host.node_id} truncates to {effect.end_offset}, below its high watermark"
                f" {known}"
            )
        committed = self.ghost.committed
        for offset in range(effect.end_offset, min(len(committed), len(host.disk.log))):
            if host.disk.log[offset] == committed[offset]:
                raise self.violated(f"n{host.node_id} truncates the committed record {offset}")


class CommitsOwnEpoch(Invariant):
    """The last record that a leader commits is of its own epoch."""

    id = "INV-09"
    before_effects = (AdvanceHighWatermark,)

    def before(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, AdvanceHighWatermark)
        if host.replica.role == "leader":
            epoch = host.disk.log[effect.offset - 1].epoch
            if epoch != host.replica.epoch:
                raise self.violated(
                    f"n{host.node_id} of epoch {host.replica.epoch} commits up to epoch {epoch}"
                )


class LinearizableReads(Invariant):
    """A read reflects every write and every read that was over before it began."""

    id = "INV-10"

    def read(self, operation: Operation, result: tuple[int, int]) -> None:
        value, offset = result
        if offset < operation.floor:
            raise self.violated(
                f"a read of key {operation.key} that began at {operation.began} us saw offset"
                f" {offset}, though {operation.floor} was known before"
            )
        if offset >= len(self.ghost.committed):
            raise self.violated(f"a read of key {operation.key} saw uncommitted {value}")


class CommittedNeverChanges(Invariant):
    """Every node's committed records are the same at every offset, for ever."""

    id = "INV-11"
    before_effects = (AdvanceHighWatermark,)

    def before(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, AdvanceHighWatermark)
        committed = self.ghost.committed
        log = host.disk.log
        for offset in range(max(host.registers.applied, 0), effect.offset):
            if offset == len(committed):
                committed.append(log[offset])
                self.ghost.commit_epochs.append(host.replica.epoch)
                self.ghost.committed_at = self.ghost.world.now
            elif log[offset] != committed[offset]:
                raise self.violated(
                    f"n{host.node_id} takes {log[offset]} at {offset} for committed, not"
                    f" {committed[offset]}"
                )


class AcknowledgedStays(Invariant):
    """A write told to a client is committed then, and in every log at the end."""

    id = "INV-12"

    def acknowledged(self, operation: Operation, offset: int) -> None:
        self._check(offset, operation.payload)

    def finished(self, healed_at: int) -> None:
        del healed_at
        for offset, payload in self.ghost.acknowledged:
            self._check(offset, payload)
            for host in self.ghost.world.hosts.values():
                log = host.disk.log
                if offset >= len(log) or log[offset].payload != payload:
                    raise self.violated(f"acknowledged {offset} is not on n{host.node_id}")

    def _check(self, offset: int, payload: bytes) -> None:
        committed = self.ghost.committed
        if offset >= len(committed) or committed[offset].payload != payload:
            raise self.violated(f"acknowledged {offset} is not what was committed there")


class ProgressAfterHealing(Invariant):
    """Once everything is healed, writes commit and every node catches up."""

    id = "INV-13"

    def finished(self, healed_at: int) -> None:
        world = self.ghost.world
        if not has_converged(self.ghost, healed_at):
            marks = {
                f"n{number}": (host.replica.role, host.replica.epoch, host.replica.high_watermark)
                for number, host in world.hosts.items()
            }
            raise self.violated(
                f"no progress in {(world.now - healed_at) / 1000:.0f} ms after healing: {marks},"
                f" committed {len(self.ghost.committed)}"
            )


class NobodyHalts(Invariant):
    """A node never has a reason to stop by itself."""

    id = "INV-14"
    before_effects = (Halt,)

    def before(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, Halt)
        raise self.violated(f"n{host.node_id} halts: {effect.reason}")


#: Checked in this order; the first violation ends the run.
INVARIANTS: tuple[type[Invariant], ...] = (
    ElectionSafety,
    LeaderCompleteness,
    LogMatching,
    OneVote,
    DurableBeforeSaid,
    HighWatermarkRises,
    CommittedIsDurable,
    CommittedStays,
    CommitsOwnEpoch,
    LinearizableReads,
    CommittedNeverChanges,
    AcknowledgedStays,
    ProgressAfterHealing,
    NobodyHalts,
)


def has_converged(ghost: Ghost, healed_at: int) -> bool:
    """Whether something was committed after healing and every node knows all of it."""
    if ghost.committed_at <= healed_at:
        return False
    return all(
        host.is_up and host.replica.high_watermark == len(ghost.committed)
        for host in ghost.world.hosts.values()
    )


def cast_vote(ghost: Ghost, host: Host, effect: Effect) -> tuple[Epoch, ReplicaKey] | None:
    """The vote that this message gives, if it gives one: to a candidate, or to itself."""
    if isinstance(effect, SendRequest) and isinstance(effect.request, VoteRequest):
        return None if effect.request.pre_vote else (effect.request.epoch, host.key)
    if isinstance(effect, SendAnswer) and isinstance(effect.answer, VoteAnswer):
        request = ghost.asked.get(effect.connection)
        if effect.answer.granted and isinstance(request, VoteRequest) and not request.pre_vote:
            candidate = ReplicaKey(request.candidate_id, request.candidate_directory_id)
            return request.epoch, candidate
    return None
