"""Shows a search for a smaller scenario: a line that lives on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from harness.console_lines import say_if_read
from harness.live_area import LiveArea
from harness.plain_text import printable
from harness.results import counted
from harness.simulation.shrink_words import change
from harness.simulation.shrinking import Progress


class ShrinkDisplay:
    """A context: shows progress until it is left."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._began_s = time.monotonic()
        self._reached = "replaying it once"
        self._area = LiveArea(console, lambda: Text(self._line()), self._line)

    def __enter__(self) -> Self:
        say_if_read(self._console, Text(printable(self._title), style="bold"))
        self._area.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._area.__exit__(kind, error, trace)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self._began_s

    def told(self, progress: Progress) -> None:
        """One more replay is about to begin."""
        self._reached = (
            f"{change(progress.before, progress.now)}, {counted(progress.replays, 'replay')} "
            f"({progress.step})"
        )

    def _line(self) -> str:
        return f"{self.elapsed_s:6.1f} s  {self._reached}"
