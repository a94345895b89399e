"""Makes a file that shows a difference small: by fewer lines, so that what is left can be read."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.reader_fuzz.comparison import Finding, compared
from bench.reader_fuzz.drawn import DrawnFile

#: Files looked at for one difference.
_TRIES_MAX = 1_500


def shrunk(file: DrawnFile, finding: Finding, path: Path) -> DrawnFile:
    """The smallest file found that shows a difference of the same kind in the same way.

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
