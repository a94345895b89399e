"""History of faults of one simulated machine's disk, and the ends of its node that it explains.

An excuse is no promise made when a fault is announced: it is looked up when a node has ended, and
holds only while its cause is there.

- A node that says that the disk failed must have met a call that failed (an error, no room) since
  the end before this one: what is armed and never struck, or struck an earlier life, explains
  nothing.
- A node that says that its folder is corrupt must have something there that is: a byte that rotted
  and still holds what it rotted to, neither overwritten nor truncated, or a disk that was put back.
- A node that could not start needs one of the two.
- Nothing explains any other end: not a halt, not a defect.

A disk that was wiped is another one: what befell the one before it explains, and excuses, nothing.
Must never change a disk, nor read it in a way that an armed fault could strike.
"""

from pathlib import Path
from typing import Final, NamedTuple

from splitbrain.nodes.server.host.exit_codes import CORRUPT, DISK_FAILED
from splitbrain.simulation.disk.file_system import DiskFaultNote, MemoryFileSystem

_ROT: Final = "rot"
_RESTORED: Final = "restored"
_WIPED: Final = "wiped"
_NO_CALLS: Final = (_ROT, _RESTORED, _WIPED)
#: How ``Host.ended`` begins, which says what the node gave as its reason.
_COULD_NOT_START: Final = "could not start:"
_SAYS_FAILED: Final = f"exit code {DISK_FAILED}:"
_SAYS_CORRUPT: Final = f"exit code {CORRUPT}:"


class _Rot(NamedTuple):
    """A byte that rotted."""

    path: str
    position: int
    #: Its content since, as long as nobody wrote there; None: it was gone when looked at.
    value: int | None


class DiskPast:
    """Kept up from the notes that the disk makes of every fault that strikes."""

    def __init__(self, disk: MemoryFileSystem) -> None:
        self._disk = disk
        self._notes: list[DiskFaultNote] = disk.faults_done
        #: Notes that were taken in, and of what they told.
        self._seen = 0
        self._rots: list[_Rot] = []
        self._was_restored = False
        #: Notes that there were when the last life ended.
        self._struck_before = 0
        #: Bytes were about to change while the machine booted.
        self.was_booting = False

    @property
    def count(self) -> int:
        """How many faults ever struck."""
        return len(self._notes)

    def look(self) -> None:
        """Take in what has struck since the last look; due as soon as bytes have rotted."""
        notes = self._notes
        while self._seen < len(notes):
            note = notes[self._seen]
            self._seen += 1
            if note.kind == _WIPED:
                self._rots.clear()
                self._was_restored = False
            elif note.kind == _RESTORED:
                self._was_restored = True
            elif note.kind == _ROT:
                assert note.position is not None
                value = self._byte_at(note.path, note.position)
                self._rots.append(_Rot(note.path, note.position, value))

    @property
    def was_restored(self) -> bool:
        """Whether this disk was ever put back to an older state."""
        self.look()
        return self._was_restored

    def has_rotted(self, *suffixes: str) -> bool:
        """Whether bytes of a file of this disk whose path ends so (none: any) ever rotted."""
        if not self._notes:
            return False
        self.look()
        return any(not suffixes or rot.path.endswith(suffixes) for rot in self._rots)

    @property
    def rotted_while_booting(self) -> bool:
        """Whether bytes may have changed under a recovery that had read them already."""
        notes = self._notes[self._struck_before :]
        return self.was_booting and any(note.kind == _ROT for note in notes)

    def explains(self, ended: str) -> bool:
        """Whether this end, by what the node says of it, follows from the disk's faults."""
        if ended.startswith(_SAYS_FAILED):
            return self._call_failed
        if ended.startswith(_SAYS_CORRUPT):
            return self._is_wrong
        return ended.startswith(_COULD_NOT_START) and (self._call_failed or self._is_wrong)

    def life_ended(self) -> None:
        """Forget failures so far: they explain no later end."""
        self._struck_before = len(self._notes)
        self.was_booting = False

    @property
    def _call_failed(self) -> bool:
        return any(note.kind not in _NO_CALLS for note in self._notes[self._struck_before :])

    @property
    def _is_wrong(self) -> bool:
        """Whether the disk holds now what its node cannot have left there."""
        self.look()
        return self._was_restored or any(
            rot.value is not None and self._byte_at(rot.path, rot.position) == rot.value
            for rot in self._rots
        )

    def _byte_at(self, path: str, position: int) -> int | None:
        content = self._disk.durable_content(Path(path))
        return content[position] if content is not None and position < len(content) else None
