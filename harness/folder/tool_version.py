"""This splitbrain's version, and the commit of the work tree it runs from."""

import functools
import subprocess
from importlib import metadata
from pathlib import Path

from splitbrain.history.reproduce_line import is_other, tool_words

_ROOT = Path(__file__).resolve().parents[2]
_GIT_TIMEOUT_S = 5.0


def tool_version() -> str:
    """Return the distribution's version."""
    try:
        return metadata.version("splitbrain")
    except metadata.PackageNotFoundError:
        return "unpackaged"


def tool_commit() -> str | None:
    """Return the commit, with ``-dirty`` where files differ from it; None outside a work tree."""
    if not (_ROOT / ".git").exists():
        return None
    try:
        finished = subprocess.run(
            ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=40"],
            check=True,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout.strip() or None


@functools.cache
def this_tool() -> str:
    """Return version and commit as one reads them, ``splitbrain 0.2.0, 4795ac6``."""
    return tool_words(tool_version(), tool_commit())


def other_tool(made_by: str | None) -> list[str]:
    """Return a line where a run, a command line or a file was made by another splitbrain.

    ``made_by`` is as ``this_tool`` returned it there; None: nobody says.
    """
    if made_by is None or not is_other(made_by, this_tool()):
        return []
    return [f"made by {made_by}; this is {this_tool()}, with which it may come out otherwise"]
