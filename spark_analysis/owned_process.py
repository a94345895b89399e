"""How a child process that runs Spark ends: in order, and never later than its owner.

For the main modules of such processes alone.
"""

import contextlib
import os
import select
import signal
import sys
import threading
from types import FrameType

_EXIT_TERMINATED = 128 + signal.SIGTERM
#: After the owner's death; ending a session takes a second or two.
_TERMINATION_PATIENCE_S = 15.0


def end_with(owner: int) -> None:
    """Terminate this process when another one ends, killed or not; first politely."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(owner)
        select.select([process], [], [])
        os.close(process)
    os.kill(os.getpid(), signal.SIGTERM)
    # A Spark that hangs must not keep it.
    threading.Event().wait(_TERMINATION_PATIENCE_S)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(_EXIT_TERMINATED)


def leave(_signal: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM by an exception, so that Spark's JVM and its files go too."""
    sys.exit(_EXIT_TERMINATED)
