"""Runtimes that are not there are refused by one clear sentence."""

import pytest

from contracts.errors import CapabilityError, HarnessError, UsageError
from runtimes.registry import runtime, runtime_names


def test_an_unknown_runtime_is_a_usage_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no runtime 'podman'.*docker"):
        runtime("podman")


def test_a_runtime_of_a_later_version_is_refused_as_not_yet_there() -> None:
    with pytest.raises(CapabilityError, match="does not have it yet"):
        runtime("simulated")


def test_docker_and_local_are_runtimes() -> None:
    assert {"docker", "local"} <= set(runtime_names())


def test_an_engine_that_is_away_is_one_sentence_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(HarnessError, match=r"no engine's socket.*make engine"):
        runtime("docker")
