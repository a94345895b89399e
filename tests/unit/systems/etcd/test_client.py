"""The client against a gateway in memory: its requests, and its reading of answers and silence."""

import asyncio
from typing import Any

import pytest

from splitbrain.contracts.names import NO_EPOCH, NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.etcd.client import COMPARED, EtcdClient, Manner
from splitbrain.systems.etcd.gateway import REFUSALS, below, key, value
from splitbrain.systems.workload_client import client_for
from tests.unit.systems.etcd.fake_gateway import FakeGateway, Hang
from tests.unit.systems.workload_operations import CONVERSATIONS, LEASED

N1, N2 = NodeName("n1"), NodeName("n2")
READ = Operation("read", "k", None)
WRITE = Operation("write", "k", 3)
CAS = Operation("cas", "k", [3, 4])
ADD = Operation("add", "k", 5)
ENQUEUE = Operation("enqueue", "k", 6)
DEQUEUE = Operation("dequeue", "k", None)
CHANGES = {"write": WRITE, "cas": CAS, "add": ADD, "enqueue": ENQUEUE, "dequeue": DEQUEUE}


def performed(
    gateway: FakeGateway, *operations: Operation, timeout_s: float = 5.0, **manner: Any
) -> list[Completion]:
    async def perform() -> list[Completion]:
        async with gateway.listening() as there:
            client = client_for(manner.get("workload"), EtcdClient({N1: there}, Manner(**manner)))
            found = [await client.invoke(operation, timeout_s) for operation in operations]
            await client.close()
            return found

    return asyncio.run(perform())


def values(completions: list[Completion]) -> list[object]:
    assert {completion.type for completion in completions} == {"ok"}
    return [completion.value for completion in completions]


@pytest.mark.parametrize("compares", [False, True])
def test_a_register_is_read_written_and_compared(compares: bool) -> None:
    other = Operation("cas", "k", [9, 1])
    gateway = FakeGateway()
    gateway.keys = {key(f"{COMPARED}/1"): (value(1), 1)}
    found = performed(gateway, READ, WRITE, READ, CAS, CAS, other, READ, compares=compares)
    assert values(found) == [None, 3, 3, [3, 4, True], [3, 4, False], [9, 1, False], 4]


def test_changes_have_the_revision_that_they_made() -> None:
    first, second, mismatch = performed(FakeGateway(), WRITE, CAS, CAS)
    assert first.position == (NO_EPOCH, 2)
    assert second.position == (NO_EPOCH, 3)
    assert mismatch.position is None


def test_a_set_has_its_elements() -> None:
    adds = [Operation("add", "k", element) for element in (12, 5)]
    found = performed(FakeGateway(), READ, *adds, READ, workload="set")
    assert values(found) == [[], 12, 5, [5, 12]]


def test_a_queue_hands_out_in_order() -> None:
    two = Operation("enqueue", "k", 2)
    found = performed(FakeGateway(), DEQUEUE, ENQUEUE, two, DEQUEUE, DEQUEUE, DEQUEUE)
    assert values(found) == [None, 6, 2, 6, 2, None]


def test_an_element_that_another_took_is_passed_over() -> None:
    gateway = FakeGateway()

    def take_first(name: str) -> None:
        if name == "range":
            gateway.keys.pop(key("k/6"), None)

    gateway.after = take_first
    two = Operation("enqueue", "k", 2)
    assert values(performed(gateway, ENQUEUE, two, DEQUEUE)) == [6, 2, 2]


@pytest.mark.parametrize("is_serializable", [False, True])
def test_reads_are_serializable_where_the_setting_says_so(is_serializable: bool) -> None:
    gateway = FakeGateway()
    performed(gateway, READ, DEQUEUE, is_serializable=is_serializable)
    (_, read), (_, look) = gateway.asked
    assert read.get("serializable", False) is is_serializable
    # An element that is missing from an old copy would be one that is lost.
    assert "serializable" not in look


def test_each_change_compares_the_keys_that_are_there_for_it() -> None:
    gateway = FakeGateway()
    completions = performed(gateway, WRITE, compares=True)
    assert completions == [Completion("fail", error="comparison-failed", node=N1)]
    ((name, request),) = gateway.asked
    assert name == "txn"
    assert request["compare"][0].items() >= {**below(COMPARED), "target": "CREATE"}.items()


