"""Course of a gate: policy, runs and baseline in, one record out.

The order matters: the baseline's fingerprints decide which failures are new before any figure is
measured. Figures of verdicts are all measured, so that the record serves any later policy as a
baseline. Figures of Spark are measured in a child process, for all tiers of the policy, where the
tier asks for one; if that fails, one sentence says so and each is unknown, never zero.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.figure import (
    FiguresAnswer,
    FiguresRequest,
    Measured,
    SelectedRun,
    Subject,
)
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.baseline import (
    LAST,
    NONE,
    RECORD_NAME,
    Baseline,
    find_last,
    read_baseline,
)
from splitbrain.harness.campaign.gate.catalogue import SEED_FIGURES, VERDICT_FIGURES, needs_spark
from splitbrain.harness.campaign.gate.evaluation import evaluate, subjects_of, verdict_of
from splitbrain.harness.campaign.gate.failures import Failures, find_failures
from splitbrain.harness.campaign.gate.gated_run import GatedRun
from splitbrain.harness.campaign.gate.policy import (
    IMPLIED,
    IMPLIED_OF_CANARIES,
    IMPLIED_OF_SWEEPS,
    Policy,
    Tier,
)
from splitbrain.harness.campaign.gate.record import (
    CASES_MAX,
    GateRecord,
    failure_record,
    run_record,
    sweep_record,
)
from splitbrain.harness.campaign.gate.seed_figures import clean_seeds
from splitbrain.harness.campaign.gate.selection import Selection, select
from splitbrain.harness.campaign.gate.sentences import leading_sentence
from splitbrain.harness.campaign.gate.verdict_figures import is_flaky, measure_verdicts
from splitbrain.harness.folder.tool_version import tool_commit, tool_version
from splitbrain.harness.pool.spark_service import ask_spark
from splitbrain.history.spark_extra import COMMAND, has_spark

#: Said where the last night is to be the baseline, and there is none.
FIRST: Final = (
    "No earlier night or gate that proved something was found beside these runs: this one has no "
    "baseline, so nothing is compared. If it proves something, the next one is compared with it."
)


class GateRequest(msgspec.Struct, frozen=True):
    """Request for one gate."""

    policy: Policy
    tier: Tier
    sources: tuple[str, ...]
    #: None: none was named; ``none``: there is none; ``last``: whichever was the last.
    baseline: str | None
    now: dt.datetime
    #: Folder of the answer, which may hold an earlier one.
    output: Path | None = None


class Held(NamedTuple):
    """One gate's answer and the data behind it."""

    record: GateRecord
    runs: tuple[GatedRun, ...]
    failures: Failures
    #: Names of failed runs with a valid replay.
    flaky: frozenset[str]


