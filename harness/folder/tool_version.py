"""This splitbrain's version, and the commit of the work tree it runs from."""

import subprocess
from importlib import metadata
from pathlib import Path

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
