"""The container that holds the disks of a run's nodes, and what it can be asked.

The work is done by ``docker/pod/disks.py`` inside of it, with the capability to mount, loop devices
and nothing else of the host's; so the harness itself needs no root, only the engine. The images lie
in a volume of the run's, and everything carries the run's labels.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import docker.errors
from docker import DockerClient
from docker.models.containers import Container
from docker.types import LogConfig

from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.names import ROLE_LABEL, RunMark
from splitbrain.runtimes.waiting import await_true

_PROGRAM = "/opt/splitbrain/disks.py"
#: Without these there are no mounts; with them nothing of the host's but its loop devices.
RIGHTS: dict[str, Any] = {
    "cap_add": ["SYS_ADMIN", "MKNOD"],
    "security_opt": ["apparmor=unconfined", "seccomp=unconfined", "label=disable"],
    "device_cgroup_rules": ["b 7:* rwm", "c 10:237 rwm"],
}
_READY = "/dev/shm/splitbrain-ready"  # noqa: S108 - in a container of its own
_READY_S = 20.0
_READY_INTERVAL_S = 0.02


class DiskKeeper:
    """Makes and asks the container of one run; ``image_id`` is of the pods' image."""

    def __init__(self, client: DockerClient, mark: RunMark, image_id: str) -> None:
        self._client = client
        self._mark = mark
        self._image_id = image_id
        self._container: Container | None = None
        self._host_folder = ""

    def make(self, nodes: Sequence[NodeName], size_mib: int) -> None:
        """Start the container and make an empty disk for each node.

        Raises:
            CapabilityError: this engine or kernel has no such disks; says why.
        """
        volume, folder = self._mark.disks(), folder_of(self._mark)
        labels = {**self._mark.labels(), ROLE_LABEL: "disks"}
        client: Any = self._client
        try:
            made = client.volumes.create(name=volume, labels=labels)
            self._host_folder = str(made.attrs["Mountpoint"])
            self._container = client.containers.create(
                self._image_id,
                entrypoint=["python3", _PROGRAM, "hold", folder],
                name=volume,
                labels=labels,
                network_mode="none",
                volumes={volume: {"bind": folder, "mode": "rw"}},
                log_config=LogConfig(type="json-file"),
                **RIGHTS,
            )
            assert self._container is not None
            self._container.start()
            await_ready(self._container)
            self.ask("make the nodes' disks", "make", str(size_mib), *nodes)
        except (docker.errors.APIError, HarnessError) as error:
            raise CapabilityError(
                "give each node a disk of its own",
                volume,
                error.problem if isinstance(error, HarnessError) else str(error.explanation),
                "Leave the disk faults out of --nemesis; `splitbrain doctor` says what can be had",
            ) from error

    def device(self, node: NodeName) -> str:
        """Path by which the engine finds a node's device, whichever it is by then."""
        return f"{self._host_folder}/{node}.device"

    def ask(self, action: str, command: str, *arguments: str) -> Any:
        """Have the container do one thing; what it answered.

        The command and its words are those of ``disks.py``, the action is for people.

        Raises:
            HarnessError: it could not.
        """
        if self._container is None:
            raise HarnessError(action, "disks", "no disks were made", "Deploy the cluster before")
        return ask(self._container, folder_of(self._mark), action, command, *arguments)


def folder_of(mark: RunMark) -> str:
    """Where the container has the images; names the run to whoever lists loop devices."""
    return f"/disks/{mark.network()}"


def ask(container: Container, folder: str, action: str, command: str, *arguments: str) -> Any:
    """As :meth:`DiskKeeper.ask`, of any container that holds disks."""
    answer = _run(container, folder, action, command, *arguments)
    if not answer:
        # A busy engine may end a command that succeeded without having passed its output on.
        problem = "the engine lost the answer"
        raise HarnessError(action, command, problem, "Try again when the machine is less busy")
    return json.loads(answer)


def _run(container: Container, folder: str, action: str, command: str, *arguments: str) -> str:
    """Have the container do one thing; the last line that it printed."""
    engine: Any = container
    with engine_action(action, str(container.name)):
        result = engine.exec_run(["python3", _PROGRAM, command, folder, *arguments])
    text = bytes(result.output).decode(errors="replace").strip()
    last = text.splitlines()[-1] if text else ""
    if result.exit_code != 0:
        raise HarnessError(
            action,
            " ".join([command, *arguments[:1]]),
            last or f"exit code {result.exit_code}",
            "The kernel's own log (dmesg) says more",
        )
    return last


def await_ready(container: Container) -> None:
    """Wait until the container has mounted what there is.

    Raises:
        HarnessError: it ended instead, or never came to it.
    """
    engine: Any = container

    def is_ready() -> bool:
        result = engine.exec_run(["test", "-e", _READY])
        return result.exit_code == 0

    # It has ended where the engine refuses.
    with suppress(docker.errors.APIError):
        if await_true(is_ready, _READY_S, _READY_INTERVAL_S):
            return
    last_line = bytes(engine.logs(tail=1)).decode(errors="replace").strip()
    raise HarnessError(
        "mount the nodes' disks",
        str(container.name),
        last_line or "the container that holds them does not come up",
        "The engine's own log says more",
    )


def release_run(client: DockerClient, mark: RunMark, *, nodes_are_down: bool) -> None:
    """Let nothing of a dead run's disks be frozen, full or without power; nothing without disks.

    Where nodes are down the disks are mounted afresh, so that they can be read.
    """
    containers: Any = client.containers
    filters = mark.filters(f"{ROLE_LABEL}=disks")
    with suppress(docker.errors.APIError, HarnessError):
        for container in containers.list(all=True, filters=filters, ignore_removed=True):
            if container.status != "running":
                # Its mounts went with it; the node's, which may be frozen, are the engine's.
                container.start()
                await_ready(container)
            _run(container, folder_of(mark), "free the disks", "heal")
            if nodes_are_down:
                _run(container, folder_of(mark), "mount the disks afresh", "recover")
