"""The registry of fault kinds.

To add one, write its course in the module of its family, give it an entry there and a section on
its page in ``docs/faults``; tests over the whole registry then ask it for its proofs.
"""

from typing import Final

from contracts.errors import UsageError
from nemesis.bad_links import BAD_LINKS
from nemesis.clocks import CLOCKS
from nemesis.disks import DISKS
from nemesis.fault_kind import FaultKind
from nemesis.nearest import or_nearest
from nemesis.partitions import PARTITIONS
from nemesis.processes import PROCESSES

_KINDS: Final[dict[str, FaultKind]] = {
    kind.name: kind for kind in (*PARTITIONS, *PROCESSES, *BAD_LINKS, *DISKS, *CLOCKS)
}


def kind_names() -> tuple[str, ...]:
    """Names of all fault kinds, sorted."""
    return tuple(sorted(_KINDS))


def fault_kind(name: str) -> FaultKind:
    """The kind of this name.

    Raises:
        UsageError: there is none.
    """
    kind = _KINDS.get(name)
    if kind is None:
        raise UsageError(
            f"there is no fault called {name!r}", or_nearest(name, kind_names(), "faults")
        )
    return kind
