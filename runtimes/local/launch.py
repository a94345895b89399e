"""The start of a cluster's host process: addresses for clients and peers, sockets, the plan."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import OUTPUT, Address, DeploymentSpec, Placement
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.local import sweep
from splitbrain.runtimes.local.control import HostLink, HostPlan, PlannedNode
from splitbrain.runtimes.local.mode import Way, program_environment
from splitbrain.runtimes.owners import this_process

#: Name of the file in a node's folder that its output is appended to.
#: Folder in the run folder that holds what the host itself needs, and its own words.
HOST_FOLDER: Final = "local"

_LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 1024
#: Addresses that are tried for a node.
_TRIES: Final = 1000

#: Where each node lives, and its folder in the run folder.
Places = Mapping[NodeName, tuple[Placement, Path]]
Endpoints = dict[tuple[NodeName, str], Address]
#: Control groups that the processes of a node enter; none of a node that is not there.
Groups = Mapping[NodeName, tuple[str, ...]]


def start_host(
    way: Way, spec: DeploymentSpec, places: Places, groups: Groups
) -> tuple[HostLink, Endpoints]:
    """Start it; the link to it, and where clients reach each port of each node."""
    folder = spec.run_folder.absolute() / HOST_FOLDER
    try:
        with ExitStack() as opened:
            folder.mkdir(parents=True, exist_ok=True)
            listeners: dict[tuple[NodeName, str], socket.socket] = {}
            endpoints: Endpoints = {}
            for node in spec.nodes:
                for port, number in node.ports.items():
                    if way == "processes":
                        host = places[node.name][0].listen_host
                        endpoints[node.name, port] = Address(host, number)
                        continue
                    # Held by the host once it runs: what is made here stays in this network.
                    listener = socket.create_server((_LOOPBACK, 0), backlog=_BACKLOG)
                    listeners[node.name, port] = opened.enter_context(listener)
                    endpoints[node.name, port] = Address(*listener.getsockname())
            our_end, host_end = socket.socketpair()
            opened.enter_context(host_end)
            descriptors = [each.fileno() for each in (host_end, *listeners.values())]
            link = HostLink(_spawn(way, spec, folder, descriptors), our_end)
            path = program_environment()["PYTHONPATH"]
            nodes = tuple(
                PlannedNode(
                    name=node.name,
                    command=node.command,
                    environment={"PYTHONPATH": path, **node.environment},
                    folder=str(places[node.name][1]),
                    output=str(places[node.name][1] / OUTPUT),
                    relays={
                        listener.fileno(): node.ports[port]
                        for (name, port), listener in listeners.items()
                        if name == node.name
                    },
                    groups=groups.get(node.name, ()),
                )
                for node in spec.nodes
            )
            link.send(HostPlan(way == "namespaces", str(folder), nodes))
            return link, endpoints
    except OSError as error:
        raise HarnessError(
            "start the process that holds the cluster",
            str(folder),
            error.strerror or str(error),
            "Make room for a process, its sockets and its folder.",
        ) from error


def _spawn(
    way: Way, spec: DeploymentSpec, folder: Path, descriptors: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Return the host, which gets these descriptors, the first of them for control."""
    marks = {
        sweep.RUN_VARIABLE: str(spec.run_id),
        # Without links: a sweep follows none.
        sweep.LOCK_VARIABLE: str(RunFolder(spec.run_folder.resolve()).lock),
        sweep.OWNER_VARIABLE: this_process().word(),
    }
    command = [sys.executable, "-P", "-m", f"{__package__}.host"]
    with (folder / "host.log").open("ab") as output:
        return subprocess.Popen(
            [*command, way, str(descriptors[0]), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=program_environment() | marks,
            pass_fds=descriptors,
            # A keyboard interrupt of the harness must not reach it.
            start_new_session=True,
        )


def take_address(ports: Iterable[int]) -> tuple[str, socket.socket]:
    """Return a loopback address on which nobody listens at these ports, and what holds it.

    All of 127.0.0.0/8 is this machine, so every node can have an address of its own and its usual
    port numbers. The holder is a socket with a name in the kernel's abstract namespace: two runs
    never get the same address, and nothing is left when a run dies.

    Raises:
        HarnessError: none was found.
    """
    wanted = list(ports)
    for _ in range(_TRIES):
        # 127.0.x.y has what people type by hand.
        second, third, fourth = (1 + secrets.randbelow(254) for _ in range(3))
        host = f"127.{second}.{third}.{fourth}"
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            holder.bind(f"\0splitbrain/{host}")
            for port in wanted:
                with socket.socket() as probe:
                    # As servers do it: what an earlier life's connections left keeps nobody away.
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((host, port))
            return host, holder
        except OSError:
            pass
        holder.close()
    raise HarnessError(
        "find an address for a node",
        "127.0.0.0/8",
        f"something listens at port {' or '.join(map(str, wanted))} on every address tried",
        "Stop it, or use --runtime docker.",
    )
