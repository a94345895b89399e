"""Live area at the bottom of a terminal while something goes on; plain lines elsewhere.

It leaves the terminal as it was found, and stops nothing because nobody reads.
"""

import os
import sys
import termios
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from splitbrain.harness.console.console_lines import say_if_read
from splitbrain.harness.console.plain_text import printable

#: Position of the local modes in what termios gives.
_LOCAL_MODES = 3
_REFRESH_PER_SECOND = 4
#: Time between two lines where the output is no terminal.
PLAIN_INTERVAL_S = 5.0
#: The same of what takes long: a file with its output is read the next morning.
MINUTE_S = 60.0
#: Waits so many seconds for an event, and returns whether it is set.
Wait = Callable[[threading.Event, float], bool]
#: How long an area that is left in a hurry gets to remove what it has drawn.
_STOP_PATIENCE_S = 1.0


@contextmanager
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


def is_screen(console: Console) -> bool:
    """Return whether there is a terminal; a file that is to be coloured (FORCE_COLOR) is none."""
    return console.is_terminal and (console.file.isatty() or "FORCE_COLOR" not in os.environ)


class LiveArea:
    """A context: shows how things stand until it is left.

    ``draw`` is called several times a second on another thread, for a terminal; ``line`` every few
    seconds (``interval_s``), for any other output: None where there is nothing to tell. ``wait``
    waits between two of them.
    """

    def __init__(
        self,
        console: Console,
        draw: Callable[[], RenderableType],
        line: Callable[[], str | None] | None = None,
        *,
        interval_s: float = PLAIN_INTERVAL_S,
        wait: Wait = threading.Event.wait,
    ) -> None:
        self._console = console
        self._draw, self._line = draw, line
        self._interval_s, self._wait = interval_s, wait
        self._ending = threading.Event()
        self._live: Live | None = None
        self._thread: threading.Thread | None = None
        self._terminal = ExitStack()

    def __enter__(self) -> Self:
        if is_screen(self._console):
            self._terminal.enter_context(without_control_echo())
            self._live = Live(
                get_renderable=self._draw,
                console=self._console,
                refresh_per_second=_REFRESH_PER_SECOND,
                transient=True,
            )
            self._live.start()
        elif self._line is not None:
            self._thread = threading.Thread(target=self._print, args=(self._line,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._live is not None:
            self._live.stop()
        if self._thread is not None:
            self._thread.join()
        self._terminal.close()

    def abandon(self) -> None:
        """Bring the terminal back in order from another thread, before the process is left."""
        live = self._live
        if live is not None:
            # The drawing thread may be stuck, for example on a terminal that takes nothing.
            stopping = threading.Thread(target=live.stop, daemon=True)
            stopping.start()
            stopping.join(_STOP_PATIENCE_S)
        self._terminal.close()

    def _print(self, line: Callable[[], str | None]) -> None:
        while not self._wait(self._ending, self._interval_s):
            text = line()
            if text is not None:
                say_if_read(self._console, Text(printable(text)))
