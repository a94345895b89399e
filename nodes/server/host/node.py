"""One node at work: a replica, its disk, its peers and its clients, on one thread.

Events go to the replica one at a time and its effects are performed in the order given; an event
that an effect causes waits until all of them are done. Never goes on after a halt or a failed disk.
The module is longer than 400 lines because every effect has its few lines here.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum import effects, events
from splitbrain.nodes.quorum.errors import InvariantViolation, UnreadableRecordError
from splitbrain.nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    Incarnation,
    Microseconds,
    NodeId,
)
from splitbrain.nodes.quorum.messages import (
    Answer,
    DescribeQuorumAnswer,
    FetchSnapshotAnswer,
    Request,
)
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.host.applier import Applier
from splitbrain.nodes.server.host.disk import Disk
from splitbrain.nodes.server.host.layer import Service, ServiceNeeds
from splitbrain.nodes.server.host.measurements import LeaderlessTime
from splitbrain.nodes.server.host.snapshot_files import SnapshotFiles, SnapshotSchedule
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.server.host.surroundings import Surroundings, TimerHandle
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest, NodeState, Reply
from splitbrain.nodes.wire.apis import RequestHeader

#: Longest time that a stopping leader takes to tell its successors.
RESIGNATION_US_MAX: Final = 500_000


class NodeParts(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a node; built by ``nodes.server.start.assembling``."""

    #: Of the disk that it lives on now.
    identity: StorageIdentity
    incarnation: Incarnation
    replica: Replica
    disk: Disk
    snapshots: SnapshotFiles
    applier: Applier[StateMachine]
    #: Of the layer above the log.
    make_service: Callable[[ServiceNeeds], Service]
    settings: QuorumSettings

    @property
    def node_id(self) -> NodeId:
        """Number of the node."""
        return self.identity.node_id


