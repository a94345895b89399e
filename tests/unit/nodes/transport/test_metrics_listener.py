"""A listener for Prometheus, asked as Prometheus does and otherwise."""

import asyncio
import http.client
import socket
import struct
from collections.abc import Callable

import pytest

from splitbrain.contracts.runtime import Address
from splitbrain.nodes.transport.metrics_listener import (
    CONNECTIONS_COUNT_MAX,
    HEAD_BYTES_MAX,
    MetricsListener,
)
from splitbrain.systems.kraft.status import figures
from tests.unit.nodes.transport.flooding import (
    BEYOND_SOCKETS_BYTES,
    HOST,
    PATIENCE_S,
    awaited,
    close,
    on_each_loop,
)

TEXT = b'# TYPE a gauge\na 4.0\n# TYPE h histogram\nh_bucket{le="+Inf"} 2\nh_count 2\nh_sum 9\n'


def served(ask: Callable[[int], object], text: bytes = TEXT) -> object:
    async def run() -> object:
        listener = MetricsListener(lambda: text, "text/plain; version=0.0.4")
        port = await listener.listen("127.0.0.1", 0)
        try:
            return await asyncio.to_thread(ask, port)
        finally:
            await listener.close()

    return asyncio.run(run())


def fetched(method: str, path: str, port: int) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_figures_are_read_without_buckets() -> None:
    found = served(lambda port: figures(Address("127.0.0.1", port), 10))
    assert found == {"a": 4, "h_count": 2, "h_sum": 9}


def test_what_is_no_text_of_prometheus_tells_nothing() -> None:
    assert served(lambda port: figures(Address("127.0.0.1", port), 10), b"a {{{\n") is None


def test_where_nobody_listens_there_are_no_figures() -> None:
    gone: list[int] = []
    served(gone.append)
    assert figures(Address("127.0.0.1", gone[0]), 10) is None


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/metrics?x=1", 200), ("GET", "/", 404), ("POST", "/metrics", 405)],
)
def test_only_the_figures_are_served(method: str, path: str, status: int) -> None:
    answer = served(lambda port: fetched(method, path, port))
    assert isinstance(answer, tuple)
    assert answer[0] == status
    assert (answer[1] == TEXT) == (status == 200)


def test_a_head_without_end_is_refused() -> None:
    long = "/" + "x" * 2 * HEAD_BYTES_MAX
    assert served(lambda port: fetched("GET", long, port)[0]) == 431


@on_each_loop
async def test_who_asks_for_figures_and_is_gone_is_no_defect() -> None:
    defects: list[str] = []
    running = asyncio.get_running_loop()
    running.set_exception_handler(lambda _, context: defects.append(str(context)))
    listener = MetricsListener(lambda: TEXT * 1_000, "text/plain")
    port = await listener.listen(HOST, 0)
    for number in range(200):
        gone = socket.create_connection((HOST, port), PATIENCE_S)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        for _ in range(number % 4):
            await asyncio.sleep(0)
        gone.close()
        await asyncio.sleep(0)
    await awaited(lambda: not listener.open)
    await listener.close()
    assert defects == []


@on_each_loop
async def test_figures_are_had_beside_any_number_of_connections_that_ask_for_nothing() -> None:
    listener = MetricsListener(lambda: b"x" * BEYOND_SOCKETS_BYTES, "text/plain")
    port = await listener.listen(HOST, 0)
    ask = b"GET /metrics HTTP/1.1\r\n\r\n"
    writers: list[asyncio.StreamWriter] = []
    for number in range(3 * CONNECTIONS_COUNT_MAX):
        _, writer = await asyncio.open_connection(HOST, port)
        writer.write(ask if number % 20 == 0 else ask[:9])  # and does not read
        writers.append(writer)
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(ask)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert len(await asyncio.wait_for(reader.readexactly(BEYOND_SOCKETS_BYTES), PATIENCE_S))
    assert len(listener.open) <= CONNECTIONS_COUNT_MAX
    await listener.close()
    for each in (*writers, writer):
        await close(each)
