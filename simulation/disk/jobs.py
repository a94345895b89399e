"""A job of the disk thread on the simulated disk: run at its start, complete later.

While a job is in flight every change is noted as a step that can be taken back: first those of the
job, then what the owner does meanwhile. Nothing is durable before the job completes. At a crash in
between only a prefix of the job's steps has happened: everything is undone back to there, what the
owner did is done again, and the syncs that remain take what they saw at their moment.

Must never let a step of the job stand without all steps before it.
"""

from typing import Protocol

from splitbrain.simulation.disk.content import Content, Patch, Unsynced
from splitbrain.simulation.disk.names import NameChange, Names


class Step(Protocol):
    """One change; ``undo`` is called newest first, ``do`` may follow again."""

    @property
    def action(self) -> str:
        """Operation, as in the journal of the file system."""
        ...

    @property
    def path(self) -> str:
        """Of the file or folder."""
        ...

    def do(self) -> None:
        """Change what processes see."""
        ...

    def undo(self) -> None:
        """Take it back."""
        ...

    def settle(self) -> None:
        """Take to the disk what a sync covers; called once, in order, when nothing is undone."""
        ...


class WriteStep:
    """Bytes written."""

    __slots__ = ("_before", "_content", "_data", "_position", "action", "path")

    def __init__(self, path: str, content: Content, position: int, data: bytes) -> None:
        self.action = "write"
        self.path = path
        self._content = content
        self._position = position
        self._data = data
        #: Overwritten bytes, size, ranges and flag before it.
        self._before = (b"", 0, 0, False)

    def do(self) -> None:
        """Write."""
        content, position = self._content, self._position
        overwritten = bytes(content.current[position : position + len(self._data)])
        size_bytes = len(content.current)
        self._before = (overwritten, size_bytes, len(content.dirty), content.resized)
        content.write(position, self._data)

    def undo(self) -> None:
        """Put the overwritten bytes back."""
        content, position = self._content, self._position
        overwritten, size_bytes, ranges, content.resized = self._before
        content.current[position : position + len(overwritten)] = overwritten
        del content.current[size_bytes:]
        del content.dirty[ranges:]

    def settle(self) -> None:
        """Only a sync makes it durable."""


class TruncateStep:
    """A file cut or extended."""

    __slots__ = ("_before", "_content", "_size_bytes", "action", "path")

    def __init__(self, path: str, content: Content, size_bytes: int) -> None:
        self.action = "truncate"
        self.path = path
        self._content = content
        self._size_bytes = size_bytes
        #: Bytes cut off, size and what was unsynced before it.
        self._before = (b"", 0, Unsynced([], resized=False))

    def do(self) -> None:
        """Cut or extend."""
        content = self._content
        unsynced = Unsynced(content.dirty[:], content.resized)
        cut_off = bytes(content.current[self._size_bytes :])
        self._before = (cut_off, len(content.current), unsynced)
        content.truncate(self._size_bytes)

    def undo(self) -> None:
        """Put back what was cut off."""
        content = self._content
        cut_off, size_bytes, unsynced = self._before
        del content.current[size_bytes:]
        content.current += cut_off
        content.dirty, content.resized = unsynced.ranges[:], unsynced.resized

    def settle(self) -> None:
        """Only a sync makes it durable."""


class SyncStep:
    """A file synced, or a sync that failed: clean, and nothing on the disk."""

    __slots__ = ("_content", "_failed", "_patch", "_unsynced", "action", "path")

    def __init__(self, path: str, content: Content, *, failed: bool = False) -> None:
        self.action = "sync"
        self.path = path
        self._content = content
        self._failed = failed
        self._unsynced = Unsynced([], resized=False)
        self._patch = Patch(None, [])

    def do(self) -> None:
        """Note what the sync takes along."""
        self._unsynced = self._content.take_unsynced()
        if not self._failed:
            self._patch = self._content.patch(self._unsynced)

    def undo(self) -> None:
        """Make it dirty again."""
        self._content.give_back(self._unsynced)

    def settle(self) -> None:
        """Note that the disk has it."""
        self._content.settle(self._patch)

    def covers(self, content: Content, position: int) -> bool:
        """Whether the byte is on its way to the disk."""
        return content is self._content and any(
            start <= position < start + len(data) for start, data in self._patch.parts
        )


