"""One command that may be interrupted: what Ctrl-C and SIGTERM do around a run and while it judges.

The first signal ends what is not decided yet, the second leaves at once.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console

from splitbrain.harness.console.interrupts import LEFT_EXIT_CODE, Interrupts
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.results import Results
from splitbrain.harness.report.summary import show, show_headline

#: Reason of what stays undecided.
INTERRUPTED = "interrupted"


class Session:
    """Signals of a command, and its verdict so far, which is shown as soon as it is known."""

    def __init__(self, console: Console, leave: Callable[[], None], *, shows: bool) -> None:
        self.console = console
        self._leave, self._shows = leave, shows
        #: Set when the user does not want to wait for the judging.
        self.stop = Stop()
        self.interrupts = Interrupts(self.say)
        self._errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        self._results: Results | None = None

    def say(self, sentence: str) -> None:
        """Tell the user something that belongs to no result."""
        self._errors.print(printable(sentence))

    def note_verdict(self, results: Results) -> None:
        """Note, and show, that the verdict is known and published."""
        self._results = results
        if self._shows:
            show(results, self.console)

    def conclude(self, results: Results) -> None:
        """Show what became of the verdict since it was shown."""
        before = self._results
        if not self._shows or results == before:
            return
        if before is None or before.exit_code != results.exit_code:
            show(results, self.console)
            return
        for problem in results.problems:
            if problem not in before.problems:
                self.say(problem)
        # The verdict stands last, where the eye is when a command ends.
        show_headline(results, self.console)

    def given_up(self) -> str | None:
        """Why what is not decided yet stays so, or None."""
        return INTERRUPTED if self.stop.is_set() else None

    @contextmanager
    def judging(self) -> Generator[None]:
        """Signals end the judging while the context lasts."""
        with self.interrupts.during(self._cut_short, farewell=self._farewell):
            yield

    def _cut_short(self) -> str:
        self.stop.interrupt()
        effect = "what is not decided yet stays undecided"
        if self._results is not None:
            verdict = self._results.headline
            effect = f"the verdict stands ({verdict}), what is still missing is left out"
        return f"interrupted: {effect}; once more to leave at once"

    def _farewell(self) -> tuple[str, int]:
        self._leave()
        if self._results is None:
            sentence = "left before there was a verdict; `splitbrain check RUN` makes one."
            return sentence, LEFT_EXIT_CODE
        verdict = f"left after the verdict, {self._results.headline}"
        return f"{verdict}: see {self._results.run_folder}/results.json.", self._results.exit_code


@contextmanager
def judging_session(
    console: Console, leave: Callable[[], None] = lambda: None, *, shows: bool = False
) -> Generator[Session]:
    """Return a session that has the process' signals while the context lasts.

    ``leave`` ends what the command has begun, when the user leaves at once; ``shows``: it shows
    verdicts.
    """
    session = Session(console, leave, shows=shows)
    with session.interrupts:
        yield session
