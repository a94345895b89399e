"""Wrong wall clocks of nodes in containers: libfaketime from the pause container's image.

A volume of the pod holds the library and the file with the offset; the node sees it read-only, so
nothing is asked of the node's image but a C library that can load ours. The pause container writes.
"""

import shlex
from collections.abc import Callable, Iterable
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from splitbrain.contracts.arms import ClockWarp
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.pods import CLOCK_IN_NODE, CLOCK_IN_POD, Pod
from splitbrain.runtimes.lacking import refuse_timeless
from splitbrain.runtimes.waiting import on_all
from splitbrain.runtimes.wall_clocks import (
    HEAD_BYTES,
    LIBRARY,
    READING,
    clock_environment,
    offset_of_reading,
    why_no_clock,
)

_RIGHT = ClockWarp()
_READING_PATIENCE_S = 5.0
_READING_INTERVAL_S = 0.1


class DockerClocks:
    """Implements :class:`contracts.arms.ClockArm` for pods; a clock is read again for a while."""

    def __init__(
        self, pod: Callable[[NodeName], Pod], reading_patience_s: float = _READING_PATIENCE_S
    ) -> None:
        self._pod = pod
        self._reading_patience_s = reading_patience_s
        self._warped: set[NodeName] = set()

    def warp(self, node: NodeName, warp: ClockWarp) -> None:
        """Have the node's clock go so from now on."""
        pod = self._clocked(f"set wrong the clock of {node}", node)
        if pod.status() == "running":
            _refuse_timeless(pod)
        self._warped.add(node)
        _set(pod, warp)

    def unwarp(self, node: NodeName) -> None:
        """Let the node have the true time."""
        _set(self._clocked(f"set right the clock of {node}", node), _RIGHT)
        self._warped.discard(node)

    def offset_ms(self, node: NodeName) -> int:
        """How far ahead the clock is, read in the node's container beside the true one.

        Where the node does not run, it is the clock that it will see.
        """
        pod = self._clocked(f"read the clock of {node}", node)
        # Other faults end nodes, freeze them and start them again while they are asked.
        return Retrying(
            retry=retry_if_exception_type(HarnessError),
            stop=stop_after_delay(self._reading_patience_s),
            wait=wait_fixed(_READING_INTERVAL_S),
            reraise=True,
        )(_read, pod)

    def check(self, pods: Iterable[Pod]) -> None:
        """Raise CapabilityError for programs that go by the true time; after the deployment."""
        on_all(pods, lambda pod: _refuse_timeless(pod) if pod.status() == "running" else None)

    def heal_all(self) -> None:
        """Let all nodes have the true time."""
        for node in sorted(self._warped):
            self.unwarp(node)

    def _clocked(self, action: str, node: NodeName) -> Pod:
        pod = self._pod(node)
        if not pod.has_clock:
            raise CapabilityError(
                action,
                "runtime docker",
                "these nodes were deployed without clocks of their own",
                "Plans with clock faults deploy them so (DeploymentSpec.clocks)",
            )
        return pod


def _read(pod: Pod) -> int:
    runs = pod.status() == "running"
    container: Any = pod.node_container if runs else pod.pause_container
    folder = CLOCK_IN_NODE if runs else CLOCK_IN_POD
    environment = clock_environment(f"{folder}/{LIBRARY}", f"{folder}/now", {})
    action = f"read the clock of {pod.spec.name}"
    with engine_action(action, str(container.name)):
        done = container.exec_run(["sh", "-c", READING], environment=environment)
    printed = bytes(done.output).decode(errors="replace").strip()
    offset = offset_of_reading(printed)
    if offset is None:
        reading = shlex.quote(printed.replace("\n", " | "))
        raise HarnessError(
            action,
            str(container.name),
            f"its date program said {reading}",
            "The node's image needs sh, env and date for clock faults",
        )
    return offset


def _set(pod: Pod, warp: ClockWarp) -> None:
    command = ["clock.py", "set", f"{CLOCK_IN_POD}/now", str(warp.offset_us), str(warp.drift_ppm)]
    action = f"set the clock of {pod.spec.name}"
    pod.run(action, *command, next_step="Make room on the engine's disk")


def _refuse_timeless(pod: Pod) -> None:
    container: Any = pod.node_container
    script = f"grep -c {LIBRARY} /proc/1/maps; head -c {HEAD_BYTES} /proc/1/exe"

    def why_timeless() -> str | None:
        with engine_action(f"look at the program of {pod.spec.name}", str(container.name)):
            done = container.exec_run(["sh", "-c", script], environment={"LD_PRELOAD": ""})
        count, _, head = bytes(done.output).partition(b"\n")
        problem = why_no_clock(head, count.strip() not in (b"", b"0"))
        return problem if pod.status() == "running" else None

    refuse_timeless(pod.spec.name, "docker", why_timeless)
