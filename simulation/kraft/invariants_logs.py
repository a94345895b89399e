"""Invariants of logs and of committed records in the whole quorum.

Committed is what a leader's high watermark passed in its own epoch, first. Must never take a node's
word for what is on its disk.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from bisect import bisect_right
from typing import Final, NamedTuple

from splitbrain.nodes.quorum.effects import (
    AdvanceHighWatermark,
    AnswerFetch,
    AppendBatches,
    AppendLeaderChange,
    AppendRecords,
    Halt,
    ReplaceLog,
    SendAnswer,
    SendRequest,
    TruncateLog,
)
from splitbrain.nodes.quorum.events import AnswerReceived
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, NodeId
from splitbrain.nodes.quorum.messages import FetchAnswer, FetchRequest
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import Invariant
from splitbrain.simulation.kraft.mirrored_log import Entry
from splitbrain.simulation.kraft.wording import class_of_end, record_in_words

_LEADER: Final = "leader"
_FETCHES: Final = (FetchAnswer, FetchRequest)


class LogMatching(Invariant):
    """A record of one epoch at one offset is the same everywhere, and so is all before it."""

    id = "INV-03"
    after_effects = (AppendBatches, AppendRecords, AppendLeaderChange)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: (epoch, offset) -> (record, epoch of the record before).
        self._records: dict[tuple[int, int], tuple[Entry, int]] = {}

    def started(self, machine: Machine) -> None:
        self._check(machine, 0)

    def after(
        self, machine: Machine, effect: AppendBatches | AppendRecords | AppendLeaderChange
    ) -> None:
        self._check(machine, effect.base_offset)

    def _check(self, machine: Machine, base_offset: int) -> None:
        assert machine.log is not None
        entries, records = machine.log.entries, self._records
        before: int = entries[base_offset - 1].epoch if base_offset else NO_EPOCH
        for offset in range(base_offset, len(entries)):
            entry = entries[offset]
            record = (entry, before)
            known = records.setdefault((entry.epoch, offset), record)
            if known != record:
                raise self.violated(
                    f"n{machine.host.node_id} has at {offset} {_after(record)},"
                    f" {self._parting(machine, offset, known)}",
                    machine,
                )
            before = entry.epoch

    def _parting(self, machine: Machine, offset: int, known: tuple[Entry, int]) -> str:
        """Return which log has the other record, and where the two part."""
        assert machine.log is not None
        mine = machine.log.entries
        for other in self.ghost.machines.values():
            log = other.left if other.log is None else other.log.entries
            if other is not machine and log[offset : offset + 1] == [known[0]]:
                parted = _parted_at(mine, log)
                where = f"n{other.host.node_id} has there {_after(known)}"
                if parted == offset:
                    return where
                return (
                    f"{where}; the two logs part at {parted} already: {_at(mine, parted)}, and"
                    f" {_at(log, parted)}"
                )
        return f"another log had there {_after(known)}"


class HighWatermarkRises(Invariant):
    """A node's high watermark never falls within a life, and never passes its own log."""

    id = "INV-06"
    before_effects = (AdvanceHighWatermark,)
    needs_promise = False

    def before(self, machine: Machine, effect: AdvanceHighWatermark) -> None:
        assert machine.log is not None
        if not machine.high_watermark < effect.offset <= len(machine.log.entries):
            raise self.violated(
                f"n{machine.host.node_id} moves its high watermark from {machine.high_watermark}"
                f" to {effect.offset}, its log ends at {len(machine.log.entries)}",
                machine,
            )


