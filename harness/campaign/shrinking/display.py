"""Display of a search: a live line on a terminal, elsewhere one a minute, and one for each plan."""

from rich.console import Console
from rich.text import Text

from splitbrain.harness.console.console_lines import say_if_read
from splitbrain.harness.console.live_area import MINUTE_S, LiveArea
from splitbrain.harness.console.plain_text import printable
from splitbrain.nemesis.search import SearchBudget


class SearchDisplay(LiveArea):
    """Context that shows progress until it is left; ``now`` is the present step in a few words."""

    def __init__(self, console: Console, budget: SearchBudget, now: str) -> None:
        self._budget, self.now = budget, now

        def draw() -> Text:
            return Text(printable(line()))

        def line() -> str:
            return self._stamped(f"{self.now}; {budget.words}")

        super().__init__(console, draw, line, interval_s=MINUTE_S)

    def say(self, sentence: str) -> None:
        """Print a line that stays."""
        say_if_read(self._console, Text(printable(self._stamped(sentence))))

    def _stamped(self, sentence: str) -> str:
        return f"{self._budget.elapsed_s:7.1f} s  {sentence}"
