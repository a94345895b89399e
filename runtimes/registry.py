"""Runtimes by name; the one place that knows which there are.

Each is imported when it is asked for, never before. ``simulated`` has no entry: its nodes live in
the process that runs the plan, so that nothing can be started, left behind or swept.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError
from splitbrain.contracts.names import RunId
from splitbrain.contracts.runtime import (
    SIMULATED,
    SIMULATED_CAPABILITIES,
    STANDING,
    Capability,
    Runtime,
)
from splitbrain.runtimes.dead_runs import Sweep, Swept


class _Entry(msgspec.Struct, frozen=True):
    """One runtime: how it is made, stopped and swept."""

    make: Callable[[], Runtime]
    #: Heals and stops one run's nodes, by the run's id and folder.
    stop: Callable[[RunId, Path], None]
    #: Removes what dead runs left, evidence saved first; of one alone, given its lock file.
    sweep: Callable[[Path | None], list[Swept]]


def _docker() -> _Entry:
    from splitbrain.runtimes.docker.runtime import DockerRuntime
    from splitbrain.runtimes.docker.sweep import sweep_engine
    from splitbrain.runtimes.docker.watchdog import stop_run

    return _Entry(DockerRuntime, stop_run, sweep_engine)


def _local() -> _Entry:
    from splitbrain.runtimes.local.runtime import LocalRuntime
    from splitbrain.runtimes.local.sweep import stop_run, sweep_machine

    return _Entry(LocalRuntime, stop_run, sweep_machine)


def _standing() -> _Entry:
    from splitbrain.runtimes.standing import StandingRuntime

    # Nothing of its nodes is ours to stop or to remove.
    return _Entry(StandingRuntime, lambda _run_id, _folder: None, lambda _lock: [])


_RUNTIMES: Mapping[str, Callable[[], _Entry]] = {
    "docker": _docker,
    "local": _local,
    STANDING: _standing,
}


def runtime_names() -> list[str]:
    """Names that plans may bear and users may choose, sorted."""
    return sorted({*_RUNTIMES, SIMULATED} - {STANDING})


def capabilities(name: str) -> frozenset[Capability]:
    """Return the capabilities of a runtime on this machine.

    Raises:
        UsageError: there is no runtime of that name.
        HarnessError: what it needs (an engine) does not answer.
    """
    if name == SIMULATED:
        return SIMULATED_CAPABILITIES
    return runtime(name).capabilities()


def runtime(name: str) -> Runtime:
    """Return a fresh runtime, ready to deploy one cluster.

    Raises:
        UsageError: there is no runtime of that name.
        CapabilityError: it has no nodes that could be deployed.
        HarnessError: what it needs (an engine) does not answer.
    """
    if name == SIMULATED:
        raise CapabilityError(
            "deploy nodes in the runtime",
            name,
            "its nodes live inside of the process that runs a whole plan or seed",
            "Use `splitbrain test --runtime simulated` or `splitbrain sim`",
        )
    return _entry(name).make()


def stopper(name: str) -> Callable[[RunId, Path], None]:
    """Return the watchdog of one run's nodes for a dead harness; UsageError: no such runtime."""
    return _entry(name).stop


def sweep_all(lock: Path | None = None) -> list[Sweep]:
    """Remove what dead runs left in every runtime; one that cannot look is told, not raised.

    The nodes' output and data are first saved into the run folders that still exist. With the lock
    of a run no other is swept.
    """
    sweeps: list[Sweep] = []
    for name in sorted(_RUNTIMES):
        try:
            sweeps.append(Sweep(name, tuple(_RUNTIMES[name]().sweep(lock))))
        except HarnessError as error:
            sweeps.append(Sweep(name, skipped=str(error)))
    return sweeps


def _entry(name: str) -> _Entry:
    find = _RUNTIMES.get(name)
    if find is None:
        raise UsageError(
            f"there is no runtime {name!r}", f"Choose one of: {', '.join(runtime_names())}"
        )
    return find()
