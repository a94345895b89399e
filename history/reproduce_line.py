"""The line that makes a run again on any machine, pure.

It names no folder of this machine. A word of it says which splitbrain made the run, for a shell
takes comments away; a comment names the files that it takes besides. A command of another program
has the splitbrain in its comment too, as lines of earlier versions have.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Final

_SHOWN_DIGITS: Final = 7
_MARK: Final = "#"
_PROGRAM: Final = "splitbrain"
_DIRTY: Final = "-dirty"
#: Word of a command line that says who made it; every command takes it.
MADE_BY: Final = "--made-by"
_MADE: Final = re.compile(r"(?P<version>[\w.+-]+?)(?:\+(?P<commit>[0-9a-f]{7,40}(?:-dirty)?))?")
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
    takes = f"takes the file{'s' * (len(needed) > 1)} {', '.join(needed)}" if needed else ""
    maker = maker_words(made_by) if words[0] == _PROGRAM else []
    comment = "; ".join([*([] if maker else [made_by]), *([takes] if takes else [])])
    line = shlex.join([*shown, *maker])
    return f"{line}  {_MARK} {comment}" if comment else line


def maker_words(made_by: str) -> list[str]:
    """Return the words of a command that say who made it; none where ``made_by`` says nothing."""
    tool = _TOOL.fullmatch(made_by)
    if tool is None:
        return []
    commit = f"+{tool['commit']}" if tool["commit"] else ""
    return [MADE_BY, f"{tool['version']}{commit}"]


def _path_in(word: str) -> tuple[str, str | None]:
    """Return what stands before an absolute path of a file, and the path; None without one."""
    name, equals, value = word.partition("=")
    for before, path in (("", word), (name + equals, value)):
        if path.startswith("/") and "." in PurePath(path).name:
            return before, path
    return "", None


def without_maker(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the words of a command itself, and who made the line; None if nobody says.

    Not every shell takes comments away.

    Raises:
        ValueError: what stands behind the word for it is no version.
    """
    made_by: str | None = None
    if _MARK in words:
        place = list(words).index(_MARK)
        comment = _TOOL.match(" ".join(words[place + 1 :]))
        words, made_by = words[:place], None if comment is None else comment[0]
    left: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == MADE_BY:
            made_by = _named(next(rest, ""))
        elif word.startswith(f"{MADE_BY}="):
            made_by = _named(word.partition("=")[2])
        else:
            left.append(word)
    return left, made_by


def _named(text: str) -> str:
    made = _MADE.fullmatch(text)
    if made is None:
        raise ValueError(f"{MADE_BY} cannot be {text!r}")
    return tool_words(made["version"], made["commit"])


def is_other(made_by: str, this: str) -> bool:
    """Return whether two are different splitbrains, as far as both say which they are."""
    made, here = _TOOL.match(made_by), _TOOL.match(this)
    if made is None or here is None:
        return False
    commits = made["commit"], here["commit"]
    return made["version"] != here["version"] or (None not in commits and commits[0] != commits[1])
