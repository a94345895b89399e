"""The error table, row by row: what is certain, what is not, and what an answer means."""

import pytest

from splitbrain.contracts.bank import ACCOUNTS, BALANCE
from splitbrain.contracts.operations import Operation
from splitbrain.systems.redis import outcomes
from splitbrain.systems.redis.commands import commands
from splitbrain.systems.redis.outcomes import REFUSALS, answered
from splitbrain.systems.redis.resp import ErrorReply, Reply

READ = Operation("read", "k", None)
WRITE = Operation("write", "k", 1)
CAS = Operation("cas", "k", [1, 2])
ADD = Operation("add", "s", 7)
ENQUEUE = Operation("enqueue", "q", 7)
DEQUEUE = Operation("dequeue", "q", None)
GET = Operation("get", "k", None)
BANK = Operation("read-bank", "b", None)
BALANCES = {**dict.fromkeys(ACCOUNTS, BALANCE), "0": 5, "3": 35}
TRANSFER = Operation("transfer", "b", ["0", "3", 15])
TXN = Operation("txn", "g", [["r", "x", None], ["w", "y", 4]])
RELEASE = Operation("release", "m", 3)
LEASE = Operation("acquire-lease", "l", None)
CHANGES = (WRITE, CAS, ADD, ENQUEUE, DEQUEUE)
PRIMARY: Reply = [b"master", 42, []]
REPLICA: Reply = [b"slave", b"n1", 6379, b"connected", 42]


def outcome_of(operation: Operation, *replies: Reply, replica_reads: bool = False) -> list[object]:
    completion = answered(operation, replies, "n1", replica_reads=replica_reads)
    assert completion.node == "n1"
    return [completion.type, completion.value, completion.error]


def transaction(role: Reply, value: Reply) -> tuple[Reply, ...]:
    return ("OK", "QUEUED", "QUEUED", [role, value])


@pytest.mark.parametrize("code", sorted(REFUSALS))
@pytest.mark.parametrize("operation", [READ, *CHANGES], ids=lambda operation: operation.f)
def test_what_is_refused_before_it_is_executed_is_certain(code: str, operation: Operation) -> None:
    refused = outcome_of(operation, ErrorReply(f"{code} some words"))
    assert refused == ["fail", None, REFUSALS[code].error]


IMPOSSIBLE: list[Reply] = [7, [1], b"not json", [None]]
ODD, QUEUED = ErrorReply("ERR odd"), "QUEUED"
DISCARDED = (ErrorReply("MASTERDOWN link"), ErrorReply("EXECABORT discarded"))
OUTCOMES: list[tuple[Operation, tuple[Reply, ...], list[object]]] = [
    # An unknown error of a change is unknown; one of a read did nothing.
    *((change, (ODD,), ["info", None, "server-error"]) for change in CHANGES),
    (READ, (ODD,), ["fail", None, "server-error"]),
    # The first error of a transaction tells most, and one inside of it is no value.
    (READ, ("OK", QUEUED, *DISCARDED), ["fail", None, "primary-link-down"]),
    (READ, transaction(PRIMARY, ErrorReply("WRONGTYPE a list")), ["fail", None, "wrong-type"]),
    # Reads give back what was written, changes what they asked for.
    (READ, transaction(PRIMARY, b"5"), ["ok", 5, None]),
    (READ, transaction(PRIMARY, None), ["ok", None, None]),
    (READ, transaction(PRIMARY, [b"10", b"9"]), ["ok", [9, 10], None]),
    (READ, transaction(PRIMARY, b'"a\\"b"'), ["ok", 'a"b', None]),
    (WRITE, ("OK",), ["ok", 1, None]),
    *((ADD, (count,), ["ok", 7, None]) for count in (0, 1)),
    (ENQUEUE, (3,), ["ok", 7, None]),
    *((DEQUEUE, (reply,), ["ok", value, None]) for reply, value in ((b"7", 7), (None, None))),
    # Sums and texts are Redis' own, and null stands for what was never written.
    (Operation("add-and-get", "c", 3), (7,), ["ok", 7, None]),
    (Operation("generate", "ids", None), (7,), ["ok", 7, None]),
    (GET, transaction(PRIMARY, b"(1)(2)"), ["ok", "(1)(2)", None]),
    (GET, transaction(PRIMARY, None), ["ok", None, None]),
    (Operation("append", "k", "(3)"), (9,), ["ok", "(3)", None]),
    (Operation("put", "k", "(3)"), ("OK",), ["ok", "(3)", None]),
    (BANK, transaction(PRIMARY, [b"5", None, None, b"35", None]), ["ok", BALANCES, None]),
    (BANK, transaction(PRIMARY, [b"5"]), ["fail", None, "unexpected-answer"]),
    (TRANSFER, (1,), ["ok", ["0", "3", 15, True], None]),
    (TRANSFER, (0,), ["ok", ["0", "3", 15, False], None]),
    (TXN, ([None, b"4"],), ["ok", [["r", "x", None], ["w", "y", 4]], None]),
    (TXN, ([b"4"],), ["info", None, "unexpected-answer"]),
    # A lock tells whether it was free, or by its token.
    (Operation("acquire", "m", 3), ("OK",), ["ok", True, None]),
    (Operation("acquire", "m", 3), (None,), ["ok", False, None]),
    *((RELEASE, (reply,), ["ok", value, None]) for reply, value in ((1, True), (0, False))),
    *((LEASE, (reply,), ["ok", value, None]) for reply, value in ((12, 12), (0, False))),
    (Operation("write-guarded", "l", [12, 3]), (0,), ["ok", [12, 3, False], None]),
    (Operation("read-guarded", "l", None), transaction(PRIMARY, b"3"), ["ok", 3, None]),
    # A refused compare-and-set is an observation.
    (CAS, (1,), ["ok", [1, 2, True], None]),
    (CAS, (0,), ["ok", [1, 2, False], None]),
    # An answer that is none leaves a change unknown.
    *((WRITE, (reply,), ["info", None, "unexpected-answer"]) for reply in (None, QUEUED)),
    *((CAS, (reply,), ["info", None, "unexpected-answer"]) for reply in (None, 2)),
    (ADD, (b"1",), ["info", None, "unexpected-answer"]),
    (ENQUEUE, (None,), ["info", None, "unexpected-answer"]),
    # It took something, and nobody knows what.
    *((DEQUEUE, (reply,), ["info", None, "unexpected-answer"]) for reply in (b"not json", 1, [])),
    # A value that nobody can have written is no value.
    *(
        (READ, transaction(PRIMARY, value), ["fail", None, "unexpected-answer"])
        for value in IMPOSSIBLE
    ),
]


