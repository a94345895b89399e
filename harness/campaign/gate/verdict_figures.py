"""Figures that follow from verdicts: no Spark, no clock, nothing but the runs.

A figure that some runs lack is unknown rather than the sum of the others, wherever the missing part
could make it worse.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.figure import Dimension, Measured, Subject
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.catalogue import is_of_seeds
from splitbrain.harness.campaign.gate.failures import Failures
from splitbrain.harness.campaign.gate.gated_run import GatedRun, Outcome
from splitbrain.harness.campaign.gate.seed_figures import measure_seeds
from splitbrain.harness.campaign.gate.selection import Selection
from splitbrain.harness.folder.results import FaultResult

_LOST_COMMITS: Final = "lost-commits"
_LOST: Final = "lost"


class _Scope(NamedTuple):
    """A subject, and the runs that fit its conditions on runs."""

    subject: Subject
    runs: Sequence[GatedRun]
    failures: Failures

    def count(self, *outcomes: Outcome) -> int:
        return sum(run.outcome in outcomes for run in self.runs)

    def picks(self, dimension: Dimension, value: str) -> bool:
        return all(part.holds_for(value) for part in self.subject.conditions_on(dimension))

    def measured(self, value: float) -> Measured:
        return Measured(float(value), len(self.runs))

    def unless_unjudged(self, count: int) -> Measured:
        """Return a count, unknown where it is zero and an unjudged run may hide more."""
        if unjudged := 0 if count else self.count("unjudged"):
            lack = f"{counted(unjudged, 'run')} of them nobody has judged"
            return Measured(None, len(self.runs), lack)
        return self.measured(count)


_Measure = Callable[[_Scope], Measured]


def measure_verdicts(
    subjects: Iterable[Subject], selection: Selection, failures: Failures
) -> dict[Subject, Measured]:
    """Return the value of each subject; all must be figures of verdicts."""
    return {subject: _measure(subject, selection, failures) for subject in subjects}


def in_run(subject: Subject, run: GatedRun) -> bool:
    """Return whether a run fits the conditions on runs."""
    values: dict[Dimension, str] = {
        "system": run.system,
        "version": run.version,
        "workload": run.workload,
        "runtime": run.runtime,
    }
    return all(
        condition.holds_for(values[condition.dimension])
        for condition in subject.conditions
        if condition.dimension in values
    )


def is_flaky(run: GatedRun, runs: Sequence[GatedRun]) -> bool:
    """Return whether a run failed and one of its replays in the selection did not."""
    folder = run.folder_name
    return run.outcome != "valid" and any(
        other.replay_of == folder and other.outcome == "valid" for other in runs if folder
    )


def _measure(subject: Subject, selection: Selection, failures: Failures) -> Measured:
    if is_of_seeds(subject.figure):
        return measure_seeds(subject, selection.sweeps, failures)
    if subject.figure == "canaries_missed":
        canaries = [run for run in selection.runs if run.is_canary and in_run(subject, run)]
        if not canaries:
            return Measured(None, 0, "there is no run of a suite that should fail")
        return Measured(float(sum(run.canary_missed for run in canaries)), len(canaries))
    runs = [run for run in selection.judged_by_policy if in_run(subject, run)]
    if not runs:
        return Measured(None, 0, "there is no such run")
    return _MEASURES[subject.figure](_Scope(subject, runs, failures))


def _by_outcome(*outcomes: Outcome) -> _Measure:
    return lambda scope: scope.measured(scope.count(*outcomes))


def _seeds(scope: _Scope) -> Measured:
    valid = {run.seed for run in scope.runs if run.outcome == "valid"}
    return scope.measured(len(valid - {None}))


def _new_failures(scope: _Scope) -> Measured:
    if any(failure.is_new is None for failure in scope.failures.all):
        lack = "there is no baseline: name one with --baseline"
        return Measured(None, len(scope.runs), lack)
    names = {run.name for run in scope.runs}
    new = [
        failure
        for failure in scope.failures.counting
        if failure.is_new and any(case.run.name in names for case in failure.cases)
    ]
    return scope.unless_unjudged(len(new))


def _violations(*, spared: bool) -> _Measure:
    def measure(scope: _Scope) -> Measured:
        failures = scope.failures.spared if spared else scope.failures.counting
        cases = [(case.run, case.result) for failure in failures for case in failure.cases]
        return _counted_results(scope, cases)

    return measure


def _anomalies_allowed(scope: _Scope) -> Measured:
    told = [run for run in scope.runs if run.outcome != "unjudged" and (run.folder or run.lake)]
    # A ledger's line tells nothing of them.
    if untold := len(scope.runs) - len(told):
        return Measured(None, len(told), f"of {counted(untold, 'run')} there are no results")
    results = [result for run in told for result in run.checkers]
    judged = [result for result in results if scope.picks("checker", result.checker)]
    if not judged:
        return Measured(None, len(told), "no such checker judged them")
    return scope.measured(sum(sum(result.allowed.values()) for result in judged))


def _undecided(scope: _Scope) -> Measured:
    results = [(run, result) for run in scope.runs for result in run.checkers]
    unknown = [(run, result) for run, result in results if result.verdict is Verdict.UNKNOWN]
    return _counted_results(scope, unknown)


def _counted_results(scope: _Scope, results: Sequence[tuple[GatedRun, CheckResult]]) -> Measured:
    """Count results of these runs and checkers."""
    names = {run.name for run in scope.runs}
    count = sum(
        run.name in names and scope.picks("checker", result.checker) for run, result in results
    )
    measured = scope.unless_unjudged(count)
    checkers = {result.checker for run in scope.runs for result in run.checkers}
    is_judged = any(scope.picks("checker", checker) for checker in checkers)
    if measured.value == 0 and scope.subject.conditions_on("checker") and not is_judged:
        return Measured(None, len(scope.runs), "no such checker judged them")
    return measured


def _lost_commits(scope: _Scope) -> Measured:
    results = [result for run in scope.runs for result in run.checkers]
    judged = [result for result in results if result.checker == _LOST_COMMITS]
    lost = uncertain = 0
    for result in judged:
        failure = scope.failures.of(result)
        if failure is not None and failure.is_spared:
            continue
        figure = result.figures.get(_LOST)
        # A ledger's line says that some are lost, and not how many.
        has_figure = isinstance(figure, int)
        lost += figure if isinstance(figure, int) else result.verdict is Verdict.INVALID
        uncertain += not has_figure or result.verdict is Verdict.UNKNOWN
    if not judged:
        return Measured(None, 0, "the checker lost-commits judged none of them")
    if not lost and (unjudged := scope.count("unjudged")):
        return Measured(None, len(judged), f"{counted(unjudged, 'run')} nobody has judged")
    if not lost and uncertain:
        return Measured(None, len(judged), f"of {counted(uncertain, 'run')} it could not be told")
    return Measured(float(lost), len(judged))


def _faults_of(scope: _Scope) -> list[FaultResult]:
    faults = [fault for run in scope.runs for fault in run.faults]
    return [fault for fault in faults if scope.picks("fault", fault.kind)]


def _faults(scope: _Scope) -> Measured:
    readable = [
        run
        for run in scope.runs
        if run.outcome != "unjudged" and (run.folder or run.lake) is not None
    ]
    if not readable:
        return Measured(None, 0, "no results of a run tell of its faults")
    applied = sum(fault.applied for fault in _faults_of(scope._replace(runs=readable)))
    return Measured(float(applied), len(readable))


def _fault_share(
    of: Callable[[FaultResult], bool], among: Callable[[FaultResult], bool], nothing: str
) -> _Measure:
    def measure(scope: _Scope) -> Measured:
        faults = [fault for fault in _faults_of(scope) if among(fault)]
        if not faults:
            return Measured(None, 0, nothing)
        return Measured(sum(map(of, faults)) / len(faults), len(faults))

    return measure


def _elections(scope: _Scope) -> Measured:
    counts = [run.elections for run in scope.runs if run.elections is not None]
    if not counts:
        return Measured(None, 0, "no run tells of its elections")
    return Measured(float(sum(counts)), len(counts))


def _unavailability_max(scope: _Scope) -> Measured:
    times = [
        (run.longest_unavailability_ms, run.folder_name or run.name)
        for run in scope.runs
        if run.longest_unavailability_ms is not None
    ]
    if not times:
        return Measured(None, 0, "no run tells how long it was without an acknowledged write")
    longest_ms, name = max(times)
    return Measured(float(longest_ms), len(times), worst_in=name)


_MEASURES: Final[dict[str, _Measure]] = {
    "runs": lambda scope: scope.measured(len(scope.runs)),
    "runs_valid": _by_outcome("valid"),
    "runs_invalid": _by_outcome("invalid"),
    "runs_unknown": _by_outcome("unknown"),
    "runs_vacuous": _by_outcome("vacuous"),
    "runs_failed": _by_outcome("failed", "unjudged"),
    "valid_share": lambda scope: scope.measured(scope.count("valid") / len(scope.runs)),
    "seeds": _seeds,
    "runs_flaky": lambda scope: scope.measured(
        sum(is_flaky(run, scope.runs) for run in scope.runs)
    ),
    "violations": _violations(spared=False),
    "violations_quarantined": _violations(spared=True),
    "failures_new": _new_failures,
    "anomalies_allowed": _anomalies_allowed,
    "undecided": _undecided,
    "lost_commits": _lost_commits,
    "faults": _faults,
    "faults_applied": _fault_share(
        lambda fault: fault.applied, lambda _: True, "no fault was planned"
    ),
    "faults_verified": _fault_share(
        lambda fault: fault.verified, lambda fault: fault.applied, "no fault was injected"
    ),
    "faults_healed": _fault_share(
        lambda fault: fault.healed, lambda fault: fault.applied, "no fault was injected"
    ),
    "faults_noticed": _fault_share(
        lambda fault: fault.noticed is True,
        lambda fault: fault.noticed is not None,
        "of no fault it can be told whether the system noticed it",
    ),
    "elections": _elections,
    "unavailability_max_ms": _unavailability_max,
}
