"""Clients' requests on their way through a broker to the active controller.

A request in Kafka's protocol is sent again to the next controller as a real broker does. One that
our clients make is sent once: asked again, a request may take effect twice, and the answer would
tell of the second time alone. So many are with a controller at a time, and the others wait: each
takes a connection there. Waiting has a limit, too, since the client may be gone.

Must never call a request certain that a controller may have heard and has not answered, nor one
that it was not active for: it may have lost its leadership with the request in its log.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec

from splitbrain.nodes.broker.forwarding import (
    FORWARDING_TIMEOUT_MS,
    AskAgain,
    Forwarding,
    Relay,
    forward,
    read_answer,
    timed_out,
)
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.server.controller.topic_requests import NOTHING_TO_DO, topic_outcome
from splitbrain.nodes.server.host.surroundings import CallPeer, TimerHandle, Timers
from splitbrain.nodes.server.registers.client_service import TIMEOUT_MS_MAX
from splitbrain.nodes.transport.client_protocol import (
    AnswerOutcome,
    ClientAnswer,
    ClientRequest,
    Reply,
)
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.calls import decode_reply, encode_call
from splitbrain.nodes.wire.errors import ApiError, WireError
from splitbrain.nodes.wire.families.controllers import EnvelopeResponse

_US_PER_MS: Final = 1_000
_SIZE_BYTES: Final = 4
#: Clients of ours are on this machine.
_CLIENT_ADDRESS: Final = b"\x7f\0\0\1"
_CLIENT_ID: Final = "splitbrain"
#: Envelopes that are with a controller at a time.
SENT_COUNT_MAX: Final = 64
#: Of all requests that are under way here, with what each costs besides its bytes.
HELD_BYTES_MAX: Final = 32 * 1024 * 1024
_OVERHEAD_BYTES: Final = 1_024
#: A frame for the client, or None to close its connection.
Relayed = Callable[[bytes | None], None]
#: Takes what a controller said; None: nothing.
Answered = Callable[[msgspec.Struct | None], None]


class _Change(msgspec.Struct):
    """Request of a client of ours."""

    request: ClientRequest
    reply: Reply
    api_key: ApiKey
    version: int
    message: msgspec.Struct
    is_sent: bool = False
    is_answered: bool = False
    expiry: TimerHandle | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes held for it."""
        return _OVERHEAD_BYTES + len(self.request.key)


