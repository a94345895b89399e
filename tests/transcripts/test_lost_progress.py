"""Planted bugs that only cost progress: a majority is connected, and nobody ever commits again.

Time goes on here: the earliest timer rings, every message on an open link arrives at once, every
request on a closed one fails.
"""

from typing import Final, NamedTuple

import pytest

from splitbrain.nodes.quorum.replica import Replica
from tests.planted import with_bug
from tests.transcripts.stage import Player, Stage

#: Timers that ring before a cluster is given up; about ten simulated seconds.
STEPS_MAX: Final = 600


class Case(NamedTuple):
    bug: str
    #: Steps so far, with semicolons between.
    commands: str
    #: Pairs that do not hear each other.
    closed: tuple[tuple[int, int], ...] = ()


CASES: Final = (
    # The leader's process is gone, and both others know it.
    Case(
        "follows-granted-pre-vote",
        "voters 3; start 1 2 3; timer 1; settle; crash 1; refuse 2>1; refuse 3>1",
    ),
    # The restarted leader alone has the record that it wrote last; one other is up.
    Case(
        "resigned-never-stands",
        "voters 3; state 1 3 1 1; state 2 3 1 -; log 1 1x1 3x2; log 2 1x1 3x1; start 1 2",
    ),
    # Both voters that are left stand in one epoch, the third is silent.
    Case(
        "candidate-never-gives-up",
        "voters 3; start 1 2 3; timer 1; lose 1>2; timer 2; lose 2>1; deliver 1>3; deliver 3>1; "
        "deliver 2>3; deliver 3>2; lose 1>3; lose 2>3; persist 1 2",
        closed=((1, 3), (2, 3)),
    ),
    # Node 2 cannot win, since node 1 has the longer log, and is always the first to stand again.
    Case(
        "pre-vote-ignores-log",
        "voters 3; state 1 1 - -; state 2 1 - -; log 1 1x2; log 2 1x1; start 1 2; timer 2",
    ),
    # Two of five are down; the leader and node 3 reach node 2 alone: nothing commits without both.
    Case(
        "isolated-leader-stays",
        "voters 5; start 1 2 3 4 5; timer 1; settle; crash 4; crash 5; propose 1 x",
        closed=((1, 3),),
    ),
)


class Clockwork:
    """Lets a stage run by itself."""

    def __init__(self, stage: Stage, closed: tuple[tuple[int, int], ...]) -> None:
        self._stage = stage
        stage.closed = {frozenset(pair) for pair in closed}

    def commits_again(self) -> bool:
        """Whether somebody commits more than is committed now."""
        before = max(replica.high_watermark for _, replica in self._alive())
        for _ in range(STEPS_MAX):
            self._stage.perform("quietly settle")
            leaders = [replica for _, replica in self._alive() if replica.role == "leader"]
            if any(leader.high_watermark > max(before, 0) for leader in leaders):
                return True
            self._fail_requests()
            deadlines = [
                (replica.deadline, player.key.node_id)
                for player, replica in self._alive()
                if replica.deadline is not None
            ]
            if not deadlines:
                return False
            self._stage.perform(f"quietly timer {min(deadlines)[1]}")
        return False

    def _alive(self) -> list[tuple[Player, Replica]]:
        players = self._stage._players.values()
        return [(player, player.replica) for player in players if player.replica is not None]

    def _fail_requests(self) -> None:
        for player, _ in self._alive():
            source = player.key.node_id
            for target in list(player.outbound):
                if self._stage._players[target].replica is None:
                    self._stage.perform(f"quietly refuse {source}>{target}")
                elif frozenset((source, target)) in self._stage.closed:
                    self._stage.perform(f"quietly fail {source}>{target}")


def commits_again(case: Case) -> bool:
    stage = Stage()
    for command in case.commands.split("; "):
        stage.perform(command)
    return Clockwork(stage, case.closed).commits_again()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.bug)
def test_a_connected_majority_commits_again(case: Case) -> None:
    assert commits_again(case)


@pytest.mark.parametrize("case", [with_bug(case.bug, case) for case in CASES])
def test_it_never_does_with_the_bug(case: Case) -> None:
    assert not commits_again(case)
