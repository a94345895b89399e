"""Whom a client that follows the leader asks next, and how long it waits for whom; pure.

Led by what the nodes say, round by round: no node is asked twice in a round, and one that took
connections and said nothing is left out for a while, whoever names it the leader.
"""

from collections.abc import Sequence
from typing import Final

from splitbrain.contracts.names import NodeName

#: Longest wait for one node's greeting while others could be asked instead; a frozen node's kernel
#: takes connections.
CONNECT_TIMEOUT_US: Final = 200_000
#: A node that took so long and did not greet is not asked for a while, whoever names it the leader.
AVOIDANCE_US: Final = 500_000
#: Pause after every node was asked in vain; an election takes some hundred milliseconds.
ROUND_PAUSE_US: Final = 20_000


class Aim:
    """One client's choice of nodes, over all of its operations."""

    def __init__(self, nodes: Sequence[NodeName], first: NodeName) -> None:
        """``nodes`` in the order in which they are tried, beginning with the ``first``."""
        self._nodes = tuple(nodes)
        #: Until when a node is not asked while there are others.
        self._avoided: dict[NodeName, int] = {}
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

    def avoid(self, node: NodeName, now: int) -> None:
        """A node did not greet in time: the others name a frozen leader until they have another."""
        self._avoided[node] = now + AVOIDANCE_US

    def aim_elsewhere(self, hint: NodeName | None, now: int) -> bool:
        """Choose another target; whether the round was over, so that a pause is due.

        Args:
            hint: the leader that the node just asked names, None if it names none.
            now: microseconds, on the clock of ``avoid``.
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
