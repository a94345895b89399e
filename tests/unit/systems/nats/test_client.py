"""The client against a server in memory: its requests, and its reading of answers and silence."""

import asyncio
from collections.abc import Callable

import pytest

from splitbrain.contracts.names import NO_EPOCH, NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.nats.client import DIRECT, FENCED, LEADER, NatsClient
from splitbrain.systems.nats.jetstream import REFUSALS
from tests.unit.systems.nats.fake_server import Answer, FakeServer, Hang, error, status

N1, N2 = NodeName("n1"), NodeName("n2")
REGISTER, FENCE, SET = "$KV.registers.k", "$KV.registers.fence.k", "sets.k"
READ = Operation("read", "k", None)
WRITE = Operation("write", "k", 3)
CAS = Operation("cas", "k", [3, 4])
ADD = Operation("add", "k", 5)
ENQUEUE = Operation("enqueue", "k", 7)
DEQUEUE = Operation("dequeue", "k", None)
CHANGES = {"write": WRITE, "cas": CAS, "add": ADD}


def performed(
    server: FakeServer,
    *operations: Operation,
    timeout_s: float = 5.0,
    workload: str = "register",
    reads: str = FENCED,
) -> list[Completion]:
    async def perform() -> list[Completion]:
        async with server.listening() as there:
            client = NatsClient({N1: there}, workload, reads)
            found = [await client.invoke(operation, timeout_s) for operation in operations]
            await client.close()
            return found

    return asyncio.run(perform())


def values(completions: list[Completion]) -> list[object]:
    assert {completion.type for completion in completions} == {"ok"}, completions
    return [completion.value for completion in completions]


def subjects(server: FakeServer) -> list[str]:
    return [subject for subject, _ in server.asked]


def prepared() -> FakeServer:
    """A register with 3, and a set with an element."""
    server = FakeServer()
    server.store(REGISTER, b"3")
    server.store(f"{SET}.6", b"6")
    return server


@pytest.mark.parametrize("reads", [FENCED, LEADER, DIRECT])
def test_a_register_is_read_written_and_compared(reads: str) -> None:
    other = Operation("cas", "k", [9, 1])
    found = performed(FakeServer(), READ, CAS, WRITE, READ, CAS, CAS, other, READ, reads=reads)
    refused = [[3, 4, False], [9, 1, False]]
    assert values(found) == [None, refused[0], 3, 3, [3, 4, True], *refused, 4]


def test_changes_have_the_sequence_of_their_message() -> None:
    first, second, mismatch = performed(FakeServer(), WRITE, CAS, CAS, reads=LEADER)
    assert first.position == (NO_EPOCH, 1)
    assert second.position == (NO_EPOCH, 2)
    assert mismatch.position is None


def test_a_set_has_its_elements() -> None:
    adds = [Operation("add", "k", element) for element in (12, 5, 12)]
    other = Operation("add", "l", 9)
    found = performed(FakeServer(), READ, *adds, other, READ, workload="set")
    assert values(found) == [[], 12, 5, 12, 9, [5, 12]]


def test_a_fenced_read_is_asked_again_where_the_register_changed_in_between() -> None:
    server = prepared()

    def change_once(subject: str) -> None:
        if ".MSG.GET." in subject:
            server.after = lambda subject: None
            server.store(REGISTER, b"4")

    server.after = change_once
    assert values(performed(server, READ)) == [4]
    get = "$JS.API.STREAM.MSG.GET.KV_registers"
    assert subjects(server) == [get, FENCE, get, FENCE]


def test_a_compare_and_set_looks_again_where_another_came_first() -> None:
    server = prepared()

    def change_once(subject: str) -> None:
        if ".MSG.GET." in subject:
            server.after = lambda subject: None
            server.store(REGISTER, b"3")

    server.after = change_once
    assert values(performed(server, CAS, READ, reads=LEADER)) == [[3, 4, True], 4]


def test_reads_go_where_the_setting_says() -> None:
    for reads, asked in (
        (LEADER, ["$JS.API.STREAM.MSG.GET.KV_registers"]),
        (DIRECT, ["$JS.API.DIRECT.GET.KV_registers"]),
    ):
        server = prepared()
        assert values(performed(server, READ, reads=reads)) == [3]
        assert subjects(server) == asked


def of_changes(then: Callable[[], Answer | None]) -> Callable[[str], Answer | None]:
    """Interrupt publications, and let requests of the API through."""
    return lambda subject: None if subject.startswith("$JS.") else then()