def prepared() -> FakeGateway:
    """A register with 3, or a queue with an element."""
    gateway = FakeGateway()
    gateway.keys = {key("k"): (value(3), 1), key("k/6"): (value(6), 1)}
    return gateway


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_was_sent_and_not_answered_is_unknown(name: str) -> None:
    gateway = prepared()

    def hang(call: str) -> None:
        if call != "range":
            raise Hang

    gateway.after = hang
    (found,) = performed(gateway, CHANGES[name])
    assert (found.type, found.error) == ("info", "connection-lost")


def test_a_dequeue_whose_first_look_failed_certainly_did_not_happen() -> None:
    gateway = prepared()

    def hang(call: str) -> None:
        raise Hang

    gateway.before = hang
    (found,) = performed(gateway, DEQUEUE)
    assert (found.type, found.error) == ("fail", "connection-lost")


def test_a_dequeue_whose_second_look_failed_certainly_did_not_happen() -> None:
    gateway = prepared()

    def take_then_hang(call: str) -> None:
        gateway.keys.pop(key("k/6"), None)
        if [name for name, _ in gateway.asked] == ["range", "txn", "range"]:
            raise Hang

    gateway.after = take_then_hang
    (found,) = performed(gateway, DEQUEUE)
    assert (found.type, found.error) == ("fail", "connection-lost")


@pytest.mark.parametrize("problem", REFUSALS)
def test_refusals_are_certain(problem: str) -> None:
    gateway = prepared()
    gateway.before = lambda name: (429, problem)
    (found,) = performed(gateway, WRITE)
    assert (found.type, found.error) == ("fail", REFUSALS[problem])


@pytest.mark.parametrize(
    "problem", ["etcdserver: request timed out", "etcdserver: leader changed", "?"]
)
def test_any_other_error_leaves_a_write_open_and_no_read(problem: str) -> None:
    gateway = prepared()
    gateway.before = lambda name: (503, problem)
    written, read = performed(gateway, WRITE, READ)
    assert (written.type, written.error) == ("info", "http-503")
    assert (read.type, read.error) == ("fail", "http-503")


def test_no_answer_in_time_is_unknown() -> None:
    async def silent() -> Completion:
        ended = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n" + b'{"header":{}}')
            await ended.wait()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            there = Address("127.0.0.1", server.sockets[0].getsockname()[1])
            client = EtcdClient({N1: there}, Manner())
            # Once it is connected, all of the time is the answer's.
            assert (await client.invoke(READ, 60.0)).type == "ok"
            found = await client.invoke(WRITE, 0.1)
            ended.set()
        return found

    found = asyncio.run(silent())
    assert (found.type, found.error) == ("info", "timed-out")


def asked_of_two(
    gateway: FakeGateway, *, first_serves: bool, operations: int = 1
) -> list[Completion]:
    """Ask a client that follows; the first member ends connections, or takes them."""

    async def perform() -> list[Completion]:
        async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if first_serves:
                await reader.read(1)
            writer.close()

        server = await asyncio.start_server(end, "127.0.0.1", 0)
        async with server, gateway.listening() as second:
            first = Address("127.0.0.1", server.sockets[0].getsockname()[1])
            client = EtcdClient({N1: first, N2: second}, Manner())
            found = [await client.invoke(WRITE, 60.0) for _ in range(operations)]
            await client.close()
            return found

    return asyncio.run(perform())


def test_a_client_that_follows_goes_on_where_a_member_takes_no_connection() -> None:
    (found,) = asked_of_two(FakeGateway(), first_serves=False)
    assert (found.type, found.node) == ("ok", N2)


def test_a_client_that_follows_leaves_a_member_that_failed_it() -> None:
    lost, found = asked_of_two(FakeGateway(), first_serves=True, operations=2)
    assert (lost.type, lost.node) == ("info", N1)
    assert (found.type, found.node) == ("ok", N2)


def test_nothing_is_sent_to_a_member_that_takes_no_connection() -> None:
    client = EtcdClient({N1: Address("127.0.0.1", 1)}, Manner())
    found = asyncio.run(client.invoke(WRITE, 60.0))
    assert (found.type, found.error) == ("fail", "no-connection")


