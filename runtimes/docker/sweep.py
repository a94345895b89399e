"""Removing what dead runs left in the engine: containers, networks, volumes.

A run lives while somebody holds the flock of its run folder's lock file, whose path every resource
carries as a label. What lives is never touched, nor what lacks our labels.
"""

import fcntl
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker.errors
import msgspec
from docker import DockerClient
from docker.models.containers import Container

from contracts.errors import HarnessError
from contracts.names import RunId
from runtimes.docker import archives
from runtimes.docker.engine import engine_action
from runtimes.docker.names import DATA_LABEL, LOCK_LABEL, NODE_LABEL, ROLE_LABEL, RUN_LABEL

_REMOVALS_AT_ONCE = 8


class Swept(msgspec.Struct, frozen=True):
    """What was removed of one dead run."""

    run_id: RunId
    #: Its lock file; the run folder is the folder that holds it.
    lock: Path
    containers: int
    networks: int
    volumes: int
    #: Why something of it is still there; None: nothing is.
    problem: str | None = None


def is_living(lock: Path) -> bool:
    """Whether somebody holds the lock; a lock file that is gone is held by nobody.

    The look itself takes a shared lock for a moment: two lookers do not disturb each other.
    """
    try:
        file = lock.open("rb")
    except OSError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def runs(client: DockerClient) -> dict[RunId, Path]:
    """Runs that have anything in the engine, with their lock files."""
    api: Any = client.api
    marked = {"label": RUN_LABEL}
    with engine_action("list what runs left", "docker"):
        things: list[dict[str, Any]] = [
            *api.containers(all=True, filters=marked),
            *api.networks(filters=marked),
            *(api.volumes(filters=marked).get("Volumes") or []),
        ]
    found: dict[RunId, Path] = {}
    for thing in things:
        labels: dict[str, str] = thing.get("Labels") or {}
        found[RunId(labels[RUN_LABEL])] = Path(labels.get(LOCK_LABEL, "/nonexistent"))
    return found


def sweep(client: DockerClient, *, salvage: bool = True) -> list[Swept]:
    """Remove what dead runs left, and nothing else.

    Args:
        client: of the engine.
        salvage: first copy the nodes' output and data into the run folder, where it still exists
            and has none.

    Raises:
        HarnessError: the engine does not answer.
    """
    swept: list[Swept] = []
    for run_id, lock in sorted(runs(client).items()):
        if is_living(lock):
            continue
        if salvage and lock.parent.is_dir():
            _salvage(client, run_id, lock.parent)
        try:
            swept.append(remove_run(client, run_id, lock))
        except HarnessError as error:
            # Another sweep may be at it; a dead run's rest must not keep a new one from starting.
            swept.append(Swept(run_id, lock, 0, 0, 0, problem=str(error)))
    return swept


def remove_run(client: DockerClient, run_id: RunId, lock: Path) -> Swept:
    """Remove everything that carries the run's label. Safe to call twice.

    Raises:
        HarnessError: the engine refuses to remove something that is still there.
    """
    api: Any = client.api
    mine = {"label": f"{RUN_LABEL}={run_id}"}
    with engine_action("remove what a run made", run_id):
        containers: list[dict[str, Any]] = api.containers(all=True, filters=mine)
        # Nodes before the pods whose network they share.
        nodes = [c for c in containers if c["Labels"].get(ROLE_LABEL) != "pod"]
        pods = [c for c in containers if c["Labels"].get(ROLE_LABEL) == "pod"]
        for group in (nodes, pods):
            _each(
                lambda identifier: api.remove_container(identifier, force=True, v=True),
                [container["Id"] for container in group],
            )
        networks: list[dict[str, Any]] = api.networks(filters=mine)
        _each(api.remove_network, [network["Id"] for network in networks])
        volumes: list[dict[str, Any]] = api.volumes(filters=mine).get("Volumes") or []
        _each(api.remove_volume, [volume["Name"] for volume in volumes])
    return Swept(
        run_id=run_id,
        lock=lock,
        containers=len(containers),
        networks=len(networks),
        volumes=len(volumes),
    )


def _each(remove: Callable[[str], object], identifiers: Iterable[str]) -> None:
    """Remove side by side; what is gone already, or going, is as good as removed."""

    def attempt(identifier: str) -> None:
        try:
            remove(identifier)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if "already in progress" not in str(error):
                raise

    with ThreadPoolExecutor(_REMOVALS_AT_ONCE, thread_name_prefix="remove") as pool:
        list(pool.map(attempt, identifiers))


def _salvage(client: DockerClient, run_id: RunId, run_folder: Path) -> None:
    """Copy output and data of a dead run's nodes into its folder, as far as that can be done."""
    handles: Any = client.containers
    nodes: list[Container] = handles.list(
        all=True, filters={"label": [f"{RUN_LABEL}={run_id}", f"{ROLE_LABEL}=node"]}
    )
    for container in nodes:
        folder = run_folder / "nodes" / container.labels[NODE_LABEL]
        if (folder / archives.DATA).exists():
            continue
        # A dead run's evidence is worth an attempt; that it cannot be had must not keep its
        # containers for ever.
        with suppress(HarnessError, OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(docker.errors.APIError):
                container.kill("SIGKILL")
            archives.copy_output(container, folder)
            archives.copy_data(container, container.labels[DATA_LABEL], folder)
