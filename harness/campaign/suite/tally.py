"""Sums of the ledger: one night, and all nights by commit; pure, from lines alone.

The rule of a night's exit code stands here: an unexpected violation wins over all; then failures of
the harness and a night whose planted bugs went unseen; then runs that prove nothing. Source: issue
4, item 8; design, section 6.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from splitbrain.harness.campaign.suite.ledger import (
    VERDICTS,
    Line,
    NightBegan,
    NightEnded,
    PlannedCell,
    RunEnded,
    Verdict,
)
from splitbrain.harness.folder.coverage_cells import CoverageCell, sum_coverage
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
)

#: In place of the commit of a tool that was installed, not checked out.
NO_COMMIT: Final = "no commit"


class CellTally(msgspec.Struct, frozen=True):
    """One cell in one night."""

    planned: PlannedCell
    counts: dict[Verdict, int]
    as_expected: int
    seconds: float

    @property
    def finished(self) -> int:
        """Return the number of runs in the ledger."""
        return sum(self.counts.values())

    @property
    def is_toothless(self) -> bool:
        """Return whether the remaining runs cannot make up for those that missed the bug."""
        left = self.planned.planned - self.finished
        return self.planned.expect == "invalid" and self.as_expected + left < self.planned.at_least

    @property
    def lacks_teeth(self) -> bool:
        """Return whether fewer runs than needed saw the planted bug so far."""
        return self.planned.expect == "invalid" and self.as_expected < self.planned.at_least


class NightTally(msgspec.Struct, frozen=True):
    """One night."""

    began: NightBegan
    ended: NightEnded | None
    cells: tuple[CellTally, ...]
    runs: tuple[RunEnded, ...]

    @property
    def planned(self) -> int:
        """Return the number of planned runs."""
        return sum(cell.planned.planned for cell in self.cells)

    @property
    def violations(self) -> tuple[RunEnded, ...]:
        """Return unexpected violations."""
        return tuple(run for run in self.runs if run.expect == "valid" and run.verdict == "invalid")

    @property
    def failures(self) -> tuple[RunEnded, ...]:
        """Return runs in which the harness or its environment failed."""
        return tuple(run for run in self.runs if run.verdict == "failed")

    @property
    def inconclusive(self) -> tuple[RunEnded, ...]:
        """Return runs that prove nothing."""
        undecided = ("unknown", "vacuous")
        return tuple(run for run in self.runs if run.expect == "valid" and run.verdict in undecided)

    @property
    def unseen(self) -> tuple[RunEnded, ...]:
        """Return runs with a planted bug that ended without finding it."""
        planted = [run for run in self.runs if run.expect == "invalid"]
        return tuple(run for run in planted if not run.as_expected and run.verdict != "failed")

    @property
    def toothless(self) -> tuple[CellTally, ...]:
        """Return cells whose planted bug went unseen; any of them makes the night void."""
        if self.ended is not None:
            return tuple(cell for cell in self.cells if cell.lacks_teeth)
        return tuple(cell for cell in self.cells if cell.is_toothless)

    @property
    def has_looked(self) -> bool:
        """Return whether any cell whose planted bug went unseen had a run."""
        return any(cell.finished for cell in self.toothless)

    @property
    def is_void(self) -> bool:
        """Return whether its valid runs mean nothing."""
        return bool(self.toothless)

    @property
    def uncovered(self) -> tuple[CellTally, ...]:
        """Return cells without a finished run."""
        return tuple(cell for cell in self.cells if not cell.finished)

    @property
    def cut(self) -> tuple[CellTally, ...]:
        """Return cells with fewer runs than planned."""
        return tuple(cell for cell in self.cells if cell.finished < cell.planned.planned)

    @property
    def exit_code(self) -> int:
        """Return 1 for a violation, 3 failed or void, 2 nothing proven or not over, else 0."""
        if self.violations:
            return EXIT_INVALID
        if self.failures or self.is_void:
            return EXIT_HARNESS_FAILED
        if self.inconclusive or self.uncovered or self.ended is None:
            return EXIT_UNKNOWN
        return EXIT_VALID

    @property
    def commits(self) -> tuple[str, ...]:
        """Return the tool's commits of its runs."""
        return tuple(dict.fromkeys(commit_text(run) for run in self.runs))


class CommitSum(msgspec.Struct):
    """All nights' runs with one commit, planted bugs apart."""

    commit: str
    nights: set[str]
    void_nights: set[str]
    #: Runs that are expected to be valid, by their verdict; valid ones of void nights do not count.
    counts: dict[Verdict, int]
    void_valid: int = 0
    #: Runs with a planted bug, and those of them that found it.
    planted: int = 0
    found: int = 0
    seconds: float = 0.0


