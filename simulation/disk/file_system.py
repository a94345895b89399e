"""A file system in memory with the crashes and faults of a real one, for tests and simulation.

Contents: bytes written but not synced may be lost at a crash, each 512-byte sector for itself, and
a file that grew may keep any part of its growth. Names: what was created, renamed or removed since
the folder's last sync may be undone, newest first. With no random source a crash is the worst case
that is still simple: everything unsynced is lost.

Jobs: a job of the disk thread runs between ``begin_job`` and ``end_job``, its syncs hold from
``complete_job`` on; a crash in between keeps a prefix of its steps. Faults (failed calls, a full
disk, rot, an older state put back) strike when armed and are noted in ``faults_done``.

Must behave as ``DiskFileSystem`` as long as nothing of that happens, and must draw from a random
source alone: no order of hashing, no clock. Exact for one thread; several may use it as they may
use the real one, as long as no job is in flight.
"""

import errno
from pathlib import Path
from typing import Final, NamedTuple

from splitbrain.contracts.random_source import RandomSource
from splitbrain.simulation.disk.content import SECTOR_BYTES, Content
from splitbrain.simulation.disk.faults import DiskFaultNote
from splitbrain.simulation.disk.files import FilesInMemory
from splitbrain.simulation.disk.jobs import RotStep, SyncStep
from splitbrain.simulation.disk.names import folder_of

__all__ = ["SECTOR_BYTES", "Aftermath", "DiskFaultNote", "DiskSnapshot", "MemoryFileSystem"]

_DRAWS_MAX: Final = 64


class Aftermath(NamedTuple):
    """Losses at the end of a process."""

    #: Steps of the job in flight, and how many of them had happened.
    steps: int
    steps_kept: int
    #: Unsynced bytes that are gone, dropped steps not counted.
    lost_bytes: int
    #: Changes of names that were undone, dropped steps not counted.
    names_undone: int


class DiskSnapshot(NamedTuple):
    """The durable state of a disk at one moment."""

    #: Path and content, ascending.
    files: tuple[tuple[str, bytes], ...]
    folders: tuple[str, ...]


