"""Starts one node's program and stands above it: the parent of all of the node's processes.

It puts the program into its namespaces where there are some, tells its exit code by its own, and
ends whatever else of the node still runs when the program ends: a node is one thing. It dies with
the host above it, and takes the node along. It must never outlive its node.

Usage: ``python -m splitbrain.runtimes.local.keeper REPORT GROUPS HOST_NAME HOSTS_FILE NETWORK
PROGRAM...``. ``REPORT`` is a descriptor to which it writes nothing if the program was started, and
else one line that says why not; it is closed then. ``GROUPS`` are the folders of the control groups
that the program enters, one per line, or ``-``. ``NETWORK`` is the descriptor of a network
namespace, or ``-``: then the program gets no namespace at all. The exit code is the program's, 128
and the signal's number where a signal ended it, as shells have it.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from splitbrain.runtimes.local import kernel
from splitbrain.runtimes.local.process_table import descendants

_SIGNAL_BASE = 128
_NOT_STARTED = 127


def main(arguments: Sequence[str]) -> int:
    """Start, wait, clear up."""
    match arguments:
        case [report, groups, host_name, hosts, network, *command] if (
            report.isdecimal() and command
        ):
            entered = [] if groups == "-" else groups.splitlines()
        case _:
            sys.stderr.write(__doc__ or "")
            return 64
    kernel.adopt_orphans()
    # Not SIGKILL: what the node itself has started would stay.
    signal.signal(signal.SIGTERM, _end)
    kernel.die_with_parent(signal.SIGTERM)
    pipe = int(report)
    os.set_inheritable(pipe, False)
    try:
        if network != "-":
            _isolate(int(network), host_name)
        child = os.fork()
        if child == 0:
            own_hosts = Path(hosts) if network != "-" else None
            _become(list(command), pipe, own_hosts, entered)
    except OSError as error:
        os.write(pipe, f"{error}\n".encode())
        return _NOT_STARTED
    os.close(pipe)
    code = _await(child)
    _end_descendants()
    return code


def _isolate(network: int, host_name: str) -> None:
    os.set_inheritable(network, False)
    kernel.enter(network, kernel.CLONE_NEWNET)
    kernel.unshare(kernel.CLONE_NEWUTS | kernel.CLONE_NEWPID)
    socket.sethostname(host_name)


def _become(command: list[str], pipe: int, hosts: Path | None, groups: list[str]) -> NoReturn:
    """In the child: the program itself."""
    try:
        os.setsid()
        for group in groups:
            (Path(group) / "cgroup.procs").write_text("0")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        kernel.die_with_parent(signal.SIGKILL)
        if hosts is not None:
            # Only here: the keeper itself goes on seeing the processes around it.
            kernel.unshare(kernel.CLONE_NEWNS)
            kernel.keep_mounts_private()
            kernel.bind(hosts, Path("/etc/hosts"))
            kernel.mount_processes()
            kernel.mount_shared_memory()
        os.execvp(command[0], command)  # noqa: S606 - the node's own command, no shell
    except OSError as error:
        os.write(pipe, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_STARTED)


def _await(child: int) -> int:
    """Wait for the program, and reap what it left to us meanwhile; its exit code."""
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _SIGNAL_BASE - code


def _end_descendants() -> None:
    while members := descendants(os.getpid()):
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.wait()


def _end(*_: object) -> NoReturn:
    _end_descendants()
    os._exit(_SIGNAL_BASE + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
