"""A process of its own that locks a file as Java's do, for as long as the test needs."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_HOLD = """
import fcntl, sys
with open(sys.argv[1], "a") as held:
    try:
        fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("refused", flush=True)
    else:
        print("held", flush=True)
        sys.stdin.read()
"""


@contextmanager
def locked_as_java_does(path: Path) -> Generator[None]:
    """Hold the lock; fails if it is refused."""
    with asked_as_java_does(path) as answer:
        assert answer == "held"
        yield


@contextmanager
def asked_as_java_does(path: Path) -> Generator[str]:
    """Ask for the lock and keep it: ``held`` or ``refused``."""
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()
