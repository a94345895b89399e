"""One node at work: a replica, its disk, its peers and its clients on one event loop.

Events go to the replica one at a time and its effects are performed in the order given; an event
that an effect causes waits until all of them are done. Must never decide for the replica, and
never go on after a halt or a failed disk. Source: the contract in ``nodes.quorum.effects``.
"""

import asyncio
import contextlib
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec

from nodes.quorum.effects import (
    AbandonRequest,
    AcceptProposal,
    AdvanceHighWatermark,
    AnswerFetch,
    AnswerRead,
    AppendBatches,
    AppendLeaderChange,
    AppendRecords,
    Effect,
    Halt,
    PersistQuorumState,
    RejectProposal,
    RejectRead,
    ReportState,
    SendAnswer,
    SendRequest,
    TruncateLog,
)
from nodes.quorum.errors import InvariantViolation
from nodes.quorum.events import (
    AnswerReceived,
    ConnectionClosed,
    Event,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    Started,
    TimerElapsed,
)
from nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Incarnation,
    Microseconds,
    NodeId,
)
from nodes.quorum.messages import Answer, DescribeQuorumAnswer, Request
from nodes.quorum.persistent import Voter
from nodes.quorum.replica import Replica
from nodes.registers.commands import UnknownCommandError
from nodes.server import exit_codes
from nodes.server.applier import Applier
from nodes.server.client_service import ClientService
from nodes.server.disk import Disk
from nodes.server.log_lines import LogLines
from nodes.server.state_events import StateEventFile
from nodes.storage.errors import CorruptStorageError, StorageFailed
from nodes.transport.kafka_codec import KafkaCodec
from nodes.transport.peer_link import PeerLink
from nodes.transport.peer_listener import PeerListener

#: Timers of the loop are no finer than this.
_TIMER_S_MIN: Final = 0.001


