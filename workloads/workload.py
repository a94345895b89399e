"""A workload, and the registry of those that exist.

Each is one module of this folder that says so: ``WORKLOAD`` is its class. A package offers its own
as an entry point of the group ``splitbrain.workloads``. Nothing else has to be told of a new one
but the systems that serve it (``System.workloads``).
"""

import pkgutil
from collections.abc import Set as AbstractSet
from importlib import import_module
from typing import Any, Final, Protocol, cast

from splitbrain import workloads
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import Functions
from splitbrain.plugins.offers import Offers


class Workload(Protocol):
    """Operations for one run; one instance per run, used from one thread.

    Where worker processes share the slots, each has a copy, pickled before the first operation.
    """

    name: str
    #: Checkers that judge its histories, by the names that ``harness.judge.judge`` knows.
    checkers: tuple[str, ...]
    #: Each function of its operations and final reads, to what it does.
    functions: Functions

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a worker slot.

        A function of (seed, slot, n), the early rotation of keys apart.
        """
        ...

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Told each outcome; must only ever move keys on, never change kinds or values.

        Of what other copies performed, a copy is told ``info`` alone, some milliseconds later.
        """
        ...

    def final_reads(self) -> tuple[Operation, ...]:
        """Read to be made after the last heal, of everything that was touched."""
        ...

    def at_observer(self, final_read: Operation) -> Operation | None:
        """The same read at a node that does not vote; None where such nodes cannot be asked."""
        ...

    def options(self) -> dict[str, Any]:
        """Return the options in force, defaults included, for ``plan.json``."""
        ...


class WorkloadKind(Protocol):
    """A class of workloads; its instances are ``Workload``."""

    name: str
    checkers: tuple[str, ...]
    functions: Functions

    def of(
        self, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
    ) -> Workload:
        """Return a fresh one; arguments and errors as of ``workload``."""
        ...


def found_kinds() -> tuple[WorkloadKind, ...]:
    """Return the workloads of this folder, sorted by the names of their modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(workloads.__path__))
    # This module is among them, and half made while it asks.
    modules = [import_module(f"{__package__}.{name}") for name in names]
    return tuple(module.WORKLOAD for module in modules if hasattr(module, "WORKLOAD"))


def _lacks(kind: Any) -> str | None:
    needed = ("name", "checkers", "functions", "of")
    return next((name for name in needed if not hasattr(kind, name)), None)


_WORKLOADS: Final = found_kinds()
#: Workloads of histories that fit several as well, or none; the most usual one last.
_USUAL: Final = ("multi-register", "register")
#: Workloads of installed packages.
OFFERS: Final = Offers(
    "workload",
    "splitbrain.workloads",
    type,
    frozenset(kind.name for kind in _WORKLOADS),
    lacks=_lacks,
)


def workload_names() -> tuple[str, ...]:
    """Names of all workloads, sorted."""
    return tuple(sorted({*(kind.name for kind in _WORKLOADS), *OFFERS.names()}))


def checkers_fitting(functions: AbstractSet[str]) -> tuple[str, ...]:
    """Checkers of the workload that shares most of these functions, for runs without a plan."""

    def fit(kind: WorkloadKind) -> tuple[int, int, int]:
        rank = _USUAL.index(kind.name) if kind.name in _USUAL else -1
        return len(kind.functions.keys() & functions), rank, -len(kind.functions)

    return max(_WORKLOADS, key=fit).checkers


def workload(
    name: str, *, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
) -> Workload:
    """Return a fresh workload for one run.

    Args:
        name: one of ``workload_names()``.
        seed: sub-seed of this purpose.
        slots: number of worker slots.
        readers: slots that only read, where the workload has such; few of all, pinned ones.
        options: the user's choices, by name.

    Raises:
        UsageError: there is no such workload or option, or an option has no such value.
    """
    for kind in _WORKLOADS:
        if kind.name == name:
            return kind.of(seed, slots, readers, options)
    offered = cast("WorkloadKind | None", OFFERS.offered(name))
    if offered is not None:
        return offered.of(seed, slots, readers, options)
    raise UsageError(
        f"there is no workload called {name!r}",
        f"The workloads are: {', '.join(workload_names())}",
    )
