"""Questions to nodes from a thread of the harness, to all at a time or by HTTP; for all systems.

Blocking. Must never be called from an event loop's thread.
"""

import http.client
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, Protocol, TypeVar

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address

_View = TypeVar("_View")
_SUCCESS: Final = range(200, 300)


class Endpoints(Protocol):
    """The part of a runtime that is needed to talk to nodes."""

    def nodes(self) -> Sequence[NodeName]:
        """All nodes."""
        ...

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Where the named port of a node is reached."""
        ...


def ask_all(
    nodes: Sequence[NodeName],
    ask: Callable[[NodeName], _View | None],
    enough: Callable[[Mapping[NodeName, _View]], bool] | None = None,
) -> dict[NodeName, _View]:
    """Ask every node; those of which ``ask`` makes None are left out.

    Returns early once ``enough`` says so of the answers that are there: a frozen or isolated node
    would otherwise cost the whole time that ``ask`` gives it.
    """
    answers: dict[NodeName, _View] = {}
    if not nodes:
        return answers
    pool = ThreadPoolExecutor(len(nodes), thread_name_prefix="status")
    try:
        requests = {pool.submit(ask, node): node for node in nodes}
        for future in as_completed(requests):
            view = future.result()
            if view is not None:
                answers[requests[future]] = view
                if enough is not None and enough(answers):
                    break
    finally:
        pool.shutdown(wait=False)  # each thread ends by its own deadline
    return answers


def ask_by_http(
    there: Address,
    method: str,
    path: str,
    timeout_s: float,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes | None:
    """Return the body of an answer that says success; None where there is none."""
    connection = http.client.HTTPConnection(there.host, there.port, timeout=timeout_s)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        return content if answer.status in _SUCCESS else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def not_yet(system: str, action: str, problem: str) -> HarnessError:
    """Return the refusal of a cluster that is not as it should be, or not yet."""
    return HarnessError(
        action, system, problem, "Look at the nodes' output in the run folder, nodes/<n>/."
    )