@pytest.mark.parametrize("workload", CONVERSATIONS)
@pytest.mark.parametrize("compares", [False, True])
def test_a_workload_is_served(workload: str, compares: bool) -> None:
    gateway = FakeGateway()
    gateway.keys = {key(f"{COMPARED}/1"): (value(1), 1)}
    asked, answers = zip(*CONVERSATIONS[workload], strict=True)
    found = performed(gateway, *asked, workload=workload, compares=compares)
    assert values(found) == [*answers]


def test_ids_are_revisions() -> None:
    assert values(performed(FakeGateway(), *[Operation("generate", "k", None)] * 2)) == [2, 3]


def test_a_lease_guards_by_its_token() -> None:
    gateway = FakeGateway()
    found = performed(gateway, *LEASED, workload="lease")
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
    # The key goes with its lease.
    (put,) = [
        act
        for name, request in gateway.asked
        if name == "txn"
        for act in request["success"]
        if act.get("request_put", {}).get("lease")
    ][:1]
    assert put["request_put"]["lease"] == "77"


def test_an_outdated_token_is_refused_and_gives_nothing_back() -> None:
    gateway = FakeGateway()

    def run_out(call: str) -> None:
        if len(gateway.asked) == 3:
            # The lease runs out, another client gets it and writes with its token.
            gateway.keys[key("k")] = (value(None), 90)
            gateway.keys[key("k/guarded")] = (value([90, 1]), 91)

    gateway.after = run_out
    acquire, write, release = LEASED[1], LEASED[3], LEASED[4]
    first, second, third = values(performed(gateway, acquire, write, release, workload="lease"))
    assert (second, third) == ([first, 7, False], False)


ADDING = Operation("add-and-get", "k", 2)


def test_a_step_between_whose_look_and_change_another_came_begins_again() -> None:
    gateway = FakeGateway()
    gateway.keys = {key("k"): (value(1), 1)}

    def add_ten(call: str) -> None:
        if len(gateway.asked) == 1:
            gateway._put({"key": key("k"), "value": value(11)})

    gateway.after = add_ten
    assert values(performed(gateway, ADDING)) == [13]


def test_a_step_that_began_again_and_then_found_nothing_to_do_did_not_happen() -> None:
    gateway = FakeGateway()
    gateway.keys = {key("k"): (value(None), 1)}

    def acquire(call: str) -> None:
        if len(gateway.asked) == 1:
            gateway._put({"key": key("k"), "value": value(9)})

    gateway.after = acquire
    (found,) = performed(gateway, Operation("acquire", "k", 1), workload="mutex")
    assert (found.type, found.value, found.position) == ("ok", False, None)
    assert len(gateway.asked) == 2


@pytest.mark.parametrize(("hangs_at", "type_"), [(1, "fail"), (2, "info"), (3, "info")])
def test_a_step_is_unknown_as_soon_as_one_of_its_changes_is(hangs_at: int, type_: str) -> None:
    gateway = FakeGateway()
    gateway.keys = {key("k"): (value(1), 1)}

    def interfere(call: str) -> None:
        if len(gateway.asked) == hangs_at:
            raise Hang
        if len(gateway.asked) == 1:
            gateway._put({"key": key("k"), "value": value(11)})

    gateway.after = interfere
    (found,) = performed(gateway, ADDING)
    assert (found.type, found.error) == (type_, "connection-lost")


def test_a_lease_that_was_not_granted_leaves_the_lock_alone() -> None:
    gateway = FakeGateway()

    def hang(call: str) -> None:
        if call == "grant":
            raise Hang

    gateway.after = hang
    (found,) = performed(gateway, LEASED[1], workload="lease")
    assert (found.type, found.error) == ("fail", "connection-lost")


@pytest.mark.parametrize("is_serializable", [False, True])
def test_a_bank_is_read_as_the_setting_says_and_never_changed_by_an_old_copy(
    is_serializable: bool,
) -> None:
    gateway = FakeGateway()
    asked = [operation for operation, _ in CONVERSATIONS["bank"][:2]]
    performed(gateway, *asked, workload="bank", is_serializable=is_serializable)
    how = [
        {
            act["request_range"].get("serializable", False)
            for act in request["success"]
            if "request_range" in act
        }
        for _, request in gateway.asked
    ]
    assert how == [{is_serializable}, {False}, set()]
