"""Judges a bare history of any origin: events and a model, no run around them.

Writes nothing but the page, where one is asked for.
"""

import shlex
from collections.abc import Callable
from pathlib import Path

from checker.evidence import Evidence
from checker.models.registry import model_named
from checker.registry import history_checker, linearizability_model
from checker.verdict import CheckResult, Verdict, merge
from harness.bare_report import refuse_unwritable, with_report
from harness.checking import Limits, check_all
from harness.framed_child import FramedChild
from harness.own_models import make_known
from harness.results import RECORD_CHECKER, RESULTS_SCHEMA, Results, counted, exit_code
from harness.timeline import acknowledged_epochs, outcome_counts
from history import importers
from history.importers import LoadedHistory
from history.records import PairedOperation

#: Broken lines told singly.
_TOLD_MAX = 5


def judge_history(
    path: Path,
    model: str,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None] = lambda: None,
    *,
    skip_broken: bool = False,
    report: Path | None = None,
    warm: list[FramedChild] | None = None,
) -> Results:
    """Judge a bare history.

    Where broken lines are left out, nothing is proven: the verdict is ``unknown``, and the
    provisional one, of what is left, stands beside it.

    Args:
        path: the history's file.
        model: what to judge against: ``cas-register``, a user's own model
            (``path/to/file.py:Name``), or a checker that needs nothing but a history, ``set-full``.
        history_format: see ``history.importers.load``.
        limits: what the checker may use.
        give_up: see ``harness.checking.check_all``.
        skip_broken: leave out and count what cannot be used.
        report: where to write the page, None for none.
        warm: see ``harness.workers.run_parts``.

    Raises:
        HarnessError: the history cannot be read.
        UsageError: there is no such model, or the page cannot be written there.
    """
    make_known(model)
    name = history_checker(model)
    if report is not None:
        refuse_unwritable(report, path)
    loaded = importers.load(
        path, history_format, skip_broken=skip_broken, problem_with=_sense_of(name)
    )
    operations = tuple(loaded.operations)
    checked = check_all([name], Evidence(operations=operations), limits, give_up, warm)
    provisional = merge(result.verdict for result in checked)
    verdict = provisional
    if loaded.broken_count:
        checked.append(_left_out(loaded, provisional))
        verdict = Verdict.UNKNOWN
    vacuous = () if operations else ("The history has no operation.",)
    torn = "" if loaded.torn_bytes is None else f"{loaded.torn_bytes} bytes of a torn last line"
    interrupted = give_up() is not None
    results = Results(
        schema=RESULTS_SCHEMA,
        run=path.name,
        test=path.name,
        system="",
        workload=model,
        seed=None,
        runtime=f"history of format {loaded.format}",
        verdict=verdict,
        vacuous=vacuous,
        exit_code=exit_code(
            verdict, vacuous=bool(vacuous), harness_failed=False, interrupted=interrupted
        ),
        checkers=tuple(checked),
        operations=outcome_counts(operations),
        faults=(),
        elections=None,
        epochs=tuple(sorted(acknowledged_epochs(operations))),
        longest_unavailability_ms=None,
        run_folder=str(path),
        reproduce=_reproduce(path, model, history_format, skip_broken=skip_broken),
        problems=(*loaded.notes, *((f"{torn} left out.",) if torn else ())),
        interrupted=interrupted,
        bare_history=True,
        provisional=provisional if loaded.broken_count else None,
    )
    return results if report is None else with_report(results, operations, report)


def _sense_of(checker: str) -> Callable[[PairedOperation], str | None]:
    """What makes no sense to the model that judges; checkers of outcomes say so themselves."""
    name = linearizability_model(checker)
    if name is None:
        return lambda _operation: None
    model = model_named(name)

    def problem_with(operation: PairedOperation) -> str | None:
        # Operations that the model does not know are refused as such, with one that fits.
        return model.problem_with(operation) if operation.f in model.functions else None

    return problem_with


def _left_out(loaded: LoadedHistory, provisional: Verdict) -> CheckResult:
    """What it means that something was left out."""
    places = [
        f"{line.place}: {line.problem}" if line.place else line.problem
        for line in loaded.broken[:_TOLD_MAX]
    ]
    more = loaded.broken_count - len(places)
    told = "; ".join(places) + (f"; and {more:,} more" if more else "")
    things = counted(loaded.broken_count, "broken line or event", "broken lines or events")
    was = "was" if loaded.broken_count == 1 else "were"
    return CheckResult(
        checker=RECORD_CHECKER,
        verdict=Verdict.UNKNOWN,
        reason=(
            f"{things} {was} left out, so nothing is proven; what is left is {provisional.value}. "
            f"Left out: {told}."
        ),
        figures={"left-out": loaded.broken_count},
    )


def _reproduce(path: Path, model: str, history_format: str | None, *, skip_broken: bool) -> str:
    named = f" --format {history_format}" if history_format else ""
    skipping = " --skip-broken" if skip_broken else ""
    return f"splitbrain check {shlex.quote(str(path))} --model {model}{named}{skipping}"
