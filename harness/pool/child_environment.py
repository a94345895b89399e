"""Environment of a child process of the harness, so that it finds the same packages."""

import os
import sys


def child_environment() -> dict[str, str]:
    """This process's environment, with its import path; for ``python -P -m MODULE``."""
    # An empty entry stands for the folder one is in.
    paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109 - an import path
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
