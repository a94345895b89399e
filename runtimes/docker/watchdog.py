"""The watchdog's work in the engine when a harness died: heal and stop the run's nodes.

It removes nothing: containers and volumes are evidence until ``splitbrain clean`` has saved it.
See :mod:`runtimes.watchdog` for the process that waits for the death.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker.errors
from docker import DockerClient
from docker.models.containers import Container

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.disk_keeper import release_run
from splitbrain.runtimes.docker.engine import connect, engine_action
from splitbrain.runtimes.docker.names import ROLE_LABEL, RunMark, mark_of_run
from splitbrain.runtimes.docker.pods import CLOCK_IN_POD, TOOLS
from splitbrain.runtimes.waiting import await_true, on_all

#: Requests of the dead harness may still be under way in the engine: looks go on until
#: this many in a row found nothing to stop.
_QUIET_LOOKS = 3
_LOOK_INTERVAL_S = 0.5
_LOOKING_S_MAX = 120.0


def stop_run(run_id: RunId, run_folder: Path) -> None:
    """Heal and stop the nodes of a dead run, those that its last requests still make included.

    Raises:
        HarnessError: the engine does not answer, or nodes go on running.
    """
    client = connect()
    try:
        mark = mark_of_run(run_id, RunFolder(run_folder).lock)
        quiet = 0

        def look() -> bool:
            nonlocal quiet
            quiet = 0 if stop_nodes(client, mark) else quiet + 1
            return quiet >= _QUIET_LOOKS

        if not await_true(look, _LOOKING_S_MAX, _LOOK_INTERVAL_S):
            raise HarnessError(
                "stop the nodes of a dead run",
                run_id,
                f"some still ran after {_LOOKING_S_MAX:g} s",
                "What they wait for stands in /proc/PID/stack; `splitbrain clean` tries again",
            )
    finally:
        client.close()


def stop_nodes(client: DockerClient, mark: RunMark) -> int:
    """Heal the run's network, thaw and kill its nodes, once; how many nodes ran."""
    containers: Any = client.containers

    def running(role: str) -> list[Container]:
        filters = {**mark.filters(f"{ROLE_LABEL}={role}"), "status": ["running", "paused"]}
        found: list[Container] = containers.list(filters=filters, ignore_removed=True)
        return found

    with engine_action("stop the nodes of a dead run", mark.run_id):
        # A process that waits for a frozen disk cannot be killed.
        release_run(client, mark, nodes_are_down=False)
        nodes = running("node")
        tasks: list[Callable[[], None]] = [
            *(lambda node=node: _kill(node) for node in nodes),
            *(lambda pod=pod: _heal(pod) for pod in running("pod")),
        ]
        on_all(tasks, lambda task: task())
    return len(nodes)


def _kill(node: Container) -> None:
    # A paused one dies too. It may have exited, or be removed by a sweep, in between.
    with suppress(docker.errors.APIError):
        node.kill("SIGKILL")


def _heal(pod: Container) -> None:
    engine: Any = pod
    with suppress(docker.errors.APIError):
        engine.exec_run([f"{TOOLS}/firewall.sh", "heal"])
        # Ends what keeps a clock drifting; nothing where the node had no clock of its own.
        engine.exec_run([f"{TOOLS}/clock.py", "set", f"{CLOCK_IN_POD}/now", "0", "0"])
