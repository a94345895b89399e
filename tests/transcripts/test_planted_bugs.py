"""Each planted bug of the core in a few commands: what the last one says with it and without it.

Those whose consequence the stage itself sees (two leaders, a lost commit, a stale read) have a
``bug_*.txt`` besides; here is the mechanism alone.
"""

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from splitbrain.systems.kraft.planted_bugs import planted_bugs
from tests.planted import with_bug
from tests.transcripts.stage import Stage

#: Node 1 leads epoch 1, all have its first record.
ELECTED: Final = "voters 3; start 1 2 3; timer 1; settle"
#: Node 1 leads epoch 2 and has flushed nothing of it, node 2 is about to fetch; 3 is down.
ELECTED_WITH_A_PAST: Final = (
    "voters 3; state 1 1 - -; state 2 1 - -; log 1 1x2; log 2 1x2; start 1 2; timer 1; "
    "deliver 1>2; deliver 2>1; persist 1; deliver 1>2; persist 2; deliver 2>1; persist 1"
)
#: Node 1 stands in epoch 1 with its vote durable; its pre-vote request to node 3 is on its way.
CANDIDATE: Final = "voters 3; start 1 2 3; timer 1; deliver 1>2; deliver 2>1; persist 1"
FOLLOWER: Final = "voters 3; state 1 3 2 -; log 1 3x1; start 1"


class Script(NamedTuple):
    bug: str
    #: One after the other, with semicolons between.
    commands: str
    #: A part of what the last command says, with the bug only and without it only.
    with_bug: str | None = None
    without: str | None = None


SCRIPTS: Final = (
    Script(
        "vote-answered-before-durable", "voters 3; start 1; ask 1 VoteRequest epoch=1", "SendAnswer"
    ),
    Script(
        "epoch-not-persisted",
        "voters 3; log 1 1x3; state 1 1 - -; start 1; ask 1 VoteRequest epoch=5",
        without="PersistQuorumState version=1 state=(QuorumState epoch=5)",
    ),
    Script(
        "double-vote-same-epoch",
        "voters 3; log 1 1x1; state 1 3 - 2; start 1; "
        "ask 1 VoteRequest epoch=3 candidate_id=3 last_epoch=1 end_offset=5",
        "voted_id=3",
    ),
    Script(
        "vote-forgotten-at-restart",
        "voters 3; log 1 1x1; state 1 3 - 2; start 1; "
        "ask 1 VoteRequest epoch=3 candidate_id=3 last_epoch=1 end_offset=5",
        "voted_id=3",
    ),
    Script(
        "vote-ignores-log",
        "voters 3; log 1 1x3; state 1 1 - -; start 1; ask 1 VoteRequest epoch=2",
        "voted_id=2",
    ),
    Script(
        "pre-vote-ignores-log",
        "voters 3; log 1 1x3; state 1 1 - -; start 1; ask 1 VoteRequest epoch=1 pre_vote=True",
        "granted=true",
    ),
    Script(
        "stale-vote-counted",
        f"{CANDIDATE}; deliver 1>3; deliver 3>1; show 1",
        "n1: leader in epoch 1",
        "n1: candidate in epoch 1",
    ),
    Script(
        "leader-survives-epoch-bump",
        f"{ELECTED}; ask 1 VoteRequest epoch=2 candidate_id=3; show 1",
        "n1: leader in epoch 2",
        "n1: unattached in epoch 2",
    ),
    Script(
        "leader-resumes-after-restart",
        f"{ELECTED}; crash 1; start 1; show 1",
        "n1: leader in epoch 1",
        "n1: resigned in epoch 1",
    ),
    Script(
        "isolated-leader-stays",
        f"{ELECTED}; cut 1; wait 1000; timer 1; show 1",
        "n1: leader",
        "n1: resigned",
    ),
    Script(
        "unflushed-counts",
        f"{ELECTED}; propose 1 new; deliver 1>2; flush 2; deliver 2>1",
        "AdvanceHighWatermark offset=2",
    ),
    Script(
        "high-watermark-before-own-epoch",
        f"{ELECTED_WITH_A_PAST}; deliver 1>2; persist 2; deliver 2>1",
        "AdvanceHighWatermark offset=2",
    ),
    Script(
        "no-divergence-check",
        f"{ELECTED}; ask 1 FetchRequest fetch_offset=1 last_fetched_epoch=0",
        without="diverging=",
    ),
    Script(
        "stale-answer-accepted",
        f"{FOLLOWER}; reply 1 2 7 FetchAnswer leader_id=2 epoch=3 high_watermark=1",
        "AdvanceHighWatermark offset=1",
    ),
    Script(
        "correlation-restarts",
        f"{FOLLOWER}; reply 1 2 0 FetchAnswer incarnation=0 leader_id=2 epoch=3 high_watermark=1",
        "AdvanceHighWatermark offset=1",
    ),
    Script(
        "read-confirmed-by-old-fetch",
        f"{ELECTED}; propose 1 new; deliver 1>2; flush 2; read 1; deliver 2>1",
        "AnswerRead",
    ),
    Script(
        "read-before-own-commit",
        f"{ELECTED_WITH_A_PAST}; read 1; deliver 1>2; persist 2; deliver 2>1; deliver 1>2; "
        "flush 2; deliver 2>1",
        "AnswerRead read_id=5 offset=0",
    ),
    Script(
        "follows-granted-pre-vote",
        "voters 3; state 2 3 1 -; start 2; timer 2; "
        "reply 2 3 2 VoteAnswer leader_id=1 epoch=3 granted=True; show 2",
        "n2: follower in epoch 3, leader 1",
        "n2: candidate in epoch 4",
    ),
    Script(
        "resigned-never-stands",
        "voters 3; state 1 3 1 1; start 1; wait 1000; timer 1; show 1",
        "n1: resigned",
        "n1: prospective",
    ),
    Script(
        "candidate-never-gives-up",
        f"{CANDIDATE}; wait 2000; timer 1; timer 1; show 1",
        "n1: candidate",
        "n1: prospective",
    ),
)


