"""What is done to the user's terminal while something is drawn on it, and undone after.

Must never leave the terminal different from how it was found, whatever happens in between.
"""

import contextlib
import os
import sys
import termios
from collections.abc import Generator

#: Position of the local modes in what termios gives.
_LOCAL_MODES = 3


@contextlib.contextmanager
def without_control_echo() -> Generator[None]:
    """Keep the terminal from showing ``^C``, which would shift what is drawn by one line."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        # A job in the background that touches its terminal is stopped by the kernel.
        in_front = os.tcgetpgrp(descriptor) == os.getpgrp()
    except (termios.error, OSError, ValueError, AttributeError):
        yield  # no terminal
        return
    if not in_front:
        yield
        return
    quiet = list(before)
    quiet[_LOCAL_MODES] &= ~termios.ECHOCTL
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
