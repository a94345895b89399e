"""Shows a run while it goes on: a small live panel on a terminal, plain lines elsewhere."""

from typing import Self

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from splitbrain.harness.console.console_lines import say_if_read
from splitbrain.harness.console.live_area import LiveArea, is_screen
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.run.progress import Progress


class LiveDisplay:
    """A context: shows ``progress`` until it is left."""

    def __init__(self, console: Console, progress: Progress, title: str) -> None:
        self._console = console
        self._progress = progress
        self._title = title
        self._rate = _Rate(progress)
        self._area = LiveArea(console, self._panel, self._figures)

    def __enter__(self) -> Self:
        if not is_screen(self._console):
            self._print(self._title)
            self._progress.listen(self._print)
        self._area.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._area.__exit__()

    def abandon(self) -> None:
        """Bring the terminal back in order from another thread, before the process is left."""
        self._area.abandon()

    def _panel(self) -> Panel:
        progress, counts = self._progress, self._progress.traffic.counts()
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column()
        table.add_row("elapsed", f"{progress.elapsed_s:.0f} s, {progress.activity}")
        table.add_row(
            "operations",
            f"{counts.ok:,} ok, {counts.fail:,} fail, {counts.info:,} info, "
            f"{self._rate.per_second():,.0f} per second",
        )
        leader = progress.leader or "nobody"
        epoch = "" if progress.epoch is None else f", epoch {progress.epoch}"
        table.add_row("leader", Text(printable(leader + epoch)))
        fault = Text(printable(progress.fault or "none"), style="red" if progress.fault else "")
        table.add_row("fault", fault)
        recent = Text("\n".join(printable(line) for line in tuple(progress.recent)), style="dim")
        return Panel(Group(table, Text(), recent), title=printable(self._title), title_align="left")

    def _print(self, line: str) -> None:
        # The threads of the run say their lines here and must go on.
        say_if_read(self._console, Text(printable(line)))

    def _figures(self) -> str | None:
        if self._progress.phase != "load-started":
            return None
        counts = self._progress.traffic.counts()
        return (
            f"{self._progress.elapsed_s:7.1f} s  {counts.ok:,} ok, {counts.fail:,} fail, "
            f"{counts.info:,} info, {self._rate.per_second():,.0f} per second, "
            f"leader {self._progress.leader or 'unknown'}, "
            f"fault {self._progress.fault or 'none'}"
        )


class _Rate:
    """Completed operations per second since the last question."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._time_s = 0.0
        self._total = 0

    def per_second(self) -> float:
        time_s, total = self._progress.elapsed_s, self._progress.traffic.counts().total
        passed_s = max(1e-3, time_s - self._time_s)
        rate = (total - self._total) / passed_s
        self._time_s, self._total = time_s, total
        return rate