class NameStep:
    """A name made, changed or removed."""

    __slots__ = ("_after", "_change", "_folder", "_names", "action", "path")

    def __init__(
        self,
        action: str,
        path: str,
        folder: str,
        names: Names,
        after: tuple[tuple[str, Content | None], ...],
    ) -> None:
        self.action = action
        self.path = path
        self._folder = folder
        self._names = names
        self._after = after
        self._change: NameChange | None = None

    def do(self) -> None:
        """Change the names."""
        self._change = self._names.change(self._folder, self._after)

    def undo(self) -> None:
        """Take it back."""
        if self._change is not None:
            self._names.undo(self._change)

    def settle(self) -> None:
        """Only a sync of the folder makes it durable."""


class SyncFolderStep:
    """The names of a folder synced."""

    __slots__ = ("_changes", "_names", "action", "path")

    def __init__(self, folder: str, names: Names) -> None:
        self.action = "sync-folder"
        self.path = folder
        self._names = names
        self._changes: list[NameChange] = []

    def do(self) -> None:
        """Note which changes it covers."""
        self._changes = self._names.take_pending(self.path)

    def undo(self) -> None:
        """Let them wait again."""
        self._names.give_back(self.path, self._changes)

    def settle(self) -> None:
        """Note that the disk has them."""
        self._names.settle(self._changes)


class RotStep:
    """A byte that rotted while a job was in flight."""

    __slots__ = ("_content", "_mask", "_position", "action", "path")

    def __init__(self, path: str, content: Content, position: int, mask: int) -> None:
        self.action = "rot"
        self.path = path
        self._content = content
        self._position = position
        self._mask = mask

    def do(self) -> None:
        """Flip the bits."""
        self._content.flip(self._position, self._mask)

    def undo(self) -> None:
        """Flip them back."""
        self._content.flip(self._position, self._mask)

    def settle(self) -> None:
        """Note that it is on the disk already."""


class JobLog:
    """The job in flight, if there is one, and what was done since it began."""

    def __init__(self) -> None:
        #: None: no job is in flight.
        self.steps: list[Step] | None = None
        #: Number of steps of the job itself; None while it runs.
        self._job_steps: int | None = None

    @property
    def job_steps(self) -> tuple[Step, ...]:
        """Steps of the job in flight, in order."""
        return tuple(self.steps[: self._job_steps]) if self.steps is not None else ()

    def begin(self) -> None:
        """From here on steps are the job's."""
        if self.steps is not None:
            raise ValueError("a job is in flight; complete it before the next one begins")
        self.steps = []
        self._job_steps = None

    def end(self) -> int:
        """From here on steps are the owner's; number of the job's."""
        if self.steps is None or self._job_steps is not None:
            raise ValueError("no job is running")
        self._job_steps = len(self.steps)
        return self._job_steps

    def perform(self, step: Step) -> None:
        """Do a step, note it if a job is in flight, settle it if none is."""
        step.do()
        if self.steps is None:
            step.settle()
        else:
            self.steps.append(step)

    def complete(self) -> None:
        """Everything that was synced meanwhile is on the disk."""
        if self.steps is None or self._job_steps is None:
            raise ValueError("no job is in flight that has ended")
        steps, self.steps = self.steps, None
        for step in steps:
            step.settle()

    def interrupt(self, kept: int) -> None:
        """Only the first ``kept`` steps of the job happened; everything of the owner's did."""
        if self.steps is None:
            return
        steps, self.steps = self.steps, None
        others = steps[self._job_steps :] if self._job_steps is not None else []
        for step in reversed(steps[kept:]):
            step.undo()
        for step in others:
            step.do()
        for step in (*steps[:kept], *others):
            step.settle()