class Measures(NamedTuple):
    """Values of figures, and sentences on why some are missing and on their gaps."""

    figures: dict[Subject, Measured]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def hold_gate(request: GateRequest) -> Held:
    """Measure, compare, decide.

    Raises:
        UsageError: the runs or the baseline are not there.
        HarnessError: a ledger or git failed.
    """
    selection = select(request.sources)
    request = _with_implied(request, selection)
    is_first = request.baseline == LAST
    if is_first and (last := find_last(selection, request.output)) is not None:
        request, is_first = msgspec.structs.replace(request, baseline=last), False
    is_waived = is_first or request.baseline == NONE
    baseline = _baseline(request)
    runs = selection.judged_by_policy
    reference = None if baseline is None else baseline.fingerprints
    today = request.now.date()
    failed = selection.with_failed_seeds
    failures = find_failures(failed, request.policy.quarantines, today, reference)
    measures = _measure(request, selection, failures)
    before = None if baseline is None else baseline.figures
    thresholds = evaluate(
        request.policy, request.tier, measures.figures, before, is_waived=is_waived
    )
    seeds, clean_ones = clean_seeds(selection.sweeps)
    proven = sum(run.outcome == "valid" for run in runs) + clean_ones
    verdict, code = verdict_of(
        thresholds,
        tried=len(runs) + seeds,
        proven=proven,
        harness_failed=bool(measures.problems),
    )
    flaky = frozenset(run.name for run in runs if is_flaky(run, runs))
    record = GateRecord(
        at=request.now.isoformat(timespec="seconds"),
        tool_version=tool_version(),
        tool_commit=tool_commit(),
        policy=request.policy.path,
        policy_digest=request.policy.digest,
        tier=request.tier.name,
        sources=selection.sources,
        baseline=None if baseline is None else baseline.reference,
        verdict=verdict,
        exit_code=code,
        sentence=leading_sentence(
            thresholds,
            tried=_counted(len(runs), seeds),
            proven=proven,
            problems=measures.problems,
        ),
        thresholds=thresholds,
        figures={subject.text: measured for subject, measured in measures.figures.items()},
        failures=tuple(map(failure_record, failures.all)),
        resolved=failures.resolved,
        idle_quarantines=failures.idle,
        runs=tuple(run_record(run, is_flaky=run.name in flaky) for run in selection.runs),
        sweeps=tuple(map(sweep_record, selection.sweeps)),
        problems=measures.problems,
        notes=(
            *_notes(selection, is_first=is_first),
            *measures.notes,
            *(baseline.notes if baseline else ()),
        ),
    )
    return Held(record, (*selection.runs, *_first_seeds(failures)), failures, flaky)


def _counted(runs: int, seeds: int) -> str:
    """Return how much was tried; empty: nothing was."""
    parts = [counted(number, noun) for number, noun in ((runs, "run"), (seeds, "seed")) if number]
    return " and ".join(parts)


def _first_seeds(failures: Failures) -> list[GatedRun]:
    """Return some failed seeds of each failure, which have no run folder to be told from."""
    found: dict[str, GatedRun] = {}
    for failure in failures.all:
        seeds = [case.run for case in failure.cases if case.run.is_seed]
        found |= {run.name: run for run in seeds[:CASES_MAX]}
    return [*found.values()]


def _with_implied(request: GateRequest, selection: Selection) -> GateRequest:
    """Add what nights with planted bugs, and sweeps, must always meet; take out what sweeps lack.

    A selection of sweeps alone has no run in which a violation could be.
    """
    thresholds = request.tier.thresholds
    if selection.sweeps and not selection.runs:
        thresholds = tuple(
            each for each in thresholds if not (each.is_implied and each.measure == IMPLIED.measure)
        )
    demanded = {
        IMPLIED_OF_CANARIES: any(run.is_canary for run in selection.runs),
        IMPLIED_OF_SWEEPS: bool(selection.sweeps),
    }
    said = {threshold.measure for threshold in thresholds}
    implied = [each for each, fits in demanded.items() if fits and each.measure not in said]
    stricter = Tier(request.tier.name, (*thresholds, *implied))
    return msgspec.structs.replace(request, tier=stricter)


def _baseline(request: GateRequest) -> Baseline | None:
    if request.baseline in (None, NONE, LAST):
        return None

    def measure(selection: Selection) -> tuple[dict[Subject, Measured], Sequence[str]]:
        today = request.now.date()
        failures = find_failures(
            selection.with_failed_seeds, request.policy.quarantines, today, None
        )
        measures = _measure(request, selection, failures)
        return measures.figures, (*measures.problems, *measures.notes)

    return read_baseline(request.baseline, measure)


def _measure(request: GateRequest, selection: Selection, failures: Failures) -> Measures:
    of_tier = subjects_of(request.tier)
    everything = [Subject(figure.name) for figure in (*VERDICT_FIGURES, *SEED_FIGURES)]
    by_verdicts = [subject for subject in of_tier if not needs_spark(subject.figure)]
    verdicts = measure_verdicts(dict.fromkeys([*by_verdicts, *everything]), selection, failures)
    by_spark: dict[Subject, None] = {}
    if len(by_verdicts) < len(of_tier):
        of_tiers = [part for tier in request.policy.tiers.values() for part in subjects_of(tier)]
        by_spark = dict.fromkeys(part for part in of_tiers if needs_spark(part.figure))
    spark = measure_with_spark(list(by_spark), selection.judged_by_policy)
    return spark._replace(figures={**verdicts, **spark.figures})


