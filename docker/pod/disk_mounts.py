"""Loop devices and ext4 mounts of a run's disks, by the kernel's own calls.

A loop device is attached so that the kernel detaches it with its last mount: where the container
that holds the mounts dies, nothing stays behind. It must never touch an image outside of the folder
that it is given.

Sources: ``linux/loop.h``, ``linux/fs.h``, ``fs/ext4/ext4.h`` (flag 2 of the shutdown: nothing that
is not in the journal on disk is written any more).
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Callable, Generator
from pathlib import Path

_LOOP_SET_FD = 0x4C00
_LOOP_CLEAR = 0x4C01
_LOOP_SET_STATUS = 0x4C04
_LOOP_GET_STATUS = 0x4C05
_LOOP_GET_FREE = 0x4C82
_LOOP_AUTOCLEAR = 4
#: ``struct loop_info64``: five numbers of 64 bits, four of 32 (the last: flags), names, key.
_LOOP_STATUS = struct.Struct("=5Q4I64s64s32s2Q")
_LOOP_NAME_BYTES = 63
_LOOP_MAJOR = 7
_LOOP_CONTROL = (10, 237)

_FREEZE = 0xC0045877
_THAW = 0xC0045878
_SHUTDOWN = 0x8004587D
_WITHOUT_LOG_FLUSH = 2

_OPTIONS = b"errors=remount-ro"
_READ_ONLY = 1
_REMOUNT = 32
_DETACH = 2
_BLOCK_DEVICES = Path("/sys/block")
_MOUNTS = Path("/proc/self/mounts")
#: The container's own /sys is read-only.
_SYSFS = Path("/run/splitbrain-sysfs")
_LOOK_INTERVAL_S = 0.01

_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def attached(image: Path) -> Generator[Path]:
    """The loop device with this file behind it, a new one where there is none.

    It goes again with the block unless something has mounted it meanwhile.
    """
    present = device_of(image)
    if present is not None:
        yield present
        return
    _make_node(Path("/dev/loop-control"), stat.S_IFCHR, _LOOP_CONTROL)
    loop, device = _new_loop(image)
    try:
        yield device
    finally:
        os.close(loop)


def _new_loop(image: Path) -> tuple[int, Path]:
    file = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            device = _free_device()
            loop = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(loop, _LOOP_SET_FD, file)
                _describe(loop, image)
            except OSError as error:
                os.close(loop)
                # Somebody else was faster.
                if error.errno != errno.EBUSY:
                    raise
                continue
            return loop, device
    finally:
        os.close(file)


def _describe(loop: int, image: Path) -> None:
    name = str(image).encode()[-_LOOP_NAME_BYTES:]
    numbers = (0, 0, 0, 0, 0, 0, 0, 0, _LOOP_AUTOCLEAR)
    try:
        fcntl.ioctl(loop, _LOOP_SET_STATUS, _LOOP_STATUS.pack(*numbers, name, b"", b"", 0, 0))
    except OSError:
        fcntl.ioctl(loop, _LOOP_CLEAR)
        raise


def _free_device() -> Path:
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control, _LOOP_GET_FREE)
    finally:
        os.close(control)
    return _loop_node(number)


def _loop_node(number: int) -> Path:
    device = Path(f"/dev/loop{number}")
    _make_node(device, stat.S_IFBLK, (_LOOP_MAJOR, number))
    return device


def _make_node(path: Path, kind: int, number: tuple[int, int]) -> None:
    with contextlib.suppress(FileExistsError):
        os.mknod(path, kind | 0o600, os.makedev(*number))


def device_of(image: Path) -> Path | None:
    """Return the loop device that this file is behind, None where there is none."""
    file = image.stat()
    for attribute in sorted(_BLOCK_DEVICES.glob("loop*/loop")):
        device = _loop_node(int(attribute.parent.name.removeprefix("loop")))
        # It may go while it is looked at.
        with contextlib.suppress(OSError):
            loop = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
            try:
                status = fcntl.ioctl(loop, _LOOP_GET_STATUS, bytes(_LOOP_STATUS.size))
            finally:
                os.close(loop)
            if _LOOP_STATUS.unpack(status)[:2] == (file.st_dev, file.st_ino):
                return device
    return None


def mount(device: Path, target: Path) -> None:
    """Mount an ext4 file system; what its journal holds is replayed."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        _mount(str(device), target, "ext4", 0, _OPTIONS)
    except OSError as error:
        # It is mounted elsewhere, and an error has made it read-only.
        if error.errno != errno.EBUSY:
            raise
        _mount(str(device), target, "ext4", _READ_ONLY, _OPTIONS)


def _mount(source: str, target: Path, kind: str, flags: int, options: bytes) -> None:
    done = _libc.mount(
        source.encode(), str(target).encode(), kind.encode(), ctypes.c_ulong(flags), options
    )
    if done != 0:
        raise OSError(number := ctypes.get_errno(), os.strerror(number), str(target))


def unmount(target: Path) -> None:
    """Undo mount here; nothing where nothing is mounted."""
    while is_mounted(target):
        if _libc.umount2(str(target).encode(), _DETACH) != 0:
            raise OSError(number := ctypes.get_errno(), os.strerror(number), str(target))


def is_mounted(target: Path) -> bool:
    """Whether something is mounted there in this namespace."""
    return any(line.split()[1] == str(target) for line in _MOUNTS.read_text().splitlines())


def is_released(image: Path, patience_s: float) -> bool:
    """Whether the last mount anywhere of this image has gone, or goes within the patience."""
    deadline = time.monotonic() + patience_s
    while device_of(image) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_INTERVAL_S)
    return True


def _on(target: Path, act: Callable[[int], object]) -> None:
    folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        act(folder)
    finally:
        os.close(folder)


def freeze(target: Path) -> None:
    """Flush the file system, then let no write begin; nothing where it is frozen."""
    try:
        _on(target, lambda folder: fcntl.ioctl(folder, _FREEZE, 0))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise


def thaw(target: Path) -> bool:
    """Undo freeze; whether it was frozen."""
    try:
        _on(target, lambda folder: fcntl.ioctl(folder, _THAW, 0))
    except OSError as error:
        # Not frozen; or shut down, and then nothing waits for a thaw.
        if error.errno not in (errno.EINVAL, errno.EIO):
            raise
        return False
    return True


def shut_down(folders: list[int]) -> None:
    """Take the power: from now on nothing reaches these file systems' devices.

    The descriptors are open already, so that nothing stands between one and the next.
    """
    word = struct.pack("=I", _WITHOUT_LOG_FLUSH)
    for folder in folders:
        fcntl.ioctl(folder, _SHUTDOWN, word)


def trigger_error(device: Path, message: str) -> None:
    """Have ext4 find an error, as it does in a damaged block."""
    if not (_SYSFS / "fs").is_dir():
        _SYSFS.mkdir(parents=True, exist_ok=True)
        _mount("sysfs", _SYSFS, "sysfs", 0, b"")
        # The engine has made it read-only for the container's network namespace as a whole.
        _mount("sysfs", _SYSFS, "sysfs", _REMOUNT, b"")
    (_SYSFS / "fs" / "ext4" / device.name / "trigger_fs_error").write_text(message)
