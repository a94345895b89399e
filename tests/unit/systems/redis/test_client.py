"""The client against fake servers: whom it asks, and what it makes of what they say."""

import asyncio

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.systems.redis import client as client_module
from splitbrain.systems.redis import outcomes
from splitbrain.systems.redis.client import RedisClient
from splitbrain.systems.redis.settings import settings
from tests.unit.systems.redis.fake_servers import (
    MEMBERSHIP,
    N1,
    N2,
    N3,
    NODES,
    Behaviour,
    Fakes,
    alive_but,
    closes,
    names,
    primary,
    refuses,
    replica,
    silent,
)

WRITE = Operation("write", "k", 1)
READ = Operation("read", "k", None)
ALL_NAME_N1 = {node: names(N1, 0) for node in NODES}


def performed(
    fakes: Fakes,
    route: Route,
    *operations: Operation,
    timeout_s: float | tuple[float, ...] = 5.0,
    **given: str,
) -> list[Completion]:
    """The operations on one client, one after the other, with one timeout or each with its own."""
    timeouts_s = timeout_s if isinstance(timeout_s, tuple) else (timeout_s,) * len(operations)

    async def perform() -> list[Completion]:
        async with fakes:
            in_force = settings({name.replace("_", "-"): given[name] for name in given}, 3)
            client = RedisClient(fakes.endpoint, MEMBERSHIP, route, in_force)
            pairs = zip(operations, timeouts_s, strict=True)
            found = [await client.invoke(operation, time_s) for operation, time_s in pairs]
            await client.close()
            return found

    return asyncio.run(perform())


def pinned_to(server: Behaviour | None, *operations: Operation, **given: str) -> list[Completion]:
    fakes = Fakes({} if server is None else {N1: server}, {})
    return performed(fakes, Route("pinned", N1), *operations, timeout_s=5.0, **given)


def told(completion: Completion) -> tuple[str, str | None, str | None]:
    return completion.type, completion.error, completion.node


def test_a_pinned_client_asks_its_node_alone_and_keeps_its_connection() -> None:
    fakes = Fakes({N1: primary, N2: primary}, ALL_NAME_N1)
    found = performed(fakes, Route("pinned", N2), WRITE, READ, WRITE)
    assert [told(completion) for completion in found] == [("ok", None, N2)] * 3
    assert found[1].value == 5
    assert {node for node, _ in fakes.asked} == {N2}
    assert fakes.sentinels_asked == []
    assert fakes.connections == 1


def test_a_replica_refuses_pinned_writes_and_its_reads_are_not_taken() -> None:
    write, read = pinned_to(replica, WRITE, READ)
    assert told(write) == ("fail", "read-only-replica", N1)
    assert told(read) == ("fail", "not-primary", N1)


def test_a_user_may_want_what_replicas_say() -> None:
    (read,) = pinned_to(replica, READ, replica_reads="yes")
    assert (read.type, read.value) == ("ok", 4)


def test_nothing_is_sent_where_nobody_listens() -> None:
    (write,) = pinned_to(None, WRITE)
    assert told(write) == ("fail", "not-sent", N1)


def test_a_proxy_that_accepts_for_a_dead_node_gets_no_operation() -> None:
    fakes = Fakes({N1: closes}, {})
    (write,) = performed(fakes, Route("pinned", N1), WRITE)
    assert told(write) == ("fail", "not-sent", N1)
    assert fakes.asked == []


def test_a_node_that_loads_its_data_gets_no_operation() -> None:
    (write,) = pinned_to(lambda _: b"-LOADING Redis is loading\r\n", WRITE)
    assert told(write) == ("fail", "not-sent", N1)


@pytest.mark.parametrize(
    ("operation", "outcome"), [(WRITE, "info"), (Operation("add", "s", 1), "info"), (READ, "fail")]
)
def test_a_broken_connection_leaves_a_change_unknown(operation: Operation, outcome: str) -> None:
    (completion,) = pinned_to(alive_but(closes), operation)
    assert told(completion) == (outcome, "connection-lost", N1)


def test_a_node_that_falls_silent_leaves_a_change_unknown() -> None:
    fakes = Fakes({N1: alive_but(silent)}, {})
    (write,) = performed(fakes, Route("pinned", N1), WRITE, timeout_s=1.0)
    assert told(write) == ("info", "timed-out", N1)


def test_a_node_that_is_frozen_before_it_says_anything_gets_no_operation() -> None:
    fakes = Fakes({N1: silent}, {})
    (write,) = performed(fakes, Route("pinned", N1), WRITE, timeout_s=0.05)
    assert told(write) == ("fail", "not-sent", N1)


def test_nonsense_for_an_answer_leaves_a_change_unknown() -> None:
    (write,) = pinned_to(alive_but(lambda _: b"HTTP/1.1 400\r\n"), WRITE)
    assert told(write) == ("info", "connection-lost", N1)


def test_a_late_answer_never_meets_a_later_operation() -> None:
    answers = iter([None, b"+OK\r\n+OK\r\n"])
    fakes = Fakes({N1: alive_but(lambda _: next(answers))}, {})
    first, second = performed(fakes, Route("pinned", N1), WRITE, WRITE, timeout_s=(1.0, 30.0))
    assert told(first) == ("info", "timed-out", N1)
    # A new connection, on which two answers to one question are no answer.
    assert told(second) == ("info", "connection-lost", N1)
    assert fakes.connections == 2


