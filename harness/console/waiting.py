"""Says what the user waits for after a run: lines of text, and on a terminal a running count too.

Several things may go on at a time, such as the checkers and the Spark analysis beside them.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from rich.console import Console
from rich.text import Text

from splitbrain.harness.console.console_lines import say_if_read
from splitbrain.harness.console.live_area import PLAIN_INTERVAL_S, LiveArea, is_screen
from splitbrain.harness.console.pace import Pace, Took

#: Names of what is waited for.
READING = "reading the history"
JUDGING = "judging"
ANALYSING = "analysing with Spark"
#: Words beside a name, for work that takes longer than a stranger expects.
_HINTS = {ANALYSING: "Spark takes its time to start; --no-analyze leaves it out"}

#: Nouns of what is counted where a pace is shown whoever waits.
_NOUNS = {READING: ("MiB", "MiB"), ANALYSING: ("job", "jobs")}

#: Makes a context that lasts as long as the thing named, and is told how far that is.
During = Callable[[str], AbstractContextManager[Took]]


def _untold(_done: int, _total: int) -> None:
    """Tell nobody."""


def unseen(_what: str) -> AbstractContextManager[Took]:
    """Say nothing."""
    return nullcontext(_untold)


class Waiting:
    """Tells on a console what goes on, and how many seconds it took."""

    def __init__(self, console: Console, *, interval_s: float = PLAIN_INTERVAL_S) -> None:
        self._console, self._interval_s = console, interval_s
        self._lock = threading.Lock()
        #: When each thing that goes on began, in the order of their beginnings.
        self._began_s: dict[str, float] = {}
        #: Holds what is drawn while anything goes on.
        self._drawn: ExitStack | None = None
        #: Paces of things that can tell how far they are.
        self._paces: dict[str, list[Pace]] = {
            what: [Pace(noun, plural=plural)] for what, (noun, plural) in _NOUNS.items()
        }

    def pace(self, what: str, noun: str, *, plural: str | None = None) -> Pace:
        """Return a pace that is shown beside ``what`` while it goes on; ``noun`` is counted."""
        pace = Pace(noun, plural=plural)
        self._paces.setdefault(what, []).append(pace)
        return pace

    @contextmanager
    def during(self, what: str) -> Generator[Took]:
        """A context: ``what`` goes on until it is left, in whatever way."""
        began_s = time.monotonic()
        self._begin(what, began_s)
        try:
            yield self._paces[what][0].took if what in self._paces else _untold
        finally:
            self._end(what)
        self._print(f"{what} took {time.monotonic() - began_s:.1f} s")

    def _begin(self, what: str, now_s: float) -> None:
        if not is_screen(self._console):
            self._print(f"{what} ({_HINTS[what]})" if what in _HINTS else what)
        with self._lock:
            self._began_s[what] = now_s
        if self._drawn is None and (is_screen(self._console) or what in self._paces):
            self._drawn = ExitStack()
            self._drawn.enter_context(
                LiveArea(self._console, self._line, self._plain_line, interval_s=self._interval_s)
            )

    def _end(self, what: str) -> None:
        with self._lock:
            del self._began_s[what]
        if self._drawn is not None and not self._began_s:
            self._drawn.close()
            self._drawn = None

    def _line(self) -> Text:
        now_s = time.monotonic()
        with self._lock:
            parts = [
                f"{what}, {now_s - began:.0f} s{self._pace_of(what)}"
                for what, began in self._began_s.items()
            ]
            hints = [_HINTS[what] for what in self._began_s if what in _HINTS]
        return Text("; ".join(parts) + (f" ({'; '.join(hints)})" if hints else ""))

    def _pace_of(self, what: str) -> str:
        told = [pace.words for pace in self._paces.get(what, ())]
        return "".join(f", {words}" for words in told if words is not None)

    def _plain_line(self) -> str | None:
        """Return how things stand for what is no terminal, if something tells how far it is."""
        with self._lock:
            is_told = any(map(self._pace_of, self._began_s))
        return self._line().plain if is_told else None

    def _print(self, line: str) -> None:
        say_if_read(self._console, Text(line, style="dim"))
