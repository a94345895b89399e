"""Judgement of a bare history of any origin: events and a model, no run around them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from splitbrain.checker.names import history_checker
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.words import counted
from splitbrain.harness.folder.own_models import make_known
from splitbrain.harness.folder.results import (
    RECORD_CHECKER,
    RESULTS_SCHEMA,
    Results,
    exit_code,
)
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.harness.judge.bare_judging import (
    JudgedHistory,
    asks_failed,
    is_large,
    judge_as_operations,
    sense_of,
)
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.warm_workers import WarmWorkers
from splitbrain.history import importers
from splitbrain.history.importers import LoadedHistory
from splitbrain.history.opening import reading_within
from splitbrain.history.records import PairedOperation
from splitbrain.history.reproduce_line import line_of

#: Broken lines listed in the reason.
_LISTED_MAX = 5


def judge_history(
    path: Path,
    model: str,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None] = lambda: None,
    *,
    skip_broken: bool = False,
    page: Callable[[Results, Sequence[PairedOperation]], Results] | None = None,
    warm: WarmWorkers | None = None,
) -> Results:
    """Judge a bare history.

    Where broken lines are left out nothing is proven: the verdict is ``unknown``, with the
    provisional verdict on the rest beside it. The same holds for a file that ends in the middle of
    a line, except for a violation of linearizability: a beginning without an order never gets one.
    ``model`` may be a user's own (``path/to/file.py:Name``), or a checker that needs nothing but a
    history; ``page`` writes the page and adds its problems.

    Raises:
        HarnessError: the history cannot be read.
        UsageError: there is no such model.
    """
    make_known(model)
    name = history_checker(model)
    judged = None
    with reading_within(limits.memory_budget_mib, limits.read):
        # The page needs operations, and left-out lines are listed one by one.
        if page is None and not skip_broken and is_large(path):
            # Loading it takes as long as judging a small history.
            from splitbrain.harness.judge.bare_columns import judge_as_columns

            judged = judge_as_columns(path, name, history_format, limits, give_up, warm)
        if judged is None:
            loaded = _loaded(path, name, history_format, skip_broken=skip_broken)
            judged = judge_as_operations(loaded, name, limits, give_up, warm)
    record = _record(judged)
    provisional = judged.check.verdict
    is_proof = provisional is Verdict.INVALID and judged.proves_violations
    verdict = provisional if record is None or is_proof else Verdict.UNKNOWN
    vacuous = () if judged.operations else ("The history has no operation.",)
    interrupted = give_up() is not None
    code = exit_code(verdict, vacuous=bool(vacuous), harness_failed=False, interrupted=interrupted)
    results = Results(
        schema=RESULTS_SCHEMA,
        run=path.name,
        test=path.name,
        system="",
        workload=model,
        seed=None,
        runtime=f"history of format {judged.format}",
        verdict=verdict,
        vacuous=vacuous,
        exit_code=code,
        checkers=(judged.check,) if record is None else (judged.check, record),
        operations=judged.counts,
        faults=(),
        elections=None,
        epochs=judged.epochs,
        longest_unavailability_ms=None,
        run_folder=str(path),
        reproduce=_reproduce(path, model, history_format, skip_broken=skip_broken),
        problems=_notes(judged),
        interrupted=interrupted,
        bare_history=True,
        provisional=None if record is None or is_proof else provisional,
    )
    if page is None or judged.loaded is None:
        return results
    return page(results, judged.loaded.operations)


def _loaded(
    path: Path, checker: str, history_format: str | None, *, skip_broken: bool
) -> LoadedHistory:
    return importers.load(
        path,
        history_format,
        skip_broken=skip_broken,
        problem_with=sense_of(checker),
        asks_failed=asks_failed(checker),
    )


def _notes(judged: JudgedHistory) -> tuple[str, ...]:
    notes = () if judged.loaded is None else judged.loaded.notes
    apart = judged.strict_verdict
    if apart is None or apart is judged.check.verdict:
        return notes
    note = (
        "1 and 1.0 are taken as one number, for JSON has one kind of numbers. "
        f"With the two told apart, the verdict would be {apart.value}."
    )
    return (*notes, note)


def _record(judged: JudgedHistory) -> CheckResult | None:
    loaded = judged.loaded
    if loaded is None:
        return None
    if loaded.broken_count:
        return _left_out(loaded, judged.check.verdict)
    return None if loaded.torn_bytes is None else _torn(loaded.torn_bytes, judged.check.verdict)


def _torn(torn_bytes: int, provisional: Verdict) -> CheckResult:
    cut = f"in the middle of a line: {torn_bytes} bytes were left out"
    if torn_bytes == 0:
        cut = "before the list of its operations does"
    reason = (
        f"The file ends {cut}, and whatever came after them is missing too. "
        f"What is there is {provisional.value}."
    )
    return CheckResult(RECORD_CHECKER, Verdict.UNKNOWN, reason, {"torn-bytes": torn_bytes})


def _left_out(loaded: LoadedHistory, provisional: Verdict) -> CheckResult:
    places = [
        f"{line.place}: {line.problem}" if line.place else line.problem
        for line in loaded.broken[:_LISTED_MAX]
    ]
    more = loaded.broken_count - len(places)
    listed = "; ".join(places) + (f"; and {more:,} more" if more else "")
    things = counted(loaded.broken_count, "broken line or event", "broken lines or events")
    was = "was" if loaded.broken_count == 1 else "were"
    reason = (
        f"{things} {was} left out, so nothing is proven; what is left is {provisional.value}. "
        f"Left out: {listed}."
    )
    return CheckResult(RECORD_CHECKER, Verdict.UNKNOWN, reason, {"left-out": loaded.broken_count})


def _reproduce(path: Path, model: str, history_format: str | None, *, skip_broken: bool) -> str:
    words = ["splitbrain", "check", str(path.absolute()), "--model", model]
    words += ["--format", history_format] if history_format else []
    words += ["--skip-broken"] if skip_broken else []
    return line_of(words, this_tool(), files=(path.name,))
