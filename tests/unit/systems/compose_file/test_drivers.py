"""Requests of each driver, and its reading of answers: ok, certainly not, or open."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.compose_file.drivers.driver import Driver
from splitbrain.systems.compose_file.drivers.etcd import EtcdDriver
from splitbrain.systems.compose_file.drivers.http import HttpDriver
from splitbrain.systems.compose_file.drivers.redis import RedisDriver

N1 = NodeName("n1")
READ = Operation("read", "k", None)
WRITE = Operation("write", "k", 3)
CAS = Operation("cas", "k", [3, 4])


def told(
    driver: type[Driver],
    operation: Operation,
    answer: bytes,
    workload: str = "register",
    **options: str,
) -> tuple[Completion, bytes]:
    """Ask a server that answers these bytes, whatever it is asked; what it was asked too."""

    async def ask() -> tuple[Completion, bytes]:
        heard = bytearray()
        over = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.extend(await reader.read(65_536))
            writer.write(answer)
            writer.close()
            await writer.wait_closed()
            over.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            there = Address("127.0.0.1", server.sockets[0].getsockname()[1])
            client = driver(options, {}, workload).open_client(N1, there)
            completion = await client.invoke(operation, 60.0)
            await client.close()
            await over.wait()
        return completion, bytes(heard)

    return asyncio.run(ask())


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def ok(value: Any) -> Completion:
    return Completion("ok", value, node="n1")


def fail(error: str) -> Completion:
    return Completion("fail", error=error, node="n1")


def info(error: str) -> Completion:
    return Completion("info", error=error)


REDIS = [
    (READ, b"$1\r\n3\r\n", ok(3)),
    (READ, b"$-1\r\n", ok(None)),
    (WRITE, b"+OK\r\n", ok(3)),
    (CAS, b":1\r\n", ok([3, 4, True])),
    (CAS, b":0\r\n", ok([3, 4, False])),
    (WRITE, b"-READONLY You can't\r\n", fail("read-only-replica")),
    (WRITE, b"-LOADING\r\n", fail("loading")),
    (WRITE, b"-ERR whatever\r\n", info("server-error")),
    (WRITE, b":7\r\n", info("unexpected-answer")),
    (READ, b"$2\r\nno\r\n", info("unexpected-answer")),
    (WRITE, b"HTTP/1.1 400\r\n", info("unexpected-answer")),
    (WRITE, b"", info("connection-broken")),
    (WRITE, b"+O", info("connection-broken")),
]
HTTP = [
    (READ, http("200 OK", b"3"), ok(3)),
    (READ, http("404 Not Found", b"gone"), ok(None)),
    (
        READ,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n1\r\n2\r\n0\r\n\r\n",
        ok(12),
    ),
    (READ, b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n5", ok(5)),
    (READ, b"HTTP/1.1 100 Continue\r\n\r\n" + http("200 OK", b"4"), ok(4)),
    (READ, http("200 OK", b"three"), info("unexpected-answer")),
    (READ, http("200 OK", b""), info("unexpected-answer")),
    (WRITE, http("201 Created"), ok(3)),
    (WRITE, http("204 No Content"), ok(3)),
    (WRITE, http("404 Not Found"), fail("http-404")),
    (WRITE, http("409 Conflict"), fail("http-409")),
    (WRITE, http("408 Request Timeout"), info("http-408")),
    (WRITE, http("500 Oops"), info("http-500")),
    (WRITE, http("503 Unavailable", b"later"), info("http-503")),
    (WRITE, http("302 Found"), info("http-302")),
    (WRITE, b"+OK\r\n", info("connection-broken")),
    (WRITE, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", info("connection-broken")),
    (WRITE, b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", info("connection-broken")),
]


def etcd(status: str = "200 OK", **content: Any) -> bytes:
    return http(status, json.dumps(content).encode())


HEADER: Mapping[str, Any] = {"revision": "7"}
THREE = base64.b64encode(b"3").decode()
ETCD = [
    (READ, etcd(header=HEADER, kvs=[{"value": THREE}], count="1"), ok(3)),
    (READ, etcd(header=HEADER), ok(None)),
    (WRITE, etcd(header=HEADER), ok(3)),
    (CAS, etcd(header=HEADER, succeeded=True), ok([3, 4, True])),
    # The gateway leaves out what is false.
    (CAS, etcd(header=HEADER), ok([3, 4, False])),
    (WRITE, etcd("503 x", error="etcdserver: request timed out", code=14), info("http-503")),
    (WRITE, etcd("429 x", error="etcdserver: too many requests"), fail("too-many-requests")),
    (CAS, etcd("404 x"), info("http-404")),
    (CAS, etcd(), info("unexpected-answer")),
    (READ, etcd(header=HEADER, kvs=[{}]), info("unexpected-answer")),
    (WRITE, http("200 OK", b"<html>"), info("unexpected-answer")),
]


@pytest.mark.parametrize(
    ("driver", "operation", "answer", "means"),
    [
        *((RedisDriver, *case) for case in REDIS),
        *((HttpDriver, *case) for case in HTTP),
        *((EtcdDriver, *case) for case in ETCD),
    ],
)
def test_an_answer_is_read_for_no_more_than_it_says(
    driver: type[Driver], operation: Operation, answer: bytes, means: Completion
) -> None:
    assert told(driver, operation, answer)[0] == means


_PUT = (
    b"PUT /v/k HTTP/1.1\r\nHost: node\r\nAccept: application/json\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1\r\n\r\n3"
)


@pytest.mark.parametrize(
    ("operation", "sent"),
    [
        (READ, b"GET /v/k HTTP/1.1\r\nHost: node\r\nAccept: application/json\r\n\r\n"),
        (
            WRITE,
            _PUT,
        ),
    ],
)
def test_http_asks_by_get_and_put_of_the_path(operation: Operation, sent: bytes) -> None:
    assert told(HttpDriver, operation, http("200 OK", b"3"), path="/v/{key}")[1] == sent


def test_redis_says_who_it_is_first_and_takes_no_answer_to_that_for_the_operations() -> None:
    answers = b"+OK\r\n$1\r\n3\r\n"
    completion, sent = told(RedisDriver, READ, answers, password="secret")
    assert completion == ok(3)
    assert sent == b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
    wrong = b"-WRONGPASS no\r\n-NOAUTH no\r\n"
    assert told(RedisDriver, WRITE, wrong, password="x", user="me")[0] == fail("not-allowed")


def test_a_set_in_redis_is_read_as_a_sorted_list() -> None:
    members = b"*2\r\n$2\r\n10\r\n$1\r\n9\r\n"
    assert told(RedisDriver, READ, members, "set") == (
        ok([9, 10]),
        b"*2\r\n$8\r\nSMEMBERS\r\n$1\r\nk\r\n",
    )
    assert told(RedisDriver, Operation("add", "k", 9), b":1\r\n", "set")[0] == ok(9)


def test_etcd_compares_values_in_a_transaction() -> None:
    _, sent = told(EtcdDriver, CAS, etcd(header=HEADER))
    assert sent.startswith(b"POST /v3/kv/txn ")
    request = json.loads(sent.partition(b"\r\n\r\n")[2])
    key, four = base64.b64encode(b"k").decode(), base64.b64encode(b"4").decode()
    assert request == {
        "compare": [{"key": key, "target": "VALUE", "result": "EQUAL", "value": THREE}],
        "success": [{"request_put": {"key": key, "value": four}}],
    }
