"""The connection to the container engine, and what its refusals mean to a user.

``python -m splitbrain.runtimes.docker.engine`` says whether an engine answers (exit code 0) or why
not (3); ``docker/engine.sh`` asks it, so that scripts and runs look for the engine in the same
place. It never starts or installs one.
"""

import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager

import docker
import docker.errors
import requests.exceptions
from docker import DockerClient

from splitbrain.contracts.errors import HarnessError

#: Every call to the engine is answered within this time or has failed; engines under load take
#: seconds to remove a container, never a minute.
ENGINE_TIMEOUT_S = 60

#: Threads that may talk to the engine at once.
_THREADS_AT_ONCE = 32
_USUAL_SOCKET = "unix:///var/run/docker.sock"

#: Texts of the library's messages, and their meaning to a user; the first that fits.
_SIGNS = (
    ("Read timed out", "it takes the connection and does not answer"),
    ("RemoteDisconnected", "it hangs up instead of answering"),
    ("BadStatusLine", "what answers there is no engine"),
    ("Expecting value", "what answers there is no engine"),
    ("404 Client Error", "what answers there is no engine"),
    ("list indices", "what answers there is no engine"),
    ("Connection refused", "nobody answers at the address in DOCKER_HOST"),
    ("Invalid bind", "DOCKER_HOST is no address such as unix:///var/run/docker.sock"),
    ("TLSParameterError", "the certificates that DOCKER_CERT_PATH names cannot be used"),
    ("InvalidVersion", "it is older than the oldest that can be talked to"),
    ("500 Server Error", "it answers that it has failed itself"),
)

_GET_ENGINE = (
    "Start the engine or point DOCKER_HOST to one; `make engine` says how to get one on this "
    "machine"
)


def connect() -> DockerClient:
    """A client of the engine that the environment names (``DOCKER_HOST``, else the local socket).

    Raises:
        HarnessError: no engine answers there, or it is not permitted to this user.
    """
    client: DockerClient | None = None
    try:
        _knock(os.environ.get("DOCKER_HOST") or _USUAL_SOCKET)
        client = docker.from_env(timeout=ENGINE_TIMEOUT_S, max_pool_size=_THREADS_AT_ONCE)
        client.ping()
    except (OSError, docker.errors.DockerException, requests.exceptions.RequestException) as error:
        if client is not None:
            client.close()
        raise HarnessError(
            "talk to the container engine", "docker", _why_unreachable(error), _GET_ENGINE
        ) from error
    return client


def _knock(host: str) -> None:
    """Open and close a connection where the engine listens on a socket of this machine.

    The library leaves its own socket open when nobody listens, and tells less.
    """
    scheme, _, path = host.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocker:
            knocker.settimeout(ENGINE_TIMEOUT_S)
            knocker.connect(path)


def _why_unreachable(error: Exception) -> str:
    """One clause; the library wraps what the operating system said in texts of its own."""
    text = f"{type(error).__name__} {error}"
    if "PermissionError" in text:
        return "this user may not use its socket"
    if "FileNotFoundError" in text:
        return "there is no engine's socket on this machine"
    if "ConnectionRefusedError" in text:
        return "its socket is there but nobody answers"
    for sign, meaning in _SIGNS:
        if sign in text:
            return meaning
    # The library's words before the reason tell users nothing.
    return str(error).removeprefix("Error while fetching server API version: ").rstrip(".")


@contextmanager
def engine_action(action: str, target: str) -> Generator[None]:
    """Turn any exception of the library or its transport into a HarnessError for users."""
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise HarnessError(
            action,
            target,
            "its image is not in the engine",
            "Run `make images`; one of your own is fetched with `docker pull`",
        ) from error
    except docker.errors.NotFound as error:
        raise HarnessError(
            action,
            target,
            f"it is gone from the engine ({error.explanation})",
            "Something outside this run removed it; start the run again",
        ) from error
    except docker.errors.APIError as error:
        raise HarnessError(action, target, _explain(error), _next_step(error)) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise HarnessError(action, target, _why_unreachable(error), _GET_ENGINE) from error


def _explain(error: docker.errors.APIError) -> str:
    return str(error.explanation or error).strip().rstrip(".")


def _next_step(error: docker.errors.APIError) -> str:
    text = _explain(error)
    if "already in use" in text and "name" in text:
        return "Another run has the same id, or a dead one left it: run `splitbrain clean`"
    if "port is already allocated" in text or "address already in use" in text:
        return "Another program took the port meanwhile: start the run again, ports are drawn anew"
    if "no space left" in text:
        return "Free disk space where the engine keeps its data"
    return "The engine's own log says more"


def main() -> int:
    """Say whether an engine answers; ``--quiet`` says nothing."""
    quiet = "--quiet" in sys.argv[1:]
    try:
        client = connect()
    except HarnessError as error:
        if not quiet:
            print(error, file=sys.stderr)
        return error.exit_code
    with_version = client.version()
    client.close()
    if not quiet:
        print(f"engine {with_version['Version']} on {with_version['Os']}/{with_version['Arch']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
