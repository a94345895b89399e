"""Changes of a NATS cluster's membership, asked for in the system's own account.

A removed server's program runs on without JetStream. For some minutes servers let nobody in under
the name of a removed one, so that another one comes in its place under a name of its own.

Source: NATS' pages on the JetStream API and on the removal of peers, and its server's pull request
6815.
"""

from collections.abc import Callable

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.system import CLIENT_PORT
from splitbrain.systems.nats.status import ask_members, problem_with_removal
from splitbrain.systems.questions import Endpoints, ask_all

_TIMEOUT_S = 3.0


class NatsMembers:
    """Implements :class:`contracts.arms.MemberArm`."""

    def __init__(
        self,
        runtime: Endpoints,
        monitor_port: str,
        name_of: Callable[[NodeName], str],
        rename: Callable[[NodeName], object],
    ) -> None:
        """``name_of`` returns a node's server's name, ``rename`` gives its next start another."""
        self._runtime, self._monitor_port = runtime, monitor_port
        self._name_of, self._rename = name_of, rename

    def remove(self, node: NodeName) -> None:
        """See :class:`contracts.arms.MemberArm`."""
        problems: list[str] = []
        for other in self._others(node):
            there = self._runtime.endpoint(other, CLIENT_PORT)
            problem = problem_with_removal(there, self._name_of(node), _TIMEOUT_S)
            if problem is None:
                return
            problems.append(f"{other}: {problem}")
        raise HarnessError(
            "remove a server of NATS",
            node,
            "; ".join(problems),
            "Look at the nodes' output in the run folder",
        )

    def add(self, node: NodeName) -> None:
        """See :class:`contracts.arms.MemberArm`: its start does it."""
        self._rename(node)

    def is_member(self, node: NodeName) -> bool | None:
        """See :class:`contracts.arms.MemberArm`."""
        seen = ask_all(
            self._others(node),
            lambda other: ask_members(
                self._runtime.endpoint(other, self._monitor_port), _TIMEOUT_S
            ),
        )
        if any(self._name_of(node) in members for members in seen.values()):
            return True
        is_whole = any(None not in members for members in seen.values())
        return False if is_whole else None

    def _others(self, node: NodeName) -> tuple[NodeName, ...]:
        return tuple(other for other in self._runtime.nodes() if other != node)
