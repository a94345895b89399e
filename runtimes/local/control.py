"""How the harness speaks to the host process of one cluster: calls and answers over a socket pair.

Each message is MessagePack behind its length. Answers come in any order, so that a probe that
takes its whole timeout keeps nobody waiting. The first call is always the plan.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from struct import Struct
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.link_probes import LinkTools

LENGTH: Final = Struct(">I")
#: Longest that a tool may take: a probe waits for what may never come.
_TOOL_PATIENCE_S: Final = 180.0
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

    Calls may come from several threads. Closing it ends the process, and with it every process of
    the cluster.
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
        """Ask, and wait for the answer; ``timeout_s`` is what the method itself may use up.

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


class HostLinks(LinkTools):
    """Tools of the container runtime's pods, which the host starts in a node's network."""

    def __init__(
        self,
        host: Callable[[], HostLink],
        nodes: Callable[[], Sequence[NodeName]],
        refuse_unknown: Callable[[NodeName], Any],
    ) -> None:
        super().__init__()
        self._host = host
        self._nodes = nodes
        self._refuse_unknown = refuse_unknown
        self._addresses: dict[NodeName, str] = {}

    def nodes(self) -> Sequence[NodeName]:
        """Return the deployed nodes."""
        return self._nodes()

    def address(self, node: NodeName) -> str:
        """Of the node in the network of nodes."""
        self._refuse_unknown(node)
        if node not in self._addresses:
            found = self._call("find the nodes' addresses", node, "addresses")
            self._addresses = {NodeName(name): address for name, address in found.items()}
        return self._addresses[node]

    def run(self, node: NodeName, command: Sequence[str]) -> str:
        """Run a tool inside the node's network; what it printed."""
        action, host = f"run {command[0]}", self._host()
        return host.call(action, node, "tool", node, list(command), timeout_s=_TOOL_PATIENCE_S)

    def answer_with_resets(self, node: NodeName, sources: Collection[str]) -> None:
        """From now on answer exactly these addresses' packets of connections with resets."""
        self._call("change resets", node, "set_resets", node, sorted(sources))

    def answered_with_resets(self, node: NodeName) -> Collection[str]:
        """Those addresses, as the kernel tells it."""
        return self._call("list resets", node, "shown", node, "reject")

    def _call(self, action: str, target: str, method: str, *arguments: Any) -> Any:
        return self._host().call(action, target, method, *arguments)
