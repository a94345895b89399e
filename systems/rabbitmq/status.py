"""Questions to one broker by its management API: its view of the cluster, and of the queues.

Blocking. Must never be called from an event loop's thread.
"""

import base64
import contextlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.runtime import Address
from splitbrain.systems.questions import ask_by_http

_USER: Final = base64.b64encode(b"guest:guest").decode()
_HEADERS: Final = {"Authorization": f"Basic {_USER}", "Content-Type": "application/json"}


class NodeRow(msgspec.Struct, frozen=True):
    """One node, as a broker lists it."""

    name: str
    running: bool = False
    #: Nodes that it was cut off from and has not been joined with since.
    partitions: tuple[str, ...] = ()
    mem_used: int | None = None


class QueueRow(msgspec.Struct, frozen=True):
    """One queue, as a broker lists it."""

    name: str
    #: Of a queue that is led: ``running``, ``down``, ...
    state: str = ""
    #: Of a quorum queue: its members that take part.
    online: tuple[str, ...] = ()
    #: Of a mirrored queue: its mirrors that have everything.
    synchronised_slave_nodes: tuple[str, ...] = ()
    #: Handed out and not acknowledged, some seconds ago.
    messages_unacknowledged: int = 0


def ask_nodes(there: Address, timeout_s: float) -> Sequence[NodeRow] | None:
    """Return the cluster as a broker sees it; None where it does not answer."""
    return _asked(there, "/api/nodes", tuple[NodeRow, ...], timeout_s)


def ask_queues(there: Address, timeout_s: float) -> Sequence[QueueRow] | None:
    """Return the queues as a broker sees them; None where it does not answer."""
    return _asked(there, "/api/queues", tuple[QueueRow, ...], timeout_s)


def put_policy(there: Address, name: str, policy: dict[str, Any], timeout_s: float) -> bool:
    """Set a policy; returns whether the broker took it."""
    body = msgspec.json.encode(policy)
    path = f"/api/policies/%2F/{name}"
    return ask_by_http(there, "PUT", path, timeout_s, body, _HEADERS) is not None


def _asked(there: Address, path: str, kind: Any, timeout_s: float) -> Any:
    answer = ask_by_http(there, "GET", path, timeout_s, headers=_HEADERS)
    if answer is not None:
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(answer, type=kind)
    return None
