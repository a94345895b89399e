"""Bad disks of nodes that are processes of this machine: what can be done to a folder.

Power cuts follow the node's own table of what it has flushed (:mod:`runtimes.local.power`): no
kernel takes anything, so no canary can prove it. Files are changed, kept and wiped in place. Full,
stalled and failing disks need a file system for each node, which only the docker runtime makes.
"""

import shutil
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from splitbrain.contracts.arms import DiskState, FileChange, FileChanged, PowerLoss
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeSpec, NodeStatus
from splitbrain.runtimes.file_changes import change_file
from splitbrain.runtimes.folder_files import FolderFiles, state_of
from splitbrain.runtimes.local import power

_KEPT: Final = "kept"


class LocalDisks:
    """Implements :class:`contracts.arms.DiskArm` on the nodes' data folders.

    ``kill_all`` ends all processes of all these nodes at one moment.
    """

    def __init__(
        self,
        spec: Callable[[NodeName], NodeSpec],
        status: Callable[[NodeName], NodeStatus],
        kill_all: Callable[[Sequence[NodeName]], None],
    ) -> None:
        self._spec = spec
        self._status = status
        self._kill_all = kill_all

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> tuple[PowerLoss, ...]:
        """Kill the nodes, then take from their files what they had not flushed."""
        folders: list[tuple[NodeName, Path, Path]] = []
        for node in nodes:
            spec = self._spec(node)
            if spec.durable_lengths_path is None:
                raise CapabilityError(
                    "cut the power",
                    node,
                    "its program does not tell what it has flushed",
                    "Leave power out of --nemesis: nobody can tell what its disk would forget.",
                )
            folders.append((node, Path(spec.data_path), Path(spec.durable_lengths_path)))
        self._kill_all(nodes)
        losses: list[PowerLoss] = []
        for number, (node, data, table) in enumerate(folders):
            canaries = power.Canaries(data, table)
            canaries.write()
            # Each node has a draw of its own: with one, equal files would lose equal bytes.
            lost = power.lose_unflushed(data, table, draw + number)
            synced, unsynced = canaries.take_back()
            summary = f"{power.in_words(lost)}, by the node's own table"
            losses.append(PowerLoss(node, synced, unsynced, summary))
        return tuple(losses)

    def fill(self, node: NodeName) -> str:
        """Refused."""
        self._refuse(f"fill the disk of {node}")

    def drain(self, node: NodeName) -> None:
        """Nothing is filled."""

    def stall(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"freeze the disk of {node}")

    def unstall(self, node: NodeName) -> None:
        """Nothing is frozen."""

    def fail(self, node: NodeName) -> str:
        """Refused."""
        self._refuse(f"break the disk of {node}")

    def repair(self, node: NodeName) -> None:
        """Nothing is broken."""

    def _refuse(self, action: str) -> NoReturn:
        raise CapabilityError(
            action,
            "runtime local",
            "its nodes have folders, not disks of their own",
            "Use --runtime docker, or leave this fault out of the plan",
        )

    def change(self, node: NodeName, change: FileChange) -> FileChanged | None:
        """Change a file of a node that is down; None where no file fits."""
        with self._stopped(f"change a file of {node}", node) as files:
            return change_file(files, change)

    def keep(self, node: NodeName) -> None:
        """Copy the node's files as they read now, flushed before; the node may run."""
        with self._files(f"keep the files of {node}", node) as files:
            files.sync()
            files.keep()

    def read(self, node: NodeName, file: str, offset: int, length: int) -> bytes:
        """Bytes of a file, from the disk as far as memory holds nothing newer."""
        with self._files(f"read a file of {node}", node) as files:
            return files.read(file, offset, length)

    def wipe(self, node: NodeName) -> str:
        """Empty the data folder of a node that is down."""
        with self._stopped(f"wipe the disk of {node}", node) as files:
            sizes = files.sizes()
            files.wipe()
        return f"{len(sizes):,} files with {sum(sizes.values()):,} bytes"

    def state(self, node: NodeName, timeout_s: float) -> DiskState:
        """Try a write and sync of a nameless file in the data folder.

        A disk that stalls keeps the thread that asks it, not the one that called.
        """
        seen: list[DiskState] = []
        folder = Path(self._spec(node).data_path)
        asking = threading.Thread(
            target=lambda: seen.append(state_of(folder)), name=f"disk of {node}", daemon=True
        )
        asking.start()
        asking.join(timeout_s)
        return seen[0] if seen else "stalled"

    @contextmanager
    def _stopped(self, action: str, node: NodeName) -> Generator[FolderFiles]:
        status = self._status(node)
        if status in ("running", "paused"):
            raise HarnessError(action, node, f"the node is {status}", "Kill it before")
        with self._files(action, node) as files:
            yield files

    @contextmanager
    def _files(self, action: str, node: NodeName) -> Generator[FolderFiles]:
        data = Path(self._spec(node).data_path)
        try:
            yield FolderFiles(data, data.with_name(f"{data.name}-{_KEPT}"))
        except (OSError, shutil.Error) as error:
            raise HarnessError(
                action, str(data), str(error), "Look at that disk and start again"
            ) from error
