"""The record of what faults have met, as it stands in ``results.json`` and in the ledger.

A field may be added, none may change its meaning: the ledger is kept for years. Definitions:
``docs/faults/coverage.md``.
"""

from collections.abc import Iterable
from typing import Final, Literal, get_args

import msgspec

#: Role of a node when a fault hit it.
Role = Literal["leader", "follower", "candidate", "observer", "down", "unknown"]
#: Where the newest leader epoch stood then.
EpochPhase = Literal["election", "new-leader", "settled", "unknown"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
PHASES: Final[tuple[EpochPhase, ...]] = get_args(EpochPhase)


class CoverageCell(msgspec.Struct, frozen=True, order=True):
    """How often faults of one kind met nodes of one role in one phase under one workload."""

    kind: str
    role: Role
    phase: EpochPhase
    workload: str
    #: Faults that were injected.
    faults: int
    #: Those of them that were seen from outside to have bitten.
    bitten: int


def sum_coverage(runs: Iterable[Iterable[CoverageCell]]) -> tuple[CoverageCell, ...]:
    """Return the cells of several runs added up, sorted."""
    sums: dict[tuple[str, Role, EpochPhase, str], tuple[int, int]] = {}
    for cell in (cell for cells in runs for cell in cells):
        key = (cell.kind, cell.role, cell.phase, cell.workload)
        faults, bitten = sums.get(key, (0, 0))
        sums[key] = (faults + cell.faults, bitten + cell.bitten)
    return tuple(sorted(CoverageCell(*key, *counts) for key, counts in sums.items()))
