"""Display of a night: one line per finished run, how far it is, and a bar on a terminal."""

import threading
import time
from typing import Final

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from splitbrain.harness.campaign.suite.definition import PlannedRun
from splitbrain.harness.campaign.suite.ledger import RunEnded
from splitbrain.harness.console.live_area import MINUTE_S, LiveArea
from splitbrain.harness.console.pace import pace_words
from splitbrain.harness.console.plain_text import printable

_STYLES = {"valid": "green", "invalid": "red", "failed": "red"}
_BAR_WIDTH: Final = 20


class Display(LiveArea):
    """Context that shows a night of ``total`` runs, ``done`` of which are over already."""

    def __init__(self, console: Console, total: int, done: int = 0) -> None:
        super().__init__(console, self._panel, self._pace, interval_s=MINUTE_S)
        self._total, self._done, self._done_before = total, done, done
        self._lock = threading.Lock()
        self._under_way: list[str] = []
        self._began_s = time.monotonic()

    def started(self, run: PlannedRun) -> None:
        """Show a run that begins; on a terminal only, where the line can go away again."""
        with self._lock:
            self._under_way.append(f"{run.cell}, seed {run.seed}")

    def finished(self, line: RunEnded) -> None:
        """Print a finished run: its cell, seed, verdict and seconds."""
        with self._lock:
            self._done += 1
            name = f"{line.cell}, seed {line.seed}"
            if name in self._under_way:
                self._under_way.remove(name)
        width = len(str(self._total))
        text = Text(f"[{self._done:{width}}/{self._total}] ")
        text.append(f"{line.verdict:8}", _STYLES.get(line.verdict, "yellow"))
        text.append(f" {line.took_s:7.1f} s  {printable(name)}")
        if not line.as_expected:
            text.append("  NOT AS EXPECTED: ")
            text.append(printable(line.sentence or f"{line.expect} was expected"))
        elif line.expect == "invalid":
            text.append("  as expected")
        self._console.print(text, soft_wrap=True)

    def _pace(self) -> str:
        """Return runs of all, their rate and the time left, at the pace of this sitting."""
        with self._lock:
            done, total = self._done, self._total
        elapsed_s = time.monotonic() - self._began_s
        made = done - self._done_before
        return pace_words(done, total, "run", elapsed_s, of_this_time=made)

    def _panel(self) -> Table:
        with self._lock:
            done, under_way = self._done, printable("; ".join(self._under_way))
        table = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self._total, completed=done, width=_BAR_WIDTH)
        table.add_row(bar, Text(self._pace()), Text(under_way))
        return table
