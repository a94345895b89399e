"""Verdicts of replays, and how often a run came to the same when it was replayed, in words.

Two runs fail with the same verdict where the same checkers found a violation; which operations
they name differs with the kernel's timing. Judges nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    Results,
    counted,
    read,
)
from splitbrain.history.run_folder import RunFolder


class ReplayVerdict(msgspec.Struct, frozen=True):
    """Verdict of one run, as far as replays are compared by it."""

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
    if recorded is not None and recorded.is_invalid:
        same = sum(replay == recorded for replay in replays)
        how = f"failed with the same verdict: {', '.join(recorded.violated)}"
    else:
        same = sum(replay.is_invalid for replay in replays)
        how = "came out invalid"
    return [_rate(same, len(replays), times, how), *_counts(replays)]


def exact_line(codes: Sequence[int], times: int) -> str:
    """Say how often some exact replays came to the same.

    Args:
        codes: exit codes of those that came to their end.
        times: how many were asked for.
    """
    same = sum(code != EXIT_HARNESS_FAILED for code in codes)
    return _rate(same, len(codes), times, "had the same trace")


def _rate(same: int, count: int, times: int, how: str) -> str:
    missing = times - count
    left = f" {missing} {'was' if missing == 1 else 'were'} left out." if missing else ""
    return f"{same} of {counted(count, 'replay')} {how}.{left}"


def _counts(replays: Iterable[ReplayVerdict]) -> Iterable[str]:
    counts = Counter(replays)
    # A violation must be seen first; among equals the most frequent.
    order = sorted(counts, key=lambda one: (not one.is_invalid, -counts[one], one.words()))
    return [f"{counts[one]:>4} {one.words()}" for one in order]
