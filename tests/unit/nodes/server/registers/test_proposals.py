"""Writes under way: each is answered once, and never ok before its record is applied."""

from collections.abc import Callable

import pytest

from splitbrain.nodes.quorum.effects import AcceptProposal, RejectProposal
from splitbrain.nodes.quorum.events import RecordsProposed
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds, NodeId, Offset
from splitbrain.nodes.registers.machine import Applied
from splitbrain.nodes.server.registers.proposals import (
    BATCH_BYTES_MAX,
    BATCH_COUNT_MAX,
    InvalidRequestError,
    Proposals,
)
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest

DONE = Applied(succeeded=True, repeats=None)
LATER = Microseconds(1_000_000)


class Bench:
    """Proposals with a recording replica."""

    def __init__(self) -> None:
        self.proposed: list[RecordsProposed] = []
        self.answers: list[ClientAnswer] = []
        self.proposals = Proposals(self.proposed.append)

    def add(self, request_id: int = 1, kind: str = "write", value: object = 5) -> None:
        request = ClientRequest(request_id, kind, "k", value)  # type: ignore[arg-type]
        self.proposals.add(request, self.answers.append, LATER)

    def append(
        self, request_id: int = 1, kind: str = "write", value: object = 5, *, epoch: int = 2
    ) -> None:
        """A request that is proposed at once, and appended at offset 10."""
        self.add(request_id, kind, value)
        self.proposals.flush()
        self.accept(10, epoch)

    def accept(self, base_offset: int = 10, epoch: int = 2) -> None:
        event = self.proposed[-1]
        last = base_offset + len(event.payloads) - 1
        self.proposals.accepted(
            AcceptProposal(event.proposal_id, Offset(base_offset), Offset(last), Epoch(epoch))
        )


def test_commands_of_one_turn_are_one_batch() -> None:
    bench = Bench()
    for request_id in range(3):
        bench.add(request_id)
    assert bench.proposed == []
    bench.proposals.flush()
    assert [len(event.payloads) for event in bench.proposed] == [3]


def test_a_long_gathering_becomes_several_batches() -> None:
    bench = Bench()
    for request_id in range(BATCH_COUNT_MAX + 1):
        bench.add(request_id)
    bench.add(-1, value="x" * (BATCH_BYTES_MAX - 17))
    bench.proposals.flush()
    assert [len(event.payloads) for event in bench.proposed] == [BATCH_COUNT_MAX, 1, 1]


def test_appended_is_no_answer_yet() -> None:
    bench = Bench()
    bench.append()
    assert bench.answers == []
    bench.proposals.applied(10, 2, DONE)
    (answer,) = bench.answers
    assert (answer.outcome, answer.definite, answer.epoch, answer.offset) == ("ok", True, 2, 10)


@pytest.mark.planted("ack-before-commit")
def test_ack_before_commit_answers_at_the_append() -> None:
    bench = Bench()
    bench.append()
    assert [answer.outcome for answer in bench.answers] == ["ok"]
    bench.proposals.applied(10, 2, DONE)
    assert len(bench.answers) == 1


@pytest.mark.planted("ack-before-commit")
def test_ack_before_commit_cannot_know_what_a_cas_will_do() -> None:
    bench = Bench()
    bench.append(kind="cas", value=[1, 2])
    assert bench.answers == []


def test_a_failed_cas_is_ok_with_result_false() -> None:
    bench = Bench()
    bench.append(kind="cas", value=[1, 2])
    bench.proposals.applied(10, 2, Applied(succeeded=False, repeats=None))
    assert (bench.answers[0].outcome, bench.answers[0].result) == ("ok", False)


def test_another_epoch_at_the_offset_is_a_certain_failure() -> None:
    bench = Bench()
    bench.append()
    bench.proposals.applied(10, 3, None)
    assert (bench.answers[0].outcome, bench.answers[0].definite) == ("not-leader", True)


def test_a_record_that_another_of_this_node_replaced_is_answered_too() -> None:
    # Led epoch 2, was deposed and cut back, leads epoch 4 and appends at the same offset.
    bench = Bench()
    bench.append(1, epoch=2)
    bench.append(2, epoch=4)
    bench.proposals.applied(10, 4, DONE)
    assert {a.id: (a.outcome, a.definite) for a in bench.answers} == {
        1: ("not-leader", True),
        2: ("ok", True),
    }
    assert bench.proposals.is_idle


def test_a_replaced_record_still_times_out_and_still_hears_of_the_stop() -> None:
    bench = Bench()
    for epoch in (2, 4):
        bench.append(epoch, epoch=epoch)
    bench.proposals.expire(LATER)
    assert [(a.id, a.outcome) for a in bench.answers] == [(2, "timeout"), (4, "timeout")]
    assert bench.proposals.is_idle
    for epoch in (5, 7):
        bench.append(epoch, epoch=epoch)
    bench.proposals.stop()
    assert [(a.id, a.outcome) for a in bench.answers[2:]] == [(5, "unknown"), (7, "unknown")]


def test_a_refusal_before_the_append_is_certain_and_names_the_leader() -> None:
    bench = Bench()
    bench.add()
    bench.proposals.flush()
    proposal_id = bench.proposed[0].proposal_id
    bench.proposals.rejected(RejectProposal(proposal_id, NodeId(3), Epoch(4)))
    answer = bench.answers[0]
    assert (answer.outcome, answer.definite, answer.leader_id) == ("not-leader", True, 3)


def test_a_timeout_after_the_append_is_uncertain_and_final() -> None:
    bench = Bench()
    bench.append()
    bench.proposals.expire(Microseconds(LATER - 1))
    assert bench.answers == []
    bench.proposals.expire(LATER)
    bench.proposals.applied(10, 2, DONE)
    assert [(a.outcome, a.definite) for a in bench.answers] == [("timeout", False)]
    assert bench.proposals.is_idle


def test_a_stopping_node_says_what_it_knows() -> None:
    bench = Bench()
    bench.append(1)
    bench.add(2)
    bench.proposals.stop()
    assert {a.id: (a.outcome, a.definite) for a in bench.answers} == {
        1: ("unknown", False),
        2: ("stopping", True),
    }
    assert bench.proposals.is_idle


@pytest.mark.parametrize(
    "add",
    [
        lambda bench: bench.add(kind="cas", value=5),
        lambda bench: bench.add(kind="cas", value=[1]),
        lambda bench: bench.add(kind="status"),
        lambda bench: bench.add(value="x" * BATCH_BYTES_MAX),
        lambda bench: bench.add(value={1: 2, "a": 3}),
    ],
    ids=["cas-no-pair", "cas-short", "no-command", "too-long", "no-order"],
)
def test_what_cannot_be_stored_is_refused_at_once(add: Callable[[Bench], None]) -> None:
    bench = Bench()
    with pytest.raises(InvalidRequestError):
        add(bench)
    assert bench.proposals.is_idle
