"""One night: its folder, its plan, its lock; begun anew or gone on with after a crash.

``<runs>/suites/<suite>/<night>/night.json`` holds the planned runs, so that a resumed night does
exactly what it set out to do. The ledger alone says which of them are done. A lock in the folder,
held by the suite's process, keeps a second one from working on the same night.
"""

import datetime as dt
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from splitbrain.contracts.errors import UNREADABLE, HarnessError, UsageError
from splitbrain.harness.campaign.suite.definition import PlannedRun
from splitbrain.harness.campaign.suite.ledger import (
    Line,
    NightBegan,
    NightEnded,
    PlannedCell,
    RunEnded,
)
from splitbrain.harness.console.stop import patiently
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import ELSEWHERE, tell_refusal
from splitbrain.harness.folder.store import new_folder
from splitbrain.history.json_problems import in_words

NIGHT_SCHEMA = 1
#: A suite that is killed while it starts a child leaves its lock with the child until that has
#: become its own program.
_LOCK_PATIENCE_S = 2.0
_LOCK_INTERVAL_S = 0.05


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``night.json``."""

    schema: int = NIGHT_SCHEMA
    suite: str
    #: UTC time of its beginning; the folder's name, unique within the suite.
    night: str
    night_seed: int
    digest: str
    ledger: str
    runs: tuple[PlannedRun, ...]


class NightFolder:
    """Paths of one night; makes nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: The night's plan.
        self.record = root / "night.json"
        #: Held (flock) by the suite's process.
        self.lock = root / "lock"
        self.summary = root / "summary.md"
        self.junit = root / "junit.xml"

    def attempts(self, run: PlannedRun) -> Path:
        """Return the folder of the attempts at one run, one folder each."""
        return self.root / "runs" / run.folder_name


class OpenNight:
    """A night with its lock held; leaving the context releases it."""

    def __init__(self, folder: NightFolder, night: Night, descriptor: int) -> None:
        self.folder = folder
        self.night = night
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock; harmless when called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def begin(
    suites: Path,
    suite: str,
    night_seed: int,
    *,
    digest: str,
    ledger: Path,
    runs: tuple[PlannedRun, ...],
) -> OpenNight:
    """Make, lock and plan the folder of a new night; raise HarnessError if the disk refuses."""
    stamp = now().strftime("%Y%m%dT%H%M%SZ")
    with tell_refusal("make the folder of the night", suites, ELSEWHERE):
        folder = NightFolder(new_folder(suites / suite, stamp, digits=2))
        descriptor = _take_lock(folder)
        night = Night(
            suite=suite,
            night=folder.root.name,
            night_seed=night_seed,
            digest=digest,
            ledger=str(ledger),
            runs=runs,
        )
        write_atomically(
            folder.record, msgspec.json.format(msgspec.json.encode(night), indent=1) + b"\n"
        )
    return OpenNight(folder, night, descriptor)


def latest(suites: Path, suite: str) -> NightFolder | None:
    """Return the newest night of a suite that has a plan; without one it did nothing."""
    plans = sorted((suites / suite).glob("*/night.json"))
    return NightFolder(plans[-1].parent) if plans else None


def reopen(folder: NightFolder) -> OpenNight:
    """Go on with a night; raise HarnessError if another process does, or it cannot be read."""
    try:
        night = msgspec.json.decode(folder.record.read_bytes(), type=Night)
        descriptor = patiently(
            lambda: _take_lock(folder), _LOCK_PATIENCE_S, _LOCK_INTERVAL_S, BlockingIOError
        )
    except BlockingIOError as error:
        next_step = "Wait for it, or begin a night beside it with --fresh."
        raise _not_reopened(folder, "another process is working on it", next_step) from error
    except (OSError, *UNREADABLE) as error:
        next_step = "Begin a new one with --fresh."
        raise _not_reopened(folder, in_words(error), next_step) from error
    return OpenNight(folder, night, descriptor)


def _not_reopened(folder: NightFolder, problem: str, next_step: str) -> HarnessError:
    return HarnessError("go on with the night", str(folder.root), problem, next_step)


def refuse_other_ledger(night: Night, ledger: Path) -> None:
    """Refuse another ledger than the night's; raise UsageError."""
    if night.ledger != str(ledger):
        problem = f"the night {night.night} is kept in the ledger {night.ledger}, not in {ledger}"
        next_step = f"Go on with --ledger {night.ledger}, or begin a new night with --fresh"
        raise UsageError(problem, next_step)


def header(night: Night) -> NightBegan:
    """Return the night's first line in the ledger."""
    cells: dict[str, list[PlannedRun]] = {}
    for run in night.runs:
        cells.setdefault(run.cell, []).append(run)
    return NightBegan(
        suite=night.suite,
        night=night.night,
        night_seed=night.night_seed,
        digest=night.digest,
        at=now().isoformat(timespec="seconds"),
        cells=tuple(
            PlannedCell(runs[0].matrix, cell, len(runs), runs[0].expect, runs[0].at_least)
            for cell, runs in cells.items()
        ),
    )


def lines_of(lines: Sequence[Line], night: Night) -> list[Line]:
    """Return the ledger's lines of one night."""
    return [line for line in lines if line.suite == night.suite and line.night == night.night]


def done(lines: Sequence[Line]) -> dict[int, RunEnded]:
    """Return the finished runs of one night's lines, by their number."""
    return {line.number: line for line in lines if isinstance(line, RunEnded)}


def has_ended(lines: Sequence[Line]) -> bool:
    """Return whether one night's lines say that it is over."""
    return any(isinstance(line, NightEnded) for line in lines)


def used_s(lines: Sequence[Line]) -> float:
    """Return seconds that earlier processes worked on one night, by its lines."""
    sessions: dict[int, float] = {}
    for line in done(lines).values():
        sessions[line.session] = max(sessions.get(line.session, 0.0), line.session_s)
    return sum(sessions.values())


def now() -> dt.datetime:
    """Return the wall clock in UTC; for people and names only."""
    return dt.datetime.now(dt.UTC)


def _take_lock(folder: NightFolder) -> int:
    descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    return descriptor
