"""Invariants of logs and of committed records in the whole quorum.

Committed is what a leader's high watermark passed in its own epoch, first. Must never take a node's
word for what is on its disk.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from typing import Final

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
from splitbrain.nodes.quorum.identifiers import NO_EPOCH
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
                    f"n{machine.host.node_id} has at {offset} {_after(record)}, another log has"
                    f" there {_after(known)}",
                    machine,
                )
            before = entry.epoch


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


class NobodyHalts(Invariant):
    """A node never has a reason to stop by itself, nor not to start, but for its disk's faults."""

    id = "INV-14"
    before_effects = (Halt,)

    def before(self, machine: Machine, effect: Halt) -> None:
        # No disk's fault explains it: a node that cannot trust its disk ends, it does not halt.
        raise self.violated(
            f"n{machine.host.node_id} halts: {effect.reason}",
            machine,
            kind=class_of_end(effect.reason),
        )

    def ended(self, machine: Machine) -> None:
        reason = machine.host.ended
        if reason is None:
            return
        if not machine.disk_past.explains(reason):
            raise self.violated(
                f"n{machine.host.node_id} ended by itself, {reason}",
                machine,
                kind=class_of_end(reason),
            )


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


def _at(entries: list[Entry], offset: int) -> str:
    return record_in_words(entries[offset] if offset < len(entries) else None)


def _after(record: tuple[Entry, int]) -> str:
    entry, before = record
    where = "first of all" if before == NO_EPOCH else f"after one of epoch {before}"
    return f"{record_in_words(entry)} {where}"
