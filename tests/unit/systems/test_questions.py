"""Questions to all nodes at a time: who says nothing is left out, and who is frozen not awaited."""

import threading

from splitbrain.contracts.names import NodeName
from splitbrain.systems.questions import ask_all

N1, N2, N3 = NODES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))


def test_those_that_say_nothing_are_left_out() -> None:
    assert ask_all(NODES, lambda node: None if node == N2 else 1) == {N1: 1, N3: 1}
    assert ask_all((), lambda _node: 1) == {}


def test_a_frozen_node_is_not_waited_for_once_enough_is_known() -> None:
    thaw = threading.Event()

    def ask(node: NodeName) -> int:
        if node == N1:
            thaw.wait()
        return 1

    try:
        assert set(ask_all(NODES, ask, lambda told: len(told) == 2)) == {N2, N3}
    finally:
        thaw.set()
