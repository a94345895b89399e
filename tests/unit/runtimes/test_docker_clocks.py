"""Reading a node's clock while other faults end the node."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.docker.clocks import DockerClocks
from splitbrain.runtimes.docker.pods import CLOCK_IN_NODE, CLOCK_IN_POD, Pod

N1 = NodeName("n1")
AHEAD_3_S = b"1000000000\n4000002000\n1000004000\n"
GONE = b"cannot exec in a stopped container"


class Container:
    """Gives one answer after the other, and remembers from which folder it was to read."""

    def __init__(self, name: str, *answers: bytes) -> None:
        self.name = name
        self._answers = list(answers)
        self.folders: list[str] = []

    def exec_run(self, _words: list[str], environment: dict[str, str]) -> Any:
        self.folders += [value.rpartition("/")[0] for value in environment.values() if "/" in value]
        return SimpleNamespace(output=self._answers.pop(0))


def clocks_of(
    node: Container, pause: Container, *statuses: str, patience_s: float = 30.0
) -> DockerClocks:
    coming = iter(statuses)
    pod = SimpleNamespace(
        spec=SimpleNamespace(name=N1),
        has_clock=True,
        node_container=node,
        pause_container=pause,
        status=lambda: next(coming),
    )
    return DockerClocks(lambda _node: cast("Pod", pod), patience_s)


def test_a_running_node_is_asked_itself() -> None:
    node, pause = Container("node", AHEAD_3_S), Container("pause")
    assert clocks_of(node, pause, "running").offset_ms(N1) == 3_000
    assert set(node.folders) == {CLOCK_IN_NODE}
    assert pause.folders == []


@pytest.mark.parametrize("then", ["exited", "paused"])
def test_a_node_that_was_ended_while_it_was_asked_has_the_clock_that_it_will_see(then: str) -> None:
    node, pause = Container("node", GONE), Container("pause", AHEAD_3_S)
    assert clocks_of(node, pause, "running", then).offset_ms(N1) == 3_000
    assert set(pause.folders) == {CLOCK_IN_POD}


def test_a_node_that_was_started_again_while_it_was_asked_is_asked_again() -> None:
    node = Container("node", b"1000000000\n4000002000\n", b"", AHEAD_3_S)
    running = ["running"] * 3
    assert clocks_of(node, Container("pause"), *running).offset_ms(N1) == 3_000


def test_a_running_node_that_cannot_tell_is_refused() -> None:
    node, pause = Container("node", b"sh: date: not found"), Container("pause")
    with pytest.raises(HarnessError, match=r"needs sh, env and date"):
        clocks_of(node, pause, "running", patience_s=0.0).offset_ms(N1)
