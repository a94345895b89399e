"""The two ways in which the core gives up, and the one in which it refuses to start.

An ``InvariantViolation`` is a bug of ours and is raised to the host. A ``HaltRequested`` never
leaves the core: it becomes the effect ``Halt``, for what a *peer* said that must not be obeyed
(two leaders in one epoch, a truncation of committed records). Keep the two apart.
"""


class InvariantViolation(Exception):
    """Something that must never happen has happened here; the replica fills in the story."""

    def __init__(self, invariant: str, problem: str, story: tuple[str, ...] = ()) -> None:
        super().__init__(invariant, problem)
        self.invariant = invariant
        self.problem = problem
        self.story = story

    def __str__(self) -> str:
        lines = (f"{self.invariant}: {self.problem}", *(f"  {line}" for line in self.story))
        return "\n".join(lines)


class StorageMismatch(Exception):
    """State on disk that this node cannot have left behind: refuse to start."""


class UnreadableRecordError(Exception):
    """The state machine above the log meets a record, or a snapshot's, that it does not know.

    Never raised by the core, which looks into no record: named here for hosts and machines alike.
    """


class HaltRequested(Exception):
    """Stop for good; caught by the replica, which turns it into the effect ``Halt``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
