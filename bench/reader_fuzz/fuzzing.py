"""Compares many files, in as many processes as asked for, and counts what came of them."""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
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
    """Return the file of that number."""
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
            result = compared(file, path)
            counts["read by both"] += result.read
            counts["read as columns"] += result.as_columns
            counts["without an order"] += result.linearizable is False
            counts.update(f"refused, may be: {doubt}" for doubt in result.doubts)
            differences += [Difference(number, file.format, finding) for finding in result.findings]
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


#: Files looked at for one difference.
_TRIES_MAX = 1_500


def shrunk(file: DrawnFile, finding: Finding, path: Path) -> DrawnFile:
    """Return the smallest file found that shows a difference of the same kind in the same way.

    Args:
        file: a file that shows it.
        finding: the difference.
        path: where files can be written.
    """
    tries = 0

    def shows(candidate: DrawnFile) -> bool:
        nonlocal tries
        tries += 1
        if tries > _TRIES_MAX:
            return False
        return any(_alike(one, finding) for one in compared(candidate, path).findings)

    for plainer in ({"packed": False}, {"block_bytes": 1 << 20}, {"named": True}):
        candidate = file._replace(**plainer)
        if candidate != file and shows(candidate):
            file = candidate
    if file.format == "parquet":
        return file
    lines = file.content.splitlines(keepends=True)

    def of(parts: Sequence[bytes]) -> DrawnFile:
        return file._replace(content=b"".join(parts))

    return of(_fewer(lines, lambda parts: shows(of(parts))))


def _alike(one: Finding, other: Finding) -> bool:
    """Whether two differences are of one kind; verdicts also have to be the same."""
    same = (one.kind, one.way) == (other.kind, other.way)
    return same and (one.kind != "verdict" or one.detail == other.detail)


def _fewer(parts: list[bytes], shows: Callable[[list[bytes]], bool]) -> list[bytes]:
    """Leave out runs of parts, long ones first, while the rest still shows it; then any two."""
    length = len(parts)
    while length:
        place = 0
        while place < len(parts):
            rest = parts[:place] + parts[place + length :]
            if shows(rest):
                parts = rest
            else:
                place += length
        length //= 2
    # A question goes with its answer, which may stand far from it.
    first = 0
    while first < len(parts):
        pairs = (
            [part for place, part in enumerate(parts) if place not in (first, second)]
            for second in range(first + 1, len(parts))
        )
        rest = next(filter(shows, pairs), None)
        if rest is None:
            first += 1
        else:
            parts = rest
    return parts
