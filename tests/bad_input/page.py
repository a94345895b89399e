"""Writes ``docs/bad-input.md`` from the table: ``python -m tests.bad_input.page``."""

from pathlib import Path

from tests.bad_input.cause import Cause
from tests.bad_input.table import CAUSES, CHAPTERS

PAGE = Path(__file__).parents[2] / "docs" / "bad-input.md"

_HEAD = """\
# What splitbrain says to bad input

Made by `python -m tests.bad_input.page` from the table in `tests/bad_input/`; a test holds the two
equal, and each of the {count} lines is tried through the real command line. All of them print this
one line on standard error, print no traceback, make no run folder and change no file. Exit code 64
is a request that cannot be understood or carried out, a file that it names included; 3 is a machine
that cannot carry it out now.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD.format(count=len(CAUSES))]
    for chapter in CHAPTERS:
        parts += [f"\n## {chapter.title}\n", "| what is wrong | command | it says | code |"]
        parts += ["|---|---|---|---|", *map(_row, chapter.causes)]
    return "\n".join(parts) + "\n"


def _row(cause: Cause) -> str:
    says = cause.says.replace("{folder}", "FOLDER").replace("|", "\\|").replace("*", "\\*")
    says = says.replace("[", "\\[").replace("_", "\\_")
    return f"| {cause.wrong} | `splitbrain {cause.command}` | {says} | {cause.code} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
