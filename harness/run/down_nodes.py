"""Nodes that are down because the nemesis killed them, so that others' exits are told apart."""

import threading
from collections import Counter
from collections.abc import Iterable

from splitbrain.contracts.names import NodeName


class DownNodes:
    """Shared by the nemesis, which declares, and the watch over the nodes, which asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._down: set[NodeName] = set()
        self._changes: Counter[NodeName] = Counter()

    def expect(self, nodes: Iterable[NodeName]) -> None:
        """Note that these are about to be killed."""
        with self._lock:
            for node in nodes:
                self._down.add(node)
                self._changes[node] += 1

    def back(self, nodes: Iterable[NodeName]) -> None:
        """Note that these were seen running again."""
        with self._lock:
            for node in nodes:
                self._down.discard(node)
                self._changes[node] += 1

    def excuse(self, node: NodeName) -> tuple[bool, int]:
        """Whether the node may be down, and a number that changes with every change to that.

        Ask before and after looking at the node: an exit is unasked for only if both answers are
        the same and say that it may not be down.
        """
        with self._lock:
            return node in self._down, self._changes[node]

    def all(self) -> tuple[NodeName, ...]:
        """Nodes that are down by a fault now, sorted."""
        with self._lock:
            return tuple(sorted(self._down))
