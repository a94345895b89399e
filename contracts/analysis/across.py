"""Findings over all runs of a lake: rows of the jobs' results, the question, and its answer.

Tables follow from the rows as in ``contracts.analysis.run``. Definitions stand in the jobs.
"""

import datetime as dt
from typing import ClassVar, Generic, TypeVar

import msgspec

from splitbrain.contracts.analysis.run import Row


class RowAcross(Row, frozen=True):
    """A row of a result over many runs."""

    is_of_run: ClassVar[bool] = False


class Cell(RowAcross, frozen=True):
    """How many runs came out how, by what they were.

    A run stands in the row of each kind of fault that was injected into it, so that rows do not
    add up.
    """

    table = "outcome_matrix/1"
    system: str
    version: str
    workload: str
    #: Kind; "none" where there was none.
    fault: str
    #: Runs of which their suite expects a violation stand apart.
    expected: bool
    runs: int
    valid: int
    invalid: int
    unknown: int
    vacuous: int
    failed: int
    unjudged: int
    #: Ids of runs that are not valid, the worst first.
    examples: list[str]


class Met(RowAcross, frozen=True):
    """Coverage by faults of one kind, under one workload; runs with a planted bug count too."""

    table = "fault_coverage/1"
    system: str
    workload: str
    kind: str
    role: str
    phase: str
    runs: int
    faults: int
    bitten: int


class RunFingerprint(RowAcross, frozen=True):
    """A finding of a checker in a run."""

    table = "run_fingerprints/1"
    run_id: str
    checker: str
    fingerprint: str
    #: Name of the anomaly, where it has one beside its kind; else the kind.
    kind: str
    shape: str
    #: Account of it in this run.
    sentence: str


class Failure(RowAcross, frozen=True):
    """A fingerprint: met since a moment, before it, or both; expected ones stand apart."""

    table = "failures/1"
    fingerprint: str
    checker: str
    #: As of ``RunFingerprint``.
    kind: str
    shape: str
    #: new, known, resolved (not met again)
    state: str
    #: Met in runs of which their suite expects a violation; else in the others.
    expected: bool
    runs_since: int
    runs_before: int
    #: Starts of runs that met it.
    first_at: dt.datetime | None
    last_at: dt.datetime | None
    #: Id of the last of them, and the account of the failure in it.
    example: str
    sentence: str
    #: The line that makes that run again; None where an older version put it into the lake.
    reproduce: str | None


class Flake(RowAcross, frozen=True):
    """How often one plan failed alike."""

    table = "flakes/1"
    plan_digest: str
    fingerprint: str
    checker: str
    kind: str
    system: str | None
    workload: str | None
    runtime: str | None
    failed: int
    #: Those that were judged valid or invalid.
    runs: int
    #: deterministic, sometimes, never-again, not-replayed
    flake: str
    #: Id of the first run that failed so.
    example: str


class TrendName(RowAcross, frozen=True):
    """A trend: one measure of the runs of one system, workload and runtime."""

    system: str
    workload: str
    runtime: str
    measure: str


class Point(TrendName, frozen=True):
    """One run of a trend."""

    table = "trend_points/1"
    started_at: dt.datetime
    run_id: str
    version: str | None
    value: float


class Change(TrendName, frozen=True):
    """A change of level of a trend; run and start are those of the first of the new level."""

    table = "trend_changes/1"
    started_at: dt.datetime
    run_id: str
    #: Medians of the levels.
    before: float
    after: float
    p_value: float
    worse: bool


_Row = TypeVar("_Row")


class Shown(msgspec.Struct, Generic[_Row], frozen=True):
    """The first rows of a result."""

    rows: list[_Row]
    #: How many there are.
    count: int


class ShownPoints(Shown[Point], frozen=True):
    """The last points of some trends: those that became worse, that changed, the longest."""

    #: How many trends there are.
    trends: int


class AcrossRequest(msgspec.Struct, frozen=True):
    """Question for the findings over all runs."""

    #: Folder or URI.
    lake: str
    #: Failures since then are held against those before; None: since the last day with a run.
    since: dt.datetime | None


class Findings(msgspec.Struct, frozen=True):
    """Findings over all runs of a lake."""

    lake: str
    since: dt.datetime
    runs: int
    matrix: Shown[Cell]
    failures: Shown[Failure]
    flakes: Shown[Flake]
    #: Most frequent first.
    coverage: Shown[Met]
    #: Trend after trend, each in the order of time.
    points: ShownPoints
    #: The latest first.
    changes: Shown[Change]

    @property
    def new(self) -> list[Failure]:
        """Failures that nobody has seen before, expected ones apart."""
        return [row for row in self.failures.rows if row.state == "new" and not row.expected]

    @property
    def worse(self) -> list[Change]:
        """Changes for the worse."""
        return [change for change in self.changes.rows if change.worse]
