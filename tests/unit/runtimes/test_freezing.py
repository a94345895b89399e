"""A busy engine is asked again to freeze a container; any other refusal is taken at its word."""

from typing import Any
from unittest.mock import Mock

import docker.errors
import pytest

from splitbrain.runtimes.docker import pods
from splitbrain.runtimes.docker.pods import freeze

BUSY = docker.errors.APIError("OCI runtime pause failed: unable to freeze: unknown")


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "_WAIT_S", 0.0)


def container(*outcomes: Exception | None) -> Any:
    """One whose successive pauses end like this."""
    return Mock(pause=Mock(side_effect=outcomes))


def test_a_busy_engine_is_asked_again() -> None:
    frozen = container(BUSY, BUSY, None)
    freeze(frozen)
    assert frozen.pause.call_count == 3


def test_a_container_that_is_frozen_stays_so() -> None:
    frozen = container(docker.errors.APIError("container is already paused"))
    freeze(frozen)
    assert frozen.pause.call_count == 1


def test_a_container_that_is_frozen_while_it_is_asked_again_is_frozen() -> None:
    frozen = container(BUSY, docker.errors.APIError("container is already paused"))
    freeze(frozen)
    assert frozen.pause.call_count == 2


def test_an_engine_that_never_manages_is_believed_in_the_end() -> None:
    stubborn = container(*[BUSY] * 100)
    with pytest.raises(docker.errors.APIError, match="unable to freeze"):
        freeze(stubborn)
    assert 1 < stubborn.pause.call_count < 100


def test_any_other_refusal_is_taken_at_its_word() -> None:
    gone = container(docker.errors.NotFound("no such container"))
    with pytest.raises(docker.errors.NotFound):
        freeze(gone)
    assert gone.pause.call_count == 1
