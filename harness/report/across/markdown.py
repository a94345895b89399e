"""The summary over all runs as Markdown; new failures come first."""

from collections.abc import Iterable, Sequence
from typing import Final

from splitbrain.contracts.analysis.across import Findings
from splitbrain.contracts.words import counted
from splitbrain.harness.console.plain_text import markdown
from splitbrain.harness.report.across.matrix import worst_first
from splitbrain.harness.report.across.trends import trends_of
from splitbrain.harness.report.across.words import (
    HEADER,
    change_text,
    failure_title,
    flake_text,
    flake_title,
    headline,
    met_rows,
    moment,
)
from splitbrain.harness.report.coverage_tables import NOTE

_ROWS_MAX: Final = 100
_CELL_MAX: Final = 400


def to_markdown(findings: Findings) -> str:
    """Return the whole summary."""
    met = met_rows(findings.coverage.rows)
    parts = [
        f"# {headline(findings)}",
        _scope(findings),
        "## Failures",
        _table(
            (
                "state",
                "failure",
                "since",
                "before",
                "first seen",
                "example",
                "fingerprint",
                "reproduce",
            ),
            (
                (
                    f"{failure.state}{', expected' if failure.expected else ''}",
                    " - ".join(filter(None, (failure_title(failure), failure.sentence))),
                    failure.runs_since,
                    failure.runs_before,
                    moment(failure.first_at),
                    failure.example,
                    failure.fingerprint,
                    failure.reproduce,
                )
                for failure in findings.failures.rows
            ),
            findings.failures.count,
        ),
        "## Trends",
        _table(
            ("trend", "measure", "runs", "last", "changes, UTC"),
            (
                (
                    trend.title,
                    trend.name,
                    len(trend.points),
                    trend.text(trend.points[-1].value),
                    "; ".join(
                        f"{moment(change.started_at)}, from run {change.run_id} on: "
                        f"{change_text(change)}"
                        for change in trend.changes
                    )
                    or "none",
                )
                for trend in trends_of(findings)
            ),
            findings.points.trends,
        ),
        "## Reproduction rate",
        _table(
            ("failure", "of the same plan", "system", "workload", "runtime", "example"),
            (
                (
                    f"{flake_title(flake)} ({flake.fingerprint})",
                    flake_text(flake),
                    flake.system,
                    flake.workload,
                    flake.runtime,
                    flake.example,
                )
                for flake in findings.flakes.rows
            ),
            findings.flakes.count,
        ),
        "## Fault coverage",
        NOTE,
        _table(HEADER, met, len(met)),
        "## All runs",
        "A run stands in the row of each kind of fault that was injected into it.",
        _table(
            (
                *("system", "version", "workload", "fault", "runs", "valid", "invalid", "unknown"),
                *("vacuous", "failed", "unjudged", "examples"),
            ),
            (
                (
                    f"{cell.system}{' (expected violation)' if cell.expected else ''}",
                    *(cell.version, cell.workload, cell.fault, cell.runs, cell.valid),
                    *(cell.invalid, cell.unknown, cell.vacuous, cell.failed, cell.unjudged),
                    ", ".join(cell.examples),
                )
                for cell in worst_first(findings.matrix.rows)
            ),
            findings.matrix.count,
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _scope(findings: Findings) -> str:
    runs = f"{counted(findings.runs, 'run')} in {_cell(findings.lake)}"
    return f"{runs}; failures since {moment(findings.since)} UTC are held against those before."


def _table(header: Sequence[str], rows: Iterable[Sequence[object]], count: int) -> str:
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        return "None."
    lines = [header, ["---"] * len(header), *cells[:_ROWS_MAX]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    more = count - min(len(cells), _ROWS_MAX)
    return f"{text}\n\n{more:,} more." if more > 0 else text


def _cell(value: object) -> str:
    """Return a cell; text of unknown origin may end the cell, begin markup, or fill a book."""
    text = "unknown" if value is None else " ".join(str(value).split())
    return markdown(text if len(text) <= _CELL_MAX else f"{text[: _CELL_MAX - 1]}…")
