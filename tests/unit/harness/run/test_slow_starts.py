"""A node that takes its time to meet a changed file gets it back all the same."""

import pytest

from splitbrain.contracts.names import NodeName
from tests.unit.harness.run.armed_world import ArmedWorld
from tests.unit.harness.run.driven import Driven, fault

N2 = NodeName("n2")
#: One more than the looks there are before the heal.
_ASKED_BEFORE_IT_READS = 9


class SlowStarts(ArmedWorld):
    """Nodes that run a while before they read their files, and end where these were changed."""

    left: int = 0

    def start(self, node: NodeName) -> None:
        if self.states[node] == "exited":
            self.left = _ASKED_BEFORE_IT_READS
        super().start(node)

    def answers(self, node: NodeName, _timeout_s: float) -> bool:
        if node == N2 and self.left:
            self.left -= 1
            if not self.left and self.files[N2] != b"kept":
                self.states[N2] = "exited"
            return False
        return super().answers(node, _timeout_s)


@pytest.mark.parametrize("kind", ["flip", "truncate"])
def test_a_node_that_refuses_its_file_late_is_healed(kind: str) -> None:
    # Seen on a busy machine: it ended as corrupt right after the heal had found it running.
    run = Driven([fault(kind, "n2", duration_ms=2000)], kind=SlowStarts)
    assert run.failure is None
    assert run.world.files[N2] == b"kept"
    assert run.world.states[N2] == "running"
