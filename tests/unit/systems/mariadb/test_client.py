"""The client: transactions as statements, and an outcome for whatever comes of them."""

import asyncio
from typing import Any

import pytest

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.systems.mariadb.client import ISOLATIONS, MariadbClient
from splitbrain.systems.workload_client import client_for
from tests.unit.systems.mariadb.fake_server import Server, client_of, lost, refusal
from tests.unit.systems.workload_operations import CONVERSATIONS

TXN = Operation("txn", None, [["r", "a", None], ["append", "a", 1], ["r", "a", None]])
LOOK = Operation("txn", None, [["r", "a", None]])
CALMLY_S = 5.0
SHORTLY_S = 0.05


@pytest.fixture
def server() -> Server:
    return Server()


def asked(client: MariadbClient, *operations: Operation, s: float = CALMLY_S) -> list[Completion]:
    async def ask() -> list[Completion]:
        return [await client.invoke(operation, s) for operation in operations]

    return asyncio.run(ask())


def outcome(client: MariadbClient, operation: Operation = TXN, s: float = CALMLY_S) -> Any:
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
    one = ["START", "SELECT", "INSERT", "SELECT", "COMMIT"]
    assert words == ["SET", *one, "START", "SELECT", "COMMIT"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_level_is_asked_for(
    server: Server, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    asked(client_of(server, monkeypatch, isolation=isolation), TXN)
    level = f"SET SESSION TRANSACTION ISOLATION LEVEL {ISOLATIONS[isolation]}"
    assert server.statements[0] == level


def test_registers_are_written(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(server, monkeypatch, workload="rw-register")
    parts = [["r", "a", None], ["w", "a", 1], ["w", "a", 2], ["r", "a", None]]
    (told,) = asked(client, Operation("txn", None, parts))
    assert told.value == [["r", "a", None], ["w", "a", 1], ["w", "a", 2], ["r", "a", 2]]


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


@pytest.mark.parametrize("word", ["INSERT", "COMMIT"])
@pytest.mark.parametrize(
    ("number", "told"),
    [
        (1213, "deadlock"),
        (1020, "record-changed"),
        (1205, "lock-wait"),
        (1062, "duplicate-key"),
    ],
)
def test_a_transaction_that_the_server_refuses_fails_with_its_class(
    server: Server, monkeypatch: pytest.MonkeyPatch, word: str, number: int, told: str
) -> None:
    client = client_of(server, monkeypatch)
    server.fails = {word: [refusal(number)]}
    assert outcome(client) == ("fail", told)
    assert server.statements[-1] == "ROLLBACK"
    # The connection is fit for the next one.
    assert outcome(client) == ("ok", None)
    assert server.rows["lists"] == {"a": "1,"}
    assert server.open_connections() == 1


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (refusal(1180), ("info", "sql-1180")),
        (refusal(1317), ("info", "sql-1317")),
        (lost(), ("info", "connection-lost")),
        (ConnectionResetError(), ("info", "connection-lost")),
    ],
)
def test_of_a_commit_only_a_certain_refusal_is_a_failure(
    server: Server, monkeypatch: pytest.MonkeyPatch, failure: Exception, expected: tuple[str, str]
) -> None:
    server.fails = {"COMMIT": [failure]}
    assert outcome(client_of(server, monkeypatch)) == expected
    assert server.open_connections() == 0


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (refusal(1180), "sql-1180"),
        (lost(), "connection-lost"),
        (ConnectionResetError(), "connection-lost"),
    ],
)
def test_whatever_goes_wrong_before_the_commit_leaves_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch, failure: Exception, expected: str
) -> None:
    server.fails = {"INSERT": [failure]}
    assert outcome(client_of(server, monkeypatch)) == ("fail", expected)
    assert server.rows["lists"] == {}


def test_a_rollback_whose_answer_is_lost_has_committed_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fails = {"COMMIT": [refusal(1213)], "ROLLBACK": [lost()]}
    assert outcome(client_of(server, monkeypatch)) == ("fail", "connection-lost")


@pytest.mark.parametrize(
    ("word", "expected"), [("INSERT", "fail"), ("COMMIT", "info"), ("SET", "fail")]
)
def test_a_time_out_is_open_once_the_commit_was_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch, word: str, expected: str
) -> None:
    server.hangs_at = word
    assert outcome(client_of(server, monkeypatch), s=SHORTLY_S) == (expected, "timed-out")
    assert server.open_connections() == 0


def test_a_node_that_is_down_or_apart_from_the_cluster_fails(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.down = {"n1"}
    assert outcome(client_of(server, monkeypatch)) == ("fail", "no-connection")
    server.down, server.apart = set(), {"n1"}
    assert outcome(client_of(server, monkeypatch)) == ("fail", "no-connection")
    assert server.open_connections() == 0


def test_a_client_of_all_nodes_finds_one_that_is_part_of_the_cluster(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.down, server.apart = {"n2"}, {"n1"}
    (told,) = asked(client_of(server, monkeypatch, "n1", "n2", "n3"), TXN)
    assert (told.type, told.node) == ("ok", "n3")


@pytest.mark.parametrize("word", ["INSERT", "COMMIT"])
def test_a_node_that_leaves_the_cluster_is_left(
    server: Server, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    client = client_of(server, monkeypatch, "n1", "n2")
    server.fails = {word: [refusal(1047)]}
    assert outcome(client) == ("fail", "not-ready")
    server.apart = {"n1"}
    (told,) = asked(client, TXN)
    assert (told.type, told.node) == ("ok", "n2")


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


def test_whoever_will_write_reads_with_a_lock(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(server, monkeypatch, workload="register")
    asked(client, Operation("read", "k", None), Operation("cas", "k", [1, 2]))
    reads = [statement for statement in server.statements if statement.startswith("SELECT")]
    assert [read.endswith("FOR UPDATE") for read in reads] == [False, True]


def test_a_set_grows(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(server, monkeypatch, workload="set")
    adds = [Operation("add", "k", element) for element in (3, 1)]
    told = asked(client, *adds, Operation("add", "other", 2), Operation("read", "k", None))
    assert [each.value for each in told] == [3, 1, 2, [1, 3]]


def test_what_nobody_is_to_learn_of_is_done_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(server, monkeypatch, workload="register")
    server.fails = {"COMMIT": [refusal(1213), refusal(1020), None]}
    assert outcome(client, Operation("write", "k", 1)) == ("ok", None)
    assert server.statements.count("COMMIT") == 3