class CommittedIsDurable(Invariant):
    """Records that a leader commits are on the disks of a majority of the voter set by then.

    And what a follower promises by its fetch offset is on its own.
    """

    id = "INV-07"
    before_effects = (AdvanceHighWatermark, SendRequest)

    def before(self, machine: Machine, effect: AdvanceHighWatermark | SendRequest) -> None:
        if isinstance(effect, AdvanceHighWatermark):
            if machine.host.node.replica.role == _LEADER:
                self._check_majority(machine, effect.offset)
        elif isinstance(effect.request, FetchRequest):
            promised, log = effect.request.fetch_offset, machine.log
            assert log is not None
            if promised > len(log.entries) or not log.is_durable(
                machine.host.disk, machine.promised, promised
            ):
                raise self.violated(
                    f"n{machine.host.node_id} fetches from {promised}, not all of it on disk",
                    machine,
                )

    def _check_majority(self, machine: Machine, offset: int) -> None:
        assert machine.log is not None
        first = len(self.ghost.committed)
        expected = machine.log.entries[first:offset]
        if not expected:
            return
        voting = self.ghost.voting_machines()
        holders = [voter for voter in voting if voter.holds(first, expected)]
        # A disk that was wiped, or rots below its mark, after its node said so: that node is down
        # for ever, and elects nobody without these records.
        lost_count = sum(
            (voter not in voting or voter.disk_past.has_rotted())
            and voter.promised_as_voter >= offset
            for node_id, voter in self.ghost.machines.items()
            if node_id in self.ghost.voters and voter not in holders
        )
        if len(holders) + lost_count < self.ghost.majority:
            names = ", ".join(str(voter.host.name) for voter in holders) or "nobody"
            raise self.violated(
                f"n{machine.host.node_id} commits [{first}, {offset}) that {names} alone of"
                f" {len(self.ghost.voters)} voters has on disk",
                machine,
            )


class CommittedStays(Invariant):
    """No truncation drops a committed record, and none goes below the node's high watermark.

    A follower of a leader that was deposed may drop what was committed in a later epoch: that was
    without its help, since whoever helps to commit is in the epoch of the leader that commits.
    """

    id = "INV-08"
    before_effects = (TruncateLog, ReplaceLog)

    def before(self, machine: Machine, effect: TruncateLog | ReplaceLog) -> None:
        # A snapshot takes the place of all records: those above its end are truncated.
        is_replaced = isinstance(effect, ReplaceLog)
        end_offset = effect.snapshot_id.end_offset if is_replaced else effect.end_offset
        if end_offset < machine.high_watermark:
            raise self.violated(
                f"n{machine.host.node_id} truncates to {end_offset}, below its high"
                f" watermark {machine.high_watermark}",
                machine,
            )
        assert machine.log is not None
        entries, committed = machine.log.entries, self.ghost.committed
        commit_epochs, epoch = self.ghost.commit_epochs, machine.host.node.replica.epoch
        for offset in range(end_offset, min(len(committed), len(entries))):
            if entries[offset] == committed[offset] and commit_epochs[offset] <= epoch:
                raise self.violated(
                    f"n{machine.host.node_id} truncates the committed record at {offset}", machine
                )


class CommitsOwnEpoch(Invariant):
    """The last record that a leader commits is of its own epoch."""

    id = "INV-09"
    before_effects = (AdvanceHighWatermark,)

    def before(self, machine: Machine, effect: AdvanceHighWatermark) -> None:
        replica = machine.host.node.replica
        assert machine.log is not None
        if replica.role == _LEADER and 0 < effect.offset <= len(machine.log.entries):
            epoch = machine.log.entries[effect.offset - 1].epoch
            if epoch != replica.epoch:
                raise self.violated(
                    f"n{machine.host.node_id} of epoch {replica.epoch} commits up to a record of"
                    f" epoch {epoch}",
                    machine,
                )


class CommittedNeverChanges(Invariant):
    """A node takes for committed only what a leader committed there first, for ever."""

    id = "INV-11"
    before_effects = (AdvanceHighWatermark,)

    def before(self, machine: Machine, effect: AdvanceHighWatermark) -> None:
        ghost, log = self.ghost, machine.log
        assert log is not None
        agreed = ghost.agreement(log)
        if agreed < min(effect.offset, len(ghost.committed)):
            raise self.violated(
                f"n{machine.host.node_id} takes {_at(log.entries, agreed)} at {agreed} for"
                f" committed, not {record_in_words(ghost.committed[agreed])}",
                machine,
            )
        if effect.offset > len(ghost.committed) and machine.host.node.replica.role != _LEADER:
            raise self.violated(
                f"n{machine.host.node_id} takes [{len(ghost.committed)}, {effect.offset}) for"
                " committed, which no leader has committed",
                machine,
            )


class _Parting(NamedTuple):
    """A leader's answer that the logs diverge, and how the follower stood when it came."""

    life: int
    time_us: int
    leader: int
    epoch: int
    diverging: tuple[int, int]
    #: The leader's own end of its largest epoch that is not above the follower's last one.
    right: tuple[int, int] | None
    end_offset: int
    high_watermark: int

    def __str__(self) -> str:
        epoch, offset = self.diverging
        told = f"n{self.leader} of epoch {self.epoch} told it that the logs diverge at {offset}"
        is_wrong = self.right is not None and self.right != self.diverging
        truth = f", but n{self.leader}'s log has {_ends(self.right)}" if is_wrong else ""
        mark = f", its high watermark was {self.high_watermark}"
        return (
            f"{told} (end of epoch {epoch}){truth}; its log ended at {self.end_offset} then"
            f"{mark if self.high_watermark >= 0 else ''}"
        )