def test_a_following_client_asks_whom_the_sentinels_name() -> None:
    sentinels_say = {node: names(N2, 1) for node in NODES}
    fakes = Fakes({N1: replica, N2: primary, N3: replica}, sentinels_say)
    (write,) = performed(fakes, Route("leader", N3), WRITE)
    assert told(write) == ("ok", None, N2)
    assert fakes.sentinels_asked == [N3]


def test_sentinels_that_do_not_answer_are_passed_over() -> None:
    fakes = Fakes({N1: primary}, {N2: silent, N3: names(N1, 0)})
    (write,) = performed(fakes, Route("leader", N1), WRITE)
    assert told(write) == ("ok", None, N1)
    assert fakes.sentinels_asked[:2] == [N2, N3]


def test_an_outdated_sentinel_does_not_lead_a_client_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LOOK_INTERVAL_S", 0.0)
    # The old primary and its Sentinel are cut off from the others, not from the client.
    fakes = Fakes(
        {N1: primary, N2: primary, N3: replica},
        {N1: names(N1, 0), N2: names(N2, 1), N3: names(N2, 1)},
    )
    found = performed(fakes, Route("leader", N1), WRITE, WRITE, WRITE, WRITE, WRITE)
    assert [completion.node for completion in found] == [N1, N2, N2, N2, N2]


def test_a_client_may_follow_at_reconnect_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LOOK_INTERVAL_S", 0.0)
    fakes = Fakes(
        {N1: primary, N2: primary}, {N1: names(N1, 0), N2: names(N2, 1), N3: names(N2, 1)}
    )
    found = performed(fakes, Route("leader", N1), WRITE, WRITE, WRITE, follow_switches="no")
    assert [completion.node for completion in found] == [N1, N1, N1]
    assert fakes.sentinels_asked == [N1]


def test_a_named_primary_that_does_not_believe_it_is_asked_for_nothing() -> None:
    fakes = Fakes({N1: replica}, ALL_NAME_N1)
    (write,) = performed(fakes, Route("leader", N1), WRITE, timeout_s=1.0)
    assert told(write) == ("fail", "no-primary", N1)
    assert fakes.asked == []


def test_a_client_waits_for_the_failover_while_nothing_was_sent() -> None:
    told_old: list[NodeName] = []

    def fails_over(words: list[str]) -> bytes | None:
        told_old.append(N1)
        return names(N1, 0)(words) if len(told_old) == 1 else names(N2, 1)(words)

    fakes = Fakes({N1: closes, N2: primary}, dict.fromkeys(NODES, fails_over))
    (write,) = performed(fakes, Route("leader", N1), WRITE)
    assert told(write) == ("ok", None, N2)


def test_a_write_that_may_have_happened_is_never_sent_again() -> None:
    fakes = Fakes({N1: alive_but(closes), N2: primary}, ALL_NAME_N1)
    (write,) = performed(fakes, Route("leader", N1), WRITE, timeout_s=2.0)
    assert told(write) == ("info", "connection-lost", N1)
    assert fakes.asked == [(N1, "SET")]


def test_a_refusal_that_another_node_would_not_mend_is_told_at_once() -> None:
    fakes = Fakes({N1: refuses("NOREPLICAS Not enough good replicas to write.")}, ALL_NAME_N1)
    (write,) = performed(fakes, Route("leader", N1), WRITE)
    assert told(write) == ("fail", "too-few-replicas", N1)
    assert fakes.asked == [(N1, "SET")]


def test_without_any_sentinel_nothing_is_sent() -> None:
    fakes = Fakes({N1: primary}, {})
    (write,) = performed(fakes, Route("leader", N1), WRITE, timeout_s=0.15)
    assert told(write) == ("fail", "no-primary", None)
    assert fakes.asked == []


def test_an_unknown_operation_does_not_happen() -> None:
    (completion,) = pinned_to(primary, Operation("describe", "q", None))
    assert told(completion) == ("fail", "unknown-operation", None)


def test_a_cancelled_operation_leaves_no_connection_behind() -> None:
    async def cancel() -> bool:
        fakes = Fakes({N1: alive_but(silent)}, {})
        async with fakes:
            client = RedisClient(fakes.endpoint, MEMBERSHIP, Route("pinned", N1), settings({}, 3))
            task = asyncio.create_task(client.invoke(WRITE, 10.0))
            await fakes.was_asked.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            connection = client._connection
            await client.close()
            return connection is None or not connection.is_open

    assert asyncio.run(cancel())


# --- mutants ---------------------------------------------------------------------------------


def test_a_client_that_sends_before_a_role_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect_blindly(self: RedisClient, node: NodeName, deadline: float) -> object:
        remaining_s = deadline - asyncio.get_running_loop().time()
        return await client_module.connect(self._endpoint(node, "client"), remaining_s)

    monkeypatch.setattr(RedisClient, "_connect", connect_blindly)
    with pytest.raises(AssertionError):
        test_a_proxy_that_accepts_for_a_dead_node_gets_no_operation()


def test_a_client_that_repeats_a_write_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def certainly(_operation: Operation, _error: str, node: str) -> Completion:
        return outcomes.certainly_not(outcomes.NOT_SENT, node)

    monkeypatch.setattr(outcomes, "unanswered", certainly)
    with pytest.raises(AssertionError):
        test_a_write_that_may_have_happened_is_never_sent_again()
