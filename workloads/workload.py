"""What a workload is, and the registry of those that exist."""

from collections.abc import Set as AbstractSet
from typing import Any, Final, Protocol

from contracts.errors import UsageError
from contracts.operations import Completion, Operation
from history.functions import Functions
from workloads.register import RegisterWorkload
from workloads.set import SetWorkload
from workloads.topics import TopicsWorkload


class Workload(Protocol):
    """Operations for one run; one instance per run, used from one thread.

    Where worker processes share the slots, each has a copy, pickled before the first operation.
    """

    name: str
    #: Checkers that judge its histories, by the names that ``harness.judge`` knows.
    checkers: tuple[str, ...]
    #: Each function of its operations and final reads, to what it does.
    functions: Functions

    def operation(self, slot: int, n: int) -> Operation:
        """The n-th operation of a worker slot.

        A function of (seed, slot, n), the early rotation of keys apart.
        """
        ...

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Told each outcome; must only ever move keys on, never change kinds or values.

        Of what other copies performed, a copy is told ``info`` alone, some milliseconds later.
        """
        ...

    def final_reads(self) -> tuple[Operation, ...]:
        """Reads to be made after the last heal, of everything that was touched."""
        ...

    def at_observer(self, final_read: Operation) -> Operation | None:
        """The same read at a node that does not vote; None where such nodes cannot be asked."""
        ...

    def options(self) -> dict[str, Any]:
        """The options in force, defaults included, for ``plan.json``."""
        ...


_WORKLOADS: Final = (RegisterWorkload, SetWorkload, TopicsWorkload)


def workload_names() -> tuple[str, ...]:
    """Names of all workloads, sorted."""
    return tuple(sorted(kind.name for kind in _WORKLOADS))


def functions_of(name: str) -> Functions:
    """Declaration of the workload with that name, one of ``workload_names()``."""
    return next(kind.functions for kind in _WORKLOADS if kind.name == name)


def checkers_fitting(functions: AbstractSet[str]) -> tuple[str, ...]:
    """Checkers of the workload that shares most of these functions, for runs without a plan."""
    best = max(_WORKLOADS, key=lambda kind: len(kind.functions.keys() & functions))
    return best.checkers


def workload(
    name: str, *, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
) -> Workload:
    """A fresh workload for one run.

    Args:
        name: one of ``workload_names()``.
        seed: sub-seed of this purpose.
        slots: number of worker slots.
        readers: slots that only read, where the workload has such; few of all, pinned ones.
        options: the user's choices, by name.

    Raises:
        UsageError: there is no such workload or option, or an option has no such value.
    """
    if name == RegisterWorkload.name:
        return RegisterWorkload.of(seed, slots, readers, options)
    if name == SetWorkload.name:
        return SetWorkload.of(seed, slots, options)
    if name == TopicsWorkload.name:
        return TopicsWorkload.of(seed, slots, readers, options)
    raise UsageError(
        f"there is no workload called {name!r}",
        f"The workloads are: {', '.join(workload_names())}",
    )
