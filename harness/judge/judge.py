"""Judgement of a run folder, at any time and as often as wanted.

The checkers run in killable workers with the Spark analysis beside them. The verdict is written as
soon as it is known: neither analysis nor report can lose it, and a crash makes its own part
``unknown`` and leaves the others. A living run's folder is never written to, and what a run
recorded is never changed. Source: design, sections 5 and 6.
"""

import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.verdict import CheckResult, Verdict, merge
from splitbrain.contracts.names import system_name
from splitbrain.harness.console.pace import Took
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.console.waiting import ANALYSING, JUDGING, READING, During, unseen
from splitbrain.harness.folder.ballast import Ballast
from splitbrain.harness.folder.plan_checkers import resigning_of, session_ms_of
from splitbrain.harness.folder.results import (
    EXIT_UNKNOWN,
    NODE_CHECKER,
    RECORD_CHECKER,
    RESULTS_SCHEMA,
    FaultResult,
    OutcomeCounts,
    Results,
)
from splitbrain.harness.folder.simulation_record import INVARIANTS, invariants_result
from splitbrain.harness.judge import node_health, record_health
from splitbrain.harness.judge.analysis_process import (
    AnalysisProcess,
    AskedAnalysis,
    start_analysis,
)
from splitbrain.harness.judge.checking import check_all
from splitbrain.harness.judge.circumstances import Circumstances, with_circumstances
from splitbrain.harness.judge.doubted_failures import with_doubts
from splitbrain.harness.judge.evidence_loader import RunRecord, load_run
from splitbrain.harness.judge.fault_coverage import coverage_of
from splitbrain.harness.judge.fault_notice import too_short
from splitbrain.harness.judge.fault_results import fault_results, with_failovers, with_notices
from splitbrain.harness.judge.judging_lock import exclusive
from splitbrain.harness.judge.outcome_counts import acknowledged_epochs, outcome_counts
from splitbrain.harness.judge.reproduction import line_of_run
from splitbrain.harness.judge.simulated_outcomes import (
    how_the_world_ended,
    with_reasons_of_a_cut_run,
)
from splitbrain.harness.judge.vacuity import vacuous_reasons
from splitbrain.harness.pool.limits import MEMORY_BUDGET_MIB, TIME_BUDGET_S, Limits
from splitbrain.history.course import LAST_PHASE
from splitbrain.history.fault_windows import longest_unavailability_ns
from splitbrain.history.opening import reading_within
from splitbrain.history.plan import Plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.workloads.workload import checkers_fitting

_NS_PER_MS = 1_000_000
_INTERRUPTED = "interrupted"
_LOGS_CHECKER = "split-brain"
_EARLIER_KEPT = "The results of the earlier judgement are kept."
#: Of one part of one checker.
_LIMITS = Limits(TIME_BUDGET_S, MEMORY_BUDGET_MIB, jobs=2)
#: Size of a history whose reading is told; a smaller one is read before anybody looks.
_TOLD_FROM_MIB = 16
_MIB = 1 << 20

_Made = TypeVar("_Made")


class Publisher(Protocol):
    """Writer of the files that show the results; adds its problems to them."""

    def __call__(self, record: RunRecord, results: Results, *, with_analysis: bool) -> Results:
        """Write the files; ``with_analysis``: show the results of Spark too."""
        ...


