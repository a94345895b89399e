"""Display of a sweep: a live line on a terminal, elsewhere a plain one each minute."""

import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.sweep.sweep_tally import FailureClass, SweepTally, failure_class
from splitbrain.harness.campaign.sweep.trial import SeedResult
from splitbrain.harness.console.console_lines import say_if_read
from splitbrain.harness.console.live_area import MINUTE_S, LiveArea, Wait
from splitbrain.harness.console.pace import time_words
from splitbrain.harness.console.plain_text import printable
from splitbrain.patched.loading import installed_options

_BAR_WIDTH = 24
_US_PER_S = 1_000_000
#: Failures printed as they come, in all and of one class; the summary counts all.
_PRINTED_MAX = 20
_PRINTED_OF_CLASS_MAX = 3


class SweepDisplay(LiveArea):
    """Context that shows a tally until it is left."""

    def __init__(
        self,
        console: Console,
        title: str,
        total: int,
        tally: SweepTally,
        keep_max: int,
        *,
        time_limit_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Wait = threading.Event.wait,
    ) -> None:
        """Set up; ``clock`` gives seconds, monotonic, and ``wait`` waits by it."""
        line = self._stamped_figures
        super().__init__(console, self._panel, line, interval_s=MINUTE_S, wait=wait)
        self._title, self._total, self._time_limit_s = title, total, time_limit_s
        self._tally, self._keep_max = tally, keep_max
        #: Failures printed once their run folder is there.
        self._awaiting_folder: dict[int, SeedResult] = {}
        self._clock, self._began_s = clock, clock()
        self._printed = 0
        self._printed_of: Counter[FailureClass] = Counter()

    def __enter__(self) -> Self:
        self._say(Text(printable(self._title), style="bold"))
        return super().__enter__()

    @property
    def elapsed_s(self) -> float:
        """Return seconds since the sweep began."""
        return self._clock() - self._began_s

    def took(self, result: SeedResult) -> None:
        """Print a result that is worth a line: a failure, with its folder if it has one."""
        if result.crash is not None:
            self._print_failure(result)
        elif result.purpose == "keep":
            failure = self._awaiting_folder.pop(result.seed, None)
            if failure is not None:
                self._print_failure(failure, result.folder)
        elif result.purpose == "first" and result.failed_by:
            if self._tally.failed <= self._keep_max:
                self._awaiting_folder[result.seed] = result
            else:
                self._print_failure(result)

    def _print_failure(self, result: SeedResult, folder: str | None = None) -> None:
        kind = failure_class(result)
        self._printed_of[kind] += 1
        if self._printed_of[kind] > _PRINTED_OF_CLASS_MAX:
            is_next = self._printed_of[kind] == _PRINTED_OF_CLASS_MAX + 1
            if is_next and self._printed <= _PRINTED_MAX:
                what = ", ".join(result.failed_by) or "seeds that could not be run"
                line = printable(f"further failures like this one ({what}) are only counted")
                self._say(Text(line))
            return
        self._printed += 1
        if self._printed > _PRINTED_MAX:
            if self._printed == _PRINTED_MAX + 1:
                self._say(Text("further failures are only counted"))
            return
        self._say(failure_line(result))
        if folder is not None:
            self._say(Text(f"  {replay_command(folder)}", style="dim"))

    def _figures(self) -> str:
        tally, elapsed_s = self._tally, max(1e-3, self.elapsed_s)
        words = [f"{tally.done:,} of {self._total:,} seeds"]
        words += [f"{tally.skipped:,} skipped"] if tally.skipped else []
        words += [f"{tally.failed:,} failed", f"{tally.undecided:,} unknown"]
        words += [f"{tally.crashed:,} could not be run"] if tally.crashes else []
        words += [f"{60 * tally.done / elapsed_s:,.0f} a minute"] if tally.done else []
        left_s = self._left_s(elapsed_s)
        return ", ".join(words if left_s is None else [*words, f"{time_words(left_s)} left"])

    def _left_s(self, elapsed_s: float) -> float | None:
        """Return the seconds until the last seed or the time limit; None before a first seed."""
        tally, ends_s = self._tally, list[float]()
        if self._time_limit_s is not None:
            ends_s.append(max(0.0, self._time_limit_s - elapsed_s))
        if taken := tally.tried + tally.skipped:
            ends_s.append((self._total - taken) * elapsed_s / taken)
        return min(ends_s, default=None)

    def _panel(self) -> Table:
        table = Table.grid(padding=(0, 1))
        bar = ProgressBar(
            total=self._total, completed=self._tally.done + self._tally.skipped, width=_BAR_WIDTH
        )
        table.add_row(bar, Text(f"{self.elapsed_s:,.0f} s"), Text(self._figures()))
        return table

    def _say(self, line: Text) -> None:
        say_if_read(self._console, line)

    def _stamped_figures(self) -> str:
        return f"{self.elapsed_s:7.1f} s  {self._figures()}"


def replay_command(folder: str) -> str:
    """Return the command line that replays a kept failure."""
    return printable(shlex.join(["splitbrain", "replay", folder]) + installed_options())


def failure_line(result: SeedResult, seeds: int = 1) -> Text:
    """Return a failure's seed, the number of its class, its finders, and one sentence."""
    if result.crash is not None:
        last = result.crash.strip().splitlines()[-1]
        line = Text("COULD NOT RUN", style="bold yellow")
        return line.append(printable(f" seed {result.seed}: {last}"), style="default")
    line = Text("FAILED", style="bold red")
    finders = ", ".join(result.failed_by)
    who = f"seed {result.seed}" if seeds == 1 else counted(seeds, "seed")
    return line.append(printable(f" {who}, {finders}: {result.sentence or ''}"), style="default")
