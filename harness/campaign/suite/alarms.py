"""Alarms of a suite's night: runs that came out as nobody expected, and cells that saw nothing."""

from splitbrain.harness.campaign.suite.ledger import RunEnded
from splitbrain.harness.campaign.suite.summary import headline, toothless_sentence
from splitbrain.harness.campaign.suite.tally import NightTally
from splitbrain.harness.folder.results import EXIT_UNKNOWN
from splitbrain.harness.report.alarms import Alarm


def alarms_of_night(night: NightTally) -> list[Alarm]:
    """Return the alarms, violations first; none where all is as expected."""
    if night.exit_code == 0:
        return []
    errors = [_run(run) for run in (*night.violations, *night.failures)]
    void = [
        Alarm(title=f"VOID: {cell.planned.cell}", sentence=toothless_sentence(cell))
        for cell in night.toothless
    ]
    doubts = [_run(run, is_doubt=True) for run in night.inconclusive]
    is_unknown = night.exit_code == EXIT_UNKNOWN
    rest = Alarm(
        title=f"suite {night.began.suite}",
        sentence=headline(night),
        level="warning" if is_unknown else "error",
    )
    return errors + void + doubts or [rest]


def _run(run: RunEnded, *, is_doubt: bool = False) -> Alarm:
    return Alarm(
        title=f"{run.verdict}: {run.cell}, seed {run.seed}",
        sentence=run.sentence or f"It came out {run.verdict}, {run.expect} was expected.",
        reproduce=run.reproduce,
        level="warning" if is_doubt else "error",
    )
