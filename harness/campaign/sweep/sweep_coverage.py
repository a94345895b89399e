"""Fault coverage of a sweep, as lines for people: gaps come first.

Judges nothing. Definitions: ``docs/faults/coverage.md``.
"""

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.harness.report.coverage_tables import (
    HEADER,
    Rows,
    coverage_rows,
    never_tried,
    workload_rows,
)
from splitbrain.nemesis.sorts import drawn_kinds


def coverage_blocks(
    cells: tuple[CoverageCell, ...], *, beyond_promise: bool
) -> list[Text | Padding]:
    """Return a title, the gaps, kinds by role and phase, and kinds by workload."""
    untried = never_tried(cells, drawn_kinds(beyond_promise=beyond_promise))
    blocks: list[Text | Padding] = [Text("What the faults met", style="bold")]
    blocks += [Text(printable(f"  Never tried {line}")) for line in untried]
    if cells:
        tables = ([HEADER, *coverage_rows(cells, ())], workload_rows(cells, ()))
        blocks += [
            Padding(_table(rows, text_columns), (1, 0, 0, 2))
            for rows, text_columns in zip(tables, (2, 1), strict=True)
        ]
    return blocks


def _table(rows: Rows, text_columns: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if place < text_columns else "right", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*(Text(printable(text)) for text in row))
    return table
