"""The client against a fake server: what it asks, and what it makes of answers and silence."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.workload_client import client_for
from splitbrain.systems.zookeeper import client as client_module
from splitbrain.systems.zookeeper.client import READS, REFUSALS, ZooKeeperClient
from splitbrain.systems.zookeeper.session import (
    BAD_VERSION,
    CREATE,
    DELETE,
    DIGEST_INTERVAL,
    GET_CHILDREN,
    GET_DATA,
    MULTI,
    SET_DATA,
    SYNC,
    order_idle_transactions,
)
from tests.unit.systems.workload_operations import CONVERSATIONS, LEASED
from tests.unit.systems.zookeeper.fake_server import EPOCH, FakeServer, Hang

N1, N2 = NodeName("n1"), NodeName("n2")
READ = Operation("read", "k", None)
WRITE = Operation("write", "k", 3)
CAS = Operation("cas", "k", [3, 4])
ADD = Operation("add", "k", 5)
ENQUEUE = Operation("enqueue", "k", 6)
DEQUEUE = Operation("dequeue", "k", None)
CHANGES = {"write": WRITE, "cas": CAS, "add": ADD, "enqueue": ENQUEUE, "dequeue": DEQUEUE}


def performed(
    server: FakeServer,
    *operations: Operation,
    workload: str = "register",
    reads: str = READS[0],
    timeout_s: float = 5.0,
) -> list[Completion]:
    async def perform() -> list[Completion]:
        async with server.listening() as there:
            client = client_for(workload, ZooKeeperClient({N1: there}, workload, reads))
            found = [await client.invoke(operation, timeout_s) for operation in operations]
            await client.close()
            return found

    return asyncio.run(perform())


def values(completions: list[Completion]) -> list[object]:
    assert {completion.type for completion in completions} == {"ok"}
    return [completion.value for completion in completions]


def test_a_register_is_read_written_and_compared() -> None:
    other = Operation("cas", "k", [9, 1])
    found = performed(FakeServer(), READ, WRITE, READ, CAS, CAS, other, READ)
    assert values(found) == [None, 3, 3, [3, 4, True], [3, 4, False], [9, 1, False], 4]


def test_changes_have_the_place_of_their_transaction() -> None:
    first, second, mismatch = performed(FakeServer(), WRITE, CAS, CAS)
    assert first.position == (EPOCH, 1)
    # Between them is the fence of the look.
    assert second.position == (EPOCH, 3)
    assert mismatch.position is None


def test_a_set_has_its_elements() -> None:
    adds = [Operation("add", "k", element) for element in (12, 5)]
    found = performed(FakeServer(), READ, *adds, READ, workload="set")
    assert values(found) == [[], 12, 5, [5, 12]]


def test_a_queue_hands_out_in_order() -> None:
    two = Operation("enqueue", "k", 2)
    found = performed(FakeServer(), DEQUEUE, ENQUEUE, two, DEQUEUE, DEQUEUE, DEQUEUE)
    assert values(found) == [None, 6, 2, 6, 2, None]


def test_an_element_that_another_took_is_passed_over() -> None:
    server = FakeServer()

    def take_first(kind: int, path: str) -> None:
        if kind == GET_CHILDREN:
            server.tree.pop("/k/e0000000000", None)

    server.after = take_first
    two = Operation("enqueue", "k", 2)
    assert values(performed(server, ENQUEUE, two, DEQUEUE)) == [6, 2, 2]


@pytest.mark.parametrize(
    ("reads", "before"), [("sync", SYNC), ("quorum", SET_DATA), ("local", None)]
)
def test_a_read_catches_up_as_the_setting_says(reads: str, before: int | None) -> None:
    server = FakeServer()
    performed(server, READ, reads=reads)
    wanted = [] if before is None else [(before, "/")]
    assert server.asked == [*wanted, (GET_DATA, "/k")]


@pytest.mark.parametrize("reads", READS)
def test_a_mismatch_is_never_observed_behind(reads: str) -> None:
    server = FakeServer()
    performed(server, CAS, reads=reads)
    assert server.asked[0] == (SET_DATA, "/")


def test_a_compare_and_set_between_whose_steps_another_wrote_looks_again() -> None:
    server = FakeServer()
    refusals = [BAD_VERSION]
    server.before = lambda kind, path: (
        refusals.pop()
        if path == "/k" and kind == SET_DATA and server.asked.count((SET_DATA, path)) == 2
        else None
    )
    found = performed(server, WRITE, CAS)
    assert values(found) == [3, [3, 4, True]]
    assert refusals == []


def prepared() -> FakeServer:
    """A register with 3, or a queue with an element."""
    server = FakeServer()
    server.tree |= {"/k": (b"3", 0), "/k/e0000000000": (b"6", 0)}
    return server


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_was_sent_and_not_answered_is_unknown(name: str) -> None:
    server = prepared()

    def hang(kind: int, path: str) -> None:
        if kind in {CREATE, SET_DATA, DELETE} and path != "/":
            raise Hang

    server.after = hang
    (found,) = performed(server, CHANGES[name])
    assert (found.type, found.error) == ("info", "connection-lost")


@pytest.mark.parametrize("name", ["cas", "dequeue"])
def test_a_change_whose_first_look_failed_certainly_did_not_happen(name: str) -> None:
    server = prepared()

    def hang(kind: int, path: str) -> int | None:
        if kind == GET_DATA:
            raise Hang
        return None

    server.before = hang
    (found,) = performed(server, CHANGES[name])
    assert (found.type, found.error) == ("fail", "connection-lost")


@pytest.mark.parametrize("code", REFUSALS)
def test_refusals_are_certain(code: int) -> None:
    server = prepared()
    server.before = lambda kind, path: code
    (found,) = performed(server, WRITE)
    assert (found.type, found.error) == ("fail", REFUSALS[code])


def test_an_error_that_nobody_knows_leaves_a_write_open_and_no_read() -> None:
    server = prepared()
    server.before = lambda kind, path: -1
    written, read = performed(server, WRITE, READ)
    assert (written.type, written.error) == ("info", "server-error")
    assert (read.type, read.error) == ("fail", "server-error")


@pytest.mark.parametrize("lost", [(SET_DATA, "/"), (GET_DATA, "/k")])
def test_a_fence_is_no_change(lost: tuple[int, str]) -> None:
    server = prepared()

    def hang(kind: int, path: str) -> None:
        if (kind, path) == lost:
            raise Hang

    server.after = hang
    assert [done.type for done in performed(server, CAS, READ)] == ["fail", "fail"]


def test_no_answer_in_time_is_unknown_and_the_next_operation_has_a_fresh_session() -> None:
    server = prepared()
    asked: list[int] = []

    async def perform() -> list[Completion]:
        gate = asyncio.Event()
        original = server._serve

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(1)
            if len(asked) == 1:
                await reader.readexactly(49)
                writer.write(bytes([0, 0, 0, 37, 0, 0, 0, 0, 0, 0, 16, 0]) + bytes(29))
                await gate.wait()
                writer.close()
            else:
                await original(reader, writer)

        server._serve = serve
        async with server.listening() as there:
            client = ZooKeeperClient({N1: there}, "register", "sync")
            found = [await client.invoke(WRITE, 0.1), await client.invoke(WRITE, 60.0)]
            gate.set()
            await client.close()
            return found

    late, fresh = asyncio.run(perform())
    assert (late.type, late.error) == ("info", "timed-out")
    assert fresh.type == "ok"
    assert len(asked) == 2


def nodes_of(
    choose: Callable[[Address, Address], Mapping[NodeName, Address]], *, first_serves: bool
) -> Completion:
    async def perform() -> Completion:
        first, second = FakeServer(), FakeServer()
        first.serves = first_serves
        async with first.listening() as one, second.listening() as two:
            client = ZooKeeperClient(choose(one, two), "register", "sync")
            found = await client.invoke(WRITE, 60.0)
            await client.close()
            return found

    return asyncio.run(perform())


def test_a_following_client_goes_on_to_a_node_that_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "SESSION_PATIENCE_S", 5.0)
    found = nodes_of(lambda one, two: {N1: one, N2: two}, first_serves=False)
    assert (found.type, found.node) == ("ok", N2)


def test_a_pinned_client_keeps_to_its_node() -> None:
    found = nodes_of(lambda one, two: {N1: one}, first_serves=False)
    assert (found.type, found.error) == ("fail", "no-session")


@pytest.mark.parametrize("workload", CONVERSATIONS)
@pytest.mark.parametrize("reads", READS)
def test_a_workload_is_served(workload: str, reads: str) -> None:
    asked, answers = zip(*CONVERSATIONS[workload], strict=True)
    found = performed(FakeServer(), *asked, workload=workload, reads=reads)
    assert values(found) == [*answers]


def test_ids_are_transactions() -> None:
    first, second = values(performed(FakeServer(), *[Operation("generate", "k", None)] * 2))
    assert [first, second] == [(EPOCH << 32) + number for number in (1, 2)]


def test_a_lease_guards_by_its_token() -> None:
    found = performed(FakeServer(), *LEASED, workload="lease")
    token, newer = (found[place].value for place in (1, 5))
    assert newer > token
    assert [(each.value, each.error) for each in found] == [
        (None, "not-held"),
        (token, None),
        (False, None),
        ([token, 7, True], None),
        (True, None),
        (newer, None),
        ([newer, 8, True], None),
        (8, None),
    ]


def test_a_lock_of_another_session_is_not_given_back() -> None:
    server = FakeServer()

    def pass_on(kind: int, path: str) -> None:
        server.owners["/k"] = 99

    server.after = pass_on
    acquired, released = values(performed(server, LEASED[1], LEASED[4], workload="lease"))
    assert (acquired, released) == ((EPOCH << 32) + 1, False)
    assert DELETE not in {kind for kind, _ in server.asked}


def test_an_outdated_token_is_refused() -> None:
    server = FakeServer()
    server.tree["/k:guarded"] = (b"[99000000000, 1]", 0)
    acquired, written = values(performed(server, LEASED[1], LEASED[3], workload="lease"))
    assert written == [acquired, 7, False]


ADDING = Operation("add-and-get", "k", 2)


def counted() -> FakeServer:
    """A counter at 1; another client adds ten after the first look."""
    server = FakeServer()
    server.tree["/k"] = (b"1", 0)
    return server


def test_a_step_between_whose_look_and_change_another_came_begins_again() -> None:
    server = counted()

    def add_ten(kind: int, path: str) -> None:
        if server.asked.count((GET_DATA, "/k")) == 1 and kind == GET_DATA:
            server.tree["/k"] = (b"11", 1)

    server.after = add_ten
    assert values(performed(server, ADDING, reads="sync")) == [13]


@pytest.mark.parametrize(("hangs_at", "type_"), [(1, "info"), (2, "info")])
def test_a_step_is_unknown_as_soon_as_one_of_its_changes_is(hangs_at: int, type_: str) -> None:
    server = counted()

    def interfere(kind: int, path: str) -> None:
        if kind == MULTI and server.asked.count((MULTI, "/")) == hangs_at:
            raise Hang
        if kind == GET_DATA and server.asked.count((GET_DATA, "/k")) == 1:
            server.tree["/k"] = (b"11", 1)

    server.after = interfere
    (found,) = performed(server, ADDING)
    assert (found.type, found.error) == (type_, "connection-lost")


def test_a_step_whose_second_look_failed_certainly_did_not_happen() -> None:
    server = counted()

    def interfere(kind: int, path: str) -> None:
        if kind == GET_DATA and server.asked.count((GET_DATA, "/k")) == 1:
            server.tree["/k"] = (b"11", 1)
        elif kind == GET_DATA:
            raise Hang

    server.after = interfere
    (found,) = performed(server, ADDING)
    assert (found.type, found.error) == ("fail", "connection-lost")


def test_a_server_that_is_behind_the_client_gives_no_session() -> None:
    server = FakeServer()
    client = ZooKeeperClient({}, None, "local")

    async def perform() -> list[Completion]:
        async with server.listening() as there:
            client._nodes = {N1: there}
            written = await client.invoke(WRITE, 60.0)
            await client.close()
            server.zxid -= 1
            return [written, await client.invoke(READ, 60.0)]

    written, read = asyncio.run(perform())
    assert (written.type, read.type, read.error) == ("ok", "fail", "no-session")


def test_idle_transactions_are_asked_for_and_leave_the_data_alone() -> None:
    server = FakeServer()

    async def order() -> None:
        async with server.listening() as there:
            await order_idle_transactions(there, 30)

    before = dict(server.tree)
    asyncio.run(order())
    assert server.tree == before
    assert server.asked == [(DELETE, "/no-such-node")] * DIGEST_INTERVAL
