"""Bad disks of nodes in containers: each node's data on an ext4 file system of its own.

All is done through the container that holds the disks (:mod:`runtimes.docker.disk_keeper`). Without
disks of their own, nodes keep their data in plain volumes, and every act is refused. A frozen disk
is thawed before anything that would wait for it. Whether they can be had here is found by doing it
once with a small disk; where the pods' image is not built yet, the engine's own words decide.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import docker.errors
from docker import DockerClient

from splitbrain.contracts.arms import DiskState, FileChange, FileChanged, PowerLoss
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.docker.disk_keeper import RIGHTS, DiskKeeper, ask
from splitbrain.runtimes.docker.engine import connect, engine_action
from splitbrain.runtimes.docker.images import POD, Images
from splitbrain.runtimes.docker.names import RunMark
from splitbrain.runtimes.docker.pods import Pod
from splitbrain.runtimes.file_changes import change_file
from splitbrain.runtimes.waiting import on_all


class DockerDisks:
    """Implements :class:`contracts.arms.DiskArm` for pods."""

    def __init__(self, pod: Callable[[NodeName], Pod]) -> None:
        self._pod = pod
        self._keeper: DiskKeeper | None = None
        self._stalled: set[NodeName] = set()

    def make(
        self,
        client: DockerClient,
        mark: RunMark,
        image_id: str,
        nodes: Sequence[NodeName],
        size_mib: int,
    ) -> Mapping[NodeName, str]:
        """Give each node a disk of its own, before its containers; the engine's path of each."""
        keeper = DiskKeeper(client, mark, image_id)
        keeper.make(nodes, size_mib)
        self._keeper = keeper
        return {node: keeper.device(node) for node in nodes}

    # --- power --------------------------------------------------------------------------------

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> tuple[PowerLoss, ...]:
        """Freeze the nodes, shut their disks down at one moment, kill them, mount afresh.

        Frozen first, so that no node's program sees its disk's errors before it dies.
        """
        # what was on its way to the disk is lost, and nothing is chosen
        action = "cut the power"
        pods = [self._pod(node) for node in nodes]
        for node in nodes:
            self.let_die(node)
        on_all(pods, _freeze)
        try:
            self._ask(action, "cut", *nodes)
        finally:
            on_all(pods, Pod.kill)
            found: list[dict[str, Any]] = self._ask(action, "revive", *nodes)
        return tuple(
            PowerLoss(
                node=NodeName(loss["node"]),
                synced_is_there=bool(loss["synced"]),
                unsynced_is_there=bool(loss["unsynced"]),
            )
            for loss in found
        )

    # --- room and time ------------------------------------------------------------------------

    def fill(self, node: NodeName) -> str:
        """Take all room that is left, by a file beside the node's own."""
        taken: int = self._ask(f"fill the disk of {node}", "fill", node)
        return f"a file of {taken:,} bytes takes the disk's last room"

    def drain(self, node: NodeName) -> None:
        """Remove that file."""
        self._ask(f"make room on the disk of {node}", "drain", node)

    def stall(self, node: NodeName) -> None:
        """Freeze the file system; what was written before is flushed by that."""
        self._stalled.add(node)
        self._ask(f"freeze the disk of {node}", "freeze", node)

    def unstall(self, node: NodeName) -> None:
        """Thaw the file system; nothing where it is not frozen."""
        self._ask(f"thaw the disk of {node}", "thaw", node)
        self._stalled.discard(node)

    def let_die(self, node: NodeName) -> None:
        """Before a kill: a process that waits for a frozen disk cannot end."""
        if node in self._stalled:
            self.unstall(node)

    def heal_all(self) -> None:
        """Thaw and drain all disks; nothing where nodes have none."""
        if self._keeper is not None:
            self._keeper.ask("free the disks", "heal")
            self._stalled.clear()

    # --- errors -------------------------------------------------------------------------------

    def fail(self, node: NodeName) -> str:
        """Have ext4 find an error; it was mounted to be read-only then."""
        self._ask(f"break the disk of {node}", "fail", node)
        return "ext4 has found an error in its file system and takes no more writes"

    def repair(self, node: NodeName) -> None:
        """Check the file system and mount it afresh; the node must be down."""
        self._refuse_running(f"repair the disk of {node}", node)
        self._ask(f"repair the disk of {node}", "repair", node)

    # --- files --------------------------------------------------------------------------------

    def change(self, node: NodeName, change: FileChange) -> FileChanged | None:
        """Change a file of a node that is down; None where no file fits."""
        self._refuse_running(f"change a file of {node}", node)
        return change_file(_FilesOnDisk(self._ask, node), change)

    def keep(self, node: NodeName) -> None:
        """Copy the node's files, flushed and frozen meanwhile; the node may run."""
        self._ask(f"keep the files of {node}", "keep", node)

    def read(self, node: NodeName, file: str, offset: int, length: int) -> bytes:
        """Bytes of a file, from the disk as far as memory holds nothing newer."""
        return _FilesOnDisk(self._ask, node).read(file, offset, length)

    def wipe(self, node: NodeName) -> str:
        """Empty the data folder of a node that is down."""
        self._refuse_running(f"wipe the disk of {node}", node)
        found: dict[str, int] = self._ask(f"wipe the disk of {node}", "wipe", node)
        return f"{found['files']:,} files with {found['bytes']:,} bytes"

    def state(self, node: NodeName, timeout_s: float) -> DiskState:
        """Try a write and sync of a nameless file beside the node's own."""
        return self._ask(f"look at the disk of {node}", "state", node, str(timeout_s))

    def _ask(self, action: str, command: str, *arguments: str) -> Any:
        for word in arguments[:1]:
            self._pod(NodeName(word))
        if self._keeper is None:
            raise CapabilityError(
                action,
                "runtime docker",
                "these nodes were deployed without disks of their own",
                "Plans with disk faults deploy them so (DeploymentSpec.disks)",
            )
        return self._keeper.ask(action, command, *arguments)

    def _refuse_running(self, action: str, node: NodeName) -> None:
        status = self._pod(node).status()
        if status in ("running", "paused"):
            raise HarnessError(action, node, f"the node is {status}", "Kill it before")