def hang() -> None:
    raise Hang


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_was_sent_and_not_answered_is_unknown(name: str) -> None:
    server = prepared()
    server.before = of_changes(hang)
    workload = "set" if name == "add" else "register"
    (found,) = performed(server, CHANGES[name], workload=workload, reads=LEADER)
    assert (found.type, found.error) == ("info", "connection-lost")


@pytest.mark.parametrize("operation", [READ, CAS])
def test_a_look_that_failed_changed_nothing(operation: Operation) -> None:
    server = prepared()
    server.before = lambda subject: hang()
    for reads in (FENCED, LEADER, DIRECT):
        (found,) = performed(server, operation, reads=reads)
        assert (found.type, found.error) == ("fail", "connection-lost")


def test_a_fence_that_was_not_answered_changed_nothing() -> None:
    server = prepared()
    server.before = of_changes(hang)
    (found,) = performed(server, READ)
    assert (found.type, found.error) == ("fail", "connection-lost")


@pytest.mark.parametrize("code", REFUSALS)
def test_refusals_are_certain(code: int) -> None:
    server = prepared()
    server.before = of_changes(lambda: error(code))
    (found,) = performed(server, WRITE)
    assert (found.type, found.error) == ("fail", REFUSALS[code])


def test_a_subject_that_nobody_takes_is_a_certain_refusal() -> None:
    server = prepared()
    server.before = lambda subject: status(503)
    for operation in (WRITE, READ, CAS):
        (found,) = performed(server, operation)
        assert (found.type, found.error) == ("fail", "no-responders")


@pytest.mark.parametrize("code", [10023, 10077, 10060, 1])
def test_any_other_error_leaves_a_change_open_and_no_read(code: int) -> None:
    server = prepared()
    server.before = lambda subject: error(code)
    written, read = performed(server, WRITE, READ)
    assert (written.type, written.error) == ("info", f"error-{code}")
    assert (read.type, read.error) == ("fail", f"error-{code}")


def test_an_answer_that_is_none_leaves_a_change_open() -> None:
    server = prepared()
    for answer in (*(Answer("", body) for body in (b"{", b"{}", b"[]")), status(200)):
        server.before = lambda subject, answer=answer: answer
        (found,) = performed(server, WRITE)
        assert (found.type, found.error) == ("info", "unexpected-answer")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(404, "Message Not Found"), "status-404"),
        (status(413, "Too Many Results"), "status-413"),
        (status(408, "Bad Request"), "status-408"),
        (Answer("NATS/1.0 204 EOB\r\nNats-Num-Pending: 2\r\n\r\n", b""), "incomplete-answer"),
    ],
)
def test_a_set_that_cannot_be_read_whole_is_not_read(answer: Answer, error: str) -> None:
    server = prepared()
    server.before = lambda subject: answer
    (found,) = performed(server, READ, workload="set")
    assert (found.type, found.error) == ("fail", error)


def test_a_set_of_which_a_part_comes_is_not_read() -> None:
    server = prepared()
    server.store(f"{SET}.8", b"8")
    server.batch = 1
    (found,) = performed(server, READ, workload="set")
    assert (found.type, found.error) == ("fail", "incomplete-answer")


def test_a_queue_hands_out_and_forgets_what_was_acknowledged() -> None:
    server = FakeServer()
    two = Operation("enqueue", "k", 2)
    found = performed(server, DEQUEUE, ENQUEUE, two, DEQUEUE, DEQUEUE, DEQUEUE, workload="queue")
    assert values(found) == [None, 7, 2, 7, 2, None]
    assert not server.messages
    assert sum("CONSUMER.CREATE" in subject for subject in subjects(server)) == 1


@pytest.mark.parametrize("at", ["CONSUMER.CREATE", "MSG.NEXT"])
def test_a_dequeue_that_acknowledged_nothing_certainly_did_not_happen(at: str) -> None:
    server = FakeServer()
    server.store("queues.k", b"7")
    server.after = lambda subject: hang() if at in subject else None
    (found,) = performed(server, DEQUEUE, workload="queue")
    assert (found.type, found.error) == ("fail", "connection-lost")


def test_a_dequeue_whose_acknowledgement_has_no_answer_is_unknown() -> None:
    server = FakeServer()
    server.store("queues.k", b"7")
    server.after = lambda subject: hang() if ".ACK." in subject else None
    (found,) = performed(server, DEQUEUE, workload="queue")
    assert (found.type, found.error) == ("info", "connection-lost")


