"""Changes of etcd's membership, by requests to the members that are left.

A removed member never comes back under its number: it is added as a new one, with an empty disk,
and must be told to join those that are there (``initial-cluster-state``).

Sources: etcd's pages on runtime reconfiguration and on its configuration file, and ``rpc.proto``.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.system import CLIENT_PORT
from splitbrain.systems.questions import Endpoints, ask_by_http

_TIMEOUT_S = 3.0


class _Member(msgspec.Struct, frozen=True):
    number: str = msgspec.field(name="ID")
    peer_urls: tuple[str, ...] = msgspec.field(name="peerURLs", default=())


class _Members(msgspec.Struct, frozen=True):
    """An answer: the members as they are then, or why it was refused."""

    members: tuple[_Member, ...] = ()
    message: str = ""


class EtcdMembers:
    """Implements :class:`contracts.arms.MemberArm`."""

    def __init__(
        self,
        runtime: Endpoints,
        urls: Mapping[NodeName, str],
        join: Callable[[NodeName], object],
    ) -> None:
        """``urls`` are those that members reach a node by.

        ``join`` has a node's next start join the cluster that is there.
        """
        self._runtime, self._urls, self._join = runtime, urls, join

    def remove(self, node: NodeName) -> None:
        """See :class:`contracts.arms.MemberArm`."""
        found = self._found(node)
        if found is not None:
            self._ask(node, "remove", {"ID": found.number})

    def add(self, node: NodeName) -> None:
        """See :class:`contracts.arms.MemberArm`."""
        if self._found(node) is None:
            self._ask(node, "add", {"peerURLs": [self._urls[node]]})
        self._join(node)

    def is_member(self, node: NodeName) -> bool | None:
        """See :class:`contracts.arms.MemberArm`."""
        try:
            return self._found(node) is not None
        except HarnessError:
            return None

    def _found(self, node: NodeName) -> _Member | None:
        told = self._ask(node, "list", {"linearizable": True})
        url = self._urls[node]
        return next((each for each in told.members if url in each.peer_urls), None)

    def _ask(self, node: NodeName, action: str, request: Mapping[str, Any]) -> _Members:
        """Ask one of the others after another; all answers have the members as they are then."""
        body = msgspec.json.encode(request)
        problems: list[str] = []
        for other in self._runtime.nodes():
            if other == node:
                continue
            there = self._runtime.endpoint(other, CLIENT_PORT)
            path = f"/v3/cluster/member/{action}"
            answer = ask_by_http(there, "POST", path, _TIMEOUT_S, body, refusals=True)
            told = _Members(message="no answer")
            if answer is not None:
                with contextlib.suppress(*UNREADABLE):
                    told = msgspec.json.decode(answer, type=_Members)
            if told.members:
                return told
            problems.append(f"{other}: {told.message or 'unexpected answer'}")
        raise HarnessError(
            f"have etcd {action} a member" if action != "list" else "list the members of etcd",
            node,
            "; ".join(problems),
            "Look at the nodes' output in the run folder",
        )
