"""What is wrong with a history, as opposed to what the history proves.

A malformed history says nothing about the system under test, so these are errors of the input
(exit code 3), never a verdict.
"""

from splitbrain.contracts.errors import HarnessError


class HistoryError(HarnessError):
    """A history cannot be read or makes no sense.

    Args:
        target: file, format or event concerned.
        problem: what is wrong, in one clause.
        next_step: what the user can do about it.
        index: index of the offending event, where one is known.
        line: number of the offending line, from 1, where one is known.
        byte_offset: where that line starts in the file, where known.
    """

    def __init__(
        self,
        target: str,
        problem: str,
        next_step: str,
        *,
        index: int | None = None,
        line: int | None = None,
        byte_offset: int | None = None,
    ) -> None:
        super().__init__("read the history", target, problem, next_step)
        self.index = index
        self.line = line
        self.byte_offset = byte_offset


class PairingError(HistoryError):
    """The events do not form operations: the recorder or an editor broke the rules."""

    def __init__(self, problem: str, index: int) -> None:
        super().__init__(
            f"event {index}",
            problem,
            "Each process runs one operation at a time; "
            "check how the history was recorded or imported.",
            index=index,
        )