class NobodyHalts(Invariant):
    """A node never has a reason to stop by itself, nor not to start, but for its disk's faults."""

    id = "INV-14"
    before_effects = (Halt,)
    events = (AnswerReceived,)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        self._partings: dict[NodeId, _Parting] = {}

    def took(self, machine: Machine, event: AnswerReceived) -> None:
        answer = event.answer
        if isinstance(answer, FetchAnswer) and answer.diverging is not None:
            assert machine.log is not None
            epoch, end_offset = machine.last_of_log()
            leader = self.ghost.machines[event.peer].log
            self._partings[machine.host.node_id] = _Parting(
                machine.host.incarnation,
                self.ghost.world.now,
                event.peer,
                answer.epoch,
                answer.diverging,
                None if leader is None else _end_of_epoch(leader.entries, epoch),
                end_offset,
                machine.high_watermark,
            )

    def before(self, machine: Machine, effect: Halt) -> None:
        # No disk's fault explains it: a node that cannot trust its disk ends, it does not halt.
        raise self.violated(
            f"n{machine.host.node_id} halts: {effect.reason}{self._cause(machine)}",
            machine,
            kind=class_of_end(effect.reason),
        )

    def ended(self, machine: Machine) -> None:
        reason = machine.host.ended
        if reason is None:
            return
        if not machine.disk_past.explains(reason):
            raise self.violated(
                f"n{machine.host.node_id} ended by itself, {reason}{self._cause(machine)}",
                machine,
                kind=class_of_end(reason),
            )

    def _cause(self, machine: Machine) -> str:
        """Return what went wrong with the node's log before, or in the very step of its end."""
        causes: list[str] = []
        parting = self._partings.get(machine.host.node_id)
        host, now = machine.host, self.ghost.world.now
        # A process that has ended by itself is there until its disk has done what it was given.
        when = (now, host.node.replica.log_end_offset) if machine.log else host.ended_at
        if parting is not None and parting.time_us == when[0]:
            causes.append(f"in this step {parting}, and the node would have it end at {when[1]}")
        entries = machine.left if machine.log is None else machine.log.entries
        committed = self.ghost.committed
        if entries[: len(committed)] != committed[: len(entries)]:
            first = _parted_at(entries, committed)
            causes.append(
                f"its log had parted from the committed records at {first} before:"
                f" {_at(entries, first)}, not {record_in_words(committed[first])}"
            )
        return "".join(f"; {cause}" for cause in causes)


class OnlyCommittedIsTold(Invariant):
    """No message names a high watermark above what is committed."""

    id = "INV-16"
    before_effects = (AnswerFetch, SendAnswer, SendRequest)

    def before(self, machine: Machine, effect: AnswerFetch | SendAnswer | SendRequest) -> None:
        message = effect.request if isinstance(effect, SendRequest) else effect.answer
        if isinstance(message, _FETCHES) and message.high_watermark > len(self.ghost.committed):
            raise self.violated(
                f"n{machine.host.node_id} names the high watermark {message.high_watermark}, only"
                f" {len(self.ghost.committed)} records are committed",
                machine,
            )


def _parted_at(entries: list[Entry], others: list[Entry]) -> int:
    """Return the first offset at which two logs have different records."""
    pairs = enumerate(zip(entries, others, strict=False))
    return next(offset for offset, (mine, theirs) in pairs if mine != theirs)


def _at(entries: list[Entry], offset: int) -> str:
    return record_in_words(entries[offset] if offset < len(entries) else None)


def _after(record: tuple[Entry, int]) -> str:
    entry, before = record
    where = "first of all" if before == NO_EPOCH else f"after one of epoch {before}"
    return f"{record_in_words(entry)} {where}"


def _end_of_epoch(entries: list[Entry], epoch: int) -> tuple[int, int]:
    """Return the largest epoch of a log that is not above this one, and where it ends."""
    end = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
    return (entries[end - 1].epoch if end else NO_EPOCH, end)


def _ends(end: tuple[int, int] | None) -> str:
    assert end is not None
    return f"epoch {end[0]} end at {end[1]}"
