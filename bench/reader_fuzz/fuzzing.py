"""Compares many files, in as many processes as asked for, and counts what came of them."""

import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bench.reader_fuzz.comparison import Finding, compared
from bench.reader_fuzz.drawn import DrawnFile, drawn

#: Of so many files one is as large as those that are read into columns.
_LARGE_EVERY = 5_000
#: Files that one worker is given at a time.
_BATCH = 500


class Difference(NamedTuple):
    """A file that shows one."""

    number: int
    format: str
    finding: Finding


class Tally(NamedTuple):
    """The outcome of some files."""

    counts: Counter[str]
    differences: list[Difference]


def file_of(seed: int, number: int) -> DrawnFile:
    """The file of that number."""
    return drawn(seed, number, large=number % _LARGE_EVERY == _LARGE_EVERY - 1)


def looked_at(seed: int, numbers: range) -> Tally:
    """Compare some files."""
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    with tempfile.TemporaryDirectory(prefix="splitbrain-fuzz-") as folder:
        path = Path(folder) / "history"
        for number in numbers:
            file = file_of(seed, number)
            counts[file.format] += 1
            told = compared(file, path)
            counts["read by both"] += told.read
            counts["read as columns"] += told.as_columns
            counts["without an order"] += told.linearizable is False
            counts.update(f"refused, may be: {doubt}" for doubt in told.doubts)
            differences += [Difference(number, file.format, one) for one in told.findings]
    return Tally(counts, differences)


def fuzzed(seed: int, files: int, jobs: int) -> Tally:
    """Compare files 0 to N."""
    batches = [range(n, min(n + _BATCH, files)) for n in range(0, files, _BATCH)]
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for tally in pool.map(looked_at, [seed] * len(batches), batches):
            counts.update(tally.counts)
            differences += tally.differences
    return Tally(counts, differences)
