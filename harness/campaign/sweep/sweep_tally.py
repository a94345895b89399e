"""Running counts of a sweep, and the exit code that follows.

Counts only: a sweep of a million seeds must fit into memory, failures apart. Must never count a
seed twice, nor one that could not be run.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from splitbrain.harness.campaign.sweep.trial import SeedResult
from splitbrain.harness.folder.coverage_cells import CoverageCell, sum_coverage
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
)

#: Prefix of figures that say how far something went, not how often it happened.
_HIGHEST = "highest_"
#: Numbers, also within a word, such as a node's name; a list of them is one match.
_NUMBERS = re.compile(r"\d[\d,.]*(?<![,.])")
CONFIDENCE = 0.95


class Mismatch(msgspec.Struct, frozen=True):
    """A seed whose second run was not its first one."""

    seed: int
    first: SeedResult
    second: SeedResult

    @property
    def sentence(self) -> str:
        """Return the difference in one sentence."""
        first, second = self.first, self.second
        if first.trace_hash != second.trace_hash:
            what = f"trace hash {first.trace_hash} and then {second.trace_hash}"
        else:
            what = f"{first.steps:,} steps and then {second.steps:,}, with one trace hash"
        return f"Seed {self.seed} was run twice and came out differently: {what}."


#: Finders of a failure, and the finding without its nodes, offsets and moments.
FailureClass: TypeAlias = tuple[tuple[str, ...], str]


def failure_class(result: SeedResult) -> FailureClass:
    """Return the class of a failure; for people, nothing is judged by it."""
    if result.violation is not None and result.violation.kind is not None:
        return result.failed_by, result.violation.kind
    sentence = result.sentence if result.crash is None else result.crash.strip().splitlines()[-1]
    first = re.split(r"[.:;] ", sentence or "", maxsplit=1)[0]
    # The words in brackets behind it name place and time.
    return result.failed_by, _NUMBERS.sub("#", first.partition(" (")[0].rstrip(".:;"))


def failure_groups(failures: Iterable[SeedResult]) -> list[list[SeedResult]]:
    """Return failures by class, each by seed; the largest class first, then by the first seed."""
    groups: dict[FailureClass, list[SeedResult]] = {}
    for failure in sorted(failures, key=lambda failure: failure.seed):
        groups.setdefault(failure_class(failure), []).append(failure)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].seed))


class SweepTally:
    """Counts of a sweep, filled by ``take``, one result after another.

    ``keeps_hashes``: remember every seed's trace hash.
    """

    def __init__(self, *, keeps_hashes: bool = False, first_seed: int = 0) -> None:
        self._keeps_hashes = keeps_hashes
        #: Seeds that were tried, also those that could not be run.
        self.tried = 0
        #: Seeds whose worlds are none that were asked for.
        self.skipped = 0
        #: The first seed that was neither tried nor skipped; seeds go out in order, so that few
        #: wait behind it.
        self.first_untried = first_seed
        self._tried_behind: set[int] = set()
        #: Whether the time limit was over before the last result.
        self.is_out_of_time = False
        #: Seeds with a result; of those the failed and the undecided ones.
        self.done = 0
        self.failed = 0
        self.undecided = 0
        #: First result of each seed that failed, in the order of arrival.
        self.failures: list[SeedResult] = []
        self.folders: dict[int, str] = {}
        self.crashes: list[SeedResult] = []
        #: Seeds run twice and found equal.
        self.checked = 0
        self.mismatches: list[Mismatch] = []
        #: Finder to its number of seeds.
        self.found_by: Counter[str] = Counter()
        #: Undecided checker to its number of seeds.
        self.unknown_by: Counter[str] = Counter()
        #: Undecided checker to its first seed, and why.
        self.unknown_first: dict[str, tuple[int, str]] = {}
        self.figures: Counter[str] = Counter()
        self.operations = 0
        self.steps = 0
        self.virtual_us = 0
        self.coverage: tuple[CoverageCell, ...] = ()
        #: By seed, where they are kept.
        self.hashes: dict[int, str] = {}
        self._awaiting_second: dict[int, SeedResult] = {}

    @property
    def crashed(self) -> int:
        """Return the number of seeds that could not be run."""
        return len(self.crashes)

    def await_second(self, first: SeedResult) -> None:
        """Expect a second run of the seed, which must come out the same."""
        self._awaiting_second[first.seed] = first

    def take(self, result: SeedResult) -> None:
        """Count one result."""
        if result.purpose == "first":
            self.tried += not result.is_skipped
            self.skipped += result.is_skipped
            self._count_behind(result.seed)
        if result.is_skipped:
            return
        if result.crash is not None:
            self.crashes.append(result)
            self._awaiting_second.pop(result.seed, None)
            return
        if result.purpose != "first":
            self._compare(result)
            return
        self.done += 1
        if self._keeps_hashes:
            self.hashes[result.seed] = result.trace_hash
        self.operations += result.operations
        self.steps += result.steps
        self.virtual_us += result.virtual_us
        self.coverage = sum_coverage((self.coverage, result.coverage))
        for name, count in result.figures.items():
            if name.startswith(_HIGHEST):
                self.figures[name] = max(self.figures[name], count)
            else:
                self.figures[name] += count
        for checker, reason in result.unknown.items():
            self.unknown_by[checker] += 1
            self.unknown_first.setdefault(checker, (result.seed, reason))
        if result.failed_by:
            self.failed += 1
            self.failures.append(result)
            self.found_by.update(result.failed_by)
        elif result.unknown:
            self.undecided += 1

    def _count_behind(self, seed: int) -> None:
        self._tried_behind.add(seed)
        while self.first_untried in self._tried_behind:
            self._tried_behind.remove(self.first_untried)
            self.first_untried += 1

    def _compare(self, second: SeedResult) -> None:
        if second.folder is not None:
            self.folders[second.seed] = second.folder
        first = self._awaiting_second.pop(second.seed, None)
        if first is None:
            return
        if first.fingerprint == second.fingerprint:
            self.checked += 1
        else:
            self.mismatches.append(Mismatch(second.seed, first, second))

    def exit_code(self, *, is_whole: bool) -> int:
        """Return the exit code: a violation wins, then a failed harness, then unknown.

        ``is_whole`` says that the sweep came to its end, be it that of its time; else nothing
        proves that no seed fails, as nothing does where not one was tried.
        """
        if self.failed:
            return EXIT_INVALID
        if self.crashes or self.mismatches:
            return EXIT_HARNESS_FAILED
        if self.undecided or not is_whole or not self.tried:
            return EXIT_UNKNOWN
        return EXIT_VALID


def bound_of(seeds: int) -> int:
    """Return N such that fewer than 1 in N seeds fails, if so many seeds ran without a failure.

    Exactly: the chance ``p`` at which so many seeds without a failure are as unlikely as the
    confidence allows solves ``(1 - p) ** seeds = 1 - confidence``; this is ``1 / p``, rounded down.
    """
    if seeds < 1:
        return 1
    return int(1 / (1 - (1 - CONFIDENCE) ** (1 / seeds)))
