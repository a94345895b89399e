"""Asks nodes what they believe, all at a time, from a thread of the harness.

Blocking, with one deadline for all. Must never be called from an event loop's thread.
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol

from contracts.names import NodeName
from contracts.runtime import Address
from nodes.transport.client_protocol import (
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


class Endpoints(Protocol):
    """The part of a runtime that is needed to talk to nodes."""

    def nodes(self) -> Sequence[NodeName]:
        """All nodes."""
        ...

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Where the named port of a node is reached."""
        ...


def ask_all(
    addresses: Mapping[NodeName, Address],
    timeout_s: float,
    enough: Callable[[Mapping[NodeName, NodeState]], bool] | None = None,
) -> dict[NodeName, NodeState]:
    """State of every node that answers within the time; the others are left out.

    Returns early once ``enough`` says so of the answers that are there: a frozen or isolated node
    would otherwise cost the whole time.
    """
    answers: dict[NodeName, NodeState] = {}
    if not addresses:
        return answers
    pool = ThreadPoolExecutor(len(addresses), thread_name_prefix="status")
    try:
        asked = {pool.submit(ask, address, timeout_s): node for node, address in addresses.items()}
        for future in as_completed(asked):
            state = future.result()
            if state is not None:
                answers[asked[future]] = state
                if enough is not None and enough(answers):
                    break
    finally:
        pool.shutdown(wait=False)  # each thread ends by its own deadline
    return answers


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
    """Answer of one node, None if it says nothing proper within the time."""
    deadline = time.monotonic() + timeout_s
    try:
        with socket.create_connection((address.host, address.port), timeout_s) as connection:
            frames = _Frames(connection, deadline)
            decode_hello(frames.next())
            timeout_ms = max(1, int((deadline - time.monotonic()) * 1_000))
            connection.sendall(encode_frame(ClientRequest(id=1, kind=kind, timeout_ms=timeout_ms)))
            return decode_answer(frames.next())
    except (OSError, ProtocolError):
        return None


class _Frames:
    """Frame bodies from a socket, until a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._splitter = FrameSplitter()
        self._ready: list[bytes] = []

    def next(self) -> bytes:
        """The next body; raises OSError (TimeoutError) or ProtocolError."""
        while not self._ready:
            remaining_s = self._deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError("no answer in time")
            self._connection.settimeout(remaining_s)
            data = self._connection.recv(65_536)
            if not data:
                raise ConnectionResetError("the node closed the connection")
            self._ready.extend(self._splitter.feed(data))
        return self._ready.pop(0)
