"""Answers of one node to a thread of the harness: what it believes, and its own figures.

Blocking, with a deadline. Must never be called from an event loop's thread.
"""

import http.client
import socket
import time
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from splitbrain.contracts.runtime import Address
from splitbrain.nodes.transport.client_protocol import (
    ClientAnswer,
    ClientRequest,
    FrameSplitter,
    NodeState,
    ProtocolError,
    RequestKind,
    decode_answer,
    decode_hello,
    decode_state,
    encode_frame,
)
from splitbrain.nodes.transport.metrics_listener import PATH

_BUCKET = "_bucket"


def ask(address: Address, timeout_s: float) -> NodeState | None:
    """State of one node, None if it does not answer properly within the time."""
    try:
        answer = _answer(address, "status", timeout_s)
        return None if answer is None else decode_state(answer)
    except ProtocolError:
        return None


def serves_topics(address: Address, timeout_s: float) -> bool:
    """Whether a node says what it knows of topics, as a broker does that is not fenced."""
    answer = _answer(address, "describe-topic", timeout_s)
    return answer is not None and answer.outcome == "ok"


def _answer(address: Address, kind: RequestKind, timeout_s: float) -> ClientAnswer | None:
    deadline = time.monotonic() + timeout_s
    try:
        with socket.create_connection((address.host, address.port), timeout_s) as connection:
            frames = _frames(connection, deadline)
            decode_hello(next(frames))
            timeout_ms = max(1, int((deadline - time.monotonic()) * 1_000))
            connection.sendall(encode_frame(ClientRequest(id=1, kind=kind, timeout_ms=timeout_ms)))
            return decode_answer(next(frames))
    except (OSError, ProtocolError):
        return None


def _frames(connection: socket.socket, deadline: float) -> Iterator[bytes]:
    """Frame bodies from a socket; raises OSError (TimeoutError) or ProtocolError."""
    splitter = FrameSplitter()
    while (remaining_s := deadline - time.monotonic()) > 0:
        connection.settimeout(remaining_s)
        data = connection.recv(65_536)
        if not data:
            raise ConnectionResetError("the node closed the connection")
        yield from splitter.feed(data)
    raise TimeoutError("no answer in time")


def figures(address: Address, timeout_s: float) -> dict[str, float] | None:
    """Ask the node at this address for its state; None where it does not answer in time."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException, UnicodeDecodeError):
        return None
    finally:
        connection.close()
    return read_figures(text) if answer.status == http.client.OK else None


def read_figures(text: str) -> dict[str, float] | None:
    """The samples of a text in Prometheus' format, but for buckets; None where it is none."""
    try:
        return {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if not sample.name.endswith(_BUCKET)
        }
    except ValueError:
        return None
