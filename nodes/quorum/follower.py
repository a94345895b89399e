"""Follower: fetches from the leader of its epoch, appends, truncates what diverges.

One fetch at a time, and only while everything appended is flushed: the fetch offset promises
durability (INV-07). The high watermark is the leader's, no higher than what is flushed here. A
truncation below it stops the node: it would take back a commit (INV-08). A good answer puts off the
fetch timeout; where the leader's process is known to be gone a voter does not wait so long.

Where the leader's log begins above what this one lacks, the follower fetches a snapshot in chunks.
While the host checks the whole of it the follower goes on fetching records, so that both hear of
each other, and takes nothing. Another leader, or another role, makes an unfinished one void.
"""
# ruff: noqa: D102 - the handlers are documented once, in Role

from splitbrain.nodes.quorum.effects import (
    AbandonSnapshot,
    AppendBatches,
    FreezeSnapshot,
    ReplaceLog,
    TruncateLog,
    WriteSnapshotChunk,
)
from splitbrain.nodes.quorum.errors import HaltRequested
from splitbrain.nodes.quorum.events import SnapshotFrozen
from splitbrain.nodes.quorum.fetching import (
    Fit,
    SnapshotFetch,
    epoch_starts,
    fetch_request,
    refusal_of_batches,
    truncation_offset,
)
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, UNKNOWN_OFFSET, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import (
    EndQuorumEpochRequest,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
)
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.quorum.request_ledger import Outstanding
from splitbrain.nodes.quorum.role import Role, RoleContext, earliest
from splitbrain.nodes.quorum.transitions import RoleName


