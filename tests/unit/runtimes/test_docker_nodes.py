"""Limits, clocks and watch of containers, against an engine that answers as real ones did."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker.errors
import pytest

from splitbrain.contracts.arms import MemoryState
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.runtimes.docker import processes, watchdog
from splitbrain.runtimes.docker.clocks import DockerClocks
from splitbrain.runtimes.docker.pods import CLOCK_IN_NODE, CLOCK_IN_POD, Pod
from splitbrain.runtimes.docker.processes import DockerProcesses

N1 = NodeName("n1")
MIB = 1 << 20
MACHINE_BYTES = 1024 * MIB


class Engine:
    """One container; each refusal is said once, the first first."""

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.calls: list[str] = []
        self.limit_bytes = 0
        self.state: dict[str, Any] = {"Pid": 0, "OOMKilled": False}
        self.is_running = True
        # It is the client, its API, the pod, its container and its spec in one.
        self.api = self.node_container = self.spec = self
        self.id = self.name = "n1"
        self.memory_limit_mib = None

    @property
    def attrs(self) -> dict[str, Any]:
        return {"HostConfig": {"Memory": self.limit_bytes}, "State": self.state}

    def info(self) -> dict[str, int]:
        return {"MemTotal": MACHINE_BYTES}

    def status(self) -> str:
        return "running" if self.is_running else "exited"

    def update_container(self, _id: str, mem_limit: int, memswap_limit: int) -> None:
        assert mem_limit == memswap_limit
        self.calls.append("update")
        if self.refusals:
            raise docker.errors.APIError(self.refusals.pop(0))
        self.limit_bytes = mem_limit

    def kill(self, _node: NodeName) -> None:
        self.calls.append("kill")
        self.is_running = False


def arm(engine: Any) -> DockerProcesses:
    return DockerProcesses(engine, lambda _node: engine, engine.kill)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_ENDING_INTERVAL_S", 0.0)


def test_a_node_that_uses_more_is_killed_and_limited() -> None:
    engine = Engine("unable to set memory limit to 9 (current usage: 19)")
    arm(engine).limit_memory(N1, 9)
    assert engine.calls == ["update", "kill", "update"]
    assert arm(engine).memory(N1) == MemoryState(9, was_ended=False)


def test_a_limit_on_a_container_that_ends_at_that_moment_is_asked_for_again() -> None:
    engine = Engine(
        "runc did not terminate successfully: container not running", "container not running"
    )
    arm(engine).unlimit_memory(N1)
    assert engine.calls == ["update"] * 3
    assert engine.limit_bytes == MACHINE_BYTES
    assert arm(engine).memory(N1) == MemoryState(None, was_ended=False)


def test_any_other_refusal_is_told() -> None:
    with pytest.raises(HarnessError, match="no such container"):
        arm(Engine("no such container")).limit_memory(N1, 9)


def test_what_ended_the_life_before_says_nothing_of_the_one_that_goes_on() -> None:
    engine = Engine()
    engine.state["OOMKilled"] = True
    engine.is_running = False
    assert arm(engine).memory(N1).was_ended
    engine.is_running = True
    assert not arm(engine).memory(N1).was_ended


@pytest.mark.parametrize("sign", ["enforced_memory", "is_leaving"])
def test_a_lifted_limit_waits_for_killed_nodes(monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    engine = Engine()
    looks: list[int] = []

    def seen(process: int, *_words: str) -> Any:
        looks.append(process)
        # The kernel has ended it; the engine notices at the third look.
        engine.is_running = len(looks) < 3
        return (engine.limit_bytes, True) if sign == "enforced_memory" else True

    monkeypatch.setattr(processes, sign, seen)
    arm(engine).unlimit_memory(N1)
    assert not engine.is_running


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


@pytest.mark.parametrize(
    ("running", "refusal"), [([3, 1, 0], None), ([3], "some still ran")], ids=["ended", "go on"]
)
def test_nodes_are_called_stopped_when_none_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, running: list[int], refusal: str | None
) -> None:
    def look(*_: Any) -> int:
        return running.pop(0) if len(running) > 1 else running[0]

    monkeypatch.setattr(watchdog, "connect", lambda: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(watchdog, "_LOOK_INTERVAL_S", 0.001)
    monkeypatch.setattr(watchdog, "_LOOKING_S_MAX", 0.05 if refusal else 60.0)
    monkeypatch.setattr(watchdog, "stop_nodes", look)
    with pytest.raises(HarnessError, match=refusal) if refusal else nullcontext():
        watchdog.stop_run(RunId("r"), tmp_path)
