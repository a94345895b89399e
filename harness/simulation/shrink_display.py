"""Shows a search for a smaller scenario: a line that lives on a terminal, plain lines elsewhere."""

import time
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from harness.plain_text import printable
from harness.results import counted
from harness.simulation.shrink_words import change
from harness.simulation.shrinking import Progress
from harness.terminal import without_control_echo

_REFRESH_PER_SECOND = 4
#: Time between two lines where the output is no terminal.
_PLAIN_INTERVAL_S = 5.0


class ShrinkDisplay:
    """A context: shows progress until it is left."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._began_s = self._told_s = time.monotonic()
        self._line = "replaying it once"
        self._live: Live | None = None
        self._terminal = ExitStack()

    def __enter__(self) -> Self:
        self._print(Text(printable(self._title), style="bold"))
        if self._console.is_terminal:
            self._terminal.enter_context(without_control_echo())
            self._live = Live(
                get_renderable=lambda: Text(f"{self.elapsed_s:6.1f} s  {self._line}"),
                console=self._console,
                refresh_per_second=_REFRESH_PER_SECOND,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
        self._terminal.close()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self._began_s

    def told(self, progress: Progress) -> None:
        """One more replay is about to begin."""
        self._line = (
            f"{change(progress.before, progress.now)}, {counted(progress.replays, 'replay')} "
            f"({progress.step})"
        )
        now_s = time.monotonic()
        if self._live is None and now_s - self._told_s >= _PLAIN_INTERVAL_S:
            self._told_s = now_s
            self._print(Text(f"{self.elapsed_s:6.1f} s  {self._line}"))

    def _print(self, line: Text) -> None:
        # Nobody may read any more; the search goes on.
        with suppress(OSError, SystemExit):
            self._console.print(line, soft_wrap=True)
