"""Questions to one broker by its management API: its view of the cluster, and of the queues.

Blocking. Must never be called from an event loop's thread.
"""

import base64
import contextlib
import http.client
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.runtime import Address

_USER: Final = base64.b64encode(b"guest:guest").decode()
_HEADERS: Final = {"Authorization": f"Basic {_USER}", "Content-Type": "application/json"}
_SUCCESS: Final = range(200, 300)


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
    return _exchange(there, "PUT", f"/api/policies/%2F/{name}", body, timeout_s) is not None


def _asked(there: Address, path: str, kind: Any, timeout_s: float) -> Any:
    answer = _exchange(there, "GET", path, None, timeout_s)
    if answer is not None:
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(answer, type=kind)
    return None


def _exchange(
    there: Address, method: str, path: str, body: bytes | None, timeout_s: float
) -> bytes | None:
    connection = http.client.HTTPConnection(there.host, there.port, timeout=timeout_s)
    try:
        connection.request(method, path, body, _HEADERS)
        answer = connection.getresponse()
        content = answer.read()
        return content if answer.status in _SUCCESS else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