def judge(
    run_folder: Path,
    *,
    publish: Publisher,
    analyze: bool = True,
    harness_problems: tuple[str, ...] = (),
    during: During = unseen,
    stop: Stop | None = None,
    before_analysis: Callable[[], None] = lambda: None,
    on_verdict: Callable[[Results], None] = lambda _results: None,
) -> Results:
    """Judge a run folder, finished, dead or alive, write its verdict and publish it.

    Without ``analyze`` the results of an earlier analysis are shown. ``harness_problems`` are
    failures of the harness during the run, one sentence each. Once ``stop`` is set, undecided parts
    stay so. ``before_analysis`` is called when no other judgement of the folder is at work,
    ``on_verdict`` as soon as the verdict is known and published, which does not wait for Spark.

    Raises:
        UsageError: there is no such folder.
    """
    stop = stop or Stop()
    with _told_reading(run_folder, during):
        record = load_run(run_folder)
    if record.living:
        with during(JUDGING):
            return _judge_record(record, harness_problems, stop)
    # A killed run has not released its reserved disk space.
    Ballast(run_folder).release()
    with exclusive(run_folder, during, stop), ExitStack() as judging, ExitStack() as analysing:
        with_spark = analyze and bool(record.operations) and not stop.is_set()
        if with_spark:
            before_analysis()
        judging.enter_context(during(JUDGING))
        analysis = _start_analysis(run_folder, during, analysing) if with_spark else None
        results = _judge_record(record, harness_problems, stop)
        if stop.is_set() and _is_less_than_before(record, results):
            return results.with_problem(_EARLIER_KEPT)
        results = publish(record, results, with_analysis=not analyze)
        judging.close()
        on_verdict(results)
        if analysis is None:
            return results
        problem = analysis
        if not isinstance(analysis, str):
            started, took = analysis
            problem = started.wait(give_up=lambda: _given_up(stop), took=took)
        analysing.close()
        if problem is not None:
            again = f"`splitbrain analyze {shlex.quote(str(run_folder))}` runs it again."
            results = results.with_problem(f"{problem} {again}")
        return publish(record, results, with_analysis=problem is None)


