"""Sentences of violations say what went wrong first, so that their reader knows where to look."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.quorum.effects import Halt, PersistQuorumState, SendAnswer
from splitbrain.nodes.quorum.events import AnswerReceived
from splitbrain.nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    Epoch,
    Incarnation,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import ErrorCode, FetchAnswer, VoteAnswer
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.simulation.kraft.cluster import directory_of
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.mirrored_log import Entry
from tests.unit.simulation.kraft.small_quorum import Quorum
from tests.unit.simulation.kraft.test_invariants import X, Y, batch, grant, log_of


def sentence(quorum: Quorum, act: Callable[[], None]) -> str:
    with pytest.raises(ViolationError) as caught:
        act()
    return caught.value.problem


def state(epoch: int, voted: int | None = None) -> QuorumState:
    directory = None if voted is None else directory_of(voted)
    return QuorumState(Epoch(epoch), None, None if voted is None else NodeId(voted), directory)


def diverging(quorum: Quorum, machine: Machine, epoch: int, offset: int) -> None:
    """The leader tells a follower that their logs part there."""
    answer = FetchAnswer(
        error=ErrorCode.NONE,
        leader_id=quorum.leader.host.node_id,
        epoch=Epoch(quorum.epoch),
        high_watermark=Offset(-1),
        log_start_offset=Offset(0),
        diverging=(Epoch(epoch), Offset(offset)),
        batches=(),
        records=b"",
    )
    leader, life = quorum.leader.host.node_id, Incarnation(machine.host.incarnation)
    quorum.oracle.taking(machine.host, AnswerReceived(leader, CorrelationId(1), life, answer))


def test_a_second_vote_names_the_first_one_its_life_and_that_nothing_was_lost() -> None:
    quorum = Quorum(frozenset({"INV-05"}))
    voter = quorum.followers[0]
    life, name, epoch = voter.host.incarnation, voter.host.node_id, quorum.epoch
    grant(quorum, voter, 99, 2)
    said = sentence(quorum, lambda: grant(quorum, voter, 99, 3))
    now_ms = quorum.world.now / 1000
    assert said.startswith(
        f"n{name} votes for n3 in epoch 99 after n2; the one for n2 left in life"
    )
    assert f" {life}, {now_ms:,.1f} ms into the run: both are of one life, no restart lost" in said
    assert f"; its disk has epoch {epoch} led by n{quorum.leader.host.node_id}" in said


def test_a_second_vote_after_a_restart_names_what_the_life_began_with() -> None:
    quorum = Quorum(frozenset({"INV-05"}))
    voter = quorum.followers[0]
    life, epoch = voter.host.incarnation, quorum.epoch
    grant(quorum, voter, 99, 2)
    quorum.restart(voter.host.name)
    said = sentence(quorum, lambda: grant(quorum, voter, 99, 3))
    assert f"the one for n2 left in life {life}, " in said
    assert f", and life {life + 1} began with epoch {epoch} led by " in said
    assert said.endswith(": the vote was lost")


def test_a_vote_that_was_read_and_still_given_again_was_not_lost() -> None:
    quorum = Quorum(frozenset({"INV-05"}))
    voter = quorum.followers[0]
    held = voter.quorum_state()
    assert held is not None
    epoch, first = held.epoch, held.voted_id or quorum.leader.host.node_id
    other = next(node for node in (1, 2, 3) if node != first)
    grant(quorum, voter, epoch, first)
    quorum.restart(voter.host.name)
    said = sentence(quorum, lambda: grant(quorum, voter, epoch, other))
    is_held = held.voted_id == first
    end = "the node read the vote and gave another" if is_held else "the vote was lost"
    assert said.endswith(end)


def test_a_state_that_is_taken_back_names_what_is_lost_since_when_and_what_had_left() -> None:
    quorum = Quorum()
    leader, epoch = quorum.leader, quorum.epoch
    life, other = leader.host.incarnation, quorum.followers[0].host.node_id
    mine = leader.host.node_id
    said = sentence(
        quorum, lambda: quorum.before(leader, PersistQuorumState(9, state(epoch, other)))
    )
    assert f"; its vote for n{mine} in epoch {epoch} is lost in life {life} (the old state" in said
    assert f", written in life {life}, " in said
    assert f"; a vote for n{mine} left in life {life}, " in said
    said = sentence(quorum, lambda: quorum.before(leader, PersistQuorumState(9, state(0))))
    assert f"; its epoch falls from {epoch} to 0 in life {life} (the old state" in said


def test_an_epoch_that_is_not_on_disk_is_told_with_the_message_that_names_it() -> None:
    quorum = Quorum()
    answer = VoteAnswer(ErrorCode.NONE, None, Epoch(99), granted=False)
    effect = SendAnswer(ConnectionId(9), CorrelationId(1), answer)
    said = sentence(quorum, lambda: quorum.before(quorum.leader, effect))
    assert " speaks in epoch 99 (VoteAnswer), its disk has epoch " in said


def test_two_logs_that_do_not_match_name_the_other_node_and_where_they_part() -> None:
    quorum = Quorum()
    first, second = quorum.followers
    end, epoch = len(log_of(first)), quorum.epoch
    log_of(second)[end - 1] = Entry(epoch - 1, Y)
    quorum.after(first, batch(end, epoch + 1, X))
    said = sentence(quorum, lambda: quorum.after(second, batch(end, epoch + 1, X)))
    assert said.startswith(f"n{second.host.node_id} has at {end} a record that is no command")
    assert f" after one of epoch {epoch - 1}, n{first.host.node_id} has there a record" in said
    assert f"after one of epoch {epoch}; the two logs part at {end - 1} already: a record" in said


def test_two_logs_that_part_at_the_record_itself_name_the_other_node() -> None:
    quorum = Quorum()
    first, second = quorum.followers
    end, epoch = len(log_of(first)), quorum.epoch
    quorum.after(first, batch(end, epoch, X))
    said = sentence(quorum, lambda: quorum.after(second, batch(end, epoch, Y)))
    assert f", n{first.host.node_id} has there a record that is no command (1 bytes: 78)" in said
    assert "already" not in said


def test_a_halt_names_the_divergence_that_it_followed_and_whether_that_was_right() -> None:
    quorum = Quorum()
    follower, leader = quorum.followers[0], quorum.leader.host.node_id
    end, epoch = quorum.end, quorum.epoch
    follower.high_watermark = end
    diverging(quorum, follower, epoch, 1)
    said = sentence(quorum, lambda: quorum.before(follower, Halt("told to cut too much")))
    assert said == (
        f"n{follower.host.node_id} halts: told to cut too much; in this step n{leader} of epoch"
        f" {epoch} told it that the logs diverge at 1 (end of epoch {epoch}), but n{leader}'s log"
        f" has epoch {epoch} end at {end}; its log ended at {end} then, its high watermark was"
        f" {end}, and the node would have it end at {end}"
    )
    diverging(quorum, follower, epoch, end)
    said = sentence(quorum, lambda: quorum.before(follower, Halt("told to cut too much")))
    assert f"diverge at {end} (end of epoch {epoch}); its log ended at {end} then" in said


def test_a_divergence_of_an_earlier_step_is_no_cause() -> None:
    quorum = Quorum()
    follower = quorum.followers[0]
    diverging(quorum, follower, quorum.epoch, 1)
    quorum.run(1_000)
    said = sentence(quorum, lambda: quorum.before(follower, Halt("something else")))
    assert said == f"n{follower.host.node_id} halts: something else"


def test_a_node_that_ends_names_where_its_log_has_parted_from_what_is_committed() -> None:
    quorum = Quorum()
    follower = quorum.followers[0]
    log_of(follower)[1] = Entry(1, X)
    follower.host.ended = "exit code 71: a defect"
    said = sentence(quorum, lambda: quorum.oracle.ended(follower.host))
    assert said.startswith(
        f"n{follower.host.node_id} ended by itself, exit code 71: a defect; its log had parted from"
        " the committed records at 1 before: a record that is no command (1 bytes: 78) of epoch 1,"
    )


def test_a_node_that_ends_names_where_it_would_have_cut_its_log() -> None:
    quorum = Quorum()
    follower = quorum.followers[0]
    diverging(quorum, follower, quorum.epoch, quorum.end)
    follower.host.ended = "exit code 71: INV-21 violated"
    follower.host.ended_at = (quorum.world.now, 0)
    said = sentence(quorum, lambda: quorum.oracle.ended(follower.host))
    assert said.endswith(", and the node would have it end at 0")
