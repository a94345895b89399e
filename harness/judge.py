"""Judges a run folder or a bare history, at any time and as often as asked.

Reads what is there, runs the checkers in killable workers with the Spark analysis beside them, and
writes the verdict files. The verdict is written as soon as it is known: neither the analysis nor
the report can lose it. Must never change what the run recorded. Source: design, sections 5 and 6.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from checker.evidence import Evidence
from checker.registry import checker_named
from checker.verdict import CheckResult, merge
from harness import results as results_file
from harness.analysis_process import AnalysisProcess, read_summary
from harness.atomic_file import write_atomically
from harness.checking import Limits, check_all
from harness.defaults import defaults_of
from harness.evidence_loader import RunRecord, load_run
from harness.fault_results import fault_results
from harness.junit import to_junit
from harness.node_health import judge_nodes
from harness.results import RESULTS_SCHEMA, FaultResult, Results, exit_code
from harness.summary import to_markdown
from harness.timeline import (
    acknowledged_epochs,
    leader_epochs,
    longest_unavailability_ns,
    outcome_counts,
)
from harness.vacuity import vacuous_reasons
from harness.waiting import ANALYSING, JUDGING, During, unseen
from history import importers
from history.pairing import pair
from history.plan import reproduce_command

#: Seconds that one part of one checker may take.
TIME_BUDGET_S = 60.0
#: Mebibytes of memory that one part of one checker may take.
MEMORY_BUDGET_MIB = 2048
_NS_PER_MS = 1_000_000
#: Phases that say that a run came to its end in order.
_LAST_PHASE = "torn-down"


def judge(
    run_folder: Path,
    *,
    analyze: bool = True,
    time_budget_s: float = TIME_BUDGET_S,
    memory_budget_mib: int = MEMORY_BUDGET_MIB,
    jobs: int = 2,
    harness_problems: tuple[str, ...] = (),
    during: During = unseen,
) -> Results:
    """Judge a run folder, finished, dead or alive, and write the four verdict files.

    Args:
        run_folder: the run's folder.
        analyze: run the Spark analysis too; without it the results of an earlier one are shown.
        time_budget_s: for one part of one checker.
        memory_budget_mib: for one part of one checker.
        jobs: parts at work at the same time.
        harness_problems: why the harness failed during the run, one sentence each; none if it
            did not.
        during: told what is being done while it is done.

    Raises:
        HarnessError: the folder or its history cannot be read, or the results not be written.
    """
    limits = Limits(time_budget_s, memory_budget_mib, jobs)
    with ExitStack() as judging:
        judging.enter_context(during(JUDGING))
        record = load_run(run_folder)
        if not (analyze and record.operations):
            results = _judge_record(record, limits, harness_problems)
            return _publish(record, results, with_analysis=not analyze)
        with during(ANALYSING), AnalysisProcess(run_folder) as analysis:
            results = _judge_record(record, limits, harness_problems)
            results_file.write(results, record.folder.results)
            judging.close()
            problem = analysis.wait()
    if problem is not None:
        results = _with_problem(results, problem)
    return _publish(record, results, with_analysis=problem is None)


def judge_history(
    path: Path,
    model: str,
    history_format: str | None = None,
    *,
    time_budget_s: float = TIME_BUDGET_S,
    memory_budget_mib: int = MEMORY_BUDGET_MIB,
    jobs: int = 2,
) -> Results:
    """Judge a bare history of any origin; writes nothing.

    Args:
        path: the history's file.
        model: what to judge against: ``cas-register``, or a checker that needs nothing but a
            history, ``set-full``.
        history_format: see ``history.importers.load``.
        time_budget_s: for one part of the checker.
        memory_budget_mib: for one part of the checker.
        jobs: parts at work at the same time.

    Raises:
        HarnessError: the history cannot be read.
        UsageError: there is no such model.
    """
    loaded = importers.load(path, history_format)
    operations = tuple(pair(loaded.events))
    name = model if model.startswith("set-full") else f"linearizability:{model}"
    checker_named(name)
    limits = Limits(time_budget_s, memory_budget_mib, jobs)
    checked = check_all([name], Evidence(operations=operations), limits)
    verdict = merge(result.verdict for result in checked)
    vacuous = () if operations else ("The history has no operation.",)
    torn = "" if loaded.torn_bytes is None else f"{loaded.torn_bytes} bytes of a torn last line"
    return Results(
        schema=RESULTS_SCHEMA,
        run=path.name,
        test=path.parent.name or path.name,
        system="unknown system",
        workload=model,
        seed=None,
        runtime=f"history of format {loaded.format}",
        verdict=verdict,
        vacuous=vacuous,
        exit_code=exit_code(verdict, vacuous=bool(vacuous), harness_failed=False),
        checkers=tuple(checked),
        operations=outcome_counts(operations),
        faults=(),
        elections=None,
        epochs=tuple(sorted(acknowledged_epochs(operations))),
        longest_unavailability_ms=None,
        run_folder=str(path),
        reproduce=f"splitbrain check {path} --model {model}",
        problems=(f"{torn} left out.",) if torn else (),
    )


def _judge_record(record: RunRecord, limits: Limits, harness_problems: Sequence[str]) -> Results:
    faults = fault_results(record.scheduled, record.faults)
    checked = check_all(_checker_names(record), _evidence(record, faults), limits)
    checked.append(judge_nodes(record))
    failures, problems = _problems(record, faults, harness_problems)
    vacuous = vacuous_reasons(record, faults)
    verdict = merge(result.verdict for result in checked)
    return _assemble(record, checked, faults, vacuous, problems).with_verdict(
        verdict, harness_failed=bool(failures)
    )


def _assemble(
    record: RunRecord,
    checked: Sequence[CheckResult],
    faults: tuple[FaultResult, ...],
    vacuous: tuple[str, ...],
    problems: Sequence[str],
) -> Results:
    plan, root = record.plan, record.folder.root
    led = leader_epochs(record.state_events)
    gap = longest_unavailability_ns(record.operations)
    epochs = {epoch for epoch, _ in led} | acknowledged_epochs(record.operations)
    return Results(
        schema=RESULTS_SCHEMA,
        run=plan.run_id if plan else root.name,
        test=plan.test if plan else root.parent.name,
        system=plan.system if plan else "unknown system",
        workload=plan.workload if plan else "unknown workload",
        seed=plan.seed if plan else None,
        runtime=plan.runtime if plan else "unknown runtime",
        verdict=merge(result.verdict for result in checked),
        vacuous=vacuous,
        exit_code=results_file.EXIT_UNKNOWN,
        checkers=tuple(checked),
        operations=outcome_counts(record.operations),
        faults=faults,
        elections=len({epoch for epoch, _ in led}) if led else None,
        epochs=tuple(sorted(epochs)),
        longest_unavailability_ms=None if gap is None else gap // _NS_PER_MS,
        run_folder=str(root),
        reproduce=(
            reproduce_command(plan, defaults_of(plan)) if plan else f"splitbrain check {root}"
        ),
        problems=tuple(problems),
    )


def _checker_names(record: RunRecord) -> list[str]:
    """The plan's checkers; without a plan those that fit the operations and the evidence."""
    if record.plan is not None:
        return list(record.plan.checkers)
    kinds = {operation.f for operation in record.operations}
    names = ["set-full"] if "add" in kinds else ["linearizability:cas-register"]
    if record.state_events or record.committed_logs:
        names += ["split-brain", "lost-commits"]
    return names


