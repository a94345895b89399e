"""The few Linux calls that Python 3.11 has no function for; standard library alone.

Imported by programs that start many times (``keeper``), so it stays small. Each call raises
``OSError`` with the kernel's own number.

Sources: unshare(2), setns(2), mount(2), prctl(2), user_namespaces(7).
"""

import ctypes
import os
from pathlib import Path
from typing import Final

CLONE_NEWNS: Final = 0x0002_0000
CLONE_NEWUTS: Final = 0x0400_0000
CLONE_NEWUSER: Final = 0x1000_0000
CLONE_NEWPID: Final = 0x2000_0000
CLONE_NEWNET: Final = 0x4000_0000

_MS_NOSUID: Final = 0x2
_MS_NODEV: Final = 0x4
_MS_NOEXEC: Final = 0x8
_MS_BIND: Final = 0x1000
_MS_REC: Final = 0x4000
_MS_SLAVE: Final = 0x8_0000

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

_libc: Final = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave these namespaces for fresh ones; a fresh process namespace begins with a child."""
    _check(_libc.unshare(flags), "unshare")


def enter(namespace: int, kind: int) -> None:
    """Enter the namespace of an open descriptor, the calling thread alone where it is a network."""
    _check(_libc.setns(namespace, kind), "setns")


def keep_mounts_private() -> None:
    """From now on no mount made here is seen outside of this mount namespace.

    A file system unmounted outside goes here too: a copy would keep others' file systems alive.
    """
    _mount("none", "/", None, _MS_REC | _MS_SLAVE)


def mount_processes() -> None:
    """Show the processes of this process namespace in ``/proc``."""
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def mount_shared_memory() -> None:
    """Show shared memory that no other node has; nothing where the machine has none."""
    if Path("/dev/shm").is_dir():  # noqa: S108 - a mount point of the kernel's, no temporary file
        _mount("shm", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV)  # noqa: S108 - the same


def bind(source: Path, target: Path) -> None:
    """Show one file in the place of another."""
    _mount(str(source), str(target), None, _MS_BIND)


def die_with_parent(signal: int) -> None:
    """Get this signal when the parent, in fact the thread that started this process, ends.

    Changing credentials forgets it: to be called after that.
    """
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def become_root_of_a_user_namespace() -> None:
    """Enter a fresh user namespace in which the present user is root; with one thread alone."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    own = Path("/proc/self")
    # An ordinary user may map its group only after giving up the right to change groups.
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"0 {user} 1")
    (own / "gid_map").write_text(f"0 {group} 1")


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    result = _libc.mount(
        source.encode(), target.encode(), None if kind is None else kind.encode(), flags, None
    )
    _check(result, f"mount {target}")


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
