"""What Spark found over all runs, as records; mirrors ``spark_analysis.across_process.Across``.

That module cannot be imported without Spark, and the rows are those of
``spark_analysis.across_schemas``.
"""

import datetime as dt
from collections.abc import Sequence
from itertools import groupby

import msgspec


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the matrix."""

    system: str
    version: str
    workload: str
    fault: str
    planted: bool
    runs: int
    valid: int
    invalid: int
    unknown: int
    vacuous: int
    failed: int
    unjudged: int
    examples: list[str]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A fingerprint."""

    fingerprint: str
    checker: str
    kind: str
    shape: str
    state: str
    planted: bool
    runs_since: int
    runs_before: int
    first_at: dt.datetime | None
    last_at: dt.datetime | None
    example: str


class Flake(msgspec.Struct, frozen=True, kw_only=True):
    """How often one plan failed alike."""

    plan_digest: str
    fingerprint: str
    checker: str
    kind: str
    system: str | None
    workload: str | None
    runtime: str | None
    failed: int
    runs: int
    flake: str
    example: str


class Met(msgspec.Struct, frozen=True, kw_only=True):
    """What faults of one kind met, under one workload."""

    system: str
    workload: str
    kind: str
    role: str
    phase: str
    runs: int
    faults: int
    bitten: int


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one trend."""

    system: str
    workload: str
    runtime: str
    measure: str
    started_at: dt.datetime
    run_id: str
    version: str | None
    value: float


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of level of one trend."""

    system: str
    workload: str
    runtime: str
    measure: str
    started_at: dt.datetime
    run_id: str
    before: float
    after: float
    p_value: float
    worse: bool


class Cells(msgspec.Struct, frozen=True):
    """The matrix as far as it is shown."""

    rows: list[Cell]
    count: int


class FailureRows(msgspec.Struct, frozen=True):
    """Failures as far as they are shown."""

    rows: list[Failure]
    count: int


class FlakeRows(msgspec.Struct, frozen=True):
    """Flakes as far as they are shown."""

    rows: list[Flake]
    count: int


class MetRows(msgspec.Struct, frozen=True):
    """What faults met, as far as it is shown, the most frequent first."""

    rows: list[Met]
    count: int


class Points(msgspec.Struct, frozen=True):
    """The last points of some trends: those that became worse, that changed, the longest."""

    rows: list[Point]
    count: int
    #: How many trends there are.
    trends: int


class Changes(msgspec.Struct, frozen=True):
    """Changes as far as they are shown, the latest first."""

    rows: list[Change]
    count: int


class Findings(msgspec.Struct, frozen=True):
    """All of it."""

    lake: str
    since: dt.datetime
    runs: int
    matrix: Cells
    failures: FailureRows
    flakes: FlakeRows
    coverage: MetRows
    points: Points
    changes: Changes

    @property
    def new(self) -> list[Failure]:
        """Failures that nobody has seen before, planted bugs apart."""
        return [one for one in self.failures.rows if one.state == "new" and not one.planted]

    @property
    def worse(self) -> list[Change]:
        """Changes for the worse."""
        return [change for change in self.changes.rows if change.worse]


class Trend(msgspec.Struct, frozen=True):
    """One trend with its changes."""

    measure: str
    title: str
    points: list[Point]
    changes: list[Change]


def trends_of(findings: Findings) -> list[Trend]:
    """Each trend with its changes; those that became worse first, then by name."""
    found = [
        Trend(name[3], " · ".join(name[:3]), list(points), _changes(findings, name))
        for name, points in groupby(findings.points.rows, _name)
    ]
    return sorted(
        found, key=lambda one: (not _is_worse(one.changes), not one.changes, one.title, one.measure)
    )


def _name(one: Point | Change) -> tuple[str, str, str, str]:
    return one.system, one.workload, one.runtime, one.measure


def _changes(findings: Findings, name: tuple[str, str, str, str]) -> list[Change]:
    own = [change for change in findings.changes.rows if _name(change) == name]
    return sorted(own, key=lambda change: (change.started_at, change.run_id))


def _is_worse(changes: Sequence[Change]) -> bool:
    return any(change.worse for change in changes)
