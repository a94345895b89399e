"""Faults of the simulated disk: which are armed, and a record of those that struck.

Armed failures strike in the order in which they were armed. Must never draw at random: whoever arms
a fault has drawn it.
"""

import errno
from pathlib import Path
from typing import Final, NoReturn

import msgspec

#: Operations that can be made to fail.
ACTIONS: Final = ("read", "write", "truncate", "sync", "rename", "remove", "sync-folder")
#: Strike whoever tries again; once in a row is evidence enough.
_LASTING: Final = ("read-failed", "disk-full")


class DiskFaultNote(msgspec.Struct, frozen=True):
    """One fault that struck, as evidence."""

    #: ``<action>-failed``, ``disk-full``, ``rot``, ``restored`` or ``wiped``.
    kind: str
    path: str
    #: Byte in the file, where one is concerned.
    position: int | None = None
    #: Error that the process got; None: none.
    errno: int | None = None


class _Armed:
    __slots__ = ("action", "error_number", "left", "suffix")

    def __init__(self, action: str, error_number: int, left: int | None, suffix: str) -> None:
        self.action = action
        self.error_number = error_number
        #: How often it still strikes; None: until cleared.
        self.left = left
        self.suffix = suffix


class DiskFaults:
    """Armed faults, and those that struck."""

    def __init__(self) -> None:
        #: Bytes that all files together may hold; None: no limit.
        self.capacity_bytes: int | None = None
        #: Faults that struck, in order.
        self.done: list[DiskFaultNote] = []
        self._armed: list[_Armed] = []
        #: The last note, which is not taken again before something is armed or cleared, or the
        #: process ends.
        self._lasting: DiskFaultNote | None = None

    def arm(self, action: str, error_number: int, count: int | None, suffix: str | None) -> None:
        """Let the next ``count`` (None: all) of an action on matching paths fail."""
        if action not in ACTIONS:
            raise ValueError(f"no disk fault {action!r}; there are {', '.join(ACTIONS)}")
        if error_number not in errno.errorcode:
            raise ValueError(f"{error_number} is no errno")
        if count is not None and count < 1:
            raise ValueError(f"a fault strikes once at least, not {count} times")
        self._armed.append(_Armed(action, error_number, count, suffix or ""))
        self._lasting = None

    def clear(self) -> None:
        """Nothing is armed any more, and the disk is large enough."""
        self._armed.clear()
        self._lasting = None
        self.capacity_bytes = None

    def tell_anew(self) -> None:
        """Note that a process has ended: what strikes the next one is evidence of its own."""
        self._lasting = None

    def strikes(self, action: str, path: str) -> int | None:
        """Return the errno with which this action fails now; None: it does not."""
        for armed in self._armed:
            if armed.action == action and path.endswith(armed.suffix):
                if armed.left is not None:
                    armed.left -= 1
                    if armed.left == 0:
                        self._armed.remove(armed)
                return armed.error_number
        return None

    def note(
        self, kind: str, path: str, position: int | None = None, error_number: int | None = None
    ) -> None:
        """Keep evidence."""
        note = DiskFaultNote(kind, path, position, error_number)
        if kind in _LASTING and self._lasting == note:
            return
        self._lasting = note
        self.done.append(note)

    def failure(
        self, action: str, path: Path, error_number: int, position: int | None = None
    ) -> OSError:
        """Return the error to raise for a failed action, noted."""
        self.note(f"{action}-failed", str(path), position, error_number)
        return OSError(error_number, errno.errorcode[error_number], str(path))

    def refuse_growth(self, path: Path, position: int) -> NoReturn:
        """The disk is full from this byte of the file on.

        Raises:
            OSError: ENOSPC, always.
        """
        self.note("disk-full", str(path), position, errno.ENOSPC)
        raise OSError(errno.ENOSPC, errno.errorcode[errno.ENOSPC], str(path))
