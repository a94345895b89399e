"""Shows a search on a real runtime: a line for each plan, and one that lives on a terminal."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from harness.console_lines import say_if_read
from harness.live_area import LiveArea
from harness.plain_text import printable
from harness.shrinking.oracle import Answer, Try
from nemesis.k_of_n import Asking
from nemesis.search import SearchBudget

#: Time between two lines where the output is no terminal; a run takes about as long.
_PLAIN_INTERVAL_S = 30.0


class SearchDisplay:
    """A context: shows progress until it is left."""

    def __init__(self, console: Console, budget: SearchBudget, asking: Asking) -> None:
        self._console, self._budget, self._asking = console, budget, asking
        self._now = "about to begin"
        self._area = LiveArea(
            console,
            lambda: Text(printable(self._line())),
            self._line,
            interval_s=_PLAIN_INTERVAL_S,
        )

    def __enter__(self) -> Self:
        self._area.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._area.__exit__(kind, error, trace)

    def begins(self, answer: Answer) -> None:
        """The next try is about to be made."""
        made = f"{answer.failed} of {answer.tried} failed so" if answer.tried else "no try yet"
        plan = f"plan {answer.number}: {answer.shape.words()} ({answer.step})"
        wanted = f"{self._asking.at_least} of {self._asking.tries} wanted"
        self._now = f"run {self._budget.tries + 1}, {plan}; {made}, {wanted}"

    def took(self, answer: Answer, made: Try, *, is_same: bool) -> None:
        """Tell of a try that the harness could not carry out, or that failed otherwise."""
        if made.problem is not None:
            self._say(f"plan {answer.number}: a try could not be carried out: {made.problem}")
        elif made.verdict is not None and made.verdict.is_invalid and not is_same:
            self._say(f"plan {answer.number}: a try failed otherwise: {made.verdict.words()}")

    def answered(self, answer: Answer) -> None:
        """One line about a plan."""
        verdict = {True: "fails", False: "does not fail", None: "not settled"}[answer.fails]
        plan = f"plan {answer.number}: {answer.shape.words()} ({answer.step})"
        self._say(f"{plan} {verdict}, {answer.failed} of {answer.tried}")

    def _say(self, sentence: str) -> None:
        line = f"{self._budget.elapsed_s:7.1f} s  {sentence}"
        say_if_read(self._console, Text(printable(line)))

    def _line(self) -> str:
        return f"{self._budget.elapsed_s:7.1f} s  {self._now}"
