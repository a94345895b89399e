"""Runtimes that are not there and arms that a runtime lacks refuse in one clear sentence."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from splitbrain.contracts import arms
from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes import registry
from splitbrain.runtimes.lacking import LackingClocks, LackingLinks
from splitbrain.runtimes.registry import capabilities, runtime, runtime_names


def test_an_unknown_runtime_is_a_usage_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no runtime 'podman'.*docker"):
        runtime("podman")


def test_no_node_can_be_deployed_in_the_simulated_runtime() -> None:
    assert "simulated" in runtime_names()
    assert {"partition", "kill", "pause", "power"} <= capabilities("simulated")
    with pytest.raises(CapabilityError, match=r"inside of the process.*splitbrain sim"):
        runtime("simulated")


def test_nothing_of_the_simulated_runtime_is_ever_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_RUNTIMES", {})
    assert registry.sweep_all() == []


def test_docker_and_local_are_runtimes() -> None:
    assert {"docker", "local"} <= set(runtime_names())


def test_an_absent_engine_is_one_sentence_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(HarnessError, match=r"no engine's socket.*make engine"):
        runtime("docker")


N1 = NodeName("n1")
ARMS: dict[type[Any], type[Any]] = {arms.LinkArm: LackingLinks, arms.ClockArm: LackingClocks}
#: Questions that have an honest answer.
ANSWERED: dict[str, Any] = {"shaped": {}}
WORDS: dict[str, Any] = {"link": Link(N1, NodeName("n2")), "node": N1}


def acts() -> Iterator[Any]:
    for protocol, lacking in ARMS.items():
        for name, act in inspect.getmembers(protocol, inspect.isfunction):
            if not name.startswith("_"):
                yield pytest.param(lacking, name, act, id=f"{protocol.__name__}.{name}")


@pytest.mark.parametrize(("lacking", "name", "act"), list(acts()))
def test_every_act_of_every_arm_is_refused_in_one_sentence(
    lacking: type[Any], name: str, act: Callable[..., Any]
) -> None:
    arm = lacking("paper", "Use --runtime docker")
    parameters = list(inspect.signature(act).parameters)[1:]
    arguments = [WORDS.get(parameter, 1) for parameter in parameters]
    if name in ANSWERED:
        assert getattr(arm, name)(*arguments) == ANSWERED[name]
        return
    with pytest.raises(CapabilityError, match=r"runtime paper\): .*\. Use --runtime docker$"):
        getattr(arm, name)(*arguments)


def test_the_reason_may_be_told() -> None:
    with pytest.raises(CapabilityError, match="nodes are plain processes"):
        LackingLinks("local", "Go on", "nodes are plain processes").reset([])