class _FilesOnDisk:
    """Implements :class:`contracts.arms.DataFiles` through the disks' container."""

    def __init__(self, ask: Callable[..., Any], node: NodeName) -> None:
        self._ask = ask
        self._node = node

    def _do(self, command: str, *arguments: str) -> Any:
        return self._ask(f"use the files of {self._node}", command, self._node, *arguments)

    def sizes(self) -> Mapping[str, int]:
        return self._do("sizes")

    def kept(self) -> Mapping[str, int]:
        return self._do("kept")

    def read(self, file: str, offset: int, length: int) -> bytes:
        return bytes.fromhex(self._do("read", file, str(offset), str(length)))

    def write(self, file: str, offset: int, content: bytes) -> None:
        self._do("write", file, str(offset), content.hex())

    def truncate(self, file: str, size: int) -> None:
        self._do("truncate", file, str(size))

    def difference(self, file: str) -> int | None:
        return self._do("difference", file)

    def exchange(self, file: str) -> None:
        self._do("exchange", file)


def _freeze(pod: Pod) -> None:
    if pod.status() == "running":
        pod.pause()


_FOLDER = "/disks/probe"


def why_no_disks(client: DockerClient | None = None) -> str:
    """One clause, empty where nodes can have disks of their own; tried once for each engine."""
    engine = client if client is not None else connect()
    handles: Any = engine
    try:
        with engine_action("ask the engine what it can do", "docker"):
            engine_info = handles.info()
            options: list[str] = engine_info.get("SecurityOptions") or []
            if any("rootless" in option for option in options):
                return "this engine runs without root"
            tag = Images(engine).tags(())[POD.name]
            if not Images(engine).is_there(tag):
                return ""
            return _trial(str(engine_info.get("ID")), tag)
    finally:
        if client is None:
            engine.close()


@functools.cache
def _trial(engine: str, image: str) -> str:
    """Why a disk cannot be made in a container of this image; tried with one that is thrown away.

    Should this process die meanwhile, the container ends by itself.
    """
    del engine
    client: Any = connect()
    container: Any = None
    try:
        container = client.containers.run(
            image,
            entrypoint=["sleep", "60"],
            detach=True,
            network_mode="none",
            auto_remove=True,
            tmpfs={_FOLDER: ""},
            **RIGHTS,
        )
        problem: str = ask(container, _FOLDER, "try a disk", "probe")
    except docker.errors.APIError as error:
        problem = f"the engine refuses the rights to mount ({error.explanation})"
    except HarnessError as error:
        problem = error.problem
    finally:
        with suppress(docker.errors.APIError):
            if container is not None:
                container.kill()
        client.close()
    return problem
