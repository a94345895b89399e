"""Child processes of modules of ``spark_analysis``.

A module is told a path, or a descriptor, and ends with this process. One that is asked
(``spark_service.ask_spark``) finds the request there, prints its answer as the last line and ends
with 0, or says in one sentence on standard error why there is none. Each child gets a process group
of its own, so that Spark's JVM goes with it.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Final

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.harness.pool.child_environment import child_environment

#: Module that runs such a module no longer than this process lives.
OWNED: Final = f"{PACKAGE}.spark_analysis.owned_process"
_TERMINATION_PATIENCE_S: Final = 10.0


def start_spark(
    module: str,
    given: Path | int,
    output: IO[bytes] | int,
    errors: IO[bytes] | int,
    *more: Path,
) -> "subprocess.Popen[bytes]":
    """Start a module, as ``subprocess.Popen`` does; raise OSError if no process can be had.

    ``given`` is a path, or a descriptor that the module inherits.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", OWNED, module, *map(str, (given, *more, os.getpid()))],
        pass_fds=(given,) if isinstance(given, int) else (),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        env=child_environment(),
    )


def end_spark(process: "subprocess.Popen[bytes]") -> None:
    """Ask the group, JVM included, to end, then make it; harmless after its end."""
    if process.poll() is None:
        # One that gave way to all would take long to go from a busy machine.
        set_niceness(process, 0)
        signal_spark(process, signal.SIGTERM)
        try:
            process.wait(_TERMINATION_PATIENCE_S)
        except subprocess.TimeoutExpired:
            signal_spark(process, signal.SIGKILL)
            process.wait()


def set_niceness(process: "subprocess.Popen[bytes]", niceness: int) -> None:
    """Make a child and its JVM give way to all others (19), or no longer (0), as far as it goes."""
    # A user may not take niceness back, which matters only beside other work.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, process.pid, niceness)
    # Where the kernel schedules by sessions, the niceness of one process counts inside it alone.
    with contextlib.suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(str(niceness))


def signal_spark(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to the whole group, if it has not ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
