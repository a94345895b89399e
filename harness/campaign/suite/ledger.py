"""The ledger: one JSON line per finished run, appended for years and never changed.

A line is written whole and synced before anything else follows from it. Several suites may append
to one ledger: each takes its lock (``flock``) for the moment of writing. A line that a crash tore
off at the end was never acknowledged and is cut away by the next writer; a broken line anywhere
else is refused, because sums over it would lie. Source: issue 4, item 8.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.harness.campaign.suite.definition import Expectation
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.history.json_problems import in_words

LEDGER_SCHEMA = 1

#: valid: all was judged and nothing found; failed: the harness or its environment failed.
Verdict = Literal["valid", "invalid", "unknown", "vacuous", "failed"]
VERDICTS: tuple[Verdict, ...] = ("valid", "invalid", "unknown", "vacuous", "failed")


class PlannedCell(msgspec.Struct, frozen=True):
    """Intention of a night for one cell."""

    matrix: str
    cell: str
    planned: int
    expect: Expectation
    #: expect invalid: least number of such runs; else 0.
    at_least: int


class NightBegan(msgspec.Struct, frozen=True, tag_field="kind", tag="night-began", kw_only=True):
    """The first line of a night."""

    schema: int = LEDGER_SCHEMA
    suite: str
    night: str
    #: Fresh seeds were drawn from it.
    night_seed: int
    digest: str
    #: UTC, ISO 8601.
    at: str
    cells: tuple[PlannedCell, ...]


class RunEnded(msgspec.Struct, frozen=True, tag_field="kind", tag="run", kw_only=True):
    """One finished run or program."""

    schema: int = LEDGER_SCHEMA
    suite: str
    night: str
    #: Place in the night's order, from 1; with the night it names the run.
    number: int
    #: Number of the suite's process within the night, from 1; more than one after a crash.
    session: int
    #: Seconds from that process' start to the end of this run.
    session_s: float
    is_program: bool = False
    matrix: str
    cell: str
    options: dict[str, Any]
    seed: int
    #: Commit of the tool, None outside a work tree; ``dirty``: files differed from it.
    commit: str | None
    dirty: bool
    tool_version: str
    system_versions: dict[str, str] = {}
    #: UTC, ISO 8601.
    started: str
    took_s: float
    verdict: Verdict
    #: Reasons why it proves nothing.
    vacuous: tuple[str, ...] = ()
    #: None where the process outlived the suite's.
    exit_code: int | None
    violated: tuple[str, ...] = ()
    sentence: str | None = None
    run_folder: str | None
    reproduce: str
    expect: Expectation
    as_expected: bool
    #: Number of the try; earlier ones died undecided.
    attempt: int = 1
    #: Program: its last line, where that is JSON.
    output: Any = None
    #: Fault coverage; None where unknown, as in lines of earlier versions.
    coverage: tuple[CoverageCell, ...] | None = None


class NightEnded(msgspec.Struct, frozen=True, tag_field="kind", tag="night-ended", kw_only=True):
    """The last line of a night."""

    schema: int = LEDGER_SCHEMA
    suite: str
    night: str
    at: str
    #: done: all planned runs; budget: time was up; replaced: a new night began instead.
    reason: Literal["done", "budget", "replaced"]


Line = NightBegan | RunEnded | NightEnded

_decoder = msgspec.json.Decoder(Line)


class Ledger:
    """The ledger at one path; threads may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: Line) -> None:
        """Write one line and sync it; raise HarnessError if the disk refuses."""
        with tell_refusal(
            "write the ledger",
            self.path,
            "Make room on that disk, or choose another place with --ledger.",
        ):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                end = _whole_end(descriptor)
                _write_at_end(descriptor, end, msgspec.json.encode(line) + b"\n")
            finally:
                os.close(descriptor)

    def lines(self) -> list[Line]:
        """Return all lines in order, without a torn last one; empty where there is no ledger.

        Raises:
            HarnessError: it cannot be read, or a line is broken.
        """
        content = b""
        with (
            tell_refusal("read the ledger", self.path, "Name another one with --ledger."),
            suppress(FileNotFoundError),
        ):
            content = self.path.read_bytes()
        whole, _, last = content.rpartition(b"\n")
        numbered = enumerate(whole.split(b"\n"), start=1)
        lines = [self._decode(line, number) for number, line in numbered if line]
        if _is_whole(last):
            lines.append(_decoder.decode(last))
        return lines

    def _decode(self, line: bytes, number: int) -> Line:
        try:
            decoded = _decoder.decode(line)
        except UNREADABLE as error:
            raise self._broken(number, f"is no line of a ledger: {in_words(error)}") from error
        if decoded.schema != LEDGER_SCHEMA:
            raise self._broken(number, f"has schema {decoded.schema}, not {LEDGER_SCHEMA}")
        return decoded

    def _broken(self, number: int, how: str) -> HarnessError:
        next_step = f"Repair line {number}, or begin another ledger with --ledger."
        problem = f"line {number} {how}"
        return HarnessError("read the ledger", str(self.path), problem, next_step)


def _is_whole(line: bytes) -> bool:
    """Return whether these bytes after the last newline are a line that lacks only its end."""
    try:
        _decoder.decode(line)
    except UNREADABLE:
        return False
    return True


def _whole_end(descriptor: int) -> int:
    """Return the place of the next line: a torn last line is cut away."""
    size = os.fstat(descriptor).st_size
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        step = min(start, 1 << 16)
        start -= step
        tail = os.pread(descriptor, step, start) + tail
    last = tail[tail.rfind(b"\n") + 1 :]
    if last and _is_whole(last):
        _write_at_end(descriptor, size, b"\n")
        return size + 1
    return size - len(last)


def _write_at_end(descriptor: int, end: int, content: bytes) -> None:
    """Make the file end with ``content`` at ``end``, on the disk; on failure make it end there."""
    os.ftruncate(descriptor, end)
    try:
        written = 0
        while written < len(content):
            written += os.pwrite(descriptor, content[written:], end + written)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, end)
        raise
