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
from splitbrain.contracts.system import LeaderView


class Claim(Protocol):
    """One node's view of itself."""

    @property
    def leads(self) -> bool:
        """Whether it believes that it leads."""
        ...

    @property
    def epoch(self) -> int:
        """The newest epoch that it knows."""
        ...


_View = TypeVar("_View")
_Claim = TypeVar("_Claim", bound=Claim)
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
    *,
    refusals: bool = False,
) -> bytes | None:
    """Return the body of an answer that says success, or of any; None where there is none."""
    connection = http.client.HTTPConnection(there.host, there.port, timeout=timeout_s)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        return content if refusals or answer.status in _SUCCESS else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def not_yet(system: str, action: str, problem: str) -> HarnessError:
    """Return the refusal of a cluster that is not as it should be, or not yet."""
    return HarnessError(
        action, system, problem, "Look at the nodes' output in the run folder, nodes/<n>/."
    )


def ask_leader(nodes: Sequence[NodeName], ask: Callable[[NodeName], _Claim | None]) -> LeaderView:
    """Ask the nodes; of several that believe to lead the highest epoch wins."""

    def enough(views: Mapping[NodeName, _Claim]) -> bool:
        # A majority was asked, and nobody in it knows an epoch above the claimed one.
        epochs = [view.epoch for view in views.values()]
        claims = [view.epoch for view in views.values() if view.leads]
        return 2 * len(views) > len(nodes) and max(claims, default=-1) == max(epochs)

    views = ask_all(nodes, ask, enough)
    claims = [(view.epoch, node) for node, view in views.items() if view.leads]
    if not claims:
        return LeaderView(None, max((view.epoch for view in views.values()), default=None))
    epoch, node = max(claims)
    return LeaderView(node, epoch)


def views_under_one_leader(
    system: str, action: str, nodes: Sequence[NodeName], ask: Callable[[NodeName], _Claim | None]
) -> Mapping[NodeName, _Claim]:
    """Return every node's view; raise HarnessError unless all serve and one of them leads."""
    views = ask_all(nodes, ask)
    if silent := [node for node in nodes if node not in views]:
        raise not_yet(system, action, f"{', '.join(silent)} does not serve")
    leaders = sorted(node for node, view in views.items() if view.leads)
    if len(leaders) != 1:
        claims = f"{' and '.join(leaders)} lead" if leaders else "nobody leads"
        raise not_yet(system, action, claims)
    return views
