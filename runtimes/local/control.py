"""How the harness speaks to the host process of one cluster: calls and answers over a socket pair.

Each message is MessagePack behind its length. Answers come in any order, so that a probe that
takes its whole timeout keeps nobody waiting. The first call is always the plan.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import threading
from concurrent.futures import Future
from contextlib import suppress
from struct import Struct
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import HarnessError

LENGTH: Final = Struct(">I")
#: A host that is asked to end gets this long before it is killed.
_END_PATIENCE_S: Final = 15.0
#: Longest that a call may take beyond what its own timeouts add up to.
_ANSWER_PATIENCE_S: Final = 60.0


class PlannedNode(msgspec.Struct, frozen=True):
    """One node as the host gets to know it."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    #: Folder that the program starts in.
    folder: str
    #: File that its output is appended to.
    output: str
    #: Descriptor of a listening socket on this machine, to the number of the node's own port.
    relays: dict[int, int] = {}
    #: Folders of the control groups that its processes enter.
    groups: tuple[str, ...] = ()


class HostPlan(msgspec.Struct, frozen=True):
    """All nodes of a cluster."""

    #: Whether each node gets a network of its own.
    namespaces: bool
    #: Where the host puts the few files that its nodes need.
    folder: str
    nodes: tuple[PlannedNode, ...]


class Call(msgspec.Struct, frozen=True):
    """A call of the harness."""

    number: int
    method: str
    arguments: list[Any]


class Answer(msgspec.Struct, frozen=True):
    """Answer to a call."""

    number: int
    value: Any = None
    #: One clause, None where it went well.
    problem: str | None = None


def encoded(message: Call | Answer | HostPlan) -> bytes:
    """Return a message with its length before it."""
    content = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(content)) + content


class HostLink:
    """The harness' end of one host process.

    Calls may come from several threads. Owns the process: closing the link ends it, and with it
    every process of the cluster.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        self._reader = threading.Thread(target=self._read, name="local-host", daemon=True)
        self._reader.start()

    @property
    def process_id(self) -> int:
        """Of the process that this one has started."""
        return self._process.pid

    def call(
        self, action: str, target: str, method: str, *arguments: Any, timeout_s: float = 0.0
    ) -> Any:
        """Ask, and wait for the answer.

        Args:
            action: what is attempted, as a clause, for the error.
            target: what it is attempted on.
            method: of the host.
            arguments: of the method.
            timeout_s: what the method itself may use up.

        Raises:
            HarnessError: the host could not do it, is gone, or does not answer.
        """
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            if self._is_closed:
                raise _gone(action, target)
            self._waiting[number] = future
            try:
                self._control.sendall(encoded(Call(number, method, list(arguments))))
            except OSError as error:
                del self._waiting[number]
                raise _gone(action, target) from error
        try:
            answer: Answer = future.result(timeout_s + _ANSWER_PATIENCE_S)
        except TimeoutError:
            raise HarnessError(
                action, target, "the host process does not answer", "Look at host.log."
            ) from None
        except ConnectionError:
            raise _gone(action, target) from None
        if answer.problem is not None:
            raise HarnessError(
                action, target, answer.problem, "`splitbrain doctor` says what works here."
            )
        return answer.value

    def send(self, plan: HostPlan) -> None:
        """Tell the plan; its answer comes with the first call."""
        with suppress(OSError), self._lock:
            self._control.sendall(encoded(plan))

    def close(self) -> None:
        """End the host and all that it holds; returns when it is gone. Safe to call twice."""
        with self._lock:
            self._is_closed = True
            with suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._control.close()

    def _read(self) -> None:
        decoder = msgspec.msgpack.Decoder(Answer)
        with suppress(OSError), self._control.makefile("rb") as stream:
            while len(head := stream.read(LENGTH.size)) == LENGTH.size:
                answer = decoder.decode(stream.read(LENGTH.unpack(head)[0]))
                with self._lock:
                    future = self._waiting.pop(answer.number, None)
                if future is not None:
                    future.set_result(answer)
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for future in waiting:
            future.set_exception(ConnectionError())


def _gone(action: str, target: str) -> HarnessError:
    return HarnessError(
        action,
        target,
        "the process that holds the cluster has ended",
        "host.log in the run folder says why; start the run again.",
    )
