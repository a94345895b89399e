"""Runs one node: a Redis server and a Sentinel side by side, which live and die together.

``run_node.py CONFIG_FOLDER DATA_FOLDER``. At the first start the configuration files are copied to
the data folder; from then on the copies count, because Redis and Sentinel rewrite them: who is
whose replica, and the configuration epochs, must outlive a restart. At the first start the Sentinel
also waits for all servers to listen: it would take those that are late for failed, and begin a
cluster's life with a failover. Ends with exit code 1 and a sentence when either program ends by
itself, with 0 when told to stop.

The deployment copies this file into each node's configuration folder, so it uses the standard
library alone and must never import another module of the project.
"""

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

SERVER_FILE = "redis.conf"
SENTINEL_FILE = "sentinel.conf"
#: Program to the configuration file that it reads.
PROGRAMS = {"redis-server": SERVER_FILE, "redis-sentinel": SENTINEL_FILE}

#: After that the Sentinel is started whoever is missing: it is its business to find out.
_FIRST_START_PATIENCE_S = 20.0
_CONNECT_TIMEOUT_S = 1.0
_LOOK_INTERVAL_S = 0.05
_STOP_PATIENCE_S = 10.0
_PR_SET_PDEATHSIG = 1
#: Blocked but where they are waited for: a handler runs between two steps of Python only, so that
#: a signal just before a wait for children would not end that wait.
_TOLD_TO_STOP = {signal.SIGTERM, signal.SIGINT}
_AWAITED = {*_TOLD_TO_STOP, signal.SIGCHLD}


class Stopped(Exception):
    """The node was told to stop."""


def put_configuration(config: Path, data: Path) -> bool:
    """Copy what is not in the data folder yet; whether this is the node's first start.

    A copy there is whole, also after a crash.
    """
    data.mkdir(parents=True, exist_ok=True)
    missing = [name for name in PROGRAMS.values() if not (data / name).exists()]
    for name in missing:
        unfinished = data / f"{name}.unfinished"
        with unfinished.open("wb") as file:
            file.write((config / name).read_bytes())
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(data / name)
    folder = os.open(data, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return bool(missing)


def servers_named_in(configuration: str) -> list[tuple[str, int]]:
    """Host and port of every server that a Sentinel's configuration names."""
    found: list[tuple[str, int]] = []
    for line in configuration.splitlines():
        words = line.split()
        if words[:2] in (["sentinel", "monitor"], ["sentinel", "known-replica"]):
            found.append((words[3], int(words[4])))
    return found


class Node:
    """The two programs of one node."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, *, first_start: bool) -> int:
        """Start both programs and wait for the first that ends; returns the node's exit code."""
        try:
            self._start("redis-server")
            if first_start:
                self._await_servers()
            self._start("redis-sentinel")
            while (ended := self._ended()) is None:
                if signal.sigwait(_AWAITED) in _TOLD_TO_STOP:
                    return 0
                self._bury_strangers()
            return _report(f"{ended} ended by itself with code {self._processes[ended].returncode}")
        except FileNotFoundError as error:
            return _report(f"the program {error.filename} is not installed")
        except ChildProcessError:
            return _report("both programs ended by themselves")
        except Stopped:
            return 0
        finally:
            self._stop()

    def _start(self, program: str) -> None:
        command = [program, str(self._data / PROGRAMS[program])]
        self._processes[program] = subprocess.Popen(
            command,
            preexec_fn=_begin_program,  # noqa: PLW1509 - two system calls, no lock
        )

    def _ended(self) -> str | None:
        for program, process in self._processes.items():
            if process.poll() is not None:
                return program
        return None

    def _bury_strangers(self) -> None:
        """Reap others' orphans, which are children where this is a container's first process."""
        own = {process.pid for process in self._processes.values()}
        look = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while (dead := os.waitid(os.P_ALL, 0, look)) is not None and dead.si_pid not in own:
            os.waitpid(dead.si_pid, 0)

    def _await_servers(self) -> None:
        """Return when every server listens, the own one has ended, or patience has."""
        missing = servers_named_in((self._data / SENTINEL_FILE).read_text())
        deadline = time.monotonic() + _FIRST_START_PATIENCE_S
        while missing and self._ended() is None and time.monotonic() < deadline:
            if signal.sigpending() & _TOLD_TO_STOP:
                raise Stopped
            missing = [address for address in missing if not _listens(address)]
            if missing:
                # A sleep until a moment of the monotonic clock is refused (EINVAL) under a library
                # that gives programs another wall clock; a wait for nothing is not.
                select.select([], [], [], _LOOK_INTERVAL_S)

    def _stop(self) -> None:
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(_STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _report(sentence: str) -> int:
    """Tell why the node ends; its exit code."""
    sys.stderr.write(f"{sentence}\n")
    return 1


def _begin_program() -> None:
    """In the child: signals as usual, and SIGKILL when the node's first process dies."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Put the configuration into place and run."""
    if len(arguments) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 64
    config, data = (Path(argument) for argument in arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    try:
        first_start = put_configuration(config, data)
    except OSError as error:
        return _report(f"the configuration cannot be put into {data}: {error}")
    return Node(data).run(first_start=first_start)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
