"""Runs programs of the system, and says in one clause why one could not do it; for all runtimes.

The pods' image has a copy of this module beside its tools, so it needs the standard library alone.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

#: Where administrators' programs lie, which an ordinary user's PATH may lack.
SEARCH_PATH: Final = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class CannotError(Exception):
    """The refusal of a system program, one clause."""


def run_tool(
    command: Sequence[str],
    text: str = "",
    descriptors: Sequence[int] = (),
    *,
    patience_s: float = 30.0,
    **environment: str,
) -> str:
    """Run a system program with this text on its standard input; what it printed.

    Raises:
        CannotError: it is not installed, or failed.
    """
    program = shutil.which(command[0], path=SEARCH_PATH)
    if program is None:
        raise CannotError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience_s,
            pass_fds=descriptors,
            env={**os.environ, **environment},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        output = " | ".join((done.stderr or done.stdout).split("\n")).strip(" |")
        raise CannotError(f"{command[0]}: {output or f'exit code {done.returncode}'}")
    return done.stdout
