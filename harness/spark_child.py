"""A question to Spark: a child process of a module of ``spark_analysis`` that answers in JSON.

The module is told a file with the request and the number of this process, prints its answer as the
last line and ends with 0, or says in one sentence on standard error why there is none. The child
gets a process group of its own, so that Spark's JVM goes with it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from harness.child_environment import child_environment
from history.scratch_folders import scratch_folder

_TERMINATION_PATIENCE_S: Final = 10.0


class Answered(NamedTuple):
    """How a child ended."""

    #: Exit code; None: it took too long.
    code: int | None
    #: Last line of its standard output.
    answer: bytes
    #: Last line of its standard error.
    told: str


def ask_spark(module: str, request: Any, *, name: str, timeout_s: float | None) -> Answered:
    """Ask, and wait for the answer.

    Args:
        module: that answers.
        request: anything that JSON can hold.
        name: of what is asked, for the scratch folder.
        timeout_s: then the child is ended; None: never.
    """
    with scratch_folder(name) as folder:
        path = folder / "request.json"
        path.write_bytes(msgspec.json.encode(request))
        code, output, errors = _run(module, path, timeout_s)
    return Answered(code, _last_line(output), _last_line(errors).decode(errors="replace"))


def _run(module: str, request: Path, timeout_s: float | None) -> tuple[int | None, bytes, bytes]:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(request), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=child_environment(),
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            _end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                return None, b"", b""
            raise
    return process.returncode, output, errors


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ask the group, JVM included, to end; then make it."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_TERMINATION_PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    except ProcessLookupError:
        process.wait()


def _last_line(output: bytes) -> bytes:
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else b""
