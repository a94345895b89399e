"""What faults met over all runs, as rows of the page; made from counts alone.

Definitions: ``docs/faults/coverage.md``.
"""

from collections.abc import Iterable
from typing import Final

from splitbrain.contracts.analysis.across import Met
from splitbrain.harness.folder.coverage_cells import PHASES, ROLES, CoverageCell
from splitbrain.harness.report.coverage_tables import HEADER as _HEADER
from splitbrain.harness.report.coverage_tables import coverage_rows

HEADER: Final = ("system", "workload", *_HEADER)


def met_rows(met: Iterable[Met]) -> list[tuple[str, ...]]:
    """One row per system, workload, kind and role; zeros are shown: nobody tried that.

    What a later version calls a role or phase that this one does not know is left out.
    """
    cells: dict[tuple[str, str], list[CoverageCell]] = {}
    for one in met:
        for role in ROLES:
            for phase in PHASES:
                if (role, phase) == (one.role, one.phase):
                    cell = CoverageCell(one.kind, role, phase, one.workload, one.faults, one.bitten)
                    cells.setdefault((one.system, one.workload), []).append(cell)
    return [(*group, *row) for group in sorted(cells) for row in coverage_rows(cells[group], ())]
