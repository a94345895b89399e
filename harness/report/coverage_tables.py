"""Coverage of faults as rows for people, and its gaps; from counts alone.

Rows of zeros are shown: these tables exist to show gaps. Kinds of faults that were never tried come
first. Decides nothing. Definitions: ``docs/faults/coverage.md``.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from splitbrain.harness.folder.coverage_cells import PHASES, ROLES, CoverageCell, EpochPhase, Role

Rows = list[tuple[str, ...]]
_Key = TypeVar("_Key")

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


def coverage_rows(cells: Iterable[CoverageCell], kinds: Sequence[str]) -> Rows:
    """Return one row per kind and role, without the header; the workloads added up.

    ``kinds`` and those in ``cells`` have rows, also of zeros.
    """
    given = list(cells)
    counts = _counts(((cell.kind, cell.role, cell.phase), cell) for cell in given)
    hit = {(cell.kind, cell.role) for cell in given}
    return [
        (kind, role, *(counts.get((kind, role, phase), "0") for phase in PHASES))
        for kind in _untried_first({kind for kind, _ in hit}, kinds)
        for role in ROLES
        if role in ALWAYS or (kind, role) in hit
    ]


def workload_rows(cells: Iterable[CoverageCell], kinds: Sequence[str]) -> Rows:
    """Return the header and one row per kind, one column per workload of the cells.

    Faults that hit nodes in several roles count once in each, as in the other table.
    """
    given = list(cells)
    counts = _counts(((cell.kind, cell.workload), cell) for cell in given)
    workloads = sorted({cell.workload for cell in given})
    return [
        ("fault", *workloads),
        *(
            (kind, *(counts.get((kind, name), "0") for name in workloads))
            for kind in _untried_first({cell.kind for cell in given}, kinds)
        ),
    ]


def _counts(cells: Iterable[tuple[_Key, CoverageCell]]) -> dict[_Key, str]:
    """Return how many faults are under each key, and how many of them took effect."""
    faults: Counter[_Key] = Counter()
    bitten: Counter[_Key] = Counter()
    for key, cell in cells:
        faults[key] += cell.faults
        bitten[key] += cell.bitten
    return {
        key: f"{count:,}" if bitten[key] == count else f"{count:,} ({bitten[key]} took effect)"
        for key, count in faults.items()
    }


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
