"""Errors of a history itself, as opposed to violations in it.

A malformed history says nothing about the system under test, so these are errors of the input (exit
code 3), never a verdict. A broken line, or an operation that cannot be used, is left out and
counted only for users who ask for it; the judgement of the rest must then say that something is
missing and can call nothing proven.
"""

from pathlib import Path

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.json_problems import in_words


class HistoryError(HarnessError):
    """Unreadable or senseless history; of the event or line, from 1, what is known is kept."""

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
        self.index, self.line, self.byte_offset = index, line, byte_offset


class PairingError(HistoryError):
    """Events that do not form operations: the recorder or an editor broke the rules."""

    def __init__(self, problem: str, index: int) -> None:
        next_step = (
            "Each process runs one operation at a time; "
            "check how the history was recorded or imported."
        )
        super().__init__(f"event {index}", problem, next_step, index=index)


REPAIR = "Repair the line, or remove it with its whole operation; --skip-broken leaves it out"
#: Broken lines described; the others are counted.
_FIRST_MAX = 1000


class BrokenLine(msgspec.Struct, frozen=True):
    """Unusable line or operation of the file."""

    #: From 1; None where only the place among the operations is known.
    line: int | None
    byte_offset: int | None
    problem: str

    @property
    def place(self) -> str:
        """Return ``line 3 at byte 71``, empty where it is not known."""
        at = "" if self.byte_offset is None else f" at byte {self.byte_offset}"
        return "" if self.line is None else f"line {self.line}{at}"


class BrokenLines:
    """Broken lines of a file; raises for the first unless they are to be left out."""

    def __init__(self, path: Path, *, skip: bool = False) -> None:
        self._path = path
        #: Whether broken lines are left out.
        self.skips = skip
        #: First ones, in the order of their discovery.
        self.first: list[BrokenLine] = []
        #: Number of all.
        self.count = 0
        #: Length of torn last lines that were left out, None if there was none.
        self.torn_bytes: int | None = None

    def tear(self, torn_bytes: int) -> None:
        """Leave out a last line that was cut by the death of its writer.

        Never an error: the lines before it can be judged as a beginning.
        """
        self.torn_bytes = (self.torn_bytes or 0) + torn_bytes

    def add_error(
        self, line: int, byte_offset: int, error: Exception, *, path: Path | None = None
    ) -> None:
        """Leave out a line that a decoder refused; see ``add``.

        Raises:
            HistoryError: nothing may be left out.
        """
        next_step: str = getattr(error, "next_step", REPAIR)
        self.add(line, byte_offset, in_words(error), next_step=next_step, path=path)

    def add(
        self,
        line: int | None,
        byte_offset: int | None,
        problem: str,
        *,
        next_step: str = REPAIR,
        index: int | None = None,
        path: Path | None = None,
    ) -> None:
        """Leave something out; ``path`` is its file where the history is a folder of several.

        Raises:
            HistoryError: nothing may be left out.
        """
        broken = BrokenLine(line, byte_offset, problem)
        if not self.skips:
            target = f"{path or self._path}{f', {broken.place}' if broken.place else ''}"
            raise HistoryError(
                target, problem, next_step, index=index, line=line, byte_offset=byte_offset
            )
        self.count += 1
        if len(self.first) < _FIRST_MAX:
            self.first.append(broken)