def monotonic_now() -> Microseconds:
    """Microseconds on the machine's monotonic clock."""
    return Microseconds(time.monotonic_ns() // 1_000)


class NodeParts(msgspec.Struct, frozen=True):
    """What a node is made of; built by ``nodes.server.assembly``."""

    node_id: NodeId
    #: Of the disk that it lives on now.
    directory_id: DirectoryId
    incarnation: Incarnation
    voters: tuple[Voter, ...]
    replica: Replica
    disk: Disk
    applier: Applier
    codec: KafkaCodec
    state_events: StateEventFile
    log_lines: LogLines


class Node:
    """Drives one replica. All methods are called on the event loop's thread."""

    def __init__(self, parts: NodeParts, service: Callable[["Node"], ClientService]) -> None:
        """Put the parts together; ``service`` makes the client side, which needs the node."""
        self.parts = parts
        self.replica = parts.replica
        self.peers = PeerListener(parts.codec, self, self._refused)
        self._links = {
            voter.node_id: PeerLink(voter, parts.codec, self)
            for voter in parts.voters
            if voter.node_id != parts.node_id
        }
        self._events: deque[Event] = deque()
        self._effects: deque[Effect] = deque()
        self._pumping = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: Microseconds | None = None
        #: Set whenever a request to a peer was answered or failed.
        self._settled = asyncio.Event()
        #: Why the last request to a peer failed, so that a lasting trouble is one line in the log.
        self._troubles: dict[NodeId, str] = {}
        self._finished: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._service = service(self)
        self._perform: dict[type[Any], Callable[[Any], None]] = {
            PersistQuorumState: parts.disk.persist,
            AppendLeaderChange: parts.disk.append_leader_change,
            AppendRecords: parts.disk.append_records,
            AppendBatches: parts.disk.append_batches,
            TruncateLog: parts.disk.truncate,
            SendRequest: self._send_request,
            AbandonRequest: self._abandon_request,
            SendAnswer: self._send_answer,
            AnswerFetch: self._answer_fetch,
            AdvanceHighWatermark: self._advance,
            AcceptProposal: self._service.proposals.accepted,
            RejectProposal: self._service.proposals.rejected,
            AnswerRead: self._service.reads.confirmed,
            RejectRead: self._service.reads.rejected,
            ReportState: self._report,
            Halt: self._halt,
        }
        parts.disk.attach(self.feed, self._disk_failed)

    def start(self) -> None:
        """Begin; the listeners are open by now."""
        self.feed(Started())

    async def finished(self) -> int:
        """Wait for the end; the exit code."""
        return await asyncio.shield(self._finished)

    def feed(self, event: Event) -> None:
        """Give an event to the replica, after those that wait already."""
        self._events.append(event)
        self._pump()

    def _pump(self) -> None:
        """Perform effects and take events until none is left or a truncation must end first.

        Whatever goes wrong ends the node here: with an effect lost the rest must not be performed,
        and of who called (a transport, a task) nothing can be expected; uvloop closes a connection
        whose protocol raised OSError and tells nobody.
        """
        if self._pumping or self._finished.done():
            return
        self._pumping = True
        try:
            while not (self.parts.disk.is_truncating or self._finished.done()):
                if self._effects:
                    effect = self._effects.popleft()
                    self._perform[type(effect)](effect)
                elif self._events:
                    event = self._events.popleft()
                    self._effects.extend(self.replica.step(monotonic_now(), event))
                else:
                    break
        except InvariantViolation as error:
            self.parts.log_lines.write("error", "story", lines=list(error.story))
            self.end(exit_codes.HALTED, f"{error.invariant} violated: {error.problem}")
        except StorageFailed as error:
            self._disk_failed(error)
        except CorruptStorageError as error:
            self.end(exit_codes.CORRUPT, str(error))
        except UnknownCommandError as error:
            self.end(exit_codes.CORRUPT, f"a committed record cannot be applied: {error}")
        except OSError as error:
            self._disk_failed(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, see above
            traceback.print_exception(error)
            self.end(exit_codes.DEFECT, f"defect: {error!r}")
        finally:
            self._pumping = False
        self._arm()

    def resign(self) -> None:
        """Hand leadership over, if it is held."""
        self.feed(ResignRequested())

    async def links_idle(self) -> None:
        """Wait until no request to a peer waits for its answer."""
        while not all(link.is_idle for link in self._links.values()):
            self._settled.clear()
            await self._settled.wait()

    def end(self, exit_code: int, reason: str) -> None:
        """Stop at once; the first reason stands. Says so in the log and the state events."""
        if self._finished.done():
            return
        self._finished.set_result(exit_code)
        self._events.clear()
        self._effects.clear()
        stopped = exit_code == exit_codes.STOPPED
        self.parts.log_lines.write(
            "info" if stopped else "error", "stopped" if stopped else "fatal", reason=reason
        )
        if self._timer is not None:
            self._timer.cancel()
        with contextlib.suppress(OSError):  # it may be what the node ends for
            self.parts.state_events.write(
                "stopped" if stopped else "fatal", self.replica.epoch, reason=reason
            )

    async def close(self) -> None:
        """Drop all connections, end the disk thread, close the files."""
        for link in self._links.values():
            link.close()
        await self.peers.close()
        self.parts.disk.close()
        self.parts.state_events.close()

    # What the transport reports.

    def requested(
        self, connection: ConnectionId, correlation: CorrelationId, request: Request
    ) -> None:
        """A peer asks something."""
        self.feed(RequestReceived(connection, correlation, request))

    def disconnected(self, connection: ConnectionId) -> None:
        """A peer's connection is gone."""
        self.feed(ConnectionClosed(connection))

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Answer) -> None:
        """A peer answered."""
        self._troubles.pop(peer, None)
        self.feed(AnswerReceived(peer, correlation, self.parts.incarnation, answer))
        self._settled.set()

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        """A peer will not answer."""
        if self._troubles.get(peer) != reason:
            self._troubles[peer] = reason
            self.parts.log_lines.write("warning", "peer unreachable", peer=peer, reason=reason)
        incarnation = self.parts.incarnation
        self.feed(RequestFailed(peer, correlation, incarnation, reason, refused=refused))
        self._settled.set()

    # How effects are performed.

    def _send_request(self, effect: SendRequest) -> None:
        self._links[effect.peer].send(effect.correlation, effect.request, effect.timeout_ms)

    def _abandon_request(self, effect: AbandonRequest) -> None:
        self._links[effect.peer].abandon(effect.correlation)

    def _send_answer(self, effect: SendAnswer) -> None:
        answer = effect.answer
        if isinstance(answer, DescribeQuorumAnswer):
            answer = _on_wall_clock(answer)
        self.peers.answer(effect.connection, effect.correlation, answer)

    def _answer_fetch(self, effect: AnswerFetch) -> None:
        answer = effect.answer
        if effect.read_offset < effect.end_offset:
            records = self.parts.disk.read(effect.read_offset, effect.end_offset, effect.max_bytes)
            answer = msgspec.structs.replace(answer, records=records)
        self.peers.answer(effect.connection, effect.correlation, answer)

    def _advance(self, effect: AdvanceHighWatermark) -> None:
        self.parts.applier.apply_up_to(effect.offset, self._service.proposals.applied)
        self._service.reads.answer_applied()

    def _report(self, effect: ReportState) -> None:
        detail: dict[str, Any] | None = None
        if effect.kind == "role":
            detail = {"cause": effect.cause}
        elif effect.kind == "started":
            detail = {"directory_id": self.parts.directory_id}
        self.parts.state_events.write(
            effect.kind,
            effect.epoch,
            role=effect.role if effect.kind in {"started", "role"} else None,
            leader=effect.leader_id if effect.kind in {"started", "role"} else None,
            offset=effect.offset,
            base_offset=effect.base_offset,
            reason=effect.reason,
            detail=detail,
        )
        if effect.kind in {"started", "role", "truncate"}:
            self.parts.log_lines.write(
                "info",
                effect.kind,
                epoch=effect.epoch,
                cause=effect.cause,
                role=effect.role,
                leader=effect.leader_id,
                offset=effect.offset,
                reason=effect.reason,
            )

    def _halt(self, effect: Halt) -> None:
        self.end(exit_codes.HALTED, effect.reason)

    def _disk_failed(self, error: Exception) -> None:
        self.end(exit_codes.DISK_FAILED, f"disk failed: {error}")

    def _refused(self, reason: str) -> None:
        self.parts.log_lines.write("warning", "connection refused", reason=reason)

    # The timer: armed lazily, since deadlines mostly move away and an early event is harmless.

    def _arm(self) -> None:
        deadline = None if self._finished.done() else self.replica.deadline
        if deadline is None or (self._timer_at is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max((deadline - monotonic_now()) / 1_000_000, _TIMER_S_MIN)
        self._timer_at = deadline
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._elapse)

    def _elapse(self) -> None:
        self._timer = None
        self._timer_at = None
        self.feed(TimerElapsed())


def _on_wall_clock(answer: DescribeQuorumAnswer) -> DescribeQuorumAnswer:
    """Times of the monotonic clock, moved to wall time."""
    shift_ms = int(time.time() * 1_000) - time.monotonic_ns() // 1_000_000

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
