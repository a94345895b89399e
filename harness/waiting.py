"""Says what the user waits for after a run: lines of text, and on a terminal a running count too.

Several things may go on at a time, such as the checkers and the Spark analysis beside them.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text

from harness.terminal import without_control_echo

_REFRESH_PER_SECOND = 4

#: Names of what is waited for.
JUDGING = "judging"
ANALYSING = "analysing with Spark"

#: Makes a context that lasts as long as the thing named.
During = Callable[[str], AbstractContextManager[None]]


def unseen(what: str) -> AbstractContextManager[None]:
    """Say nothing."""
    del what
    return nullcontext()


class Waiting:
    """Tells on a console what goes on, and how many seconds it took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        #: When each thing that goes on began, in the order of their beginnings.
        self._began_s: dict[str, float] = {}
        self._live: Live | None = None
        self._terminal = ExitStack()

    @contextmanager
    def during(self, what: str) -> Generator[None]:
        """A context: ``what`` goes on until it is left, in whatever way."""
        began_s = time.monotonic()
        self._begin(what, began_s)
        try:
            yield
        finally:
            self._end(what)
        self._print(f"{what} took {time.monotonic() - began_s:.1f} s")

    def _begin(self, what: str, now_s: float) -> None:
        if not self._console.is_terminal:
            self._print(what)
        with self._lock:
            self._began_s[what] = now_s
        if self._console.is_terminal and self._live is None:
            self._terminal.enter_context(without_control_echo())
            self._live = Live(
                get_renderable=self._line,
                console=self._console,
                refresh_per_second=_REFRESH_PER_SECOND,
                transient=True,
            )
            self._live.start()

    def _end(self, what: str) -> None:
        with self._lock:
            del self._began_s[what]
        if self._live is not None and not self._began_s:
            self._live.stop()
            self._live = None
            self._terminal.close()

    def _line(self) -> Text:
        now_s = time.monotonic()
        with self._lock:
            parts = [f"{what}, {now_s - began:.0f} s" for what, began in self._began_s.items()]
        return Text("; ".join(parts))

    def _print(self, line: str) -> None:
        # Nobody may read any more; what is waited for goes on.
        with suppress(OSError, SystemExit):
            self._console.print(Text(line, style="dim"), soft_wrap=True)
