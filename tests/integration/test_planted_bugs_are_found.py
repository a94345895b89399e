"""Planted bugs are found by the seeds that everybody's sweep begins with, and by the right watcher.

Those that take a few seeds only; ``python -m bench.planted`` measures all of them. Which seed finds
a bug may change with the swarm, so seeds are tried in order.
"""

import re

import pytest

from harness.simulation.judging import judged, sentence_of
from harness.simulation.trial import Trial, draw, run
from systems.kraft.planted_bugs import REGISTRY
from systems.registry import DEFAULT_SYSTEM

#: Seeds that are tried; none of these bugs took more than half of them when it was measured.
SEEDS_MAX = 20

#: Bug, and who may see it first.
FOUND_BY: dict[str, tuple[str, ...]] = {
    "vote-not-persisted": ("INV-05",),
    "ack-before-fsync": ("INV-07",),
    "prior-epoch-commit": ("INV-09",),
    "truncate-below-high-watermark": ("INV-08",),
    "stale-leader-reads": ("INV-10", "INV-40"),
    "ack-before-commit": ("INV-12",),
    "vote-answered-before-durable": ("INV-05",),
    "epoch-not-persisted": ("INV-05",),
    "vote-ignores-log": ("INV-27", "INV-02"),
    "pre-vote-ignores-log": ("INV-27",),
    "stale-vote-counted": ("INV-26", "INV-01"),
    "leader-resumes-after-restart": ("INV-01",),
    "unflushed-counts": ("INV-07",),
    "high-watermark-before-own-epoch": ("INV-09",),
    # A log that diverged and stays is of no use to a leader that needs it.
    "no-divergence-check": ("INV-03", "INV-07", "INV-11", "INV-40"),
    "follower-high-watermark-ahead": ("INV-11",),
    "stale-answer-accepted": ("INV-26", "INV-01"),
    "correlation-restarts": ("INV-26", "INV-01", "INV-31"),
    "rename-not-synced": ("INV-05", "INV-15"),
    "segment-name-not-synced": ("INV-07", "INV-15"),
    "failed-fsync-retried": ("INV-07", "INV-15"),
    "snapshot-id-off-by-one": ("INV-28",),
    "log-cut-before-snapshot": ("INV-28",),
    "delta-lost-at-snapshot-load": ("INV-17", "INV-18"),
    "resigned-never-stands": ("INV-40",),
}


#: The same of controllers, in worlds with the state machine metadata.
FOUND_IN_METADATA_BY: dict[str, tuple[str, ...]] = {
    "fenced-broker-stays-leader": ("INV-46",),
    "broker-epoch-not-renewed": ("INV-45",),
}


#: The source text of an object, which no sentence for people has.
SOURCE_TEXT = re.compile(r"\b[A-Z]\w*\(\w+=|\bb'|<\w+ object|\d us\b")


def found(bug: str | None, state_machine: str | None = None) -> tuple[int, str, str] | None:
    """The first seed that finds something, what finds it, and how it says so."""
    bugs = () if bug is None else (bug,)
    trial = Trial(system=DEFAULT_SYSTEM, bugs=bugs, state_machine=state_machine)
    for seed in range(SEEDS_MAX):
        outcome = judged(run(draw(seed, trial)))
        if outcome.failed_by:
            return seed, outcome.failed_by[0], sentence_of(outcome) or ""
    return None


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found_within_a_few_seeds(bug: str) -> None:
    assert bug in REGISTRY
    finding = found(bug)
    assert finding is not None
    assert finding[1] in FOUND_BY[bug]
    assert finding[2]
    assert SOURCE_TEXT.search(finding[2]) is None


@pytest.mark.parametrize("bug", FOUND_IN_METADATA_BY)
def test_a_planted_bug_of_controllers_is_found_within_a_few_seeds(bug: str) -> None:
    assert bug in REGISTRY
    finding = found(bug, "metadata")
    assert finding is not None
    assert finding[1] in FOUND_IN_METADATA_BY[bug]
    assert SOURCE_TEXT.search(finding[2]) is None


def test_the_same_seeds_find_nothing_in_the_correct_code() -> None:
    assert found(None) is None
