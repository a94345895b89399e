"""Runtimes by name; the one place that knows which there are.

To add one, give :data:`_RUNTIMES` an entry: how to make one, what its watchdog does when a harness
died, and what ``splitbrain clean`` does. Each is imported when it is asked for, never before.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from contracts.errors import CapabilityError, HarnessError, UsageError
from contracts.names import RunId
from contracts.runtime import Runtime
from runtimes.dead_runs import Sweep, Swept


def _docker() -> Runtime:
    from runtimes.docker.runtime import DockerRuntime

    return DockerRuntime()


def _docker_stopper() -> Callable[[RunId, Path], None]:
    from runtimes.docker.watchdog import stop_run

    return stop_run


def _docker_sweep(lock: Path | None) -> list[Swept]:
    from runtimes.docker.sweep import sweep_engine

    return sweep_engine(lock)


def _local() -> Runtime:
    from runtimes.local.runtime import LocalRuntime

    return LocalRuntime()


def _local_stopper() -> Callable[[RunId, Path], None]:
    from runtimes.local.sweep import stop_run

    return stop_run


def _local_sweep(lock: Path | None) -> list[Swept]:
    from runtimes.local.sweep import sweep_machine

    return sweep_machine(lock)


class _Entry(msgspec.Struct, frozen=True):
    """What there is to know of one runtime."""

    make: Callable[[], Runtime]
    #: Gives what heals and stops one run's nodes, by the run's id and folder.
    stopper: Callable[[], Callable[[RunId, Path], None]]
    #: Removes what dead runs left, evidence saved first; of one alone, given its lock file.
    sweep: Callable[[Path | None], list[Swept]]


_RUNTIMES: Mapping[str, _Entry] = {
    "docker": _Entry(_docker, _docker_stopper, _docker_sweep),
    "local": _Entry(_local, _local_stopper, _local_sweep),
}

#: Names that plans may one day bear, and what to use until then.
_NOT_YET = {"simulated": "a virtual clock, network and disk"}


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
    if name in _NOT_YET and name not in _RUNTIMES:
        raise CapabilityError(
            f"run in the runtime {name!r}",
            _NOT_YET[name],
            "this version does not have it yet",
            "Use --runtime docker or --runtime local; `splitbrain doctor` says what works here",
        )
    return _entry(name).make()


def stopper(name: str) -> Callable[[RunId, Path], None]:
    """What heals and stops one run's nodes when its harness is dead, by the run's id and folder.

    Raises:
        UsageError: there is no runtime of that name.
    """
    return _entry(name).stopper()


def sweep_all(lock: Path | None = None) -> list[Sweep]:
    """Remove what dead runs left in every runtime; one that cannot look is told, not raised.

    The nodes' output and data are first saved into the run folders that still exist.

    Args:
        lock: of the only run to be swept; None: all that are dead.
    """
    sweeps: list[Sweep] = []
    for name in runtime_names():
        try:
            sweeps.append(Sweep(name, tuple(_RUNTIMES[name].sweep(lock))))
        except HarnessError as error:
            sweeps.append(Sweep(name, skipped=str(error)))
    return sweeps


def _entry(name: str) -> _Entry:
    entry = _RUNTIMES.get(name)
    if entry is None:
        raise UsageError(
            f"there is no runtime {name!r}", f"Choose one of: {', '.join(runtime_names())}"
        )
    return entry
