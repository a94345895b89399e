"""Asks Spark for figures, in a child process; without such figures no JVM is started.

Whatever goes wrong there is one sentence and leaves every figure unknown, never zero.
"""

from collections.abc import Sequence
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
from splitbrain.harness.campaign.gate.gated_run import GatedRun
from splitbrain.harness.folder.results import counted
from splitbrain.harness.pool.spark_child import ask_spark

#: An ingest of a long run takes seconds, and a night has hundreds of runs.
TIMEOUT_S: Final = 3600.0
#: Outcomes of runs that may have ended before any client worked.
_WITHOUT_HISTORY: Final = ("failed", "unjudged")
_MODULE: Final = f"{PACKAGE}.spark_analysis.gate_process"


class SparkMeasures(NamedTuple):
    """What came of asking."""

    figures: dict[Subject, Measured]
    #: Why nothing came of it, one sentence.
    failure: str | None
    #: What the figures leave out, one sentence each.
    notes: tuple[str, ...]


def measure_with_spark(
    subjects: Sequence[Subject], runs: Sequence[GatedRun], timeout_s: float = TIMEOUT_S
) -> SparkMeasures:
    """The value of each subject, all of which must be figures of Spark; none for none."""
    if not subjects:
        return SparkMeasures({}, None, ())
    there = [run for run in runs if run.has_history]
    silent = sum(run.outcome not in _WITHOUT_HISTORY for run in runs if run not in there)
    if silent or not there:
        # The rest would be a choice that nobody made: a suite prunes valid runs, for one.
        lack = f"{counted(silent, 'run')} kept no history" if silent else "no run has a history"
        nothing = Measured(None, 0, lack)
        return SparkMeasures(dict.fromkeys(subjects, nothing), None, ())
    notes = _left_out(len(runs) - len(there))
    answer = _ask(subjects, there, timeout_s)
    if isinstance(answer, str):
        lost = Measured(None, 0, "Spark did not answer")
        return SparkMeasures(dict.fromkeys(subjects, lost), answer, notes)
    return SparkMeasures(
        {subject: _measured(answer, subject) for subject in subjects},
        None,
        (*notes, *answer.damage),
    )


def _left_out(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"{counted(count, 'run')} never had a history, so no latency of theirs is known.",)


def _measured(answer: FiguresAnswer, subject: Subject) -> Measured:
    value, samples = answer.figures.get(subject.text, (None, 0))
    return Measured(value, samples, None if value is not None else "nothing was there to measure")


def _ask(
    subjects: Sequence[Subject], runs: Sequence[GatedRun], timeout_s: float
) -> FiguresAnswer | str:
    """The answer, or in one sentence why there is none."""
    request = FiguresRequest(
        tuple(
            SelectedRun(
                folder=None if run.folder is None else str(run.folder),
                lake=run.lake,
                run_id=run.run_id,
                system=run.system,
                version=run.version,
                workload=run.workload,
                runtime=run.runtime,
            )
            for run in runs
        ),
        tuple(subjects),
    )
    answered = ask_spark(_MODULE, request, name="gate", timeout_s=timeout_s)
    if answered.code is None:
        return f"The figures of Spark did not come within {timeout_s:g} s."
    try:
        if answered.code == 0:
            return msgspec.json.decode(answered.answer, type=FiguresAnswer)
    except UNREADABLE as error:
        return f"The figures of Spark cannot be read: {error}."
    told = answered.told or f"it ended with code {answered.code}"
    return f"The figures of Spark are missing: {told.rstrip('.')}."
