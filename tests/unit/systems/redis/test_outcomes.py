"""The error table, row by row: what is certain, what is not, and what an answer means."""

import pytest

from splitbrain.contracts.operations import Operation
from splitbrain.systems.redis import outcomes
from splitbrain.systems.redis.commands import commands, result
from splitbrain.systems.redis.outcomes import REFUSALS, answered
from splitbrain.systems.redis.resp import ErrorReply, Reply

READ = Operation("read", "k", None)
WRITE = Operation("write", "k", 1)
CAS = Operation("cas", "k", [1, 2])
ADD = Operation("add", "s", 7)
PRIMARY: Reply = [b"master", 42, []]
REPLICA: Reply = [b"slave", b"n1", 6379, b"connected", 42]


def outcome_of(operation: Operation, *replies: Reply, replica_reads: bool = False) -> list[object]:
    completion = answered(operation, replies, "n1", replica_reads=replica_reads)
    assert completion.node == "n1"
    return [completion.type, completion.value, completion.error]


def transaction(role: Reply, value: Reply) -> tuple[Reply, ...]:
    return ("OK", "QUEUED", "QUEUED", [role, value])


@pytest.mark.parametrize("code", sorted(REFUSALS))
@pytest.mark.parametrize("operation", [READ, WRITE, CAS, ADD], ids=lambda operation: operation.f)
def test_what_is_refused_before_it_is_executed_is_certain(code: str, operation: Operation) -> None:
    refused = outcome_of(operation, ErrorReply(f"{code} some words"))
    assert refused == ["fail", None, REFUSALS[code].error]


@pytest.mark.parametrize("operation", [WRITE, CAS, ADD], ids=lambda operation: operation.f)
def test_an_unknown_error_of_a_change_is_unknown(operation: Operation) -> None:
    assert outcome_of(operation, ErrorReply("ERR odd")) == ["info", None, "server-error"]


def test_an_unknown_error_of_a_read_did_nothing() -> None:
    assert outcome_of(READ, ErrorReply("ERR odd")) == ["fail", None, "server-error"]


def test_the_first_error_of_a_transaction_tells_most() -> None:
    replies = ("OK", "QUEUED", ErrorReply("MASTERDOWN link"), ErrorReply("EXECABORT discarded"))
    assert outcome_of(READ, *replies) == ["fail", None, "primary-link-down"]


def test_an_error_inside_a_transaction_is_no_value() -> None:
    replies = transaction(PRIMARY, ErrorReply("WRONGTYPE a list"))
    assert outcome_of(READ, *replies) == ["fail", None, "wrong-type"]


def test_a_replica_answers_no_read_unless_the_user_wants_it() -> None:
    replies = transaction(REPLICA, b"5")
    assert outcome_of(READ, *replies) == ["fail", None, "not-primary"]
    assert outcome_of(READ, *replies, replica_reads=True) == ["ok", 5, None]


def test_reads_give_back_what_was_written() -> None:
    assert outcome_of(READ, *transaction(PRIMARY, b"5")) == ["ok", 5, None]
    assert outcome_of(READ, *transaction(PRIMARY, None)) == ["ok", None, None]
    assert outcome_of(READ, *transaction(PRIMARY, [b"10", b"9"])) == ["ok", [9, 10], None]
    assert outcome_of(READ, *transaction(PRIMARY, b'"a\\"b"')) == ["ok", 'a"b', None]


def test_changes_give_back_what_they_asked_for() -> None:
    assert outcome_of(WRITE, "OK") == ["ok", 1, None]
    assert outcome_of(ADD, 1) == ["ok", 7, None]
    assert outcome_of(ADD, 0) == ["ok", 7, None]


def test_a_refused_compare_and_set_is_an_observation() -> None:
    assert outcome_of(CAS, 1) == ["ok", [1, 2, True], None]
    assert outcome_of(CAS, 0) == ["ok", [1, 2, False], None]


@pytest.mark.parametrize(
    ("operation", "reply"), [(WRITE, None), (WRITE, "QUEUED"), (CAS, 2), (CAS, None), (ADD, b"1")]
)
def test_an_answer_that_is_none_leaves_a_change_unknown(operation: Operation, reply: Reply) -> None:
    assert outcome_of(operation, reply) == ["info", None, "unexpected-answer"]


@pytest.mark.parametrize("value", [7, [1], b"not json", [None]])
def test_a_value_that_nobody_can_have_written_is_no_value(value: Reply) -> None:
    assert outcome_of(READ, *transaction(PRIMARY, value)) == ["fail", None, "unexpected-answer"]


def test_only_what_was_certainly_not_executed_may_be_asked_elsewhere() -> None:
    assert {"not-sent", "not-primary", "read-only-replica", "loading"} <= outcomes.ELSEWHERE
    assert outcomes.ELSEWHERE.isdisjoint({outcomes.LOST, outcomes.TIMED_OUT, "server-error"})
    # A primary without replicas stays one: asking again would only hide the refusal.
    assert "too-few-replicas" not in outcomes.ELSEWHERE


def test_a_read_and_the_claim_to_be_primary_are_one_transaction() -> None:
    words = [command[0] for command in commands(READ)]
    assert words == ["MULTI", "ROLE", "EVAL", "EXEC"]


def test_a_compare_and_set_may_write_so_that_replicas_refuse_it() -> None:
    ((_, script, *_),) = commands(CAS)
    assert str(script).splitlines()[0] == "#!lua"
    assert result(CAS, (1,)) == [1, 2, True]


# --- mutants ---------------------------------------------------------------------------------


def test_taking_unknown_errors_for_certain_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        outcomes, "unanswered", lambda operation, error, node: outcomes.certainly_not(error, node)
    )
    with pytest.raises(AssertionError):
        test_an_unknown_error_of_a_change_is_unknown(WRITE)


def test_reads_that_ignore_the_role_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "read_by_primary", lambda _: True)
    with pytest.raises(AssertionError):
        test_a_replica_answers_no_read_unless_the_user_wants_it()
