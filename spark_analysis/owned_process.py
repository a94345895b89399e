"""Life of a child process that runs Spark: it ends in order, never later than its owner.

``python -m splitbrain.spark_analysis.owned_process MODULE ARGUMENT... OWNER`` runs another module
of this room as ``python -m`` does, and ends it in order when the process of the number OWNER ends.
It watches the owner before it imports that module: to import Spark takes a second of a free
processor, and a minute of a busy one where this process gives way to all others.
"""

import contextlib
import os
import runpy
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TypeVar

import msgspec

from splitbrain.contracts.errors import HarnessError

_EXIT_TERMINATED = 128 + signal.SIGTERM
#: After the owner's death; ending a session takes a second or two.
_TERMINATION_PATIENCE_S = 15.0


Request = TypeVar("Request")


def answer(
    arguments: Sequence[str], kind: type[Request], answer_to: Callable[[Request], object]
) -> int:
    """Answer a request of ``harness.pool.spark_service``; return the exit code.

    The argument is a file with the request. The answer is the last line of standard output, as
    JSON; on a ``HarnessError`` a sentence stands on standard error.
    """
    (request_path,) = arguments
    code, answered, problem = answer_in(Path(request_path), kind, answer_to)
    sys.stdout.write(f"{answered}\n" if answered else "")
    sys.stderr.write(f"{problem}\n" if problem else "")
    return code


def answer_in(
    request_path: Path, kind: type[Request], answer_to: Callable[[Request], object]
) -> tuple[int, str, str]:
    """Return the exit code, the answer to the request in a file as JSON, and why there is none."""
    request = msgspec.json.decode(request_path.read_bytes(), type=kind)
    try:
        answered = answer_to(request)
    except HarnessError as error:
        return error.exit_code, "", str(error)
    return 0, msgspec.json.encode(answered).decode(), ""


def main(arguments: list[str]) -> None:
    """Run a module, no longer than the owner lives."""
    module, *its_own, owner = arguments
    leave_on_sigterm()
    threading.Thread(target=_end_with, args=(int(owner),), daemon=True).start()
    sys.argv = [module, *its_own]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def leave_on_sigterm() -> None:
    """End this process on SIGTERM by an exception, so that Spark's JVM and its files go too."""
    signal.signal(signal.SIGTERM, _leave)


def _end_with(owner: int) -> None:
    """Terminate this process when another one ends, killed or not; first politely."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(owner)
        select.select([process], [], [])
        os.close(process)
    # One that gave way to the owner's clients would take long to go from a busy machine.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, 0, 0)
    # Where the kernel schedules by sessions, that counts inside this one alone.
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("0")
    end_in_order()


def end_in_order() -> None:
    """Terminate this process from any thread; does not return."""
    os.kill(os.getpid(), signal.SIGTERM)
    # A Spark that hangs must not keep it.
    threading.Event().wait(_TERMINATION_PATIENCE_S)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(_EXIT_TERMINATED)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(_EXIT_TERMINATED)


if __name__ == "__main__":
    main(sys.argv[1:])
