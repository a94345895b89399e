"""Golden files: what a machine shows in all its stories, kept as text and compared byte for byte.

A line that begins with ``## `` begins a story. Rewrite the files with
``pytest tests/golden --rewrite-goldens``, and read the diff.
"""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

TITLE: Final = "## "
_HOW: Final = (
    "Where that is meant, rewrite the golden files and read the diff:\n"
    "  .venv/bin/python -m pytest tests/golden --rewrite-goldens"
)
_NONE: Final = "(no more lines)"


class Goldens:
    """The golden files of one folder."""

    def __init__(self, folder: Path, *, is_rewriting: bool = False) -> None:
        self.folder = folder
        self._is_rewriting = is_rewriting

    def compare(self, name: str, lines: Sequence[str]) -> None:
        """Hold lines against a golden file, or write them into it.

        Raises:
            AssertionError: they differ; tells the first line that does, and its story.
        """
        path = self.folder / name
        if self._is_rewriting:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content_of(lines))
        there = path.read_bytes() if path.exists() else b""
        # As bytes, so that no comparison of thousands of lines is told.
        if there != content_of(lines):
            raise AssertionError(difference(name, there.decode().split("\n")[:-1], lines))

    def names(self, machine: str) -> set[str]:
        """Names of the golden files of a machine."""
        return {path.stem for path in (self.folder / machine).glob("*.txt")}


def content_of(lines: Sequence[str]) -> bytes:
    """The content of a golden file with these lines."""
    return "".join(f"{line}\n" for line in lines).encode()


def difference(name: str, golden: Sequence[str], now: Sequence[str]) -> str:
    """The first line that differs, with its story, and how to rewrite the golden files."""
    story = "before the first story"
    for number, (was, is_) in enumerate(zip_longest(golden, now, fillvalue=_NONE), start=1):
        if was.startswith(TITLE):
            story = f"in the story {was.removeprefix(TITLE)!r}"
        if was != is_:
            return (
                f"tests/golden/{name} differs in line {number}, {story}\n"
                f"  golden: {was}\n  now:    {is_}\n{_HOW}"
            )
    return f"tests/golden/{name} has other line ends\n{_HOW}"
