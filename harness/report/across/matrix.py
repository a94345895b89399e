"""The matrix of outcomes as shown: a row per system, version and workload, faults across.

Pure. Rows that need a look stand first; every cell says in words what its colour says.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from splitbrain.contracts.analysis.across import Cell

#: Outcomes, the worst first; also the names of their colours.
OUTCOMES: Final = ("invalid", "failed", "unknown", "vacuous", "unjudged", "valid")
#: Kinds of faults side by side; those that met the fewest runs are left out.
FAULTS_MAX: Final = 40
NO_FAULT: Final = "none"


class ShownCell(msgspec.Struct, frozen=True):
    """Outcomes of the runs of a row under one kind of fault."""

    #: Such as ``1 invalid``, the worst first.
    counts: list[str]
    worst: str
    #: Ids of runs that are not valid.
    examples: list[str]


class MatrixRow(msgspec.Struct, frozen=True):
    """Runs of one system, version and workload, with or without an expected violation."""

    system: str
    version: str
    workload: str
    expected: bool
    #: One per fault of the matrix; None where none ran.
    cells: list[ShownCell | None]


class Matrix(msgspec.Struct, frozen=True):
    """The matrix as shown."""

    faults: list[str]
    rows: list[MatrixRow]
    more_faults: int


def matrix_of(cells: Sequence[Cell]) -> Matrix:
    """Return the matrix of these rows of ``outcome_matrix``."""
    runs_of: Counter[str] = Counter()
    for cell in cells:
        runs_of[cell.fault] += cell.runs
    common = sorted(runs_of, key=lambda fault: (-runs_of[fault], fault))[:FAULTS_MAX]
    faults = sorted(common, key=lambda fault: (fault != NO_FAULT, fault))
    rows: dict[tuple[bool, str, str, str], dict[str, Cell]] = {}
    for cell in cells:
        name = (cell.expected, cell.system, cell.workload, cell.version)
        rows.setdefault(name, {})[cell.fault] = cell

    def order(name: tuple[bool, str, str, str]) -> tuple[object, ...]:
        return name[0], not any(cell.invalid for cell in rows[name].values()), name

    return Matrix(
        faults,
        [
            MatrixRow(
                system=system,
                version=version,
                workload=workload,
                expected=expected,
                cells=[
                    _shown(rows[expected, system, workload, version].get(fault)) for fault in faults
                ],
            )
            for expected, system, workload, version in sorted(rows, key=order)
        ],
        len(runs_of) - len(faults),
    )


def worst_first(cells: Sequence[Cell]) -> list[Cell]:
    """Sort cells with an invalid run before the others, and those that were expected last."""
    return sorted(cells, key=lambda cell: (cell.expected, not cell.invalid))


def _shown(cell: Cell | None) -> ShownCell | None:
    if cell is None:
        return None
    counts = {outcome: int(getattr(cell, outcome)) for outcome in OUTCOMES}
    met = [outcome for outcome in OUTCOMES if counts[outcome]]
    return ShownCell(
        [f"{counts[outcome]:,} {outcome}" for outcome in met],
        met[0] if met else "unjudged",
        cell.examples,
    )
