"""Display of a night: one line per finished run, and a bar on a terminal."""

import threading
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from splitbrain.harness.campaign.suite.definition import PlannedRun
from splitbrain.harness.campaign.suite.ledger import RunEnded
from splitbrain.harness.console.plain_text import printable

_STYLES = {"valid": "green", "invalid": "red", "failed": "red"}


class Display:
    """Context that shows a night of ``total`` runs, ``done`` of which are over already."""

    def __init__(self, console: Console, total: int, done: int = 0) -> None:
        self._console = console
        self._total, self._done = total, done
        self._lock = threading.Lock()
        self._under_way: list[str] = []
        self._task: TaskID | None = None
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                MofNCompleteColumn(),
                BarColumn(bar_width=20),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
                console=console,
                transient=True,
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, completed=self._done)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def started(self, run: PlannedRun) -> None:
        """Show a run that begins; on a terminal only, where the line can go away again."""
        with self._lock:
            self._under_way.append(f"{run.cell}, seed {run.seed}")
            self._refresh()

    def finished(self, line: RunEnded) -> None:
        """Print a finished run: its cell, seed, verdict and seconds."""
        with self._lock:
            self._done += 1
            name = f"{line.cell}, seed {line.seed}"
            if name in self._under_way:
                self._under_way.remove(name)
            self._refresh()
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

    def _refresh(self) -> None:
        if self._bar is not None and self._task is not None:
            under_way = printable("; ".join(self._under_way))
            self._bar.update(self._task, completed=self._done, description=under_way)