class EnvelopesOut:
    """All requests that one broker hands on."""

    def __init__(
        self, replica: Replica, timers: Timers, call: CallPeer, pause_us: Microseconds
    ) -> None:
        """``pause_us``: before a controller is looked for again."""
        self._replica = replica
        self._timers = timers
        self._call = call
        self._pause_us = pause_us
        self._changes: list[_Change] = []
        self._held_bytes = 0
        self._sent_count = 0
        #: Calls that send an envelope, or see that it is too late, once there is room.
        self._waiting: deque[Callable[[], None]] = deque()
        self._stopping = False

    def relay(self, forwarding: Forwarding, relayed: Relayed) -> None:
        """Hand on what a client of Kafka's asked; ``relayed`` is called once."""
        size_bytes = _OVERHEAD_BYTES + len(forwarding.envelope.request_data)
        if self._held_bytes + size_bytes > HELD_BYTES_MAX:
            relayed(None)
            return
        self._held_bytes += size_bytes
        until = Microseconds(self._timers.now() + FORWARDING_TIMEOUT_MS * _US_PER_MS)

        def answered(answer: msgspec.Struct | None) -> None:
            if not isinstance(answer, EnvelopeResponse):
                again()
                return
            response = read_answer(forwarding, answer)
            if isinstance(response, AskAgain):
                again()
            else:
                end(response.frame if isinstance(response, Relay) else None)

        def end(frame: bytes | None) -> None:
            self._held_bytes -= size_bytes
            relayed(frame)

        def again() -> None:
            if not self._stopping:
                self._timers.call_later(self._pause_us, lambda: self._in_turn(send))

        def send() -> None:
            if self._stopping:
                return
            if self._timers.now() >= until:
                end(timed_out(forwarding).frame)
                return
            leader_id = self._replica.leader_id
            if leader_id is None:
                again()
            else:
                self._ask(NodeId(leader_id), forwarding.envelope, answered)

        self._in_turn(send)

    def change(
        self, request: ClientRequest, reply: Reply, kafka_call: tuple[ApiKey, msgspec.Struct, int]
    ) -> None:
        """Hand on what a client of ours asked, as API, message and version; ``reply`` once."""
        api_key, message, version = kafka_call
        change = _Change(request, reply, api_key, version, message)
        self._changes.append(change)
        self._held_bytes += change.size_bytes
        if self._held_bytes > HELD_BYTES_MAX:
            self._answer(change, "timeout", definite=True, reason="too many requests wait here")
            return
        timeout_ms = min(max(request.timeout_ms, 1), TIMEOUT_MS_MAX)
        delay_us = timeout_ms * _US_PER_MS
        change.expiry = self._timers.call_later(delay_us, lambda: self._expire(change))
        self._in_turn(lambda: self._send(change))

    def stop(self) -> None:
        """Send nothing any more; who waits is told."""
        self._stopping = True
        for change in tuple(self._changes):
            if change.is_sent:
                self._unknown(change, "the broker stops before a controller has answered")
            else:
                self._answer(change, "stopping", definite=True, reason="the broker stops")

    def _in_turn(self, send: Callable[[], None]) -> None:
        """Send once there is room; whether it is still wanted is seen then."""
        if self._sent_count < SENT_COUNT_MAX:
            send()
        else:
            self._waiting.append(send)

    def _ask(self, leader_id: NodeId, envelope: msgspec.Struct, answered: Answered) -> None:
        self._sent_count += 1

        def heard(response: msgspec.Struct | None) -> None:
            self._sent_count -= 1
            answered(response)
            while self._waiting and self._sent_count < SENT_COUNT_MAX:
                self._waiting.popleft()()

        self._call(leader_id, envelope, heard)

    def _send(self, change: _Change) -> None:
        if change.is_answered:
            return
        leader_id = self._replica.leader_id
        if leader_id is None:
            self._timers.call_later(
                self._pause_us, lambda: self._in_turn(lambda: self._send(change))
            )
            return
        change.is_sent = True
        frame = encode_call(change.message, change.version, change.request.id & 0xFFFF, _CLIENT_ID)
        envelope = forward(frame[_SIZE_BYTES:], _CLIENT_ADDRESS).envelope
        self._ask(NodeId(leader_id), envelope, lambda response: self._heard(change, response))

    def _heard(self, change: _Change, response: msgspec.Struct | None) -> None:
        if not isinstance(response, EnvelopeResponse):
            self._unknown(change, "the controller has not answered")
            return
        if response.error_code != ApiError.NONE:
            self._unknown(change, f"the controller says {ApiError(response.error_code).name}")
            return
        try:
            answer = decode_reply(response.response_data or b"", change.api_key, change.version)
            code, message = topic_outcome(answer.message)
        except (WireError, ValueError) as error:
            self._unknown(change, f"the controller's answer makes no sense: {error}")
            return
        if code is ApiError.NONE or code in NOTHING_TO_DO:  # the controller has made sure of it
            self._answer(change, "ok", definite=True, result=code is ApiError.NONE)
        elif code in (ApiError.UNKNOWN_SERVER_ERROR, ApiError.REQUEST_TIMED_OUT):
            self._unknown(change, code.name)
        else:
            reason = f"{code.name}: {message}"
            self._answer(change, "invalid-request", definite=True, reason=reason)

    def _expire(self, change: _Change) -> None:
        change.expiry = None
        reason = "no controller has answered within the time given"
        self._answer(change, "timeout", definite=not change.is_sent, reason=reason)

    def _unknown(self, change: _Change, reason: str) -> None:
        self._answer(change, "unknown", definite=False, reason=reason)

    def _answer(
        self, change: _Change, outcome: AnswerOutcome, *, definite: bool, **fields: Any
    ) -> None:
        if change.is_answered:
            return
        change.is_answered = True
        self._changes.remove(change)
        self._held_bytes -= change.size_bytes
        if change.expiry is not None:
            change.expiry.cancel()
        change.reply(ClientAnswer(change.request.id, outcome, definite, **fields))
