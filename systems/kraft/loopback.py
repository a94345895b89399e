"""Node processes on this machine's loopback interface: for benchmarks and integration tests.

The simplest thing that can be called a runtime: start, kill, pause; it cannot cut links. Processes
are ended with the object, and are told by the kernel to die with their parent. Must never be taken
for a place where partitions or power cuts are tested.
"""

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

from contracts.errors import HarnessError
from contracts.names import NodeName
from contracts.runtime import Address, DeploymentSpec, NodeSpec, NodeStatus
from history.run_folder import RunFolder
from systems.kraft.layout import Placement

_HOST: Final = "127.0.0.1"
_PR_SET_PDEATHSIG: Final = 1
_PATIENCE_S: Final = 10.0
#: Below the range from which the kernel takes ports for outgoing connections, so that no other
#: connection takes the port of a node that is down.
_PORTS: Final = range(20_000, 32_000)
#: Ports given to nodes of this process, which may be down at the moment.
_GIVEN_OUT: Final[set[int]] = set()


def loopback_layout(node: NodeName, host_folder: Path) -> Placement:
    """Free ports of this moment, and folders below the node's folder in the run folder."""
    del node
    client_port, peer_port = _free_ports(2)
    return Placement(
        listen_host=_HOST,
        peer_host=_HOST,
        client_port=client_port,
        peer_port=peer_port,
        config_path=str(host_folder / "config"),
        state_path=str(host_folder / "state"),
        data_path=str(host_folder / "data"),
        python=sys.executable,
    )


class LoopbackCluster:
    """Runs the nodes of a deployment as plain processes; a context manager that ends them."""

    def __init__(self, spec: DeploymentSpec, working_folder: Path) -> None:
        """Starts nothing yet; the nodes' program is found from ``working_folder``."""
        self._specs: dict[NodeName, NodeSpec] = {node.name: node for node in spec.nodes}
        self._folder = RunFolder(spec.run_folder)
        self._working_folder = working_folder
        self._processes: dict[NodeName, subprocess.Popen[bytes]] = {}
        # The kernel takes the thread that started a process for its parent: when that thread ends,
        # the process dies. So one thread starts them all, and lives as long as they do.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="starter")

    def __enter__(self) -> Self:
        for node in self._specs:
            self.start(node)
        return self

    def __exit__(self, *_: object) -> None:
        self.teardown()

    def nodes(self) -> Sequence[NodeName]:
        """Names, in the order of the deployment."""
        return tuple(self._specs)

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Where the named port of a node is."""
        return Address(_HOST, self._specs[node].ports[port])

    def start(self, node: NodeName) -> None:
        """Start a node that does not run; its output is appended to ``output.log``."""
        if self.status(node) in {"running", "paused"}:
            return
        self._processes[node] = self._starter.submit(self._start, self._specs[node]).result()

    def _start(self, spec: NodeSpec) -> subprocess.Popen[bytes]:
        with (self._folder.node(spec.name) / "output.log").open("ab") as output:
            return subprocess.Popen(
                spec.command,
                cwd=self._working_folder,
                env={**os.environ, **spec.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, no lock
            )

    def kill(self, node: NodeName) -> None:
        """SIGKILL; returns when the process is gone."""
        self._processes[node].kill()
        self._processes[node].wait()

    def terminate(self, node: NodeName) -> int:
        """SIGTERM, as an operator stops a node; its exit code.

        Raises:
            HarnessError: it did not end in time; it is killed.
        """
        process = self._processes[node]
        process.terminate()
        try:
            return process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            self.kill(node)
            raise HarnessError(
                "stop a node", str(node), f"it ran on for {_PATIENCE_S:g} s", "Look at its output."
            ) from error

    def pause(self, node: NodeName) -> None:
        """Freeze the process."""
        self._processes[node].send_signal(signal.SIGSTOP)

    def resume(self, node: NodeName) -> None:
        """Let it go on."""
        self._processes[node].send_signal(signal.SIGCONT)

    def status(self, node: NodeName) -> NodeStatus:
        """What the process is doing."""
        process = self._processes.get(node)
        if process is None:
            return "missing"
        if process.poll() is not None:
            return "exited"
        return "paused" if _state_letter(process.pid) == "T" else "running"

    def exit_code(self, node: NodeName) -> int | None:
        """Exit code of the last incarnation, None while it runs."""
        process = self._processes.get(node)
        return None if process is None else process.poll()

    def resident_bytes(self, node: NodeName) -> int:
        """Memory of the process that is in RAM."""
        text = Path(f"/proc/{self._processes[node].pid}/status").read_text()
        (line,) = [line for line in text.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024

    def cpu_seconds(self, node: NodeName) -> float:
        """Processor time that the process has used."""
        fields = Path(f"/proc/{self._processes[node].pid}/stat").read_text().rpartition(")")[2]
        ticks = sum(int(field) for field in fields.split()[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def log_tail(self, node: NodeName, lines: int) -> str:
        """Last lines that the node printed."""
        path = self._folder.node(node) / "output.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])

    def teardown(self) -> None:
        """Kill what still runs."""
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self._starter.shutdown()


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, and that this process has not given out before."""
    found: list[int] = []
    while len(found) < count:
        port = secrets.choice(_PORTS)
        if port in _GIVEN_OUT:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
        _GIVEN_OUT.add(port)
        found.append(port)
    return found


def _die_with_parent() -> None:
    """In the child: SIGKILL when the thread that started it ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _state_letter(pid: int) -> str:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0]
