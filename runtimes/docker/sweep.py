"""Removing what dead runs left in the engine: containers, networks, volumes with our labels."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker.errors
from docker import DockerClient
from docker.models.containers import Container
from tenacity import Retrying, retry_if_not_result, stop_after_delay

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.history.border import refuse_foreign_entries
from splitbrain.history.run_folder import RunFolder, is_plain_name
from splitbrain.runtimes.dead_runs import Swept, claimed
from splitbrain.runtimes.docker import archives
from splitbrain.runtimes.docker.disk_keeper import release_run
from splitbrain.runtimes.docker.engine import connect, engine_action
from splitbrain.runtimes.docker.names import (
    DATA_LABEL,
    NODE_LABEL,
    ROLE_LABEL,
    RUN_LABEL,
    RunMark,
    mark_of_labels,
)
from splitbrain.runtimes.waiting import on_all

#: A loaded engine may still be making what a dead harness asked for, or be removing it for another
#: sweep.
_REMOVAL_PATIENCE_S = 20.0
_REMOVAL_INTERVAL_S = 0.2
#: Requests of a harness that was killed arrive within this time.
_SETTLING_S = 0.5
#: How long ``splitbrain clean`` waits for another sweep to end with a dead run.
_OTHER_SWEEP_PATIENCE_S = 120.0


def sweep_engine(lock: Path | None = None) -> list[Swept]:
    """Sweep the engine that the environment names; waits for other sweeps."""
    client = connect()
    try:
        return sweep(client, lock=lock, patience_s=_OTHER_SWEEP_PATIENCE_S)
    finally:
        client.close()


def runs(client: DockerClient) -> list[RunMark]:
    """Runs that have anything in the engine, living ones too, sorted."""
    api: Any = client.api
    marked = {"label": RUN_LABEL}
    with engine_action("list what runs left", "docker"):
        things: list[dict[str, Any]] = [
            *api.containers(all=True, filters=marked),
            *api.networks(filters=marked),
            *(api.volumes(filters=marked).get("Volumes") or []),
        ]
    return sorted({mark_of_labels(thing["Labels"]) for thing in things})


def sweep(
    client: DockerClient, *, lock: Path | None = None, patience_s: float = 0.0
) -> list[Swept]:
    """Remove what dead runs left, and nothing else; with a lock, of its run alone.

    The nodes' output and data are first copied into the run folder, where it still exists and has
    none. With patience it waits for another sweep that is at the same dead run.
    """
    swept: list[Swept] = []
    for mark in runs(client):
        held = Path(mark.lock)
        if lock is not None and held != lock.resolve():
            continue
        with claimed(held, mark.owner, patience_s) as dead:
            if not dead:
                continue
            try:
                if held.parent.is_dir():
                    _salvage(client, mark)
                swept.append(Swept(mark.run_id, held, remove_run(client, mark, _SETTLING_S)))
            except HarnessError as error:
                # A dead run's rest must not keep a new one from starting.
                swept.append(Swept(mark.run_id, held, {}, problem=str(error)))
    return swept


def remove_run(client: DockerClient, mark: RunMark, settling_s: float = 0.0) -> dict[str, int]:
    """Remove everything that is the run's; kind of thing to how many. Safe to call twice.

    For ``settling_s`` nothing more must have come after a removal.

    Raises:
        HarnessError: the engine refuses to remove something that is still there.
    """
    removed: dict[str, set[str]] = {"containers": set(), "networks": set(), "volumes": set()}
    refusals: list[docker.errors.APIError] = []

    def is_all_gone() -> bool:
        refusals.clear()
        found = _remove_once(client, mark, refusals)
        for kind, identifiers in found.items():
            removed[kind].update(identifiers)
        return not any(found.values())

    def give_up(_: object) -> bool:
        if refusals:
            raise refusals[0]
        return False

    with engine_action("remove what a run made", mark.run_id):
        Retrying(
            retry=retry_if_not_result(bool),
            stop=stop_after_delay(_REMOVAL_PATIENCE_S),
            # A refusal wants time; a removal wants one more look.
            wait=lambda _: max(settling_s, _REMOVAL_INTERVAL_S if refusals else 0.0),
            retry_error_callback=give_up,
        )(is_all_gone)
    return {kind: len(identifiers) for kind, identifiers in removed.items()}


def _remove_once(
    client: DockerClient, mark: RunMark, refusals: list[docker.errors.APIError]
) -> dict[str, list[str]]:
    """Try to remove what is there now; by kind, what that was."""
    api: Any = client.api
    filters = mark.filters()
    containers: list[dict[str, Any]] = api.containers(all=True, filters=filters)

    def of_role(*roles: str) -> list[str]:
        return [c["Id"] for c in containers if c["Labels"].get(ROLE_LABEL, "node") in roles]

    # Nodes before the pods whose network they share, and before the container that holds their
    # disks: while one of those is frozen, nobody who writes to it can end.
    nodes, pods, disks = of_role("node"), of_role("pod"), of_role("disks")
    if disks:
        release_run(client, mark, nodes_are_down=False)
    for group in (nodes, pods, disks):
        _each(
            lambda identifier: api.remove_container(identifier, force=True, v=True), group, refusals
        )
    networks = [network["Id"] for network in api.networks(filters=filters)]
    _each(api.remove_network, networks, refusals)
    listing: list[dict[str, Any]] = api.volumes(filters=filters).get("Volumes") or []
    volumes = [volume["Name"] for volume in listing]
    _each(api.remove_volume, volumes, refusals)
    return {"containers": nodes + pods + disks, "networks": networks, "volumes": volumes}


def _each(
    remove: Callable[[str], object],
    identifiers: Iterable[str],
    refusals: list[docker.errors.APIError],
) -> None:
    """Remove side by side; what is gone already, or going, is as good as removed."""

    def attempt(identifier: str) -> None:
        try:
            remove(identifier)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            refusals.append(error)

    on_all(identifiers, attempt)


def _salvage(client: DockerClient, mark: RunMark) -> None:
    """Copy output and data of a dead run's nodes into its folder, as far as that can be done."""
    run = RunFolder(Path(mark.lock).parent)
    refuse_foreign_entries(run.root)
    handles: Any = client.containers
    with engine_action("list a dead run's nodes", mark.run_id):
        nodes: list[Container] = handles.list(
            all=True, filters=mark.filters(f"{ROLE_LABEL}=node"), ignore_removed=True
        )
    release_run(client, mark, nodes_are_down=False)
    for container in nodes:
        with suppress(docker.errors.APIError):
            container.kill("SIGKILL")
    release_run(client, mark, nodes_are_down=True)
    for container in nodes:
        name = container.labels[NODE_LABEL]
        folder = run.node(NodeName(name))
        # A label may say anything, also what leads out of the run folder.
        if not is_plain_name(name) or (folder / archives.DATA).exists():
            continue
        # A dead run's evidence is worth an attempt; that it cannot be had must not keep its
        # containers for ever.
        with suppress(HarnessError, OSError):
            folder.mkdir(parents=True, exist_ok=True)
            archives.copy_output(container, folder)
            archives.copy_data(container, container.labels[DATA_LABEL], folder)