def test_an_acknowledgement_that_nobody_takes_gives_the_element_back() -> None:
    server = FakeServer()
    server.store("queues.k", b"7")
    server.before = lambda subject: status(503) if ".ACK." in subject else None
    (found,) = performed(server, DEQUEUE, workload="queue")
    assert (found.type, found.error) == ("fail", "no-responders")


def test_a_consumer_that_is_not_served_yet_is_asked_again() -> None:
    server = FakeServer()
    server.store("queues.k", b"7")
    refusals = [status(503), status(503)]
    server.before = lambda subject: refusals.pop() if refusals and "MSG.NEXT" in subject else None
    assert values(performed(server, DEQUEUE, workload="queue")) == [7]


def test_a_consumer_that_is_gone_is_made_again() -> None:
    server = FakeServer()

    def forget_once(subject: str) -> None:
        if "MSG.NEXT" in subject:
            server.after = lambda subject: None
            server.consumers.clear()

    server.after = forget_once
    found = performed(server, *[DEQUEUE] * 3, workload="queue")
    assert [(each.type, each.error) for each in found] == [
        ("ok", None),
        ("fail", "no-responders"),
        ("ok", None),
    ]


def test_signs_of_life_and_strange_messages_come_between() -> None:
    server = prepared()
    server.noise = b"PING\r\n+OK\r\nMSG _INBOX.S.1.99 1 2\r\nno\r\nINFO {}\r\n"
    assert values(performed(server, READ, WRITE, READ)) == [3, 3, 3]


def test_an_error_of_the_protocol_ends_the_connection() -> None:
    server = prepared()
    server.noise = b"-ERR 'Stale Connection'\r\n"
    (found,) = performed(server, WRITE)
    assert (found.type, found.error) == ("info", "connection-lost")


def test_nothing_is_sent_on_a_connection_that_the_server_has_ended() -> None:
    server = prepared()

    async def perform() -> list[Completion]:
        async with server.listening() as there:
            client = NatsClient({N1: there}, "register", LEADER)
            found = [await client.invoke(WRITE, 5.0)]
            await server.end_connections()
            assert client._connection is not None
            assert await client._connection._reader.read() == b""
            found.append(await client.invoke(WRITE, 5.0))
            await client.close()
            return found

    assert values(asyncio.run(perform())) == [3, 3]
    assert server.connected == 2


def test_no_answer_in_time_is_unknown() -> None:
    server = prepared()

    async def silent() -> Completion:
        async with server.listening() as there:
            client = NatsClient({N1: there}, "register", LEADER)
            await client.invoke(READ, 5.0)
            # Answers go where nobody waits.
            server.before = lambda subject: Answer("", b"")
            server.noise = b"MSG _INBOX.S.1.99 1 500000\r\n"
            found = await client.invoke(WRITE, 0.1)
            await client.close()
            return found

    found = asyncio.run(silent())
    assert (found.type, found.error) == ("info", "timed-out")


def asked_of_two(server: FakeServer, *, first_serves: bool, count: int = 1) -> list[Completion]:
    """Ask a client that follows; the first server ends connections, or takes them."""
    first = prepared()
    first.before = lambda subject: hang()

    async def perform() -> list[Completion]:
        async with first.listening() as there, server.listening() as second:
            address = there if first_serves else Address("127.0.0.1", 1)
            client = NatsClient({N1: address, N2: second}, "register", LEADER)
            found = [await client.invoke(WRITE, 5.0) for _ in range(count)]
            await client.close()
            return found

    return asyncio.run(perform())


def test_a_client_that_follows_goes_on_where_a_server_takes_no_connection() -> None:
    (found,) = asked_of_two(FakeServer(), first_serves=False)
    assert (found.type, found.node) == ("ok", N2)


def test_a_client_that_follows_leaves_a_server_that_failed_it() -> None:
    lost, found = asked_of_two(FakeServer(), first_serves=True, count=2)
    assert (lost.type, lost.node) == ("info", N1)
    assert (found.type, found.node) == ("ok", N2)


def test_nothing_is_sent_to_a_server_that_takes_no_connection() -> None:
    client = NatsClient({N1: Address("127.0.0.1", 1)}, "register", LEADER)
    found = asyncio.run(client.invoke(WRITE, 5.0))
    assert (found.type, found.error) == ("fail", "no-connection")
