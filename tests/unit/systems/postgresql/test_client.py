"""The client: transactions as statements, and an outcome for whatever comes of them."""

import asyncio
from typing import Any

import pytest

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.systems.postgresql import client as client_module
from splitbrain.systems.postgresql import statements as statements_module
from splitbrain.systems.postgresql.client import ISOLATIONS, PostgresClient, ReadsHereClient
from splitbrain.systems.postgresql.statements import LOOK_OF_LONG
from splitbrain.systems.workload_client import client_for
from tests.unit.systems.postgresql.fake_server import Server, client_of, error
from tests.unit.systems.workload_operations import CONVERSATIONS

TXN = Operation("txn", None, [["r", "a", None], ["append", "a", 1], ["r", "a", None]])
LOOK = Operation("txn", None, [["r", "a", None]])
CALMLY_S = 5.0
SHORTLY_S = 0.05


@pytest.fixture
def server() -> Server:
    return Server()


def asked(client: PostgresClient, *operations: Operation, s: float = CALMLY_S) -> list[Completion]:
    async def ask() -> list[Completion]:
        return [await client.invoke(operation, s) for operation in operations]

    return asyncio.run(ask())


def outcome(client: PostgresClient, operation: Operation = TXN, s: float = CALMLY_S) -> Any:
    (told,) = asked(client, operation, s=s)
    return told.type, told.error


def test_a_transaction_begins_does_its_parts_in_order_and_commits(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = asked(client_of(server, monkeypatch), TXN, LOOK)
    assert first == Completion(
        "ok", [["r", "a", []], ["append", "a", 1], ["r", "a", [1]]], node="n1"
    )
    assert second.value == [["r", "a", [1]]]
    words = [statement.split()[0] for statement in server.statements]
    assert words == ["BEGIN", "UPDATE", "INSERT", "COMMIT", "BEGIN", "COMMIT"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_level_is_asked_for(
    server: Server, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    asked(client_of(server, monkeypatch, isolation=isolation), TXN)
    assert server.statements[0] == f"BEGIN ISOLATION LEVEL {ISOLATIONS[isolation]}"


def test_every_other_transaction_waits_for_no_disk_where_that_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(client_of(server, monkeypatch, mixes_commits=True), LOOK, LOOK, LOOK)
    begins = [each for each in server.statements if each.startswith("BEGIN")]
    assert ["synchronous_commit TO off" in each for each in begins] == [True, False, True]


def test_registers_are_written_and_rows_are_inserted_first_where_that_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(server, monkeypatch, workload="rw-register", inserts_first=True)
    parts = [["r", "a", None], ["w", "a", 1], ["w", "a", 2], ["r", "a", None]]
    (told,) = asked(client, Operation("txn", None, parts))
    assert told.value == [["r", "a", None], ["w", "a", 1], ["w", "a", 2], ["r", "a", 2]]
    changes = [each for each in server.statements if "registers" in each]
    assert len(changes) == 2
    assert all(each.startswith("INSERT") and "ON CONFLICT" in each for each in changes)


def test_rows_are_inserted_deleted_once_and_read_by_their_group(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(server, monkeypatch, workload="rows")
    parts = [
        ["insert", "g", 2],
        ["insert", "g", 1],
        ["insert", "h", 3],
        ["range", "g", None],
        ["delete", "g", 2],
        ["delete", "g", 9],
        ["range", "g", None],
    ]
    (told,) = asked(client, Operation("txn", None, parts))
    assert [value for _, _, value in told.value] == [2, 1, 3, [1, 2], 2, None, [1]]
    assert [part[:2] for part in told.value] == [part[:2] for part in parts]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("SerializationError", "serialization-failure"),
        ("DeadlockDetectedError", "deadlock"),
        ("UniqueViolationError", "unique-violation"),
        ("ReadOnlySQLTransactionError", "standby"),
        ("OutOfMemoryError", "sql-53200"),
    ],
)
def test_a_transaction_that_the_server_refuses_fails_with_its_class(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    client = client_of(server, monkeypatch)
    server.fails = {"UPDATE": [error(name)]}
    assert outcome(client) == ("fail", told)
    assert server.statements[-1] == "ROLLBACK"
    # The connection is fit for the next one.
    assert outcome(client) == ("ok", None)
    assert server.rows["lists"] == {"a": [1]}


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (error("SerializationError"), ("fail", "serialization-failure")),
        (error("UniqueViolationError"), ("fail", "unique-violation")),
        (error("QueryCanceledError"), ("info", "cancelled")),
        (error("InternalServerError"), ("info", "sql-xx000")),
        (error("AdminShutdownError", "FATAL"), ("info", "sql-57p01")),
        (error("ConnectionDoesNotExistError"), ("info", "connection-lost")),
        (ConnectionResetError(), ("info", "connection-lost")),
    ],
)
def test_of_a_commit_only_a_certain_refusal_is_a_failure(
    server: Server, monkeypatch: pytest.MonkeyPatch, failure: Exception, expected: tuple[str, str]
) -> None:
    server.fails = {"COMMIT": [failure]}
    assert outcome(client_of(server, monkeypatch)) == expected


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (error("AdminShutdownError", "FATAL"), "sql-57p01"),
        (error("ConnectionDoesNotExistError"), "connection-lost"),
        (ConnectionResetError(), "connection-lost"),
    ],
)
def test_a_connection_that_is_lost_before_the_commit_leaves_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch, failure: Exception, expected: str
) -> None:
    server.fails = {"UPDATE": [failure]}
    assert outcome(client_of(server, monkeypatch)) == ("fail", expected)


