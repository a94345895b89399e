#!/usr/bin/env python3
"""Keeps the disks of one run's nodes: an image file, a loop device and an ext4 mount for each.

It runs in a container of its own, and its mounts are seen by that container alone; the engine
mounts the same devices for the nodes. It acts on the images in its folder and on nothing else.

Usage: ``disks.py hold FOLDER`` is the container's first process. ``disks.py COMMAND FOLDER
WORDS...`` does one thing and prints one line of JSON; :data:`COMMANDS` has them.
Exit codes: 0 done, 1 it could not be done (the reason is the last line printed), 64 bad usage.
"""

import contextlib
import errno
import json
import mmap
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import disk_mounts
from disk_image import BLOCK_BYTES, Disk, run

from splitbrain.runtimes.folder_files import OWN, FolderFiles, state_of, sync

#: A node sees the ballast while it is there, the canary never.
_BALLAST = f"{OWN}ballast"
_CANARY = f"{OWN}canary"

#: Goes with the container's process, unlike all other files of a container.
READY = Path("/dev/shm/splitbrain-ready")  # noqa: S108 - in a container of its own
_PROBE_MIB = 16
#: How often the container looks for disks that have come into use.
_LOOK_INTERVAL_S = 0.25
#: A file system check that corrected everything says so by 1.
_CHECKED = (0, 1)


# --- commands ---------------------------------------------------------------------------------


def probe(folder: Path) -> str:
    """Do with a small disk what faults do with a node's; an empty word, or why it cannot be."""
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        disk = Disk(Path(inner), "probe")
        try:
            disk.make(_PROBE_MIB)
            disk.freeze()
            disk.thaw()
            _cut([disk])
            loss = _revived(disk)
            return "" if loss["synced"] and not loss["unsynced"] else "a power cut took nothing"
        except OSError as error:
            return error.strerror or str(error)
        finally:
            disk_mounts.unmount(disk.mount)


def make(folder: Path, size_mib: str, *nodes: str) -> None:
    """Make the nodes' disks."""
    for node in nodes:
        Disk(folder, node).make(int(size_mib))


def cut(folder: Path, *nodes: str) -> None:
    """Take the power of all of them; their processes are frozen. Canaries go before."""
    _cut([Disk(folder, node) for node in nodes])


def _cut(disks: list[Disk]) -> None:
    for disk in disks:
        disk.thaw()
        # Number of the cut that a canary has lived through; kept beside the image.
        disk.token.write_bytes(os.urandom(BLOCK_BYTES))
        # A node that has written its first file just now: its disk has a moment's sync ahead.
        with contextlib.suppress(OSError):
            if not disk.synced.exists():
                disk.make_canary_file()
    folders = [os.open(disk.mount, os.O_RDONLY | os.O_DIRECTORY) for disk in disks]
    try:
        # The one that nobody syncs goes first: so it is seen, too, that to sync the other one has
        # not brought the node's own changes to the disk. A disk that takes none is seen afterwards.
        for write in (_write_unsynced_canary, _write_synced_canary):
            for disk in disks:
                with contextlib.suppress(OSError):
                    write(disk)
        disk_mounts.shut_down(folders)
    finally:
        for each in folders:
            os.close(each)


def _write_unsynced_canary(disk: Disk) -> None:
    """Write a new file, and sync neither it nor its name."""
    (disk.mount / _CANARY).write_bytes(disk.token.read_bytes())


def _write_synced_canary(disk: Disk) -> None:
    """Write and flush a block of a file whose size and place have long been on the disk.

    To sync a new file would commit the journal, and so flush the node's own changes of names and
    sizes; a block that is written in place needs no journal.
    """
    block = mmap.mmap(-1, BLOCK_BYTES)
    block.write(disk.token.read_bytes())
    target = os.open(disk.synced, os.O_WRONLY | os.O_DSYNC | os.O_DIRECT)
    try:
        os.pwrite(target, block, 0)
    finally:
        os.close(target)


def revive(folder: Path, *nodes: str) -> list[dict[str, Any]]:
    """Give the power back to disks of nodes that are down; what their canaries say."""
    return [_revived(Disk(folder, node)) for node in nodes]


def _revived(disk: Disk) -> dict[str, Any]:
    disk.detach()
    disk.attach()
    token = disk.token.read_bytes() if disk.token.exists() else b""
    canary = disk.mount / _CANARY
    synced = disk.synced.read_bytes() if disk.synced.exists() else b"gone"
    unsynced = canary.read_bytes() if canary.exists() else b"gone"
    canary.unlink(missing_ok=True)
    disk.token.unlink(missing_ok=True)
    if not disk.is_used():
        disk.synced.unlink(missing_ok=True)
    sync(disk.mount)
    return {"node": disk.node, "synced": synced == token, "unsynced": unsynced == token}


def fill(folder: Path, node: str) -> int:
    """Take all the room that is left, in ever smaller pieces; how many bytes that is."""
    target = Disk(folder, node).mount
    with (target / _BALLAST).open("ab") as file:
        piece = 1 << 30
        while piece >= 1 << 12:
            size = file.seek(0, os.SEEK_END)
            try:
                os.posix_fallocate(file.fileno(), size, piece)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                piece >>= 1
        os.fsync(file.fileno())
        return file.seek(0, os.SEEK_END)


