"""The line that makes a run again on any machine, pure.

It names no folder of this machine. Its comment says which splitbrain made the run, and which files
it takes besides.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Final

_SHOWN_DIGITS: Final = 7
_MARK: Final = "#"
_DIRTY: Final = "-dirty"
_TOOL: Final = re.compile(r"splitbrain (?P<version>[^\s,;]+)(?:, (?P<commit>[^\s,;]+))?")


def tool_words(version: str, commit: str | None) -> str:
    """Return ``splitbrain 0.2.0, 4795ac6``; without a commit the version alone."""
    if commit is None:
        return f"splitbrain {version}"
    dirty = _DIRTY if commit.endswith(_DIRTY) else ""
    return f"splitbrain {version}, {commit.removesuffix(_DIRTY)[:_SHOWN_DIGITS]}{dirty}"


def line_of(words: Sequence[str], made_by: str, files: Iterable[str] = ()) -> str:
    """Return a command line fit for a shell, its files by their names alone.

    Args:
        words: of the command; an absolute path of a file may stand among them, also behind ``=``.
        made_by: as ``tool_words`` returns it.
        files: names of files that it takes besides those of absolute paths.
    """
    shown, needed = list[str](), list(files)
    for word in words:
        before, path = _path_in(word)
        if path is None:
            shown.append(word)
            continue
        name = PurePath(path).name
        shown.append(before + name)
        needed.append(name.partition(":")[0])
    needed = list(dict.fromkeys(needed))
    takes = f"; takes the file{'s' * (len(needed) > 1)} {', '.join(needed)}" if needed else ""
    return f"{shlex.join(shown)}  {_MARK} {made_by}{takes}"


def _path_in(word: str) -> tuple[str, str | None]:
    """Return what stands before an absolute path of a file, and the path; None without one."""
    name, equals, value = word.partition("=")
    for before, path in (("", word), (name + equals, value)):
        if path.startswith("/") and "." in PurePath(path).name:
            return before, path
    return "", None


def without_comment(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the words before a comment, and who made the line by that; None if nobody says.

    Not every shell takes comments away.
    """
    if _MARK not in words:
        return list(words), None
    place = list(words).index(_MARK)
    comment = _TOOL.match(" ".join(words[place + 1 :]))
    return list(words[:place]), None if comment is None else comment[0]


def is_other(made_by: str, this: str) -> bool:
    """Return whether two are different splitbrains, as far as both say which they are."""
    made, here = _TOOL.match(made_by), _TOOL.match(this)
    if made is None or here is None:
        return False
    commits = made["commit"], here["commit"]
    return made["version"] != here["version"] or (None not in commits and commits[0] != commits[1])
