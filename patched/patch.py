"""A patch: unified diffs of text with a preamble, read from a file and applied exactly.

A hunk applies where its old lines stand: at the line that it names or, if the file has changed
above, in the only other place where they stand. There is no fuzz. Must never change more than the
lines that a hunk names, nor add, delete or rename a file. Source: the unified format of GNU diff.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NOWHERE: Final = "/dev/null"


class PatchError(Exception):
    """A patch that cannot be read or applied; its text is a sentence with a next step."""


class Hunk(msgspec.Struct, frozen=True):
    """Lines that replace others; context is part of both."""

    #: Where the old lines begin, counted from 1.
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


class FilePatch(msgspec.Struct, frozen=True):
    """The changes of one file."""

    #: Below the package, with slashes: ``nodes/quorum/leader.py``.
    path: str
    hunks: tuple[Hunk, ...]


class Patch(msgspec.Struct, frozen=True):
    """One patch file."""

    name: str
    #: The whole text, from which it can be read again.
    text: str
    #: The lines before the first file.
    preamble: str
    files: tuple[FilePatch, ...]
    #: Path that it was read from, as it was given; empty for a text.
    file: str = ""


def read_patch(name: str, text: str) -> Patch:
    """Return the patch that a text holds, as ``git diff`` and ``diff -u`` write it.

    Raises:
        PatchError: it is no unified diff, or does more than to change files that are there.
    """
    lines = _NumberedLines(name, text)
    preamble = "\n".join(lines.up_to_a_file()).strip()
    files: list[FilePatch] = []
    while lines.has_more:
        files.append(_read_file(lines))
        lines.up_to_a_file()
    if not files:
        problem = "has no line that begins with '--- ' and is followed by one with '+++ '"
        raise PatchError(f"Patch {name} {problem}. Write it with git diff.")
    paths = [file.path for file in files]
    for path in paths:
        if paths.count(path) > 1:
            raise PatchError(f"Patch {name} names {path} twice. Put its hunks below one name.")
    return Patch(name, text, preamble, tuple(files))


def apply_patch(name: str, source: str, part: FilePatch) -> str:
    """Return the source of a file with its hunks applied; ``name`` is the patch's.

    Raises:
        PatchError: the old lines of a hunk do not stand in the source, or in several places.
    """
    lines, drift = source.split("\n"), 0
    for hunk in part.hunks:
        named = hunk.line - 1 + drift
        at = _place(lines, hunk.old, named)
        if at is None:
            raise PatchError(
                f"Patch {name} does not fit {part.path}: the lines that it expects at line "
                f"{hunk.line} stand nowhere, or in several places. Make it anew from this version."
            )
        lines[at : at + len(hunk.old)] = hunk.new
        drift = at - (hunk.line - 1) + len(hunk.new) - len(hunk.old)
    return "\n".join(lines)


def _place(lines: list[str], old: tuple[str, ...], named: int) -> int | None:
    def stands(at: int) -> bool:
        return tuple(lines[at : at + len(old)]) == old

    if named >= 0 and stands(named):
        return named
    places = [at for at in range(len(lines) - len(old) + 1) if stands(at)]
    return places[0] if len(places) == 1 else None


class _NumberedLines:
    """The lines of a patch, taken one by one."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._lines = name, text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        self._next = 0

    @property
    def has_more(self) -> bool:
        return self._next < len(self._lines)

    def is_hunk_next(self) -> bool:
        return self.has_more and self._lines[self._next].startswith("@@")

    def up_to_a_file(self) -> Iterator[str]:
        """Skips and returns the lines before the next file's ``---``."""
        begin = self._next
        while self.has_more and not self._is_file_next():
            if self.is_hunk_next():
                raise self.refusal("a hunk stands before the '--- ' and '+++ ' of its file")
            self._next += 1
        return iter(self._lines[begin : self._next])

    def take(self, wanted: str) -> str:
        if not self.has_more:
            raise self.refusal(f"the file ends where {wanted} is expected")
        self._next += 1
        return self._lines[self._next - 1]

    def skip_remark(self) -> None:
        r"""Skips ``\ No newline at end of file``: modules are read with or without one."""
        if self.has_more and self._lines[self._next].startswith("\\"):
            self._next += 1

    def refusal(self, problem: str) -> PatchError:
        where = f"line {min(self._next + 1, len(self._lines))}"
        return PatchError(f"Patch {self._name}, {where}: {problem}. Write it with git diff.")

    def _is_file_next(self) -> bool:
        pair = self._lines[self._next : self._next + 2]
        return len(pair) == 2 and pair[0].startswith("--- ") and pair[1].startswith("+++ ")


def _read_file(lines: _NumberedLines) -> FilePatch:
    old, new = (_path(lines.take("a file's name")) for _ in range(2))
    if _NOWHERE in {old, new}:
        raise lines.refusal("it adds or deletes a file, and a patch only changes those there are")
    if old != new:
        raise lines.refusal(f"it renames {old} to {new}, and a patch only changes files in place")
    hunks: list[Hunk] = []
    while lines.is_hunk_next():
        hunks.append(_read_hunk(lines))
    if not hunks:
        raise lines.refusal(f"{new} has no hunk")
    return FilePatch(new, tuple(hunks))


def _path(line: str) -> str:
    """The path of a ``---`` or ``+++`` line, without git's ``a/`` and ``b/`` and a time stamp."""
    path = line[4:].partition("\t")[0].strip().removeprefix("./")
    if path.startswith(("a/", "b/")):
        path = path[2:]
    return path.removeprefix("splitbrain/")


def _read_hunk(lines: _NumberedLines) -> Hunk:
    match = _HUNK.match(lines.take("a hunk"))
    if match is None:
        raise lines.refusal("the line before this is not a hunk's head, '@@ -1,3 +1,4 @@'")
    old_count, new_count = int(match[2] or 1), int(match[3] or 1)
    if old_count == 0:
        raise lines.refusal("a hunk without a line of context could stand anywhere")
    old: list[str] = []
    new: list[str] = []
    while len(old) < old_count or len(new) < new_count:
        line = lines.take("a line of a hunk")
        # Editors strip the space of an empty line of context.
        mark, text = line[:1] or " ", line[1:]
        if mark not in {" ", "-", "+"}:
            raise lines.refusal(f"{line!r} begins with none of ' ', '-' and '+'")
        if mark != "+":
            old.append(text)
        if mark != "-":
            new.append(text)
        lines.skip_remark()
    if (len(old), len(new)) != (old_count, new_count):
        raise lines.refusal("the hunk before this has other lines than its head counts")
    return Hunk(int(match[1]), tuple(old), tuple(new))