class Node:
    """Drives one replica. All methods are called on one thread.

    A host that watches overrides ``take`` and ``perform``.
    """

    def __init__(self, parts: NodeParts, surroundings: Surroundings) -> None:
        """Put the parts together; ``start`` begins."""
        self.parts = parts
        self.surroundings = surroundings
        self.replica = parts.replica
        #: The clients' side, for all that ``handle`` does not answer.
        self.service = parts.make_service(
            ServiceNeeds(
                identity=parts.identity,
                replica=parts.replica,
                surroundings=surroundings,
                feed=self.feed,
                applied_epoch=lambda: parts.applier.epoch,
                end=self.end,
            )
        )
        self._events: deque[events.Event] = deque()
        self._effects: deque[effects.Effect] = deque()
        self._pumping = False
        self._has_ended = False
        self._is_leaving = False
        self._timer: TimerHandle | None = None
        self._timer_at: Microseconds | None = None
        #: Set once the node was asked to stop: rings when the wait for its peers is over.
        self._resignation: TimerHandle | None = None
        #: Why the last request to a peer failed, so that a lasting trouble is one line in the log.
        self._troubles: dict[NodeId, str] = {}
        self._performers: dict[type[Any], Callable[[Any], None]] = {
            effects.PersistQuorumState: parts.disk.persist,
            effects.AppendLeaderChange: parts.disk.append_leader_change,
            effects.AppendRecords: parts.disk.append_records,
            effects.AppendBatches: parts.disk.append_batches,
            effects.TruncateLog: parts.disk.truncate,
            effects.ReplaceLog: self._replace_log,
            effects.CutLogStart: parts.disk.cut_start,
            effects.WriteSnapshotChunk: parts.snapshots.write_chunk,
            effects.FreezeSnapshot: parts.snapshots.freeze,
            effects.AbandonSnapshot: parts.snapshots.abandon,
            effects.SendRequest: self._send_request,
            effects.AbandonRequest: self._abandon_request,
            effects.SendAnswer: self._send_answer,
            effects.AnswerFetch: self._answer_fetch,
            effects.AnswerFetchSnapshot: self._answer_fetch_snapshot,
            effects.AdvanceHighWatermark: self._advance,
            effects.AcceptProposal: self.service.accepted,
            effects.RejectProposal: self.service.rejected,
            effects.AnswerRead: self.service.confirmed,
            effects.RejectRead: self.service.read_rejected,
            effects.ReportState: self._report,
            effects.Warn: self._warn,
            effects.Halt: self._halt,
        }
        parts.disk.attach(self.feed, self._disk_failed)
        parts.snapshots.attach(self._snapshot_ended, self._disk_failed)
        now = surroundings.timers.now()
        self._schedule = SnapshotSchedule(parts.settings, now)
        self._leaderless = LeaderlessTime(now)
        #: When the snapshot of the node's own began that is under way, or was last.
        self._snapshot_began = now

    @property
    def has_ended(self) -> bool:
        """Whether the node does nothing any more."""
        return self._has_ended

    def start(self) -> None:
        """Begin; the listeners are open by now."""
        self.feed(events.Started())
        self.service.start()

    def feed(self, event: events.Event) -> None:
        """Give an event to the replica, after those that wait already."""
        self._events.append(event)
        self._pump()

    def take(self, event: events.Event) -> Sequence[effects.Effect]:
        """One step of the replica: what came of the event, in order."""
        return self.replica.step(self.surroundings.timers.now(), event)

    def perform(self, effect: effects.Effect) -> None:
        """Do what one effect says."""
        self._performers[type(effect)](effect)

    def _pump(self) -> None:
        """Perform effects and take events until none is left or a truncation must end first.

        Whatever goes wrong ends the node here: with an effect lost the rest must not be performed,
        and of who called (a transport, a task) nothing can be expected; uvloop closes a connection
        whose protocol raised OSError and tells nobody.
        """
        if self._pumping or self._has_ended:
            return
        self._pumping = True
        try:
            while not (self.parts.disk.is_truncating or self._has_ended):
                if self._effects:
                    self.perform(self._effects.popleft())
                elif self._events:
                    self._effects.extend(self.take(self._events.popleft()))
                else:
                    break
        except InvariantViolation as error:
            self.surroundings.log_lines.write("error", "story", lines=list(error.story))
            self.end(exit_codes.HALTED, f"{error.invariant} violated: {error.problem}")
        except UnreadableRecordError as error:
            self._disk_failed(error)
        except (StorageFailed, CorruptStorageError, OSError) as error:
            self._disk_failed(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, see above
            self.surroundings.defect(error)
            self.end(exit_codes.DEFECT, f"defect: {error!r}")
        except BaseException:
            # Whoever runs the node cuts its life here: not one effect more, and not a word.
            self._cease()
            raise
        finally:
            self._pumping = False
        self._arm()

    def resign(self) -> None:
        """Hand leadership over, if it is held."""
        self.feed(events.ResignRequested())

    def stop(self) -> None:
        """Leave as the layer above the log wants to, hand leadership over, and end.

        The last when every peer has answered or the time for it is up.
        """
        if self._has_ended or self._is_leaving:
            return
        self._is_leaving = True
        self.service.leave(self._left)

    def _left(self) -> None:
        if self._has_ended:
            return
        self._resignation = self.surroundings.timers.call_later(RESIGNATION_US_MAX, self._stopped)
        self.resign()
        self._stop_if_idle()

    def end(self, exit_code: int, reason: str) -> None:
        """Stop at once; the first reason stands. Says so in the log and the state events."""
        if self._has_ended:
            return
        self._cease()
        stopped = exit_code == exit_codes.STOPPED
        self.surroundings.log_lines.write(
            "info" if stopped else "error", "stopped" if stopped else "fatal", reason=reason
        )
        with contextlib.suppress(OSError):  # it may be what the node ends for
            self.surroundings.state_events.write(
                "stopped" if stopped else "fatal", self.replica.epoch, reason=reason
            )
        self.surroundings.ended(exit_code, reason)

    def close(self) -> None:
        """Answer the clients that wait, drop the links, finish the disk's jobs, close the files."""
        self.service.stop()
        self.surroundings.peer_links.close()
        self.parts.disk.close()
        self.surroundings.state_events.close()

    def handle(self, request: ClientRequest, reply: Reply) -> None:
        """Note that a client of ours asks: how the node is, or what its service answers."""
        if request.kind == "status":
            state = self.service.completed(self.state())
            reply(ClientAnswer(request.id, "ok", definite=True, result=state))
        else:
            self.service.handle(request, reply)

    def state(self) -> NodeState:
        """Return the node's state."""
        replica, machine = self.replica, self.parts.applier.machine
        return NodeState(
            node_id=self.parts.node_id,
            incarnation=self.parts.incarnation,
            role=replica.role,
            epoch=replica.epoch,
            leader_id=replica.leader_id,
            high_watermark=replica.high_watermark,
            log_end_offset=replica.log_end_offset,
            applied_offset=machine.end_offset,
            digest=machine.digest(),
        )

    def _cease(self) -> None:
        """Do nothing any more."""
        self._has_ended = True
        self._events.clear()
        self._effects.clear()
        for timer in (self._timer, self._resignation):
            if timer is not None:
                timer.cancel()

    def _stop_if_idle(self) -> None:
        if self._resignation is not None and self.surroundings.peer_links.is_idle:
            self._stopped()

    def _stopped(self) -> None:
        self.service.stop()
        self.end(exit_codes.STOPPED, "asked to stop")

    # Calls of the transport.

    def requested(
        self, connection: ConnectionId, correlation: CorrelationId, request: Request
    ) -> None:
        """Note that a peer asks something."""
        self.feed(events.RequestReceived(connection, correlation, request))

    def called(
        self,
        connection: ConnectionId,
        correlation: CorrelationId,
        header: RequestHeader,
        message: msgspec.Struct,
    ) -> None:
        """Note that a broker, or a client of Kafka's, asks what is no matter of the quorum."""
        self.service.called(connection, correlation, header, message)

    def disconnected(self, connection: ConnectionId) -> None:
        """Note that a peer's connection is gone."""
        self.feed(events.ConnectionClosed(connection))

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Answer) -> None:
        """Note that a peer answered."""
        self._troubles.pop(peer, None)
        self.feed(events.AnswerReceived(peer, correlation, self.parts.incarnation, answer))
        self._stop_if_idle()

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """A peer will not answer."""
        if self._troubles.get(peer) != reason:
            self._troubles[peer] = reason
            self.surroundings.log_lines.write(
                "warning", "peer unreachable", peer=peer, reason=reason
            )
        incarnation = self.parts.incarnation
        self.feed(events.RequestFailed(peer, correlation, incarnation, reason, refused=refused))
        self._stop_if_idle()

    # How effects are performed.

    def _send_request(self, effect: effects.SendRequest) -> None:
        self.surroundings.peer_links.send(
            effect.peer, effect.correlation, effect.request, effect.timeout_ms
        )

    def _abandon_request(self, effect: effects.AbandonRequest) -> None:
        self.surroundings.peer_links.abandon(effect.peer, effect.correlation)

    def _send_answer(self, effect: effects.SendAnswer) -> None:
        answer = effect.answer
        if isinstance(answer, DescribeQuorumAnswer):
            answer = self._on_wall_clock(answer)
            if self.service.described(effect.connection, effect.correlation, answer):
                return
        self.surroundings.peer_answers.answer(effect.connection, effect.correlation, answer)

    def _answer_fetch(self, effect: effects.AnswerFetch) -> None:
        answer = effect.answer
        if effect.read_offset < effect.end_offset:
            records = self.parts.disk.read(effect.read_offset, effect.end_offset, effect.max_bytes)
            answer = msgspec.structs.replace(answer, records=records)
        self.surroundings.peer_answers.answer(effect.connection, effect.correlation, answer)

    def _answer_fetch_snapshot(self, effect: effects.AnswerFetchSnapshot) -> None:
        def answer(filled: FetchSnapshotAnswer) -> None:
            if not self._has_ended:
                peers = self.surroundings.peer_answers
                peers.answer(effect.connection, effect.correlation, filled)

        self.parts.snapshots.answer(effect, answer)

    def _replace_log(self, effect: effects.ReplaceLog) -> None:
        loaded = self.parts.snapshots.take_loaded(effect.snapshot_id)

        def replaced() -> None:
            self.parts.applier.load(loaded.snapshot_id, loaded.timestamp_ms, loaded.loading)
            self._schedule.began(self.surroundings.timers.now())
            self.service.passed_over(loaded.snapshot_id.end_offset)

        self.parts.disk.replace(effect, replaced)

    def _advance(self, effect: effects.AdvanceHighWatermark) -> None:
        self.parts.applier.apply_up_to(effect.offset, self.service.applied)
        self.service.advanced()
        self._write_snapshot_if_due()

    def _write_snapshot_if_due(self) -> None:
        parts, now = self.parts, self.surroundings.timers.now()
        if parts.snapshots.is_writing or not self._schedule.is_due(parts.applier.new_bytes, now):
            return
        state = parts.applier.freeze()
        if state is None:
            return
        self._schedule.began(now)
        self._snapshot_began = now
        parts.snapshots.write(state)

    def _snapshot_ended(self, event: events.Event) -> None:
        if isinstance(event, events.SnapshotWritten):
            duration_us = self.surroundings.timers.now() - self._snapshot_began
            self.surroundings.measurements.snapshot_written(duration_us)
        self.feed(event)

    def _note_leader(self, *, known: bool) -> None:
        duration_us = self._leaderless.measure(self.surroundings.timers.now(), leader_known=known)
        if duration_us is not None:
            self.surroundings.measurements.leader_known(duration_us)

    def _report(self, effect: effects.ReportState) -> None:
        # Of what a disk forgets others must have a durable copy: this says who has.
        detail: dict[str, Any] = {"flushed": self.replica.flushed_end_offset}
        if effect.kind == "role":
            detail["cause"] = effect.cause
        elif effect.kind == "started":
            detail["directory_id"] = self.parts.identity.directory_id
        self.surroundings.state_events.write(
            effect.kind,
            effect.epoch,
            role=effect.role if effect.kind in {"started", "role"} else None,
            leader=effect.leader_id if effect.kind in {"started", "role"} else None,
            offset=effect.offset,
            base_offset=effect.base_offset,
            reason=effect.reason,
            detail=detail,
        )
        if effect.kind == "role":
            self._note_leader(known=effect.leader_id is not None)
            self.service.role_changed()
        if effect.kind in {"started", "role", "truncate"}:
            self.surroundings.log_lines.write(
                "info",
                effect.kind,
                epoch=effect.epoch,
                cause=effect.cause,
                role=effect.role,
                leader=effect.leader_id,
                offset=effect.offset,
                reason=effect.reason,
            )

    def _warn(self, effect: effects.Warn) -> None:
        self.surroundings.log_lines.write("warning", effect.message, reason=effect.reason)

    def _halt(self, effect: effects.Halt) -> None:
        self.end(exit_codes.HALTED, effect.reason)

    def _disk_failed(self, error: Exception) -> None:
        if isinstance(error, UnreadableRecordError):
            self.surroundings.measurements.metadata_error()
            self.end(exit_codes.CORRUPT, f"a committed record cannot be applied: {error}")
            return
        if isinstance(error, CorruptStorageError):
            # The disk's thread meets rot too: whoever restores the folder must know which it was.
            self.end(exit_codes.CORRUPT, str(error))
            return
        self.end(exit_codes.DISK_FAILED, f"disk failed: {error}")

    # The timer: armed lazily, since deadlines mostly move away and an early event is harmless.

    def _arm(self) -> None:
        # No event is taken during a truncation: a timer would ring in vain, again and again.
        waits = self._has_ended or self.parts.disk.is_truncating
        deadline = None if waits else self.replica.deadline
        if deadline is None or (self._timer_at is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        timers = self.surroundings.timers
        self._timer = timers.call_later(max(deadline - timers.now(), 0), self._elapse)

    def _elapse(self) -> None:
        self._timer = None
        self._timer_at = None
        self.feed(events.TimerElapsed())

    def _on_wall_clock(self, answer: DescribeQuorumAnswer) -> DescribeQuorumAnswer:
        """Times of the monotonic clock, moved to wall time."""
        timers = self.surroundings.timers
        shift_ms = timers.wall_clock_ms() - timers.now() // 1_000

        def moved(time_ms: int) -> int:
            return time_ms if time_ms < 0 else time_ms + shift_ms

        def progress(replicas: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(
                msgspec.structs.replace(
                    replica,
                    last_fetch_ms=moved(replica.last_fetch_ms),
                    last_caught_up_ms=moved(replica.last_caught_up_ms),
                )
                for replica in replicas
            )

        return msgspec.structs.replace(
            answer, voters=progress(answer.voters), observers=progress(answer.observers)
        )