@pytest.mark.parametrize(("operation", "replies", "outcome"), OUTCOMES)
def test_replies_say_what_is_certain(
    operation: Operation, replies: tuple[Reply, ...], outcome: list[object]
) -> None:
    assert outcome_of(operation, *replies) == outcome


def test_a_replica_answers_no_read_unless_the_user_wants_it() -> None:
    replies = transaction(REPLICA, b"5")
    assert outcome_of(READ, *replies) == ["fail", None, "not-primary"]
    assert outcome_of(READ, *replies, replica_reads=True) == ["ok", 5, None]


def test_only_what_was_certainly_not_executed_may_be_asked_elsewhere() -> None:
    assert {"not-sent", "not-primary", "read-only-replica", "loading"} <= outcomes.ELSEWHERE
    assert outcomes.ELSEWHERE.isdisjoint({outcomes.LOST, outcomes.TIMED_OUT, "server-error"})
    # A primary without replicas stays one: asking again would only hide the refusal.
    assert "too-few-replicas" not in outcomes.ELSEWHERE


def test_a_read_and_the_claim_to_be_primary_are_one_transaction() -> None:
    words = [command[0] for command in commands(READ)]
    assert words == ["MULTI", "ROLE", "EVAL", "EXEC"]


@pytest.mark.parametrize("changing", [CAS, TRANSFER, TXN, RELEASE, LEASE], ids=lambda of: of.f)
def test_a_script_that_may_write_says_so_that_replicas_refuse_it(changing: Operation) -> None:
    ((_, script, *_),) = commands(changing)
    assert str(script).splitlines()[0] == "#!lua"


@pytest.mark.parametrize("reading", [READ, GET, BANK], ids=lambda of: of.f)
def test_nothing_but_the_primarys_word_is_a_read(reading: Operation) -> None:
    assert [command[0] for command in commands(reading)][:2] == ["MULTI", "ROLE"]
    assert outcome_of(reading, *transaction(REPLICA, None)) == ["fail", None, "not-primary"]


# --- mutants ---------------------------------------------------------------------------------


def test_taking_unknown_errors_for_certain_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        outcomes, "unanswered", lambda operation, error, node: outcomes.certainly_not(error, node)
    )
    with pytest.raises(AssertionError):
        test_replies_say_what_is_certain(*OUTCOMES[0])


def test_reads_that_ignore_the_role_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "read_by_primary", lambda _: True)
    with pytest.raises(AssertionError):
        test_a_replica_answers_no_read_unless_the_user_wants_it()
