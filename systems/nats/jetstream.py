"""Requests to JetStream over one connection: streams, acknowledged publishing, reading back.

Must never call a publication refused that a leader may have proposed.

Sources: NATS' pages on the JetStream API, its ADR-8 (buckets of keys) and ADR-31 (direct get), and
of its server ``errors.json`` and ``processClusteredInboundMsg``.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.systems.nats.protocol import NatsConnection, Reply
from splitbrain.systems.servers import Refused, Unclear

_API: Final = "$JS.API"
_NO_RESPONDERS: Final = 503
_NOT_FOUND: Final = 404
_END_OF_BATCH: Final = 204
_NOTHING_THERE: Final = "No Results"
_NO_MESSAGE_FOUND: Final = 10037
#: Answers to a publication that come before it is proposed, by the server's own numbers.
REFUSALS: Final[Mapping[int, str]] = {
    10071: "wrong-last-sequence",
    10164: "wrong-last-sequence",
    10167: "too-many-requests",
}
NO_RESPONDERS: Final = "no-responders"
CONFLICT: Final = REFUSALS[10071]


class Stored(msgspec.Struct, frozen=True):
    """A message of a stream."""

    sequence: int
    body: bytes


class Handed(msgspec.Struct, frozen=True):
    """A message that was handed out and not acknowledged yet."""

    acknowledge_at: str
    body: bytes


async def publish(
    connection: NatsConnection, subject: str, body: bytes, expected: Mapping[str, str] | None = None
) -> int:
    """Publish to a stream; return the message's sequence once it is acknowledged.

    ``expected`` are headers that make it conditional.

    Raises:
        Refused: no stream takes the subject, or its leader refused before it proposed.
        Unclear: it may have been stored.
        OSError, EOFError and others: as ``NatsConnection.answer``.
    """
    reply = await connection.request(subject, body, expected)
    if reply.status == _NO_RESPONDERS:
        raise Refused(NO_RESPONDERS)
    told = _content(reply)
    if (code := _error_of(told)) is not None:
        if code in REFUSALS:
            raise Refused(REFUSALS[code])
        raise Unclear(f"error-{code}")
    return int(told["seq"])


def if_last_is(sequence: int, subject: str | None = None) -> Mapping[str, str]:
    """Return the headers of a message that is stored only if a subject's last one is the given.

    The subject is the message's own, or another one of the stream. 0: it has none yet.
    """
    name = "Nats-Expected-Last-Subject-Sequence"
    other = {} if subject is None else {f"{name}-Subject": subject}
    return {name: str(sequence), **other}


async def last_by_leader(connection: NatsConnection, stream: str, subject: str) -> Stored | None:
    """Return a subject's last message, as the stream's leader has it; None: it has none.

    Nobody else is asked whether it leads still. Raises as ``publish``, never Unclear.
    """
    told = await ask(connection, f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
    if told is None:
        return None
    message = told["message"]
    return Stored(message["seq"], base64.b64decode(message.get("data", "")))


async def last_by_any(connection: NatsConnection, stream: str, subject: str) -> Stored | None:
    """Return a subject's last message, as a member has it: the asked one where it is current.

    None: it has none. Raises as ``last_by_leader``.
    """
    reply = await connection.request(*_direct(stream, {"last_by_subj": subject}))
    _require_found(reply, or_none=True)
    if reply.status:
        return None
    return Stored(int(reply.headers["Nats-Sequence"]), reply.body)


async def all_by_any(connection: NatsConnection, stream: str, subjects: str) -> Sequence[bytes]:
    """Return the last message of each subject that fits, as a member has them: mostly the asked.

    They are those of one moment, and no more than the 1,024 that a server answers with.

    Raises Refused besides where there are more, or the member cannot read one; else as
    ``last_by_leader``.
    """
    inbox = connection.send(*_direct(stream, {"multi_last": [subjects]}))
    found: list[bytes] = []
    while not (reply := await connection.answer(inbox)).status:
        found.append(reply.body)
    if reply.status == _END_OF_BATCH and not int(reply.headers["Nats-Num-Pending"]):
        return found
    # The same status is that of a message that is counted and cannot be read.
    _require_found(reply, or_none=not found and reply.reason == _NOTHING_THERE)
    if reply.status == _END_OF_BATCH:
        raise Refused("incomplete-answer")
    return found


async def make_consumer(
    connection: NatsConnection, stream: str, configuration: Mapping[str, Any]
) -> None:
    """Make a durable consumer unless it is there; raises as ``last_by_leader``."""
    name = f"{configuration['durable_name']}.{configuration['filter_subject']}"
    request = {"stream_name": stream, "config": configuration}
    await ask(connection, f"CONSUMER.CREATE.{stream}.{name}", request)


async def next_of(connection: NatsConnection, stream: str, consumer: str) -> Handed | None:
    """Return a consumer's next message, to be acknowledged; None where there is none now.

    Raises as ``last_by_leader``.
    """
    body = msgspec.json.encode({"batch": 1, "no_wait": True})
    reply = await connection.request(f"{_API}.CONSUMER.MSG.NEXT.{stream}.{consumer}", body)
    _require_found(reply, or_none=True)
    return None if reply.status else Handed(reply.reply_to, reply.body)


async def acknowledge(connection: NatsConnection, handed: Handed) -> None:
    """Acknowledge a message; returns once the consumer's group has that.

    Raises Refused where no consumer takes it; else as ``NatsConnection.answer``.
    """
    _require_found(await connection.request(handed.acknowledge_at, b"+ACK"), or_none=False)


async def count_handed(connection: NatsConnection, stream: str) -> tuple[int, int]:
    """Return how many messages are unacknowledged at consumers, and how often one was handed out.

    Raises as ``last_by_leader``.

    Raises Refused besides where not all consumers tell.
    """
    told = await ask(connection, f"CONSUMER.LIST.{stream}", {})
    if told is None or told.get("missing") or told["total"] != len(told["consumers"] or ()):
        raise Refused("silent-consumers")
    consumers = told["consumers"] or ()
    unacknowledged = sum(consumer["num_ack_pending"] for consumer in consumers)
    return unacknowledged, sum(consumer["delivered"]["consumer_seq"] for consumer in consumers)


async def ask(
    connection: NatsConnection, name: str, request: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the answer to a request of the API; None: there is no such message.

    Raises Refused where it is an error; else as ``NatsConnection.answer``.
    """
    reply = await connection.request(f"{_API}.{name}", msgspec.json.encode(request))
    if reply.status == _NO_RESPONDERS:
        raise Refused(NO_RESPONDERS)
    told = _content(reply)
    code = _error_of(told)
    if code == _NO_MESSAGE_FOUND:
        return None
    if code is not None:
        raise Refused(f"error-{code}")
    return told


def _direct(stream: str, request: Mapping[str, Any]) -> tuple[str, bytes]:
    return f"{_API}.DIRECT.GET.{stream}", msgspec.json.encode(request)


def _require_found(reply: Reply, *, or_none: bool) -> None:
    if reply.status == _NO_RESPONDERS:
        raise Refused(NO_RESPONDERS)
    if reply.status not in (0, _END_OF_BATCH) and not (or_none and reply.status == _NOT_FOUND):
        raise Refused(f"status-{reply.status}")


def _content(reply: Reply) -> dict[str, Any]:
    return msgspec.json.decode(reply.body, type=dict[str, Any])


def _error_of(told: Mapping[str, Any]) -> int | None:
    error = told.get("error")
    return None if error is None else int(error.get("err_code", 0))
