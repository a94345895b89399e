"""What a pod asks of its engine again, because the engine was too early."""

from typing import Any, cast

import docker.errors
import pytest

from contracts.errors import HarnessError
from contracts.runtime import NodeSpec
from runtimes.docker import pods
from runtimes.docker.pods import Pod


class Container:
    name = "n1"

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.asked = 0

    def pause(self) -> None:
        self.asked += 1
        if self.refusals:
            raise docker.errors.APIError(self.refusals.pop(0))


def pod(container: Container, monkeypatch: pytest.MonkeyPatch) -> Pod:
    monkeypatch.setattr(pods, "_FREEZING_INTERVAL_S", 0.0)
    monkeypatch.setattr(Pod, "node_container", property(lambda _pod: container))
    nobody: Any = None
    spec = NodeSpec(cast("Any", "n1"), "image", (), {}, {}, "/data")
    return Pod(nobody, nobody, spec, "10.0.0.2")


def test_a_node_that_waits_for_its_disk_is_frozen_when_it_has_done_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    container = Container("pause failed: unable to freeze: unknown", "unable to freeze")
    pod(container, monkeypatch).pause()
    assert container.asked == 3


def test_what_is_paused_stays_so_and_any_other_refusal_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    container = Container("container is already paused", "no such container")
    node = pod(container, monkeypatch)
    node.pause()
    with pytest.raises(HarnessError, match="no such container"):
        node.pause()
    assert container.asked == 2
