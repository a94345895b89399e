"""Planted bugs are found by the seeds that everybody's sweep begins with, and by the right watcher.

Those that take a few seeds only; ``python -m bench.planted`` measures all. The seed that finds
a bug may change with the swarm, so seeds are tried in order.
"""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.systems.kraft.planted_bugs import planted_bugs

#: Bug, one of these seeds that finds it quickly, and who may see it first.
FOUND_BY: dict[str, tuple[int, tuple[str, ...]]] = {
    "vote-not-persisted": (0, ("INV-05",)),
    "ack-before-fsync": (0, ("INV-07",)),
    "prior-epoch-commit": (1, ("INV-09",)),
    "truncate-below-high-watermark": (1, ("INV-08",)),
    "stale-leader-reads": (5, ("INV-10", "INV-40")),
    "ack-before-commit": (0, ("INV-12",)),
    "vote-answered-before-durable": (0, ("INV-05",)),
    "epoch-not-persisted": (0, ("INV-05",)),
    "vote-ignores-log": (0, ("INV-27", "INV-02")),
    "pre-vote-ignores-log": (0, ("INV-27",)),
    "stale-vote-counted": (1, ("INV-26", "INV-01")),
    "leader-resumes-after-restart": (0, ("INV-01",)),
    "unflushed-counts": (0, ("INV-07",)),
    "high-watermark-before-own-epoch": (0, ("INV-09",)),
    # A log that diverged and stays is of no use to a leader that needs it.
    "no-divergence-check": (1, ("INV-03", "INV-07", "INV-11", "INV-40")),
    "follower-high-watermark-ahead": (1, ("INV-11",)),
    "stale-answer-accepted": (1, ("INV-26", "INV-01")),
    "correlation-restarts": (1, ("INV-26", "INV-01", "INV-31")),
    "rename-not-synced": (0, ("INV-05", "INV-15")),
    "segment-name-not-synced": (7, ("INV-07", "INV-15")),
    "failed-fsync-retried": (6, ("INV-07", "INV-15")),
    "snapshot-id-off-by-one": (5, ("INV-28",)),
    "log-cut-before-snapshot": (5, ("INV-28",)),
    "delta-lost-at-snapshot-load": (5, ("INV-17", "INV-18")),
    "vote-forgotten-at-restart": (18, ("INV-04", "INV-05", "INV-15")),
    "diverging-high-watermark-taken": (1, ("INV-11",)),
    "late-fetch-answer-taken": (4, ("INV-14",)),
    "late-fetch-answer-out-of-place": (4, ("INV-14",)),
    "read-before-own-commit": (5, ("INV-10",)),
    "read-confirmed-by-old-fetch": (15, ("INV-10",)),
    "read-joins-confirmation": (23, ("INV-10",)),
    "resigned-never-stands": (12, ("INV-40",)),
}


#: The same on the state machine metadata: quick seeds that are tried in order, and who may see it.
FOUND_IN_METADATA_BY: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "ack-before-commit": ((2, 3), ("INV-12",)),
    "stale-leader-reads": ((21,), ("INV-10",)),
    "snapshot-id-off-by-one": ((22,), ("INV-28",)),
    "log-cut-before-snapshot": ((22, 25), ("INV-28",)),
    # Records of a topic that was lost contradict the image.
    "delta-lost-at-snapshot-load": ((22, 25), ("INV-14", "INV-17", "INV-18")),
    # A laggard finds no snapshot any more, or ends where its own is gone.
    "newest-snapshot-removed": ((46,), ("INV-14",)),
    "applied-out-of-order": ((2, 3), ("INV-14",)),
    "broker-epoch-not-checked": ((52,), ("INV-50",)),
    "unfenced-too-early": ((2, 12), ("INV-49",)),
    "stale-partition-epoch-accepted": ((2, 9), ("INV-51",)),
    "fenced-broker-stays-leader": ((2, 3), ("INV-46",)),
    "shut-down-too-early": ((9,), ("INV-54",)),
    "producer-ids-given-twice": ((2, 7), ("INV-52", "INV-53")),
    "live-broker-displaced": ((3, 7), ("INV-55",)),
    "broker-epoch-not-renewed": ((2, 3), ("INV-45",)),
    "activation-not-first": ((2,), ("INV-44",)),
    "answered-before-commit": ((2,), ("INV-53",)),
    "ineligible-replica-accepted": ((16,), ("INV-51",)),
    "open-transaction-kept": ((191,), ("INV-44",)),
    "fenced-broker-serves": ((2, 3), ("INV-56",)),
    "own-registration-not-awaited": ((7, 10), ("INV-56",)),
    "older-image-shown": ((2, 9), ("INV-48",)),
    "clean-stop-kept": ((23, 52), ("INV-57",)),
    "change-sent-again": ((12,), ("linearizability:topics",)),
    "silent-broker-stays": ((4,), ("INV-62",)),
    "sessions-lost-at-failover": ((4,), ("INV-62",)),
}


#: The source text of an object, which no sentence for people has.
SOURCE_TEXT = re.compile(r"\b[A-Z]\w*\(\w+=|\bb'|<\w+ object|\d us\b")


def found(
    bug: str | None, seeds: Iterable[int], state_machine: str | None = None
) -> tuple[int, str, str] | None:
    """The first seed that finds something, what finds it, and how it says so."""
    bugs = () if bug is None else (bug,)
    trial = SimOptions(system=DEFAULT_SYSTEM, bugs=bugs, state_machine=state_machine)
    for seed in seeds:
        outcome = judged(run(draw(seed, trial)))
        if outcome.failed_by:
            return seed, outcome.failed_by[0], outcome.sentence or ""
    return None


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found_by_its_seed(bug: str) -> None:
    assert bug in planted_bugs()
    seed, invariants = FOUND_BY[bug]
    finding = found(bug, (seed,))
    assert finding is not None
    assert finding[1] in invariants
    assert finding[2]
    assert SOURCE_TEXT.search(finding[2]) is None


@pytest.mark.parametrize("bug", FOUND_IN_METADATA_BY)
def test_a_planted_bug_of_the_control_plane_is_found_by_its_seeds(bug: str) -> None:
    assert bug in planted_bugs()
    seeds, invariants = FOUND_IN_METADATA_BY[bug]
    finding = found(bug, seeds, "metadata")
    assert finding is not None
    assert finding[1] in invariants
    assert SOURCE_TEXT.search(finding[2]) is None


def test_enough_bugs_of_the_control_plane_are_found() -> None:
    assert len(FOUND_IN_METADATA_BY) >= 15


def in_the_correct_code(seeds: Iterable[int]) -> list[Any]:
    """The dearest worlds are for the night: ``test_correct_code_is_silent`` gates with others."""
    dear = {5, 9, 12, 16, 191}
    return [
        pytest.param(seed, marks=[pytest.mark.nightly] if seed in dear else [])
        for seed in sorted(set(seeds))
    ]


@pytest.mark.parametrize("seed", in_the_correct_code(seed for seed, _ in FOUND_BY.values()))
def test_the_same_seeds_find_nothing_in_the_correct_code(seed: int) -> None:
    assert found(None, (seed,)) is None


@pytest.mark.parametrize(
    "seed",
    in_the_correct_code(seed for tried, _ in FOUND_IN_METADATA_BY.values() for seed in tried),
)
def test_the_same_seeds_find_nothing_in_a_correct_control_plane(seed: int) -> None:
    assert found(None, (seed,), "metadata") is None
