"""A listener for Prometheus, asked as Prometheus does and otherwise."""

import asyncio
import http.client
from collections.abc import Callable

import pytest

from contracts.runtime import Address
from nodes.transport.metrics_listener import HEAD_BYTES_MAX, MetricsListener
from systems.kraft.figures import figures

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


def asked(method: str, path: str, port: int) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_figures_are_read_without_buckets() -> None:
    told = served(lambda port: figures(Address("127.0.0.1", port), 10))
    assert told == {"a": 4, "h_count": 2, "h_sum": 9}


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
    answer = served(lambda port: asked(method, path, port))
    assert isinstance(answer, tuple)
    assert answer[0] == status
    assert (answer[1] == TEXT) == (status == 200)


def test_a_head_without_end_is_refused() -> None:
    long = "/" + "x" * 2 * HEAD_BYTES_MAX
    assert served(lambda port: asked("GET", long, port)[0]) == 431