def test_a_rollback_whose_answer_is_lost_has_committed_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fails = {"COMMIT": [error("SerializationError")], "ROLLBACK": [ConnectionResetError()]}
    assert outcome(client_of(server, monkeypatch)) == ("fail", "connection-lost")


@pytest.mark.parametrize(
    ("word", "expected"), [("UPDATE", "fail"), ("COMMIT", "info"), ("BEGIN", "fail")]
)
def test_a_time_out_is_open_once_the_commit_was_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch, word: str, expected: str
) -> None:
    server.hangs_at = word
    assert outcome(client_of(server, monkeypatch), s=SHORTLY_S) == (expected, "timed-out")


def test_a_commit_with_a_warning_is_open_and_one_with_a_notice_is_done(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.warnings = ["WARNING"]
    assert outcome(client_of(server, monkeypatch)) == ("info", "not-replicated")
    server.warnings = ["NOTICE"]
    client = client_of(server, monkeypatch)
    assert outcome(client) == ("ok", None)


def test_a_node_that_is_down_fails(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.down = {"n1"}
    assert outcome(client_of(server, monkeypatch)) == ("fail", "no-connection")


def test_a_client_of_all_nodes_finds_the_primary(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.down, server.standbys = {"n2"}, {"n1"}
    (told,) = asked(client_of(server, monkeypatch, "n1", "n2", "n3"), TXN)
    assert (told.type, told.node) == ("ok", "n3")


def test_a_standby_is_asked_for_reads_where_that_is_chosen(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.standbys = {"n1"}
    assert outcome(client_of(server, monkeypatch), LOOK) == ("fail", "standby")
    anywhere = client_of(server, monkeypatch, reads_anywhere=True)
    assert outcome(anywhere, LOOK) == ("ok", None)
    assert server.statements[0] == "BEGIN ISOLATION LEVEL REPEATABLE READ"
    assert outcome(anywhere, TXN) == ("fail", "standby")


def test_reads_are_asked_here_and_changes_of_the_primary(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.standbys = {"n2", "n3"}
    here = client_of(server, monkeypatch, "n2", reads_anywhere=True)
    primary = client_of(server, monkeypatch, "n2", "n1", "n3", reads_anywhere=True)

    async def ask() -> list[Completion]:
        client = ReadsHereClient(here, primary)
        told = [await client.invoke(each, CALMLY_S) for each in (TXN, LOOK)]
        await client.close()
        return told

    assert [(told.type, told.node) for told in asyncio.run(ask())] == [("ok", "n1"), ("ok", "n2")]
    assert server.open_connections() == 0


@pytest.mark.parametrize("workload", [*CONVERSATIONS, "register"])
def test_other_workloads_are_one_transaction_each(
    server: Server, monkeypatch: pytest.MonkeyPatch, workload: str
) -> None:
    conversation = CONVERSATIONS.get(
        workload,
        [
            (Operation("read", "k", None), None),
            (Operation("write", "k", 1), 1),
            (Operation("cas", "k", [2, 3]), [2, 3, False]),
            (Operation("cas", "k", [1, 3]), [1, 3, True]),
            (Operation("read", "k", None), 3),
        ],
    )

    async def converse() -> list[Any]:
        client = client_for(workload, client_of(server, monkeypatch, workload=workload))
        return [(await client.invoke(each, CALMLY_S)).value for each, _ in conversation]

    assert asyncio.run(converse()) == [answer for _, answer in conversation]


def test_a_set_grows(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(server, monkeypatch, workload="set")
    adds = [Operation("add", "k", element) for element in (3, 1)]
    told = asked(client, *adds, Operation("add", "other", 2), Operation("read", "k", None))
    assert [each.value for each in told] == [3, 1, 2, [1, 3]]


def test_what_nobody_is_to_learn_of_is_done_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(server, monkeypatch, workload="register")
    again = [error("SerializationError"), error("DeadlockDetectedError"), None]
    server.fails = {"COMMIT": list(again)}
    assert outcome(client, Operation("write", "k", 1)) == ("ok", None)
    assert server.statements.count("COMMIT") == 3


@pytest.mark.parametrize(
    ("cancels", "told", "problem"), [(True, ["COMMIT"], "cancelled"), (False, [], "timed-out")]
)
def test_a_server_learns_that_a_client_waits_no_longer_where_that_is_asked(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    cancels: bool,
    told: list[str],
    problem: str,
) -> None:
    monkeypatch.setattr(client_module, "_COMMIT_PATIENCE_S", SHORTLY_S)
    server.hangs_at = "COMMIT"
    client = client_of(server, monkeypatch, cancels=cancels)
    assert outcome(client, s=10 * SHORTLY_S) == ("info", problem)
    assert server.cancelled == told
    # The answer to the cancelled statement is waited for.
    assert (server.statements[-1] == "SELECT 1") == cancels
    assert server.open_connections() == 0


def test_a_client_waits_before_each_part(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(statements_module.asyncio, "sleep", sleep)
    client = client_of(server, monkeypatch, think_time_s=0.25)
    assert outcome(client) == ("ok", None)
    assert len(waits) == len(TXN.value)
    assert all(0 <= wait < 0.25 for wait in waits)
    assert len(set(waits)) == len(waits)


def test_a_transaction_stays_open_beside_all_others(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(server, monkeypatch, holds_open=True)

    async def work() -> None:
        await client.invoke(LOOK, CALMLY_S)
        assert server.open_connections() == 2
        assert server.statements[:2] == ["BEGIN ISOLATION LEVEL SERIALIZABLE", LOOK_OF_LONG]
        await client.invoke(LOOK, CALMLY_S)
        assert server.statements.count(LOOK_OF_LONG) == 1
        await client.close()

    asyncio.run(work())
    assert server.open_connections() == 0
