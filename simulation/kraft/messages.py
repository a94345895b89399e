"""Messages between places of a simulated world of our nodes.

In a share of the worlds every message between nodes is a Kafka frame instead, made and read by the
real codec. Must never be changed on the way.
"""

from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum.identifiers import CorrelationId
from splitbrain.nodes.quorum.messages import FetchAnswer, FetchRequest
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest

#: Bytes of the size before a frame.
SIZE_BYTES: Final = 4


class PeerRequest(msgspec.Struct, frozen=True):
    """From one node to another; ``frame`` is set where it goes through the codec."""

    correlation: CorrelationId
    #: One of ``nodes.quorum.messages``; in a ``PeerCall`` one of the control plane.
    request: Any
    frame: bytes | None = None


class PeerCall(PeerRequest, frozen=True):
    """From a controller or a broker to a controller: no matter of the quorum."""


class PeerAnswer(msgspec.Struct, frozen=True):
    """The answer to a ``PeerRequest``."""

    correlation: CorrelationId
    #: Of the same kind as the request.
    answer: Any
    frame: bytes | None = None


class Knock(msgspec.Struct, frozen=True):
    """A client asks whether somebody is there; only a node that runs answers, with ``Greeting``."""


class Greeting(msgspec.Struct, frozen=True):
    """A node is there: the ``Hello`` of the client protocol."""


def describe(message: Any) -> tuple[str, str, bool]:
    """Name and detail of a message, and whether it carries nothing new."""
    match message:
        case PeerRequest(request=request):
            return message_name(request), _detail(request), _is_idle(request)
        case PeerAnswer(answer=None):
            return "Answer", "", False
        case PeerAnswer(answer=answer):
            return message_name(answer), _detail(answer), _is_idle(answer)
        case ClientRequest():
            value = "" if message.value is None else f" {message.value!r}"
            return message.kind, f"{message.key}{value} ({message.operation})", False
        case ClientAnswer():
            reason = f" ({message.reason})" if message.reason else ""
            return "client answer", f"{message.outcome} {message.result!r}{reason}", False
        case _:
            return type(message).__name__.lower(), "", True


def message_name(message: object) -> str:
    """Return the name by which a story tells a message of the quorum."""
    return type(message).__name__.removesuffix("Request")


def _is_idle(message: object) -> bool:
    """Return a fetch that has nothing to tell, or is not answered with anything."""
    match message:
        case FetchAnswer():
            news = (message.batches, message.diverging, message.snapshot_id, message.error.value)
            return not any(news)
        case FetchRequest():
            return True
        case _:
            return False


def _detail(message: object) -> str:
    parts: list[str] = []
    for field in getattr(message, "__struct_fields__", ()):
        value = getattr(message, field)
        if isinstance(value, bytes) or field in {"cluster_id", "batches"}:
            continue
        if value is not None and value not in ((), ""):
            parts.append(f"{field} {value}")
    return ", ".join(parts)
