"""A harness of a test's own, a program text, that is killed amid what it does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from splitbrain.contracts.names import RunId

ROOT = Path(__file__).parents[2]


@contextmanager
def killed_at_the_end(program: str, *arguments: str, **environment: str) -> Iterator[RunId]:
    """The line that a program prints, its run mostly; it stays and is killed at the block's end."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as harness:
        assert harness.stdout is not None
        run_id = RunId(harness.stdout.readline().strip())
        assert run_id
        try:
            yield run_id
        finally:
            harness.kill()