def _evidence(record: RunRecord, faults: Sequence[FaultResult]) -> Evidence:
    unhealed = any(fault.applied and not fault.healed for fault in faults)
    converged = record.reached("converged") if record.phases else bool(record.committed_logs)
    return Evidence(
        operations=tuple(record.operations),
        state_events={node: tuple(events) for node, events in record.state_events.items()},
        committed_logs=record.committed_logs,
        voters=len(record.node_names),
        faults=record.faults,
        converged=converged and not unhealed,
    )


def _problems(
    record: RunRecord, faults: Sequence[FaultResult], harness_problems: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Failures of the harness, and all that went wrong, the failures first; each said once."""
    failures = list(harness_problems)
    failures += [
        phase.detail or "The run failed." for phase in record.phases if phase.phase == "failed"
    ]
    unhealed = [
        f"Fault {fault.index} ({fault.kind}:{fault.target}) was not healed."
        for fault in faults
        if fault.applied and not fault.healed
    ]
    in_order = record.reached(_LAST_PHASE)
    others = list(record.problems)
    # Who killed the harness is not ours to judge: the folder then says what it can, or unknown.
    (failures if in_order else others).extend([] if record.living else unhealed)
    others += [
        f"The nodes did not reach one log end: {phase.detail}."
        for phase in record.phases
        if phase.phase == "not-converged"
    ]
    if record.reached("interrupted"):
        others.append("The run was interrupted before its time limit.")
    if record.phases and not in_order and not record.living:
        last = record.phases[-1].phase
        others.append(f"The harness died during the run; the last step it reached is {last}.")
    failures = list(dict.fromkeys(failures))
    return failures, list(dict.fromkeys([*failures, *others]))


def _publish(record: RunRecord, results: Results, *, with_analysis: bool) -> Results:
    """Write all files; what cannot be made of report and summaries becomes a problem."""
    results_file.write(results, record.folder.results)
    analysis: dict[str, Any] | None = None
    if with_analysis:
        analysis, problem = read_summary(record.folder.root)
        if problem is not None:
            results = _with_problem(results, problem)
    try:
        from harness.report.page import report_page

        page = report_page(record, results, analysis)
        write_atomically(record.folder.report, page.encode())
    # The report draws whatever a system said; a defect in drawing must not cost the verdict.
    except Exception as error:  # noqa: BLE001
        results = _with_problem(
            results, f"report.html could not be made: {type(error).__name__}: {error}."
        )
    results_file.write(results, record.folder.results)
    write_atomically(record.folder.summary, to_markdown(results).encode())
    write_atomically(record.folder.junit, to_junit(results))
    return results


def _with_problem(results: Results, problem: str) -> Results:
    return msgspec.structs.replace(results, problems=(*results.problems, problem))
