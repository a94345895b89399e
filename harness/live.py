"""Shows a run while it goes on: a small live panel on a terminal, plain lines elsewhere."""

import threading
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.plain_text import printable
from harness.progress import Progress
from harness.terminal import without_control_echo

_REFRESH_PER_SECOND = 4
#: Time between two lines of figures where the output is no terminal.
_PLAIN_INTERVAL_S = 5.0
#: How long a display that is left in a hurry gets to remove what it has drawn.
_STOP_PATIENCE_S = 1.0


class LiveDisplay:
    """A context: shows ``progress`` until it is left."""

    def __init__(self, console: Console, progress: Progress, title: str) -> None:
        self._console = console
        self._progress = progress
        self._title = title
        self._rate = _Rate(progress)
        self._ending = threading.Event()
        self._live: Live | None = None
        self._thread: threading.Thread | None = None
        self._terminal = ExitStack()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._terminal.enter_context(without_control_echo())
            self._live = Live(
                get_renderable=self._panel,
                console=self._console,
                refresh_per_second=_REFRESH_PER_SECOND,
                transient=True,
            )
            self._live.start()
        else:
            self._print(self._title)
            self._progress.listen(self._print)
            self._thread = threading.Thread(target=self._print_figures, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        # Nobody may read any more; the threads of the run say their lines here and must go on.
        with suppress(OSError, SystemExit):
            self._console.print(Text(printable(line)), soft_wrap=True)

    def _print_figures(self) -> None:
        while not self._ending.wait(_PLAIN_INTERVAL_S):
            if self._progress.phase != "load-started":
                continue
            counts = self._progress.traffic.counts()
            self._print(
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
