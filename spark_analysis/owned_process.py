"""Life of a child process that runs Spark: it ends in order, never later than its owner.

For the main modules of such processes alone.
"""

import contextlib
import os
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

    The arguments are a file with the request, and the owner's process number. The answer is the
    last line of standard output, as JSON; on a ``HarnessError`` a sentence stands on standard
    error.
    """
    request_path, owner = arguments
    live_with(int(owner))
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


def live_with(owner: int | None) -> None:
    """End in order on SIGTERM, and when the owner ends; None: nobody owns this process."""
    signal.signal(signal.SIGTERM, _leave)
    if owner is not None:
        threading.Thread(target=_end_with, args=(owner,), daemon=True).start()


def _end_with(owner: int) -> None:
    """Terminate this process when another one ends, killed or not; first politely."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(owner)
        select.select([process], [], [])
        os.close(process)
    # One that gave way to the owner's clients would take long to go from a busy machine.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, 0, 0)
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
    """Handle SIGTERM by an exception, so that Spark's JVM and its files go too."""
    sys.exit(_EXIT_TERMINATED)