def trace_at_the_end(commands: str) -> str:
    stage = Stage()
    lines: list[str] = []
    for command in commands.split("; "):
        lines = stage.perform(command)
        assert not any(line.startswith("VIOLATION") for line in lines)
    return "\n".join(lines)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.bug)
def test_the_last_command_tells_the_correct_core_from_the_bug(script: Script) -> None:
    trace = trace_at_the_end(script.commands)
    assert script.with_bug is None or script.with_bug not in trace
    assert script.without is None or script.without in trace


@pytest.mark.parametrize("script", [with_bug(script.bug, script) for script in SCRIPTS])
def test_the_last_command_tells_the_bug_from_the_correct_core(script: Script) -> None:
    trace = trace_at_the_end(script.commands)
    assert script.with_bug is None or script.with_bug in trace
    assert script.without is None or script.without not in trace


def commands_of(transcript: str, count: int | None = None) -> str:
    text = (Path(__file__).parent / transcript).read_text(encoding="utf-8")
    commands = [line[2:] for line in text.splitlines() if line.startswith("> ")]
    return "; ".join(commands[:count])


@pytest.mark.planted("observer-loses-its-leader")
def test_an_observer_does_not_return_to_its_leader() -> None:
    # Without the bug the transcript ends otherwise.
    trace = trace_at_the_end(commands_of("observer_returns_to_its_leader.txt"))
    assert "n4: unattached in epoch 1, leader None" in trace


@pytest.mark.planted("follower-high-watermark-ahead")
def test_a_diverging_answer_moves_the_high_watermark() -> None:
    trace = trace_at_the_end(commands_of("diverging_answer_moves_no_high_watermark.txt", 5))
    assert "AdvanceHighWatermark offset=2" in trace
    assert "TruncateLog submission=1 end_offset=1" in trace


@pytest.mark.parametrize(
    "bug", [with_bug("stale-answer-accepted"), with_bug("correlation-restarts")]
)
def test_a_stale_answer_that_is_accepted_gives_up_the_request_that_is_out(bug: str) -> None:
    # A host carries one request per peer: the next one must find its link free.
    script = next(script for script in SCRIPTS if script.bug == bug)
    trace = trace_at_the_end(script.commands)
    assert trace.index("AbandonRequest peer=2 correlation=0") < trace.index("SendRequest peer=2")


@pytest.mark.planted("pre-vote-ignores-log")
def test_votes_still_look_at_the_log_where_only_pre_votes_do_not() -> None:
    commands = "voters 3; log 1 1x3; state 1 1 - -; start 1; ask 1 VoteRequest epoch=2"
    assert "voted_id" not in trace_at_the_end(commands)


def test_every_bug_of_the_core_has_a_script_or_a_transcript() -> None:
    elsewhere = {
        # tests/unit/nodes/server/registers/test_proposals.py
        "ack-before-commit",
        # above
        "observer-loses-its-leader",
        "follower-high-watermark-ahead",
        # bug_*.txt
        "vote-not-persisted",
        "ack-before-fsync",
        "prior-epoch-commit",
        "truncate-below-high-watermark",
        "stale-leader-reads",
        # tests/unit/nodes/storage/test_planted_bugs.py
        "quorum-state-not-atomic",
        "rename-not-synced",
        "segment-name-not-synced",
        "failed-fsync-retried",
        "mark-leads-flush",
        "mark-not-rolled-back",
        "corruption-as-torn-tail",
        "checksum-not-verified",
        "epoch-rot-unnoticed",
        # tests/integration/test_planted_bugs_are_found.py
        "diverging-high-watermark-taken",
        "late-fetch-answer-taken",
        "late-fetch-answer-out-of-place",
        "read-joins-confirmation",
        "snapshot-id-off-by-one",
        "log-cut-before-snapshot",
        "delta-lost-at-snapshot-load",
        # tests/unit/nodes/server/host/test_snapshots.py
        "newest-snapshot-removed",
        "applied-out-of-order",
    }
    known = {bug.name for bug in planted_bugs().values() if bug.state_machine is None}
    assert {script.bug for script in SCRIPTS} | elsewhere == known
