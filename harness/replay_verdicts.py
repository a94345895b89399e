"""How often a failure came back when its run was replayed.

Two runs fail with the same verdict where the same checkers found a violation; which operations
they name differs with the kernel's timing. Judges nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from checker.verdict import Verdict
from contracts.errors import UNREADABLE
from harness.results import Results, read
from history.run_folder import RunFolder


class ReplayVerdict(msgspec.Struct, frozen=True):
    """What one run came to, as far as replays are compared by it."""

    headline: str
    #: Checkers that found a violation, sorted; empty for a run that none convicted.
    violated: tuple[str, ...] = ()

    @property
    def is_invalid(self) -> bool:
        """Whether a checker found a violation."""
        return self.headline == "INVALID"

    def words(self) -> str:
        """Headline in lower case, and who found the violation."""
        found = f" ({', '.join(self.violated)})" if self.violated else ""
        return f"{self.headline.lower()}{found}"


#: What a run came to that its user ended before it could be judged.
INTERRUPTED = ReplayVerdict("INTERRUPTED")


def verdict_of(results: Results) -> ReplayVerdict:
    """What a judged run came to."""
    violated = {
        checked.checker for checked in results.checkers if checked.verdict is Verdict.INVALID
    }
    return ReplayVerdict(results.headline, tuple(sorted(violated)))


def recorded_verdict(folder: RunFolder) -> ReplayVerdict | None:
    """What the recorded run came to; None where nobody has judged it."""
    with suppress(OSError, *UNREADABLE):
        return verdict_of(read(folder.results))
    return None


def replay_lines(
    recorded: ReplayVerdict | None, replays: Sequence[ReplayVerdict], times: int
) -> list[str]:
    """What to say after some replays: the rate first, then each verdict with its count.

    Args:
        recorded: the run's own verdict, None if it is not known.
        replays: those that came to their end, one at least.
        times: how many were asked for.
    """
    count = len(replays)
    if recorded is not None and recorded.is_invalid:
        same = sum(replay == recorded for replay in replays)
        rate = f"{same} of {count} failed with the same verdict: {', '.join(recorded.violated)}."
    else:
        invalid = sum(replay.is_invalid for replay in replays)
        rate = f"{invalid} of {count} {'replay' if count == 1 else 'replays'} came out invalid."
    left = "" if count == times else f" {times - count} were left out."
    return [rate + left, *_counts(replays)]


def _counts(replays: Iterable[ReplayVerdict]) -> Iterable[str]:
    counts = Counter(replays)
    # A violation must be seen first; among equals the most frequent.
    order = sorted(counts, key=lambda one: (not one.is_invalid, -counts[one], one.words()))
    return [f"{counts[one]:>4} {one.words()}" for one in order]
