"""Runtimes by name; the one place that knows which there are."""

from collections.abc import Callable, Mapping

from contracts.errors import CapabilityError, UsageError
from contracts.runtime import Runtime


def _docker() -> Runtime:
    from runtimes.docker.runtime import DockerRuntime

    return DockerRuntime()


_RUNTIMES: Mapping[str, Callable[[], Runtime]] = {"docker": _docker}

#: Names that plans may one day bear, and what to use until then.
_NOT_YET = {
    "local": "namespaces and plain processes without an engine",
    "simulated": "a virtual clock, network and disk",
}


def runtime_names() -> list[str]:
    """Names that :func:`runtime` takes, sorted."""
    return sorted(_RUNTIMES)


def runtime(name: str) -> Runtime:
    """A fresh runtime, ready to deploy one cluster.

    Raises:
        UsageError: there is no runtime of that name.
        CapabilityError: it is not available yet.
        HarnessError: what it needs (an engine) does not answer.
    """
    make = _RUNTIMES.get(name)
    if make is not None:
        return make()
    if name in _NOT_YET:
        raise CapabilityError(
            f"run in the runtime {name!r}",
            _NOT_YET[name],
            "this version does not have it yet",
            "Use --runtime docker; `make engine` says how to get an engine on this machine",
        )
    raise UsageError(
        f"there is no runtime {name!r}", f"Choose one of: {', '.join(runtime_names())}"
    )
