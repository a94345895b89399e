"""Figures that follow from verdicts: no Spark, no clock, nothing but the runs.

A figure that some runs lack is unknown rather than the sum of the others, wherever the missing part
could make it worse.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.figure import Dimension, Measured, Subject
from splitbrain.harness.campaign.gate.failures import Failures
from splitbrain.harness.campaign.gate.gated_run import GatedRun, Outcome, Selection
from splitbrain.harness.folder.results import FaultResult, counted

_LOST_COMMITS: Final = "lost-commits"
_LOST: Final = "lost"


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
    folder = run.replayed_as or (None if run.folder is None else run.folder.name)
    return run.outcome != "valid" and any(
        other.replay_of == folder and other.outcome == "valid" for other in runs if folder
    )


def _measure(subject: Subject, selection: Selection, failures: Failures) -> Measured:
    runs = [run for run in selection.judged_by_policy if in_run(subject, run)]
    if subject.figure == "canaries_missed":
        return _canaries([run for run in selection.runs if run.is_canary and in_run(subject, run)])
    if not runs:
        return Measured(None, 0, "there is no such run")
    if subject.figure in _BY_OUTCOME:
        return Measured(float(_count(runs, _BY_OUTCOME[subject.figure])), len(runs))
    return _MEASURES[subject.figure](subject, runs, failures)


def _count(runs: Iterable[GatedRun], outcomes: Sequence[Outcome]) -> int:
    return sum(run.outcome in outcomes for run in runs)


def _canaries(canaries: Sequence[GatedRun]) -> Measured:
    if not canaries:
        return Measured(None, 0, "there is no planted-bug run of a suite")
    return Measured(float(sum(run.canary_missed for run in canaries)), len(canaries))


def _valid_share(_: Subject, runs: Sequence[GatedRun], __: Failures) -> Measured:
    return Measured(_count(runs, ("valid",)) / len(runs), len(runs))


def _seeds(_: Subject, runs: Sequence[GatedRun], __: Failures) -> Measured:
    seeds = {run.seed for run in runs if run.outcome == "valid" and run.seed is not None}
    return Measured(float(len(seeds)), len(runs))


def _flaky(_: Subject, runs: Sequence[GatedRun], __: Failures) -> Measured:
    return Measured(float(sum(is_flaky(run, runs) for run in runs)), len(runs))


def _violations(*, spared: bool) -> "_Measure":
    def measure(subject: Subject, runs: Sequence[GatedRun], failures: Failures) -> Measured:
        groups = failures.spared if spared else failures.counting
        return _counted_results(
            subject,
            runs,
            [(case.run, case.result) for failure in groups for case in failure.cases],
        )

    return measure


def _new_failures(_: Subject, runs: Sequence[GatedRun], failures: Failures) -> Measured:
    if any(failure.is_new is None for failure in failures.all):
        return Measured(None, len(runs), "there is no baseline: name one with --baseline")
    names = {run.name for run in runs}
    new = [
        failure
        for failure in failures.counting
        if failure.is_new and any(case.run.name in names for case in failure.cases)
    ]
    unjudged = _count(runs, ("unjudged",))
    if not new and unjudged:
        return Measured(None, len(runs), f"{counted(unjudged, 'run')} of them nobody has judged")
    return Measured(float(len(new)), len(runs))


def _undecided(subject: Subject, runs: Sequence[GatedRun], _: Failures) -> Measured:
    found = [
        (run, result)
        for run in runs
        for result in run.checkers
        if result.verdict is Verdict.UNKNOWN
    ]
    return _counted_results(subject, runs, found)


def _counted_results(
    subject: Subject, runs: Sequence[GatedRun], found: Sequence[tuple[GatedRun, CheckResult]]
) -> Measured:
    """Count results of these runs and checkers; a run without a verdict may hide more."""
    names = {run.name for run in runs}
    count = sum(
        run.name in names and _is_wanted(subject, "checker", result.checker)
        for run, result in found
    )
    unjudged = _count(runs, ("unjudged",))
    if not count and unjudged:
        return Measured(None, len(runs), f"{counted(unjudged, 'run')} of them nobody has judged")
    checkers = {result.checker for run in runs for result in run.checkers}
    if not count and subject.conditions_on("checker") and not any(
        _is_wanted(subject, "checker", checker) for checker in checkers
    ):  # fmt: skip
        return Measured(None, len(runs), "no such checker judged them")
    return Measured(float(count), len(runs))


def _is_wanted(subject: Subject, dimension: Dimension, value: str) -> bool:
    return all(condition.holds_for(value) for condition in subject.conditions_on(dimension))


def _lost_commits(_: Subject, runs: Sequence[GatedRun], failures: Failures) -> Measured:
    judged = [result for run in runs for result in run.checkers if result.checker == _LOST_COMMITS]
    unjudged = _count(runs, ("unjudged",))
    lost = 0
    uncertain = 0
    for result in judged:
        failure = failures.of(result)
        if failure is not None and failure.is_spared:
            continue
        figure = result.figures.get(_LOST)
        # A ledger's line says that some are lost, and not how many.
        has_figure = isinstance(figure, int)
        lost += figure if isinstance(figure, int) else result.verdict is Verdict.INVALID
        uncertain += not has_figure or result.verdict is Verdict.UNKNOWN
    if not judged:
        return Measured(None, 0, "the checker lost-commits judged none of them")
    if not lost and unjudged:
        return Measured(None, len(judged), f"{counted(unjudged, 'run')} nobody has judged")
    if not lost and uncertain:
        return Measured(None, len(judged), f"of {counted(uncertain, 'run')} it could not be told")
    return Measured(float(lost), len(judged))


def _faults_of(subject: Subject, runs: Sequence[GatedRun]) -> list[FaultResult]:
    return [
        fault for run in runs for fault in run.faults if _is_wanted(subject, "fault", fault.kind)
    ]


def _faults(subject: Subject, runs: Sequence[GatedRun], _: Failures) -> Measured:
    known = [
        run for run in runs if run.outcome != "unjudged" and (run.folder or run.lake) is not None
    ]
    if not known:
        return Measured(None, 0, "no results of a run tell of its faults")
    return Measured(float(sum(fault.applied for fault in _faults_of(subject, known))), len(known))


def _fault_share(
    of: Callable[[FaultResult], bool], among: Callable[[FaultResult], bool], nothing: str
) -> "_Measure":
    def measure(subject: Subject, runs: Sequence[GatedRun], _: Failures) -> Measured:
        faults = [fault for fault in _faults_of(subject, runs) if among(fault)]
        if not faults:
            return Measured(None, 0, nothing)
        return Measured(sum(map(of, faults)) / len(faults), len(faults))

    return measure


def _elections(_: Subject, runs: Sequence[GatedRun], __: Failures) -> Measured:
    known = [run.elections for run in runs if run.elections is not None]
    if not known:
        return Measured(None, 0, "no run tells of its elections")
    return Measured(float(sum(known)), len(known))


def _unavailability(_: Subject, runs: Sequence[GatedRun], __: Failures) -> Measured:
    known = [
        run.longest_unavailability_ms for run in runs if run.longest_unavailability_ms is not None
    ]
    if not known:
        return Measured(None, 0, "no run tells how long it was without an acknowledged write")
    return Measured(float(max(known)), len(known))


_Measure = Callable[[Subject, Sequence[GatedRun], Failures], Measured]

_BY_OUTCOME: Final[dict[str, tuple[Outcome, ...]]] = {
    "runs": ("valid", "invalid", "unknown", "vacuous", "failed", "unjudged"),
    "runs_valid": ("valid",),
    "runs_invalid": ("invalid",),
    "runs_unknown": ("unknown",),
    "runs_vacuous": ("vacuous",),
    "runs_failed": ("failed", "unjudged"),
}
_MEASURES: Final[dict[str, _Measure]] = {
    "valid_share": _valid_share,
    "seeds": _seeds,
    "runs_flaky": _flaky,
    "violations": _violations(spared=False),
    "violations_quarantined": _violations(spared=True),
    "failures_new": _new_failures,
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
    "unavailability_max_ms": _unavailability,
}
