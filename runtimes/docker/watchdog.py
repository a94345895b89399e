"""A process of its own that heals and stops a run's nodes when its harness dies.

It is started beside every run and waits for one of two things: the word ``done`` on its standard
input, which says that the run ended in order, or the death of its owner. On death it removes every
firewall rule, thaws and kills the run's nodes, and leaves everything else as evidence for
``splitbrain check`` and ``splitbrain clean``.

It must never act while its owner lives, and never on another run.

Usage: ``python -m runtimes.docker.watchdog RUN_ID OWNER_PROCESS``. Exit codes: 0 the run ended in
order, 1 its nodes were stopped, 3 the engine refused, 64 bad usage.
"""

import os
import selectors
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker.errors
from docker import DockerClient

from contracts.errors import HarnessError
from contracts.names import RunId
from runtimes.docker.engine import connect, engine_action
from runtimes.docker.names import ROLE_LABEL, RUN_LABEL

#: What the owner writes when the run ended in order.
DONE = b"done\n"

_READ_BYTES = 64


def owner_died(owner: int, words: int) -> bool:
    """Wait for the owner's word or death; whether it died without the word.

    Args:
        owner: process id of the harness.
        words: file descriptor on which it may say ``done``.
    """
    try:
        process = os.pidfd_open(owner)
    except ProcessLookupError:
        return True
    selector = selectors.DefaultSelector()
    with selector:
        selector.register(words, selectors.EVENT_READ)
        # Pipes may be inherited by other children of the owner, who then keep them open: so its
        # death is also watched directly.
        selector.register(process, selectors.EVENT_READ)
        try:
            ready = {key.fd for key, _ in selector.select()}
            if words in ready or process in ready:
                os.set_blocking(words, False)
                with suppress(BlockingIOError):
                    return os.read(words, _READ_BYTES) != DONE
            return True
        finally:
            os.close(process)


def stop_nodes(client: DockerClient, run_id: RunId) -> None:
    """Heal the run's network, thaw and kill its nodes; removes nothing.

    Raises:
        HarnessError: the engine does not answer.
    """
    containers: Any = client.containers
    mine = f"{RUN_LABEL}={run_id}"
    with engine_action("stop the nodes of a dead run", run_id):
        for pod in containers.list(filters={"label": [mine, f"{ROLE_LABEL}=pod"]}):
            with suppress(docker.errors.APIError):
                pod.exec_run(["/opt/splitbrain/firewall.sh", "heal"])
        for node in containers.list(filters={"label": [mine, f"{ROLE_LABEL}=node"]}):
            with suppress(docker.errors.APIError):
                node.kill("SIGKILL")


class Watchdog:
    """The owner's end: starts the process, and dismisses it when the run ends in order."""

    def __init__(self, run_id: RunId, log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "runtimes.docker.watchdog", run_id, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                # A keyboard interrupt of the harness must not reach it.
                start_new_session=True,
            )

    @property
    def process_id(self) -> int:
        """Of the watching process."""
        return self._process.pid

    def dismiss(self, patience_s: float = 5.0) -> None:
        """Say that the run ended in order. Safe to call twice."""
        words = self._process.stdin
        if words is not None and not words.closed:
            with suppress(BrokenPipeError):
                words.write(DONE)
                words.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(arguments: list[str], connected: Callable[[], DockerClient] = connect) -> int:
    """Watch, and act if the owner dies."""
    match arguments:
        case [run_id, owner]:
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 64
    if not owner_died(int(owner), sys.stdin.fileno()):
        return 0
    print(f"the harness of {run_id} is gone; healing and stopping its nodes", flush=True)
    try:
        client = connected()
        stop_nodes(client, RunId(run_id))
        client.close()
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