class Follower(Role):
    """Copies the log of one leader in one epoch."""

    name = RoleName.FOLLOWER

    def __init__(self, context: RoleContext, leader_id: NodeId) -> None:
        super().__init__(context)
        self._leader_id = leader_id
        self._times_out_at = context.after(context.settings.fetch_timeout_ms)
        #: Whether the leader has answered a fetch well, and has not resigned since.
        self._hears_leader = False
        self._leader_high_watermark = UNKNOWN_OFFSET
        #: The snapshot with which this log shall begin anew.
        self._fetching: SnapshotFetch | None = None
        self._end_reason = "fetch timeout"

    @property
    def leader_id(self) -> NodeId | None:
        return self._leader_id

    @property
    def grants_pre_votes(self) -> bool:
        return not self._hears_leader

    def enter(self) -> None:
        self._go_on()

    def leave(self) -> None:
        self._abandon_snapshot()

    def timer_elapsed(self) -> None:
        if self.context.now < self._times_out_at:
            self._go_on()
        elif self.context.voters.includes_me:
            self.context.roles.become_prospective(self._end_reason)
        else:
            self.context.roles.become_unattached(self.context.durable.epoch, self._end_reason)

    def log_flushed(self) -> None:
        self._follow_high_watermark()
        self._go_on()

    def epoch_begun(self) -> None:
        # The leader is there and misses our fetch: do not wait for the back-off.
        if self.context.requests.next_attempt(self._leader_id) is not None:
            self.context.requests.back_off(self._leader_id, self.context.now, 0)
        self._go_on()

    def epoch_ended(self, request: EndQuorumEpochRequest) -> None:
        self._hears_leader = False
        me = self.context.me
        position = next(
            (
                index
                for index, (node, directory) in enumerate(request.preferred)
                if node == me.node_id and directory in (NO_DIRECTORY, me.directory_id)
            ),
            None,
        )
        self._end_reason = f"leader {self._leader_id} resigned"
        turn = self.context.moment(self.context.timing.succession_delay(position))
        self._times_out_at = min(self._times_out_at, turn)
        self.timer_elapsed()

    def fetch_answered(self, peer: NodeId, answer: FetchAnswer, request: FetchRequest) -> None:
        if answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            # It says itself that it leads this epoch no more; its farewell may be lost.
            self._hears_leader = False
        if not self._take(answer, request):
            self.context.requests.back_off(peer, self.context.now)
        elif answer.snapshot_id is not None and self._waits_for_disk:
            # Only to be heard of: as often as a fetch that has no news.
            pause = self.context.settings.fetch_max_wait_ms * 1_000
            self.context.requests.back_off(peer, self.context.now, pause)
        self._go_on()

    def snapshot_answered(
        self, peer: NodeId, answer: FetchSnapshotAnswer, request: FetchSnapshotRequest
    ) -> None:
        if answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._hears_leader = False
        fetching = self._fetching
        fit = Fit.USELESS if fetching is None else fetching.take(answer, request)
        if fetching is not None and fit in (Fit.MORE, Fit.LAST):
            snapshot_id = fetching.snapshot_id
            chunk = WriteSnapshotChunk(snapshot_id, request.position, answer.data)
            self.context.outbox.emit(chunk)
            if fit is Fit.LAST:
                self.context.outbox.emit(FreezeSnapshot(snapshot_id))
            self._heard()
        else:
            if fit is Fit.GONE:
                self._abandon_snapshot()
                self._heard()
            self.context.requests.back_off(peer, self.context.now)
        self._go_on()

    def snapshot_frozen(self, event: SnapshotFrozen) -> None:
        fetching = self._fetching
        if not self._waits_for_disk or fetching is None:
            return
        if fetching.snapshot_id != event.snapshot_id:
            return
        self._fetching = None
        if event.problem is None:
            self._install(event.snapshot_id)
        else:
            self.context.requests.back_off(self._leader_id, self.context.now)
        self._times_out_at = self.context.after(self.context.settings.fetch_timeout_ms)
        self._go_on()

    def request_failed(self, peer: NodeId, outstanding: Outstanding, *, refused: bool) -> None:
        super().request_failed(peer, outstanding, refused=refused)
        if refused and self._hears_leader:
            self._leader_is_gone()
        self._go_on()

    def _leader_is_gone(self) -> None:
        """Stands soon: this leader's process ended, and no later life of it leads this epoch.

        If only this node cannot reach it the others refuse the pre-vote. Then the next follower
        of this leader waits for the fetch timeout, since it has not heard of it before.
        """
        context = self.context
        if not (context.settings.stands_when_leader_is_gone and context.voters.includes_me):
            return
        self._hears_leader = False
        self._end_reason = f"nobody listens at leader {self._leader_id}"
        rank = context.voters.rank_without(self._leader_id)
        turn = context.moment(context.timing.succession_delay(rank))
        self._times_out_at = min(self._times_out_at, turn)

    def _take(self, answer: FetchAnswer, request: FetchRequest) -> bool:
        """Acts on an answer; False if it was an error or makes no sense."""
        log = self.context.log
        if answer.error is not ErrorCode.NONE or request.fetch_offset != log.end_offset:
            return False
        if answer.snapshot_id is not None:
            if not self._begin_snapshot(answer.snapshot_id):
                return False
            self._heard()
            return True
        if self._fetching is not None:
            # The log's start of a leader does not go back; records may not come in between.
            return False
        if answer.diverging is not None:
            if not self._truncate(answer.diverging):
                return False
        elif refusal_of_batches(log, answer) is not None:
            return False
        else:
            if answer.batches:
                self._append(answer)
            # Only now is all of this log known to be the leader's: what is left after a truncation
            # may still differ from it, and a high watermark over it would commit foreign records.
            self._leader_high_watermark = max(self._leader_high_watermark, answer.high_watermark)
        self._heard()
        self._follow_high_watermark()
        return True

    def _heard(self) -> None:
        """Note that the leader has answered well."""
        self._hears_leader = True
        self._end_reason = "fetch timeout"
        self._times_out_at = self.context.after(self.context.settings.fetch_timeout_ms)
        self.context.timing.forget_defeats()

    @property
    def _waits_for_disk(self) -> bool:
        """Whether a snapshot has come and is not durable yet."""
        return self._fetching is not None and self._fetching.is_whole

    def _begin_snapshot(self, snapshot_id: SnapshotId) -> bool:
        """Fetch this snapshot from now on; False if no leader could mean that."""
        log = self.context.log
        if self._waits_for_disk:
            return True
        if snapshot_id.epoch > self.context.durable.epoch or snapshot_id in log.snapshots:
            return False
        if snapshot_id.end_offset < log.high_watermark:
            raise HaltRequested(
                f"leader {self._leader_id} of epoch {self.context.durable.epoch} wants the log"
                f" replaced by a snapshot that ends at {snapshot_id.end_offset}, below the high"
                f" watermark {log.high_watermark}"
            )
        self._abandon_snapshot()
        self._fetching = SnapshotFetch(snapshot_id)
        return True

    def _abandon_snapshot(self) -> None:
        fetching, self._fetching = self._fetching, None
        if fetching is not None:
            self.context.outbox.emit(AbandonSnapshot(fetching.snapshot_id))

    def _install(self, snapshot_id: SnapshotId) -> None:
        """The snapshot is durable: it is the log's beginning, and there is nothing behind it."""
        submission = self.context.log.replace(snapshot_id)
        self.context.outbox.emit(ReplaceLog(submission, snapshot_id))
        end = snapshot_id.end_offset
        reason = f"replaced by the snapshot of epoch {snapshot_id.epoch}"
        self.report("truncate", offset=end, reason=reason)
        self.report("high-watermark", offset=end)

    def _append(self, answer: FetchAnswer) -> None:
        log = self.context.log
        base = log.end_offset
        end = Offset(answer.batches[-1].last_offset + 1)
        starts = epoch_starts(log, answer.batches)
        submission = log.append(end, starts)
        self.context.outbox.emit(
            AppendBatches(submission, base, end, answer.batches, answer.records, starts)
        )
        self.report("append", offset=end, base_offset=base)

    def _truncate(self, diverging: tuple[Epoch, Offset]) -> bool:
        """Drop what the leader does not have; False if the leader's word drops nothing."""
        log = self.context.log
        end = truncation_offset(log, diverging)
        if end < log.high_watermark:
            raise HaltRequested(
                f"leader {self._leader_id} of epoch {self.context.durable.epoch} wants the log"
                f" truncated to {end}, below the high watermark {log.high_watermark}"
            )
        if end >= log.end_offset:
            return False
        submission = log.truncate(end)
        self.context.outbox.emit(TruncateLog(submission, end))
        self.report("truncate", offset=end)
        return True

    def _follow_high_watermark(self) -> None:
        self.advance_high_watermark(
            min(self._leader_high_watermark, self.context.log.flushed_end_offset)
        )

    def _go_on(self) -> None:
        """Fetch if it may, and set the next deadline."""
        context = self.context
        if context.log.settled and context.requests.may_send(self._leader_id, context.now):
            wait_ms = context.settings.fetch_max_wait_ms
            if self._fetching is not None and not self._waits_for_disk:
                context.requests.send(self._leader_id, self._fetching.request(context))
            else:
                context.requests.send(self._leader_id, fetch_request(context), wait_ms)
        attempt = context.requests.next_attempt(self._leader_id) if context.log.settled else None
        self.deadline = earliest(self._times_out_at, attempt)
