"""What a pod does when the engine cannot do at once what it is asked for."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker.errors
import pytest

from contracts.errors import HarnessError
from contracts.names import NodeName
from contracts.runtime import NodeSpec
from runtimes.docker import pods
from runtimes.docker.pods import Pod


class Node:
    """The node's container in an engine that answers a pause as told."""

    name = "splitbrain-run-n1"

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked = 0

    def pause(self) -> None:
        self.asked += 1
        answer = self._answers.pop(0)
        if answer:
            raise docker.errors.APIError(answer)


def pod_of(node: Node) -> Pod:
    spec = cast("NodeSpec", SimpleNamespace(name=NodeName("n1"), path=Path("n1")))
    unused: Any = None
    pod = Pod(unused, unused, spec, "10.0.0.2")
    pod._node = cast("Any", node)
    return pod


BUSY = "OCI runtime pause failed: unable to freeze: unknown"


def test_a_node_amid_a_write_is_frozen_when_the_write_is_over() -> None:
    node = Node(BUSY, BUSY, "")
    pod_of(node).pause()
    assert node.asked == 3


def test_a_node_that_is_frozen_while_it_is_asked_again_is_frozen() -> None:
    node = Node(BUSY, "container is already paused")
    pod_of(node).pause()
    assert node.asked == 2


def test_a_node_that_never_stands_still_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "_FREEZING_S", 0.0)
    with pytest.raises(HarnessError, match="unable to freeze"):
        pod_of(Node(BUSY)).pause()


def test_any_other_refusal_is_told_at_once() -> None:
    node = Node("no such container", "")
    with pytest.raises(HarnessError, match="no such container"):
        pod_of(node).pause()
    assert node.asked == 1