def _notes(selection: Selection, *, is_first: bool) -> Iterator[str]:
    if is_first:
        yield FIRST
    canaries = sum(run.is_canary for run in selection.runs)
    if canaries:
        expected = counted(canaries, "run")
        yield f"{expected} whose violation the suite expects to be found: no other figure."


def output_paths(folder: Path) -> tuple[Path, Path, Path, Path]:
    """Return the paths of a gate's JSON, JUnit XML, Markdown and SARIF."""
    return folder / RECORD_NAME, folder / "gate.xml", folder / "gate.md", folder / "gate.sarif"


#: An ingest of a long run takes seconds, and a night has hundreds of runs.
TIMEOUT_S: Final = 3600.0
#: Outcomes of runs that may have ended before any client worked.
_WITHOUT_HISTORY: Final = ("failed", "unjudged")
_MODULE: Final = f"{PACKAGE}.spark_analysis.gate_process"


def measure_with_spark(
    subjects: Sequence[Subject], runs: Sequence[GatedRun], timeout_s: float = TIMEOUT_S
) -> Measures:
    """Return the value of each subject; all must be figures of Spark."""
    if not subjects:
        return Measures({})
    if not has_spark():
        lost = Measured(None, 0, f"Spark is not installed; {COMMAND} brings it")
        return Measures(dict.fromkeys(subjects, lost))
    there = [run for run in runs if run.has_history]
    silent = sum(run.outcome not in _WITHOUT_HISTORY for run in runs if run not in there)
    if silent or not there:
        # The rest would be an arbitrary choice: a suite prunes valid runs, for one.
        lack = f"{counted(silent, 'run')} kept no history" if silent else "no run has a history"
        return Measures(dict.fromkeys(subjects, Measured(None, 0, lack)))
    notes: tuple[str, ...] = ()
    if left_out := len(runs) - len(there):
        count = counted(left_out, "run")
        notes = (f"{count} never had a history, so no latency of theirs is reference.",)
    answer = _ask(subjects, there, timeout_s)
    if isinstance(answer, str):
        lost = Measured(None, 0, "Spark did not answer")
        return Measures(dict.fromkeys(subjects, lost), (answer,), notes)
    figures = {subject: _measured(answer, subject) for subject in subjects}
    return Measures(figures, (), (*notes, *answer.damage))


def _measured(answer: FiguresAnswer, subject: Subject) -> Measured:
    value, samples, run = answer.figures.get(subject.text, (None, 0, None))
    lack = None if value is not None else "nothing was there to measure"
    # The name of its folder, without what makes it unique over machines.
    return Measured(value, samples, lack, None if run is None else run.partition(".")[0])


def _ask(
    subjects: Sequence[Subject], runs: Sequence[GatedRun], timeout_s: float
) -> FiguresAnswer | str:
    selected = [
        SelectedRun(
            run.folder_text,
            run.system,
            run.version,
            run.workload,
            run.runtime,
            run.lake,
            run.run_id,
        )
        for run in runs
    ]
    request = FiguresRequest(tuple(selected), tuple(subjects))
    answered = ask_spark(_MODULE, request, name="gate", timeout_s=timeout_s)
    if answered.code is None:
        return f"The figures of Spark did not come within {timeout_s:g} s."
    try:
        if answered.code == 0:
            return msgspec.json.decode(answered.answer, type=FiguresAnswer)
    except UNREADABLE as error:
        return f"The figures of Spark cannot be read: {error}."
    reason = answered.error_line or f"it ended with code {answered.code}"
    return f"The figures of Spark are missing: {reason.rstrip('.')}."
