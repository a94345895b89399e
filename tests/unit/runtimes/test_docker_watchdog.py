"""What the engine's part of the watchdog says of nodes that go on, without an engine."""

from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.runtimes.docker import watchdog


class Client:
    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "connect", Client)
    monkeypatch.setattr(watchdog, "_LOOK_INTERVAL_S", 0.001)


def stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, running: list[int]) -> None:
    def look(*_: Any) -> int:
        return running.pop(0) if len(running) > 1 else running[0]

    monkeypatch.setattr(watchdog, "stop_nodes", look)
    watchdog.stop_run(RunId("r"), tmp_path)


def test_nodes_that_end_are_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stop(monkeypatch, tmp_path, [3, 1, 0])


def test_nodes_that_go_on_are_never_called_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(watchdog, "_LOOKING_S_MAX", 0.05)
    with pytest.raises(HarnessError, match="some still ran"):
        stop(monkeypatch, tmp_path, [3])
