"""Whether nodes can have disks of their own here, found by doing it once with a small disk.

Nothing is guessed from versions. Where the pods' image is not built yet there is nothing to try it
in: then the engine's own words decide, and the deployment refuses what they promised too much.
"""

import functools
from contextlib import suppress
from typing import Any

import docker.errors
from docker import DockerClient

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import DISK_CAPABILITIES, Capability
from splitbrain.runtimes.docker.disk_keeper import RIGHTS, ask
from splitbrain.runtimes.docker.engine import connect, engine_action
from splitbrain.runtimes.docker.images import POD, Images

_FOLDER = "/disks/probe"


def disk_capabilities(client: DockerClient) -> frozenset[Capability]:
    """All of them, or none."""
    return frozenset() if why_no_disks(client) else DISK_CAPABILITIES


def why_no_disks(client: DockerClient | None = None) -> str:
    """One clause, empty where nodes can have disks of their own; tried once for each engine.

    Raises:
        HarnessError: no engine answers.
    """
    engine = client if client is not None else connect()
    handles: Any = engine
    try:
        with engine_action("ask the engine what it can do", "docker"):
            said = handles.info()
            options: list[str] = said.get("SecurityOptions") or []
            if any("rootless" in option for option in options):
                return "this engine runs without root"
            tag = Images(engine).tags(())[POD.name]
            if not Images(engine).is_there(tag):
                return ""
            return _trial(str(said.get("ID")), tag)
    finally:
        if client is None:
            engine.close()


@functools.cache
def _trial(engine: str, image: str) -> str:
    """Why a disk cannot be made in a container of this image; tried with one that is thrown away.

    Should this process die meanwhile, the container ends by itself.
    """
    del engine
    client: Any = connect()
    container: Any = None
    try:
        container = client.containers.run(
            image,
            entrypoint=["sleep", "60"],
            detach=True,
            network_mode="none",
            auto_remove=True,
            tmpfs={_FOLDER: ""},
            **RIGHTS,
        )
        problem: str = ask(container, _FOLDER, "try a disk", "probe")
    except docker.errors.APIError as error:
        problem = f"the engine refuses the rights to mount ({error.explanation})"
    except HarnessError as error:
        problem = error.problem
    finally:
        with suppress(docker.errors.APIError):
            if container is not None:
                container.kill()
        client.close()
    return problem
