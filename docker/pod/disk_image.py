"""One node's disk: an image file in the run's volume, a loop device, an ext4 mount.

It must never touch a file that is not the node's.
"""

import contextlib
import errno
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import disk_mounts

from splitbrain.runtimes.folder_files import SYNCED, sync

BLOCK_BYTES = 4096
_MOUNTS = Path("/run/splitbrain-disks")
#: How long an unmounted file system may live on in somebody else's namespace.
_LINGERING_S = 5.0


class Disk:
    """One node's disk, by the folder that holds the images and the node's name."""

    def __init__(self, folder: Path, node: str) -> None:
        self.node = node
        self.image = folder / f"{node}.image"
        #: Names the loop device as the host knows it; the engine mounts what it points to.
        self.link = folder / f"{node}.device"
        self.kept = folder / f"{node}.kept"
        #: Random bytes of both canaries of one power cut.
        self.token = folder / f"{node}.token"
        #: There while the disk is frozen, and from a moment before.
        self.frozen = folder / f"{node}.frozen"
        self._lock = folder / f"{node}.lock"
        self.mount = _MOUNTS / folder.name / node

    def make(self, size_mib: int) -> None:
        """An empty file system, without the folder that only a check of it would need."""
        with self.image.open("wb") as file:
            file.truncate(size_mib << 20)
        extended = "lazy_itable_init=0,lazy_journal_init=0"
        run("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-E", extended, str(self.image))
        self.attach()
        (self.mount / "lost+found").rmdir()
        sync(self.mount)

    def attach(self) -> None:
        """Mount it here; nothing where it is mounted."""
        if disk_mounts.is_mounted(self.mount):
            return
        with disk_mounts.attached(self.image) as device:
            disk_mounts.mount(device, self.mount)
        new = self.link.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.symlink_to(device)
        new.replace(self.link)

    def detach(self) -> None:
        """Unmount it everywhere; the nodes' processes are gone.

        Where another namespace has a copy of the engine's mount, the old file system lives on: the
        node then goes on with a copy of what is on the disk.
        """
        if disk_mounts.is_mounted(self.mount):
            self.thaw()
        disk_mounts.unmount(self.mount)
        if disk_mounts.is_released(self.image, _LINGERING_S):
            return
        copy = self.image.with_suffix(".copy")
        run("cp", "--sparse=always", str(self.image), str(copy))
        copy.replace(self.image)

    @property
    def synced(self) -> Path:
        """The file into whose one block the canary that must survive is written."""
        return self.mount / SYNCED

    def make_canary_file(self) -> None:
        """Make that file, its block and its name on the disk, so that both need never change.

        It must not lie on an empty disk: there are programs that begin in an empty folder alone.
        """
        with self.synced.open("wb") as file:
            file.write(bytes(BLOCK_BYTES))
            file.flush()
            os.fsync(file.fileno())
        sync(self.mount)

    def make_canary_file_if_used(self) -> None:
        """Make it on a disk that has come into use; leave one that is frozen alone.

        A writer to a frozen disk does not come back, and no signal ends it: a container whose
        first process does cannot even be killed.
        """
        with self._by_turns():
            if not self.frozen.exists() and not self.synced.exists() and self.is_used():
                self.make_canary_file()

    def freeze(self) -> None:
        """Flush it, then let no write begin; nothing where it is frozen."""
        with self._by_turns():
            self.frozen.touch()
            try:
                disk_mounts.freeze(self.mount)
            except OSError:
                self.frozen.unlink()
                raise

    def thaw(self) -> bool:
        """Undo freeze; whether it was frozen."""
        was_frozen = disk_mounts.thaw(self.mount)
        self.frozen.unlink(missing_ok=True)
        return was_frozen

    @contextlib.contextmanager
    def _by_turns(self) -> Iterator[None]:
        """Alone among those who make that file or freeze; the lock goes with the process."""
        with self._lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def device(self) -> Path:
        """Return the loop device as the kernel knows it."""
        device = disk_mounts.device_of(self.image)
        if device is None:
            raise OSError(errno.ENODEV, "its loop device is gone", str(self.image))
        return device

    def is_used(self) -> bool:
        """Whether there is anything on it but that file."""
        return any(path != self.synced for path in self.mount.iterdir())


def run(*command: str, fine: tuple[int, ...] = (0,)) -> str:
    """Return a program's output; raise OSError where it ends with any other code."""
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode not in fine:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(errno.EIO, f"{command[0]}: {lines[-1] if lines else done.returncode}")
    return done.stdout
