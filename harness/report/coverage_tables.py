"""Coverage of faults as rows for people, and its gaps; from counts alone.

Rows of zeros are shown: these tables exist to show gaps. Kinds of faults that were never tried come
first. Decides nothing. Definitions: ``docs/faults/coverage.md``.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from splitbrain.harness.folder.coverage_cells import PHASES, ROLES, CoverageCell, EpochPhase, Role

Rows = list[tuple[str, ...]]

#: Roles that every cluster has at some time; each has a row, also of zeros.
ALWAYS: Final[tuple[Role, ...]] = ("leader", "follower", "candidate")
#: Phases that every cluster passes through.
_IN_PHASE: Final[dict[EpochPhase, str]] = {
    "election": "in an election",
    "new-leader": "under a new leader",
    "settled": "in a settled epoch",
}
_PHASE_WORDS: Final[dict[EpochPhase, str]] = {
    "election": "election",
    "new-leader": "new leader",
    "settled": "settled",
    "unknown": "phase unknown",
}
HEADER: Final = ("fault", "hit a", *(_PHASE_WORDS[phase] for phase in PHASES))
NOTE: Final = (
    "How often a fault was injected into a node of this role, and in which phase the newest leader "
    "epoch was then: without a leader, with one that has committed nothing in it yet, or settled. "
    "A fault that hits nodes in two roles counts in both. In brackets how many took effect, where "
    "not all did."
)


class _Count(msgspec.Struct):
    faults: int = 0
    bitten: int = 0

    def text(self) -> str:
        bitten = "" if self.bitten == self.faults else f" ({self.bitten} took effect)"
        return f"{self.faults:,}{bitten}"


def coverage_rows(cells: Iterable[CoverageCell], kinds: Sequence[str]) -> Rows:
    """Return one row per kind and role, without the header; the workloads added up.

    ``kinds`` and those in ``cells`` have rows, also of zeros.
    """
    counts: dict[tuple[str, str, str], _Count] = {}
    for cell in cells:
        _add(counts.setdefault((cell.kind, cell.role, cell.phase), _Count()), cell)
    met = {kind for kind, _, _ in counts}
    met_as = {(kind, role) for kind, role, _ in counts}
    return [
        (kind, role, *(counts.get((kind, role, phase), _Count()).text() for phase in PHASES))
        for kind in _untried_first(met, kinds)
        for role in ROLES
        if role in ALWAYS or (kind, role) in met_as
    ]


def workload_rows(cells: Iterable[CoverageCell], kinds: Sequence[str]) -> Rows:
    """Return the header and one row per kind, one column per workload of the cells.

    Faults that hit nodes in several roles count once in each, as in the other table.
    """
    given = list(cells)
    counts: dict[tuple[str, str], _Count] = {}
    for cell in given:
        _add(counts.setdefault((cell.kind, cell.workload), _Count()), cell)
    workloads = sorted({cell.workload for cell in given})
    rows: Rows = [("fault", *workloads)]
    for kind in _untried_first({kind for kind, _ in counts}, kinds):
        rows.append((kind, *(counts.get((kind, name), _Count()).text() for name in workloads)))
    return rows


def never_tried(cells: Iterable[CoverageCell], kinds: Sequence[str]) -> list[str]:
    """Return the gaps, one line each: kinds first, then roles and phases of each kind."""
    given = list(cells)
    met = {cell.kind for cell in given}
    untried = [kind for kind in kinds if kind not in met]
    lines = [f"at all: {', '.join(untried)}"] if untried else []
    for kind in sorted(met):
        own = [cell for cell in given if cell.kind == kind]
        missing = [_missing(role, own) for role in ALWAYS]
        gaps = [gap for gap in missing if gap]
        if gaps:
            lines.append(f"{kind} {'; '.join(gaps)}")
    workloads = sorted({cell.workload for cell in given})
    for workload in workloads if len(workloads) > 1 else ():
        with_it = {cell.kind for cell in given if cell.workload == workload}
        without = sorted(met - with_it)
        if without:
            lines.append(f"under the workload {workload}: {', '.join(without)}")
    return lines


def _missing(role: Role, cells: Sequence[CoverageCell]) -> str:
    """Return phases in which no fault hit the role; empty if one did in each."""
    phases = {cell.phase for cell in cells if cell.role == role}
    if not phases:
        return f"on a {role}"
    left = [text for phase, text in _IN_PHASE.items() if phase not in phases]
    return f"on a {role} {' or '.join(left)}" if left else ""


def _untried_first(met: set[str], kinds: Sequence[str]) -> list[str]:
    return [*(kind for kind in kinds if kind not in met), *sorted(met)]


def _add(count: _Count, cell: CoverageCell) -> None:
    count.faults += cell.faults
    count.bitten += cell.bitten
