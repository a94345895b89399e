"""Linearizable reads under way: confirmed together, answered only from a state that caught up."""

from splitbrain.nodes.quorum.effects import AnswerRead, RejectRead
from splitbrain.nodes.quorum.events import ReadRequested
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds, NodeId, Offset
from splitbrain.nodes.registers.commands import Add, Write, encode_command
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.server.registers.client_service import look_into
from splitbrain.nodes.server.registers.reads import Reads
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest

LATER = Microseconds(1_000_000)


class Bench:
    """Reads with a recording replica."""

    def __init__(self) -> None:
        self.requests: list[ReadRequested] = []
        self.answers: list[ClientAnswer] = []
        self.machine = RegisterMachine()
        self.reads = Reads(self.requests.append, self.machine, look_into(self.machine))

    def add(self, request_id: int = 1, key: str = "k", kind: str = "read") -> None:
        request = ClientRequest(request_id, kind, key)  # type: ignore[arg-type]
        self.reads.add(request, self.answers.append, LATER)

    def ask(self, request_id: int = 1) -> None:
        """A read for which the replica is asked at once."""
        self.add(request_id)
        self.reads.flush()

    def confirm(self, offset: int) -> None:
        self.reads.confirmed(AnswerRead(self.requests[-1].read_id, Offset(offset), Epoch(1)))


def test_reads_of_one_turn_share_a_confirmation() -> None:
    bench = Bench()
    bench.add(1)
    bench.ask(2)
    assert len(bench.requests) == 1
    bench.confirm(0)
    assert [answer.id for answer in bench.answers] == [1, 2]


def test_a_read_waits_until_its_offset_is_applied() -> None:
    bench = Bench()
    bench.ask()
    bench.confirm(1)
    assert bench.answers == []
    bench.machine.apply(0, 1, encode_command(Write("o", "k", 7)))
    bench.reads.answer_applied()
    (answer,) = bench.answers
    assert (answer.outcome, answer.result) == ("ok", 7)
    assert bench.reads.is_idle


def test_a_read_that_arrives_later_needs_its_own_confirmation() -> None:
    bench = Bench()
    bench.ask(1)
    bench.add(2)
    bench.confirm(0)
    assert [answer.id for answer in bench.answers] == [1]
    bench.reads.flush()
    assert len(bench.requests) == 2


def test_a_set_is_read_whole() -> None:
    bench = Bench()
    bench.machine.apply(0, 1, encode_command(Add("o", "s", 3)))
    bench.add(1, "s", "read-set")
    bench.add(2, "none", "read-set")
    bench.reads.flush()
    bench.confirm(1)
    assert [answer.result for answer in bench.answers] == [[3], []]


def test_a_rejected_read_is_certain_and_names_the_leader() -> None:
    bench = Bench()
    bench.ask()
    bench.reads.rejected(RejectRead(bench.requests[0].read_id, NodeId(2), Epoch(3)))
    assert (bench.answers[0].outcome, bench.answers[0].leader_id) == ("not-leader", 2)


def test_an_expired_read_is_answered_once() -> None:
    bench = Bench()
    bench.ask(1)
    bench.ask(2)
    bench.confirm(5)
    bench.reads.expire(LATER)
    bench.confirm(0)
    assert sorted(answer.outcome for answer in bench.answers) == ["timeout", "timeout"]
    assert bench.reads.is_idle


def test_a_stopping_node_answers_every_read() -> None:
    bench = Bench()
    bench.ask(1)
    bench.add(2)
    bench.reads.stop()
    assert [answer.outcome for answer in bench.answers] == ["stopping", "stopping"]