def tally_night(lines: Iterable[Line]) -> NightTally | None:
    """Add up one night's lines; None if its first line is missing.

    A run that stands twice counts once, as a violation if it ever was one.
    """
    began: NightBegan | None = None
    ended: NightEnded | None = None
    runs: dict[int, RunEnded] = {}
    for line in lines:
        if isinstance(line, NightBegan):
            began = began or line
        elif isinstance(line, NightEnded):
            ended = line
        elif line.number not in runs or line.verdict == "invalid":
            runs[line.number] = line
    if began is None:
        return None
    in_order = tuple(runs[number] for number in sorted(runs))
    cells = tuple(_cell(planned, in_order) for planned in began.cells)
    return NightTally(began, ended, cells, in_order)


def nights_of(lines: Sequence[Line], suite: str | None = None) -> list[NightTally]:
    """Return all nights of a suite, or of all suites, by their beginnings."""
    grouped: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if suite is None or line.suite == suite:
            grouped.setdefault((line.suite, line.night), []).append(line)
    return [night for group in grouped.values() if (night := tally_night(group)) is not None]


def sum_by_commit(nights: Iterable[NightTally]) -> list[CommitSum]:
    """Return all runs of all nights, by commit, in the order of first appearance."""
    sums: dict[str, CommitSum] = {}
    for night in nights:
        name = f"{night.began.suite}/{night.began.night}"
        for run in night.runs:
            commit = commit_text(run)
            entry = sums.setdefault(
                commit, CommitSum(commit, set(), set(), dict.fromkeys(VERDICTS, 0))
            )
            entry.nights.add(name)
            entry.seconds += run.took_s
            if night.is_void:
                entry.void_nights.add(name)
            if run.expect == "invalid":
                entry.planted += 1
                entry.found += run.as_expected
            elif night.is_void and run.verdict == "valid":
                entry.void_valid += 1
            else:
                entry.counts[run.verdict] += 1
    return list(sums.values())


class CoverageSum(msgspec.Struct, frozen=True):
    """Fault coverage of all nights."""

    cells: tuple[CoverageCell, ...]
    #: Runs with known and with unknown coverage.
    known: int
    unknown: int


def sum_all_coverage(nights: Iterable[NightTally]) -> CoverageSum:
    """Sum all runs that should be valid; one with a planted bug tries nothing of the real code."""
    all_runs = [run for night in nights for run in night.runs]
    runs = [run for run in all_runs if run.expect == "valid" and not run.is_program]
    covered = [run.coverage for run in runs if run.coverage is not None]
    return CoverageSum(sum_coverage(covered), len(covered), len(runs) - len(covered))


class ProgramSum(msgspec.Struct):
    """All nights' runs of one program."""

    program: str
    runs: int = 0
    as_expected: int = 0
    #: Whole numbers of the objects on its last lines, added up by their names.
    figures: dict[str, int] = {}


def sum_programs(nights: Iterable[NightTally]) -> list[ProgramSum]:
    """Return all runs of each program, in the order of first appearance."""
    sums: dict[str, ProgramSum] = {}
    for run in (run for night in nights for run in night.runs if run.is_program):
        name = f"{run.suite}/{run.cell}"
        entry = sums.setdefault(name, ProgramSum(name))
        entry.runs += 1
        entry.as_expected += run.as_expected
        for key, value in _whole_numbers(run.output):
            entry.figures[key] = entry.figures.get(key, 0) + value
    return list(sums.values())


def commit_text(run: RunEnded) -> str:
    """Return twelve digits of the commit, and whether files differed from it."""
    commit = NO_COMMIT if run.commit is None else run.commit[:12]
    return f"{commit}-dirty" if run.dirty else commit


def _whole_numbers(output: Any) -> Iterable[tuple[str, int]]:
    for key, value in cast("dict[str, Any]", output if isinstance(output, dict) else {}).items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield key, value


def _cell(planned: PlannedCell, runs: Sequence[RunEnded]) -> CellTally:
    mine = [run for run in runs if run.cell == planned.cell]
    return CellTally(
        planned=planned,
        counts={verdict: sum(run.verdict == verdict for run in mine) for verdict in VERDICTS},
        as_expected=sum(run.as_expected for run in mine),
        seconds=sum(run.took_s for run in mine),
    )