@contextmanager
def _told_reading(run_folder: Path, during: During) -> Generator[None]:
    """Tell meanwhile how much of a large history is read."""
    history = RunFolder(run_folder).history
    if not history.is_file() or history.stat().st_size < _TOLD_FROM_MIB * _MIB:
        yield
        return
    with (
        during(READING) as took,
        reading_within(None, lambda done, size: took(done // _MIB, size // _MIB)),
    ):
        yield


def _is_less_than_before(record: RunRecord, results: Results) -> bool:
    """Return whether half a judgement would replace a whole one, or the violation that it found."""
    return results.verdict is not Verdict.INVALID and record.folder.results.exists()


def _start_analysis(
    run_folder: Path, during: During, analysing: ExitStack
) -> tuple[AnalysisProcess | AskedAnalysis, Took] | str:
    """Return the analysis, which ends with the context, or why it could not be started.

    Beside it stands what is told of its pace.
    """
    took = analysing.enter_context(during(ANALYSING))
    try:
        return analysing.enter_context(start_analysis(run_folder)), took
    except OSError as error:
        return f"The Spark analysis could not be started: {error}."


def _given_up(stop: Stop) -> str | None:
    return _INTERRUPTED if stop.is_set() else None


class _Attempts:
    """Parts of a judgement that are made apart, and those that crashed, one sentence each."""

    def __init__(self) -> None:
        self.crashes: list[str] = []

    def made(self, what: str, make: Callable[[], _Made], otherwise: _Made) -> _Made:
        """Return the result of ``make``; where it crashes, note that and return ``otherwise``."""
        try:
            return make()
        except Exception as error:  # noqa: BLE001 - see the sentence above
            self.crashes.append(f"{what} could not be found: {type(error).__name__}: {error}.")
            return otherwise


def _judge_record(record: RunRecord, harness_problems: Sequence[str], stop: Stop) -> Results:
    attempts = _Attempts()
    made = attempts.made
    faults = made(
        "The results of faults", lambda: fault_results(record.scheduled, record.faults), ()
    )
    faults = made("Failover times", lambda: with_failovers(record, faults), faults)
    faults = made("Signs of the faults", lambda: with_notices(record, faults), faults)
    undecided = [_undecided(name) for name in _checker_names(record)]
    checked = made("The checkers' verdict", lambda: _checked(record, faults, stop), undecided)
    for name, look in _own_checkers(record):
        checked.append(
            made(f"The verdict of {name}", lambda look=look: look(record), _undecided(name))
        )
    checked = record_health.as_evidence(record, checked)
    checked = made("The circumstances of violations", lambda: _joined(record, checked), checked)
    failures, problems = _problems(record, faults, harness_problems)
    crashed = len(attempts.crashes)
    vacuous: tuple[str, ...] = ()
    # For a drawn world its sweep says whether it proves anything.
    if not (record.is_drawn or record.ended_at_violation):
        vacuous = made("The proof of the run", lambda: vacuous_reasons(record, faults), ())
        vacuous = vacuous or tuple(attempts.crashes[crashed:])
    results = _assemble(record, checked, faults, attempts)
    return msgspec.structs.replace(
        results,
        vacuous=vacuous,
        problems=tuple(dict.fromkeys([*problems, *attempts.crashes])),
        interrupted=stop.is_set() or record.reached("interrupted"),
    ).with_verdict(results.verdict, harness_failed=bool(failures))


def _checked(record: RunRecord, faults: Sequence[FaultResult], stop: Stop) -> list[CheckResult]:
    names = _checker_names(record)
    if record.phases and not record.reached("load-started") and not record.living:
        reason = "No client ever worked, so there is nothing to judge."
        return [CheckResult(name, Verdict.UNKNOWN, reason) for name in names]
    evidence = _evidence(record, faults)
    checks = check_all(names, evidence, _LIMITS, lambda: _given_up(stop))
    checks = with_doubts(checks, evidence, _LIMITS, lambda: _given_up(stop))
    violation = None if record.simulation is None else record.simulation.violation
    return checks if violation is None else with_reasons_of_a_cut_run(checks, violation)


def _joined(record: RunRecord, checked: list[CheckResult]) -> list[CheckResult]:
    circumstances = Circumstances(
        record.node_names, record.state_events, record.faults, record.end_time, record.sightings
    )
    return with_circumstances(checked, record.operations, circumstances)


def _own_checkers(record: RunRecord) -> Iterator[tuple[str, Callable[[RunRecord], CheckResult]]]:
    """Yield the judges of every run beside the checkers of its workload.

    In a drawn world nodes rightly end by themselves; there the invariants watch them. Of nodes that
    are somebody else's nothing is seen but their answers.
    """
    if record.is_simulated:
        yield INVARIANTS, lambda given: invariants_result(given.simulation)
    if not record.is_drawn and not record.is_standing:
        yield NODE_CHECKER, node_health.judge_nodes
    if node_health.is_agreement_judged(record):
        yield node_health.AGREEMENT_CHECKER, node_health.judge_convergence
    yield RECORD_CHECKER, record_health.judge_record


def _undecided(name: str) -> CheckResult:
    return CheckResult(name, Verdict.UNKNOWN, "Not decided: the judging of it crashed.")


def _assemble(
    record: RunRecord,
    checked: Sequence[CheckResult],
    faults: tuple[FaultResult, ...],
    attempts: _Attempts,
) -> Results:
    plan, root, made = record.plan, record.folder.root, attempts.made
    from_outside = not record.state_events
    led = made("Leadership", lambda: {reign.epoch for reign in record.reigns}, set[int]())
    gap = made(
        "The longest unavailability",
        lambda: longest_unavailability_ns(record.operations, record.functions),
        None,
    )
    acknowledged = made("The epochs", lambda: acknowledged_epochs(record.operations), set[int]())
    epochs = led | acknowledged
    coverage = made("Fault coverage", lambda: coverage_of(record), None)
    counts = made(
        "The outcomes",
        lambda: outcome_counts(record.operations, record.functions),
        dict[str, OutcomeCounts](),
    )
    return Results(
        schema=RESULTS_SCHEMA,
        run=plan.run_id if plan else root.name,
        test=plan.test if plan else root.parent.name,
        system=system_name(plan.experiment.system) if plan else "unknown system",
        workload=plan.workload if plan else "unknown workload",
        seed=plan.experiment.seed if plan else None,
        runtime=_runtime_words(plan) if plan else "unknown runtime",
        verdict=merge(result.verdict for result in checked),
        vacuous=(),
        exit_code=EXIT_UNKNOWN,
        checkers=tuple(checked),
        operations=counts,
        faults=faults,
        elections=len(led) or None,
        elections_from_outside=bool(led) and from_outside,
        epochs=tuple(sorted(epochs)),
        longest_unavailability_ms=None if gap is None else gap // _NS_PER_MS,
        run_folder=str(root),
        reproduce=line_of_run(record),
        coverage=coverage,
        not_run={} if plan is None else plan.checkers_not_run,
        too_short=made(
            "The lengths of the faults",
            lambda: too_short(record, {fault.kind for fault in faults if fault.noticed}),
            dict[str, str](),
        ),
    )


def _runtime_words(plan: Plan) -> str:
    limits = plan.runtime_versions.get("limits")
    return plan.experiment.runtime if limits is None else f"{plan.experiment.runtime} ({limits})"


def _checker_names(record: RunRecord) -> list[str]:
    """Return the plan's checkers; without a plan those that fit the operations and the evidence."""
    if record.plan is not None:
        names = list(record.plan.checkers)
        # Logs must never contradict each other, whatever the workload; a drawn world names the
        # checkers that it leaves out itself.
        if record.committed_logs and not record.is_drawn and _LOGS_CHECKER not in names:
            names.append(_LOGS_CHECKER)
        return names
    fitting = checkers_fitting({operation.f for operation in record.operations})
    if record.state_events or record.committed_logs:
        return list(fitting)
    return [name for name in fitting if name not in (_LOGS_CHECKER, "lost-commits")]


def _evidence(record: RunRecord, faults: Sequence[FaultResult]) -> Evidence:
    unhealed = any(fault.applied and not fault.healed for fault in faults)
    converged = record.reached("converged") if record.phases else bool(record.committed_logs)
    return Evidence(
        operations=tuple(record.operations),
        state_events={node: tuple(events) for node, events in record.state_events.items()},
        committed_logs=record.committed_logs,
        replica_logs=record.replica_logs,
        digests=record.digests,
        voters=len(record.node_names) - len(record.observers),
        observers=frozenset(record.observers),
        faults=record.faults,
        converged=converged and not unhealed,
        members=node_health.single_holders(record, converged=converged and not unhealed),
        record_forms={} if record.plan is None else record.plan.record_forms,
        functions=dict(record.functions),
        allowed=() if record.plan is None else record.plan.allowed,
        session_ms=None if record.plan is None else session_ms_of(record.plan.checker_options),
        resigning=None if record.plan is None else resigning_of(record.plan.checker_options),
    )


def _problems(
    record: RunRecord, faults: Sequence[FaultResult], harness_problems: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return failures of the harness, and all problems, failures first; each once."""
    failures = list(harness_problems)
    failures += [
        phase.detail or "The run failed." for phase in record.phases if phase.phase == "failed"
    ]
    unhealed = [
        f"Fault {fault.index} ({fault.kind}:{fault.target}) was not healed."
        for fault in faults
        if fault.applied and not fault.healed and not record.ended_at_violation
    ]
    in_order = record.reached(LAST_PHASE)
    others = list(record.problems)
    # Unhealed faults of a killed harness are no failure: the folder is judged as it is.
    (failures if in_order else others).extend([] if record.living else unhealed)
    disagreement = node_health.disagreement(record)
    if disagreement is not None and not node_health.is_agreement_judged(record):
        others.append(disagreement)
    if record.simulation is not None and record.simulation.violation is not None:
        others.append(how_the_world_ended(record.simulation.violation))
    others += [
        f"The nodes were frozen at a violation, before the time limit: {phase.detail}"
        for phase in record.phases
        if phase.phase == "stopped-at-violation"
    ]
    if record.reached("interrupted"):
        others.append("The run was interrupted before its time limit.")
    if record.phases and not in_order and not record.living:
        last = record.phases[-1].phase
        others.append(
            "The nodes were not removed: `splitbrain clean` removes what is left of them."
            if record.reached("failed")
            else f"The harness died during the run; the last step it reached is {last}."
        )
    failures = list(dict.fromkeys(failures))
    return failures, list(dict.fromkeys([*failures, *others]))
