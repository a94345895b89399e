"""Verdicts of replays, and how often they agree with the run's, in words.

A run fails with the verdict of another where each checker that found a violation there finds one
here. Further checkers may do so besides: whether a read came between a loss and its repair, and
which operations are named, differs with the kernel's timing. Judges nothing.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.words import counted
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    Results,
    read,
    worst,
)
from splitbrain.history.run_folder import RunFolder


class ReplayVerdict(msgspec.Struct, frozen=True):
    """Verdict of one run, as far as replays are compared by it."""

    headline: str
    violated: tuple[str, ...] = ()

    @property
    def is_invalid(self) -> bool:
        """Return whether a checker found a violation."""
        return self.headline == "INVALID"

    def repeats(self, recorded: "ReplayVerdict") -> bool:
        """Return whether it has the violations of a recorded verdict, whatever it has besides."""
        return self.is_invalid and {*recorded.violated} <= {*self.violated}

    @property
    def text(self) -> str:
        """Return the headline in lower case, and the checkers that found the violation."""
        checkers = f" ({', '.join(self.violated)})" if self.violated else ""
        return f"{self.headline.lower()}{checkers}"


#: Stands for a run that its user ended before it could be judged.
INTERRUPTED = ReplayVerdict("INTERRUPTED")


def verdict_of(results: Results) -> ReplayVerdict:
    """Return the verdict of a judged run."""
    violated = {each.checker for each in results.checkers if each.verdict is Verdict.INVALID}
    return ReplayVerdict(results.headline, tuple(sorted(violated)))


def recorded_verdict(folder: RunFolder) -> ReplayVerdict | None:
    """Return the recorded run's verdict; None where nobody has judged it."""
    with suppress(OSError, *UNREADABLE):
        return verdict_of(read(folder.results))
    return None


def replay_lines(
    recorded: ReplayVerdict | None, replays: Sequence[ReplayVerdict], times: int
) -> list[str]:
    """Return lines on some replays: how many failed, how alike, then each verdict with its count.

    ``recorded`` is the run's own verdict, if known; at least one replay of ``times`` has ended.
    """
    failed = sum(replay.is_invalid for replay in replays)
    alike = ""
    if failed and recorded is not None and recorded.is_invalid:
        same = sum(replay.repeats(recorded) for replay in replays)
        alike = f", {same} of them as the run did: {', '.join(recorded.violated)}"
    counts = Counter(replays)
    # Violations first; among equals the most frequent.
    order = sorted(
        counts, key=lambda verdict: (not verdict.is_invalid, -counts[verdict], verdict.text)
    )
    lines = [f"{counts[verdict]:>4} {verdict.text}" for verdict in order]
    return [_rate(failed, len(replays), times, f"failed{alike}"), *lines]


class ReplayAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `splitbrain replay --json` where a run is replayed by its plan."""

    exit_code: int
    #: Verdict of the run that was replayed; None where nobody has judged it.
    recorded: ReplayVerdict | None
    replays: tuple[ReplayVerdict, ...]
    failed: int
    #: Those that failed as the run did.
    alike: int


def replay_answer(
    recorded: ReplayVerdict | None, replays: Sequence[ReplayVerdict], codes: Sequence[int]
) -> ReplayAnswer:
    """Return the same as ``replay_lines`` as data; ``codes`` are the exit codes of the replays."""
    return ReplayAnswer(
        exit_code=worst(codes),
        recorded=recorded,
        replays=tuple(replays),
        failed=sum(replay.is_invalid for replay in replays),
        alike=sum(replay.repeats(recorded) for replay in replays if recorded is not None),
    )


def exact_line(codes: Sequence[int], times: int) -> str:
    """Return how many of ``times`` exact replays failed and how alike they were, by exit codes."""
    failed = sum(code == EXIT_INVALID for code in codes)
    same = sum(code != EXIT_HARNESS_FAILED for code in codes)
    return _rate(failed, len(codes), times, f"failed; {same} had the same trace")


def _rate(same: int, count: int, times: int, how: str) -> str:
    missing = times - count
    left = f" {missing} {'was' if missing == 1 else 'were'} left out." if missing else ""
    return f"{same} of {counted(count, 'replay')} {how}.{left}"
