"""The findings over all runs in words, the same on the page and in the summary."""

from collections.abc import Iterable
from typing import Final

from splitbrain.checker.anomalies.names import name_of_kind
from splitbrain.contracts.analysis.across import Change, Failure, Findings, Flake, Met
from splitbrain.contracts.words import counted
from splitbrain.harness.folder.coverage_cells import PHASES, ROLES, CoverageCell
from splitbrain.harness.report.coverage_tables import HEADER as _HEADER
from splitbrain.harness.report.coverage_tables import coverage_rows

MEASURES: Final = {
    "availability": "Availability under faults",
    "failover_ms": "Failover",
    "latency_p99_ms": "Latency, 99th percentile",
}
#: Measures between 0 and 1; the others are in milliseconds.
SHARES: Final = frozenset({"availability"})


def headline(findings: Findings) -> str:
    """Return the most important finding in one sentence."""
    new, worse = len(findings.new), len(findings.worse)
    # The table below lists canaries as new: there is one every night.
    expected = any(one.state == "new" and one.expected for one in findings.failures.rows)
    news = "No new failure but expected ones" if expected else "No new failure"
    if new:
        news = f"{counted(new, 'new failure')} since {moment(findings.since)}"
    if worse:
        return f"{news}, and {counted(worse, 'trend change')} for the worse."
    return f"{news}." if new else f"{news}, and no trend became worse."


def moment(at: object) -> str:
    """Return a time, UTC, to the minute."""
    return f"{at:%Y-%m-%d %H:%M}" if at is not None else "unknown"


def value_text(measure: str, value: float) -> str:
    """Return a value of a trend with its unit."""
    return f"{value:.1%}" if measure in SHARES else f"{value:,.4g} ms"


def change_text(change: Change) -> str:
    """Return ``Before 300 ms, after 340 ms (+13%): for the worse; p = 0.001``."""
    before, after = (value_text(change.measure, value) for value in (change.before, change.after))
    share = f" ({change.after / change.before - 1:+.0%})" if change.before else ""
    which = "for the worse" if change.worse else "for the better"
    return f"Before {before}, after {after}{share}: {which}; p = {change.p_value:.3f}"


def failure_title(failure: Failure) -> str:
    """Return the failure in a few words."""
    shape = f": {failure.shape}" if failure.shape else ""
    return f"{failure.checker}, {name_of_kind(failure.checker, failure.kind)}{shape}"


def flake_title(flake: Flake) -> str:
    """Return the checker and the name of what it found."""
    return f"{flake.checker}, {name_of_kind(flake.checker, flake.kind)}"


def flake_text(flake: Flake) -> str:
    """Return how often it fails."""
    if flake.flake == "not-replayed":
        return "not replayed yet"
    word = {"deterministic": "deterministic: ", "never-again": "never again: "}
    return f"{word.get(flake.flake, '')}{flake.failed} of {flake.runs}"


HEADER: Final = ("system", "workload", *_HEADER)


def met_rows(met: Iterable[Met]) -> list[tuple[str, ...]]:
    """Return one row per system, workload, kind and role, zeros included.

    Roles and phases that a later version added are left out.
    """
    cells: dict[tuple[str, str], list[CoverageCell]] = {}
    for row in met:
        for role in ROLES:
            for phase in PHASES:
                if (role, phase) == (row.role, row.phase):
                    cell = CoverageCell(row.kind, role, phase, row.workload, row.faults, row.bitten)
                    cells.setdefault((row.system, row.workload), []).append(cell)
    return [(*group, *row) for group in sorted(cells) for row in coverage_rows(cells[group], ())]
