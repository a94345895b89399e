"""Ctrl-C and SIGTERM: the first asks the run to heal, stop and report; the second ends it at once.

Even then what was started is taken down, because that happens on the way out.
"""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from harness.stop import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupting(stop: Stop) -> Generator[None]:
    """Have the signals set ``stop`` while the context lasts."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may have handlers; elsewhere the caller owns the process.
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.interrupted:
            raise KeyboardInterrupt
        stop.interrupt()

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
