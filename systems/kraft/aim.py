"""Whom a client that follows the leader asks next, and how long it waits for whom; pure.

Led by what the nodes say, round by round: no node is asked twice in a round, and one that took
connections and said nothing is left out for a while, whoever names it the leader.
"""

from collections.abc import Sequence
from typing import Final

from contracts.names import NodeName

#: Longest wait for one node's greeting while others could be asked instead; a frozen node's kernel
#: takes connections.
CONNECT_TIMEOUT_S: Final = 0.2
#: A node that took so long and did not greet is not asked for a while, whoever names it the leader.
AVOIDANCE_S: Final = 0.5
#: Pause after every node was asked in vain; an election takes some hundred milliseconds.
ROUND_PAUSE_S: Final = 0.02
#: The node gives up this much earlier than the client, so that its answer still arrives.
NODE_HEADSTART_S: Final = 0.1


class Aim:
    """One client's choice of nodes, over all of its operations."""

    def __init__(self, nodes: Sequence[NodeName], first: NodeName, avoidance: float) -> None:
        """``nodes`` in the order in which they are tried; one is left out for ``avoidance``."""
        self._nodes = tuple(nodes)
        self._avoidance = avoidance
        #: Until when a node is not asked while there are others.
        self._avoided: dict[NodeName, float] = {}
        #: Asked in the present round.
        self._asked: list[NodeName] = []
        #: Whom to ask.
        self.target = first

    def knows(self, node: NodeName) -> bool:
        """Whether it is one of the nodes that may be asked."""
        return node in self._nodes

    def begin(self) -> None:
        """A new operation: its first round."""
        self._asked.clear()

    def avoid(self, node: NodeName, now: float) -> None:
        """A node did not greet in time: the others name a frozen leader until they have another."""
        self._avoided[node] = now + self._avoidance

    def aim_elsewhere(self, hint: NodeName | None, now: float) -> bool:
        """Choose another target; whether the round was over, so that a pause is due.

        Args:
            hint: the leader that the node just asked names, None if it names none.
            now: on the clock of ``avoid``.
        """
        self._asked.append(self.target)
        choice = [node for node in self._nodes if self._avoided.get(node, 0) <= now]
        choice = choice or list(self._nodes)
        rest = [node for node in choice if node not in self._asked]
        if rest:
            self.target = hint if hint is not None and hint in rest else rest[0]
            return False
        self._asked.clear()
        self.target = hint if hint is not None and hint in choice else self._next_of(choice)
        return True

    def _next_of(self, choice: list[NodeName]) -> NodeName:
        """The first of these after the target, in turn."""
        place = self._nodes.index(self.target)
        turned = self._nodes[place + 1 :] + self._nodes[: place + 1]
        return next(node for node in turned if node in choice)