class MemoryFileSystem(FilesInMemory):
    """Files in memory. ``crash`` ends every open file's life: open anew afterwards."""

    # --- jobs of the disk thread

    def begin_job(self) -> None:
        """Begin a job: the operations that follow are the disk thread's.

        Raises:
            ValueError: a job is in flight.
        """
        self._jobs.begin()

    def end_job(self) -> int:
        """The job has returned, or raised, but is not complete; its number of steps.

        Raises:
            ValueError: no job is running.
        """
        return self._jobs.end()

    def complete_job(self) -> None:
        """Make the job's syncs durable from here on, with the bytes of the moment of each sync.

        A sync outside the job while it is in flight counts as durable from here on, too.

        Raises:
            ValueError: no job is in flight.
        """
        self._jobs.complete()

    @property
    def job_in_flight(self) -> bool:
        """Whether a job has begun and is not complete."""
        return self._jobs.steps is not None

    @property
    def job_steps(self) -> tuple[tuple[str, str], ...]:
        """Action and path of each step of the job in flight."""
        return tuple((step.action, step.path) for step in self._jobs.job_steps)

    # --- the end of processes

    def crash(self, random: RandomSource | None = None, *, steps: int | None = None) -> Aftermath:
        """Lose power: unsynced bytes and names go, wholly or (with ``random``) in part.

        ``steps``: how many of the job in flight had happened; drawn if None, 0 without ``random``.

        Raises:
            ValueError: the job has fewer steps.
        """
        total, kept = self._interrupt_job(random, steps, otherwise=0)
        names_undone = self._names.crash(random)
        contents = self._names.current
        lost_bytes = sum([contents[path].crash(random) for path in sorted(contents)])
        self._end_process()
        return Aftermath(total, kept, lost_bytes, names_undone)

    def kill(self, random: RandomSource | None = None, *, steps: int | None = None) -> Aftermath:
        """End the process alone: locks and open files go, everything written stays.

        ``steps``: as for ``crash``, but all of them without ``random``.

        Raises:
            ValueError: the job has fewer steps.
        """
        total, kept = self._interrupt_job(random, steps, otherwise=len(self._jobs.job_steps))
        self._end_process()
        return Aftermath(total, kept, 0, 0)

    # --- the durability oracle

    def durable_equals(self, path: Path, start: int, end: int) -> bool:
        """Whether bytes [start, end) of the file, as they are now, survive any crash from now on.

        While a job is in flight none of its steps counts as durable; one that takes bytes away and
        puts the same ones back is not seen. Flushed bytes that rot are equal still.
        """
        text = str(path)
        content = self._names.current.get(text)
        if content is None or not self._names.is_durable(text, folder_of(text)):
            return False
        return content.is_durable(start, end)

    def durable_content(self, path: Path) -> bytes | None:
        """Return the content that the worst crash would leave under this name; None: no file."""
        content = self._names.durable.get(str(path))
        return None if content is None else bytes(content.durable)

    # --- faults

    @property
    def faults_done(self) -> list[DiskFaultNote]:
        """Faults that struck, in order; the list itself, whoever reads it may clear it."""
        return self._faults.done

    def fail_next(
        self, action: str, error_number: int, count: int | None = 1, path_suffix: str | None = None
    ) -> None:
        """Let the next ``count`` calls of ``action`` fail, on paths that end in ``path_suffix``.

        None: all of them until ``clear_faults``.

        A failed write has written the first half. A failed sync makes nothing durable, nor does one
        after it: the pages count as clean. A failed sync of a folder can be repeated.

        Raises:
            ValueError: no such action or errno.
        """
        self._faults.arm(action, error_number, count, path_suffix)

    def fail_reads(self, path_suffix: str, error_number: int = errno.EIO) -> None:
        """Let all reads of files whose path ends so fail until ``clear_faults``."""
        self._faults.arm("read", error_number, None, path_suffix)

    def clear_faults(self) -> None:
        """No failure is armed any more, and capacity is without limit; rot stays."""
        self._faults.clear()

    def rot(self, path: Path, position: int, mask: int = 0x01) -> None:
        """Flip bits of one byte, in what the disk holds too.

        Raises:
            FileNotFoundError: there is no such file.
            IndexError: the file is shorter.
        """
        content = self._content(path)
        if not 0 <= position < len(content.current):
            raise IndexError(f"{path} has no byte {position}")
        self._jobs.perform(RotStep(str(path), content, position, mask))
        self._faults.note("rot", str(path), position)

    def rot_choices(
        self, random: RandomSource, *path_suffixes: str
    ) -> tuple[Path, int, int] | None:
        """Draw a flushed byte of a file whose path ends in one of these, and one bit; None: none.

        Without suffixes any file may be drawn.
        """
        files = [
            (path, content)
            for path, content in sorted(self._names.current.items(), key=lambda item: item[0])
            if path.endswith(path_suffixes or ("",))
            and self._names.is_durable(path, folder_of(path))
        ]
        total = sum(len(content.durable) for _, content in files)
        for _ in range(_DRAWS_MAX if total else 0):
            position = int(random.random() * total)
            for path, content in files:
                if position < len(content.durable):
                    if content.is_flushed(position) and not self._on_the_way(content, position):
                        return Path(path), position, 1 << int(random.random() * 8)
                    break
                position -= len(content.durable)
        return None

    def snapshot(self) -> DiskSnapshot:
        """Return the durable state: what the worst crash would leave."""
        durable = self._names.durable
        files = tuple((path, bytes(durable[path].durable)) for path in sorted(durable))
        return DiskSnapshot(files, tuple(self._folders))

    def restore(self, snapshot: DiskSnapshot) -> None:
        """Put the disk back to an older state; the process that runs on it ends."""
        self._replace(snapshot)
        self._faults.note("restored", "/")

    def put(self, path: Path, data: bytes) -> None:
        """Give a file other bytes behind the back of whoever wrote it; nothing runs on the disk.

        Raises:
            FileNotFoundError: there is no such file.
        """
        content = self._content(path)
        fresh = Content()
        fresh.current[:] = fresh.durable[:] = data
        content.current, content.durable = fresh.current, fresh.durable
        content.dirty, content.resized = fresh.dirty, fresh.resized
        self._faults.note("restored", str(path))

    def wipe(self) -> None:
        """Put an empty disk in its place; the process that runs on it ends."""
        self._replace(DiskSnapshot((), ("/",)))
        self._faults.note("wiped", "/")

    def _interrupt_job(
        self, random: RandomSource | None, steps: int | None, *, otherwise: int
    ) -> tuple[int, int]:
        total = len(self._jobs.job_steps)
        if steps is not None and not 0 <= steps <= total:
            raise ValueError(f"the job in flight has {total} steps, not {steps}")
        kept = otherwise
        if steps is not None:
            kept = steps
        elif random is not None and total:
            kept = int(random.random() * (total + 1))
        self._jobs.interrupt(kept)
        return total, kept

    def _end_process(self) -> None:
        self._faults.tell_anew()
        self._held.clear()
        self.life += 1

    def _replace(self, snapshot: DiskSnapshot) -> None:
        self._jobs.interrupt(0)
        contents: dict[str, Content] = {}
        for path, data in snapshot.files:
            contents[path] = content = Content()
            content.current[:] = content.durable[:] = data
        self._names.replace(contents)
        self._folders = dict.fromkeys(snapshot.folders)
        self._end_process()

    def _on_the_way(self, content: Content, position: int) -> bool:
        """Whether a sync in flight takes this byte to the disk."""
        return any(
            isinstance(step, SyncStep) and step.covers(content, position)
            for step in self._jobs.steps or ()
        )
