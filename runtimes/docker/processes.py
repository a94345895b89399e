"""Processes of nodes in containers: ended in order, starved of processor and memory.

Limits are those of the container's control group, set and read back through the engine, and read
in the kernel where its files can be seen. They outlast a kill and a start of the node.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker.errors
import requests.exceptions
from docker import DockerClient
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from splitbrain.contracts.arms import MemoryState
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.control_groups import FILES, PERIOD_US, memory_kills, memory_limit
from splitbrain.runtimes.control_groups import cpu_share as share_of
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.pods import Pod
from splitbrain.runtimes.docker.sampling import CGROUPS, control_group, is_leaving
from splitbrain.runtimes.waiting import await_true

_NO_QUOTA = -1
_BYTES_PER_MIB = 1 << 20
#: Part of the engine's words where the kernel cannot take away memory in use.
_IN_USE = ("current usage", "resource busy")
#: Part of them where the container ends before the engine has noticed.
_ENDING = "container not running"
_ENDING_PATIENCE_S = 5.0
_ENDING_INTERVAL_S = 0.05


class DockerProcesses:
    """Implements :class:`contracts.arms.ProcessArm` for pods."""

    def __init__(
        self, client: DockerClient, pod: Callable[[NodeName], Pod], kill: Callable[[NodeName], None]
    ) -> None:
        self._client = client
        self._pod = pod
        self._kill = kill
        self._throttled: set[NodeName] = set()
        self._limited: set[NodeName] = set()
        #: Of the engine's machine; asked once.
        self._machine_bytes: int | None = None

    def terminate(self, node: NodeName, patience_s: float) -> int | None:
        """SIGTERM for the node's first process; its exit code, None where it did not end in time.

        One that has ended before tells how.
        """
        pod = self._pod(node)
        container: Any = pod.node_container
        with engine_action(f"terminate {node}", str(container.name)):
            try:
                container.kill("SIGTERM")
            except docker.errors.APIError as error:
                if "is not running" not in str(error):
                    raise
            try:
                return int(container.wait(timeout=patience_s)["StatusCode"])
            except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError):
                # The wait's own time is over, or the engine is gone: that the next line tells.
                return pod.exit_code()

    # --- processor ----------------------------------------------------------------------------

    def throttle(self, node: NodeName, cpu_share: float) -> None:
        """Let all of the node's processes have this share of one processor; also once restarted."""
        self._throttled.add(node)
        self._update(
            f"throttle {node}", node, cpu_period=PERIOD_US, cpu_quota=round(cpu_share * PERIOD_US)
        )

    def unthrottle(self, node: NodeName) -> None:
        """Let the node have what it can get."""
        self._update(f"end the throttle of {node}", node, cpu_period=PERIOD_US, cpu_quota=_NO_QUOTA)
        self._throttled.discard(node)

    def throttled(self, node: NodeName) -> float | None:
        """The share that the kernel enforces now; where its files are not here, by the engine."""
        pod = self._pod(node)
        state = pod.status()
        attributes: Any = pod.node_container.attrs
        if state in ("running", "paused"):
            seen = enforced_share(int(attributes["State"]["Pid"]))
            if seen is not None:
                return seen or None
        quota = int(attributes["HostConfig"].get("CpuQuota") or 0)
        period = int(attributes["HostConfig"].get("CpuPeriod") or 0) or PERIOD_US
        return quota / period if quota > 0 else None

    # --- memory -------------------------------------------------------------------------------

    def limit_memory(self, node: NodeName, limit_mib: int) -> None:
        """Let the node have so much memory and no swap; also once restarted.

        The kernel takes no memory away that is in use: a node that uses more already is killed
        here, as the kernel kills one that asks for more.
        """
        self._limited.add(node)
        action, size = f"limit the memory of {node}", limit_mib * _BYTES_PER_MIB
        try:
            self._update(action, node, mem_limit=size, memswap_limit=size)
        except HarnessError as error:
            if not any(sign in str(error) for sign in _IN_USE):
                raise
            self._kill(node)
            self._update(action, node, mem_limit=size, memswap_limit=size)

    def unlimit_memory(self, node: NodeName) -> None:
        """Let it have what it was deployed with; without a limit, all that this machine has.

        Returns when nobody whom the kernel has ended under the limit is still on the way out, so
        that a start after it finds the node as it is.
        """
        size = self._deployed_memory(node)
        self._update(f"end the memory limit of {node}", node, mem_limit=size, memswap_limit=size)
        self._limited.discard(node)
        await_true(lambda: not self._is_ending(node), _ENDING_PATIENCE_S, _ENDING_INTERVAL_S)

    def memory(self, node: NodeName) -> MemoryState:
        """Return the limits in force, by the engine where the kernel's files are not here.

        Of a life that is over the engine tells whether the kernel has ended it; what it tells of
        one that goes on is about the life before.
        """
        pod = self._pod(node)
        state = pod.status()
        attributes: Any = pod.node_container.attrs
        size = int(attributes["HostConfig"].get("Memory") or 0)
        was_ended = bool(attributes["State"]["OOMKilled"])
        if state in ("running", "paused"):
            seen = enforced_memory(int(attributes["State"]["Pid"]))
            size, was_ended = (size, False) if seen is None else seen
        # The kernel rounds to pages.
        is_limited = 0 < size < self._deployed_memory(node) - _BYTES_PER_MIB
        return MemoryState(
            limit_mib=size / _BYTES_PER_MIB if is_limited else None, was_ended=was_ended
        )

    def _is_ending(self, node: NodeName) -> bool:
        """Whether the kernel has ended the node, and the engine has not noticed yet."""
        pod = self._pod(node)
        if pod.status() != "running":
            return False
        attributes: Any = pod.node_container.attrs
        return is_leaving(int(attributes["State"]["Pid"]), "memory") or self.memory(node).was_ended

    def _deployed_memory(self, node: NodeName) -> int:
        """Bytes that the node may have without a fault."""
        spec_mib = self._pod(node).spec.memory_limit_mib
        if spec_mib is not None:
            return spec_mib * _BYTES_PER_MIB
        if self._machine_bytes is None:
            with engine_action("ask the engine how much memory there is", "docker"):
                engine: Any = self._client.info()
            self._machine_bytes = int(engine["MemTotal"])
        return self._machine_bytes

    def heal_all(self) -> None:
        """Undo all limits."""
        for node in sorted(self._throttled):
            self.unthrottle(node)
        for node in sorted(self._limited):
            self.unlimit_memory(node)

    def _update(self, action: str, node: NodeName, **limits: int) -> None:
        """Asked again where the node ends at that moment and the engine finds nothing to update."""
        container = self._pod(node).node_container
        api: Any = self._client.api
        asking = Retrying(
            retry=retry_if_exception(lambda error: _ENDING in str(error)),
            stop=stop_after_delay(_ENDING_PATIENCE_S),
            wait=wait_fixed(_ENDING_INTERVAL_S),
            reraise=True,
        )
        with engine_action(action, str(container.name)):
            asking(lambda: api.update_container(container.id, **limits))


def enforced_share(
    process: int, proc: Path = Path("/proc"), cgroups: Path = CGROUPS
) -> float | None:
    """Return the share of one processor that a process's control group may have.

    0: no limit; None: the kernel's files are not to be seen here.
    """
    group = control_group(process, "cpu", FILES["cpu"], proc, cgroups)
    try:
        return None if group is None else share_of(group) or 0.0
    except OSError:
        return None  # the group went away with its process


def enforced_memory(
    process: int, proc: Path = Path("/proc"), cgroups: Path = CGROUPS
) -> tuple[int, bool] | None:
    """Bytes that a process's control group may have, and whether the kernel ended a part of it.

    0: no limit; None: the kernel's files are not to be seen here.
    """
    group = control_group(process, "memory", FILES["memory"], proc, cgroups)
    try:
        return None if group is None else (memory_limit(group) or 0, memory_kills(group) > 0)
    except OSError:
        return None  # the group went away with its process