def drain(folder: Path, node: str) -> None:
    """Undo fill."""
    ballast = Disk(folder, node).mount / _BALLAST
    if ballast.exists():
        ballast.unlink()
        sync(ballast.parent)


def freeze(folder: Path, node: str) -> None:
    """Let no write come to an end."""
    Disk(folder, node).freeze()


def thaw(folder: Path, node: str) -> bool:
    """Undo freeze; whether it was frozen."""
    return Disk(folder, node).thaw()


def heal(folder: Path, *nodes: str) -> None:
    """Thaw and drain, all disks where none is named. Mounts what is not mounted."""
    for disk in _disks(folder, nodes):
        disk.attach()
        disk.thaw()
        # A disk that failed or was shut down has its ballast until it is repaired.
        with contextlib.suppress(OSError):
            drain(folder, disk.node)


def recover(folder: Path) -> None:
    """Mount all disks afresh, as after a power cut; no node runs."""
    for disk in _disks(folder, ()):
        # One that is beyond that must not keep the others from being read.
        with contextlib.suppress(OSError):
            _revived(disk)
            drain(folder, disk.node)


def _disks(folder: Path, nodes: tuple[str, ...]) -> list[Disk]:
    return [Disk(folder, node) for node in nodes or sorted(p.stem for p in folder.glob("*.image"))]


def fail(folder: Path, node: str) -> None:
    """Have the file system find an error, and be read-only from then on."""
    disk_mounts.trigger_error(Disk(folder, node).device(), "an error that splitbrain has planted")


def repair(folder: Path, node: str) -> str:
    """Check the disk of a node that is down and mount it afresh; what the check said."""
    disk = Disk(folder, node)
    disk.detach()
    report = run("e2fsck", "-f", "-p", str(disk.image), fine=_CHECKED)
    disk.attach()
    return report.strip()


def state(folder: Path, node: str, timeout_s: str) -> str:
    """Try a write and sync; a frozen disk never lets go of the process that asks."""
    target = Disk(folder, node).mount
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        # Whoever waits for the end of our output must not wait for a frozen disk.
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.write(writing, state_of(target).encode())
        os._exit(0)
    os.close(writing)
    os.set_blocking(reading, False)
    deadline = time.monotonic() + float(timeout_s)
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            return os.read(reading, 64).decode() or "failing"
        time.sleep(0.005)
    return "stalled"


def _files(disk: Disk) -> FolderFiles:
    return FolderFiles(disk.mount, disk.kept)


def keep(folder: Path, node: str) -> None:
    """Copy the node's files as they are on the disk, frozen meanwhile."""
    disk = Disk(folder, node)
    disk.freeze()
    try:
        _files(disk).keep()
    finally:
        disk.thaw()


def wipe(folder: Path, node: str) -> dict[str, int]:
    """Empty the disk of a node that is down; how many files and bytes there were."""
    files = _files(Disk(folder, node))
    sizes = files.sizes()
    files.wipe()
    return {"files": len(sizes), "bytes": sum(sizes.values())}


#: Commands that are acts on the files of a node's disk, and how their words are read.
_ACTS_ON_FILES: dict[str, tuple[Callable[..., Any], ...]] = {
    "sizes": (FolderFiles.sizes,),
    "kept": (FolderFiles.kept,),
    "read": (FolderFiles.read, str, int, int),
    "write": (FolderFiles.write, str, int, bytes.fromhex),
    "truncate": (FolderFiles.truncate, str, int),
    "difference": (FolderFiles.difference, str),
    "exchange": (FolderFiles.exchange, str),
}


def _on_files(act: Callable[..., Any], *readers: Callable[[str], Any]) -> Callable[..., Any]:
    def command(folder: Path, node: str, *arguments: str) -> Any:
        values = (read(argument) for read, argument in zip(readers, arguments, strict=True))
        value = act(_files(Disk(folder, node)), *values)
        return value.hex() if isinstance(value, bytes) else value

    return command


COMMANDS: dict[str, Callable[..., Any]] = {
    **{name: _on_files(*act) for name, act in _ACTS_ON_FILES.items()},
    **{
        command.__name__: command
        for command in (
            probe, make, cut, revive, fill, drain, freeze, thaw, heal, recover, fail, repair,
            state, keep, wipe,
        )
    },
}  # fmt: skip


def hold(folder: Path) -> int:
    """Mount what there is, and give each disk that is used its canary's file, until told to end.

    Reaps what ``state`` leaves behind.
    """
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    heal(folder)
    READY.touch()
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        for disk in _disks(folder, ()):
            # A disk without power, or one that is being changed, is looked at again.
            with contextlib.suppress(OSError):
                disk.make_canary_file_if_used()
        time.sleep(_LOOK_INTERVAL_S)


def main(arguments: list[str]) -> int:
    """Do one thing."""
    match arguments:
        case ["hold", folder]:
            return hold(Path(folder))
        case [name, folder, *rest] if name in COMMANDS:
            try:
                value = COMMANDS[name](Path(folder), *rest)
            except OSError as error:
                where = f" ({error.filename})" if error.filename else ""
                print(f"{error.strerror or error}{where}")
                return 1
            print(json.dumps(value))
            return 0
        case _:
            print(__doc__)
            return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
