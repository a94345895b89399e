"""Runtimes that are not there are refused by one clear sentence."""

import pytest

from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError
from splitbrain.runtimes import registry
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


def test_an_engine_that_is_away_is_one_sentence_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(HarnessError, match=r"no engine's socket.*make engine"):
        runtime("docker")
