"""The process that holds one cluster: its namespaces, its relays, its nodes.

Everything lives below it and dies with it, and it ends when the harness closes its socket or dies,
whatever killed it. So nothing of a cluster can outlive its run, and nobody has to clean up. It
decides nothing: it does what the harness asks, one call after the other for each node.

Usage: ``python -m splitbrain.runtimes.local.host namespaces|processes CONTROL HARNESS_PROCESS``
with the descriptor of the socket, or ``python -m splitbrain.runtimes.local.host trial``, which
makes the namespaces of one node and says by one line of JSON what came of it: ``{"firewall": NAME,
"links": WORDS}``, with what can be done to links, or ``{"problem": CLAUSE}``.
"""

import asyncio
import errno
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.runtimes.local import kernel
from splitbrain.runtimes.local.cluster import Cluster
from splitbrain.runtimes.local.control import LENGTH, Answer, Call, HostPlan, encoded
from splitbrain.runtimes.local.network import Network
from splitbrain.runtimes.local.relay import Relay
from splitbrain.runtimes.system_programs import CannotError

_CALLS_AT_ONCE = 64


class Host:
    """Answers the harness until it goes."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._tasks: set[asyncio.Task[None]] = set()
        self._pool = ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="call")
        self._cluster: Cluster | None = None
        self._relays: list[Relay] = []

    async def serve(self, harness: int) -> None:
        """Do what is asked until the socket is closed or the harness' process descriptor ends."""
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        # The harness' own children may hold the socket open after its death.
        loop.add_reader(harness, gone.set)
        waits = {loop.create_task(gone.wait()), loop.create_task(self._listen())}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if self._cluster is not None:
            self._cluster.end()

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection(sock=self._control)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            plan = msgspec.msgpack.decode(await _frame(reader), type=HostPlan)
            calls: Mapping[str, Callable[..., Any]] = {}
            problem: str | None = None
            try:
                calls = await self._prepare(plan)
            except (CannotError, OSError) as error:
                problem = str(error)
            decoder = msgspec.msgpack.Decoder(Call)
            while True:
                call = decoder.decode(await _frame(reader))
                if problem is not None:
                    writer.write(encoded(Answer(call.number, problem=problem)))
                    continue
                task = asyncio.create_task(self._answer(call, calls, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _prepare(self, plan: HostPlan) -> Mapping[str, Callable[..., Any]]:
        network = None
        if plan.namespaces:
            network = Network([node.name for node in plan.nodes], Path(plan.folder))
            for node in plan.nodes:
                address = network.nodes[node.name].address
                for descriptor, port in node.relays.items():
                    relay = Relay(socket.socket(fileno=descriptor), address, port)
                    await relay.serve()
                    self._relays.append(relay)
        self._cluster = Cluster(plan, network)
        return self._cluster.calls()

    async def _answer(
        self, call: Call, calls: Mapping[str, Callable[..., Any]], writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            value = await loop.run_in_executor(self._pool, calls[call.method], *call.arguments)
            answer = Answer(call.number, value)
        except (CannotError, OSError) as error:
            answer = Answer(call.number, problem=str(error))
        except Exception as error:  # noqa: BLE001 - the harness waits for an answer whatever it is
            traceback.print_exception(error)
            answer = Answer(call.number, problem=f"defect: {error!r}")
        writer.write(encoded(answer))


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return await reader.readexactly(length)


def isolate() -> None:
    """Enter fresh namespaces in which this process may do all that the cluster needs.

    Root keeps its own user: in a user namespace it could not write files of other owners.
    """
    flags = kernel.CLONE_NEWNET | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID
    try:
        kernel.unshare(flags)
    except PermissionError:
        kernel.become_root_of_a_user_namespace()
        kernel.unshare(flags)


def _refusal(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        reason = "the limits /proc/sys/user/max_*_namespaces are used up or 0"
    return f"the kernel refuses namespaces ({reason})"


def within_namespaces(body: Callable[[], int]) -> int:
    """Run the body as the first process of fresh namespaces; its exit code.

    Raises:
        OSError: the kernel refuses.
    """
    isolate()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return abs(os.waitstatus_to_exitcode(status))
    # When this first process ends, the kernel ends all others in its namespace.
    kernel.die_with_parent(signal.SIGKILL)
    code = 1
    try:
        kernel.keep_mounts_private()
        kernel.mount_processes()
        code = body()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def trial() -> int:
    """Make the namespaces of one node, and print what came of it."""

    def body() -> int:
        with tempfile.TemporaryDirectory() as folder:
            try:
                network = Network(["n1"], Path(folder))
                found = {"firewall": network.firewall, "links": _means(network)}
            except (CannotError, OSError) as error:
                found = {"problem": str(error)}
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        return 0

    try:
        return within_namespaces(body)
    except OSError as error:
        sys.stdout.buffer.write(msgspec.json.encode({"problem": _refusal(error)}) + b"\n")
        return 0


def _means(network: Network) -> str:
    """Words of what the kernel can do to links; none where the tool for it does not run."""
    try:
        return " ".join(json.loads(network.nodes["n1"].run_tool(["links.py", "means"])))
    except CannotError:
        return ""


def serve(control: int, harness: int) -> int:
    """Hold the cluster that the harness will describe."""
    import uvloop

    kernel.adopt_orphans()
    # A keyboard interrupt is the harness' business: it still wants to collect.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    host = Host(socket.socket(fileno=control))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(host.serve(harness))
    return 0


def main(arguments: list[str]) -> int:
    """Hold a cluster, or try whether namespaces can be had."""
    match arguments:
        case ["trial"]:
            return trial()
        case ["namespaces" | "processes" as mode, control, harness] if (
            control.isdecimal() and harness.isdecimal()
        ):
            pass
        case _:
            sys.stderr.write(__doc__ or "")
            return 64
    # Opened out here: in a process namespace of its own the harness has no number.
    watched = os.pidfd_open(int(harness))
    if mode == "namespaces":
        return within_namespaces(lambda: serve(int(control), watched))
    return serve(int(control), watched)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
