"""Writes a night's ``junit.xml``, for CI servers: one case per run, one per planted bug's cell.

An unexpected violation, and a run that proves nothing, is a failure; a failed harness an error. A
planted bug that went unseen fails its cell's own case.
"""

from splitbrain.harness.campaign.suite.ledger import RunEnded
from splitbrain.harness.campaign.suite.tally import CellTally, NightTally
from splitbrain.harness.report.junit_document import JunitSuite, document


def to_junit(night: NightTally) -> bytes:
    """The content of ``junit.xml``."""
    name = night.began.suite
    suite = JunitSuite(name, night.began.night)
    for run in night.runs:
        _add_run(suite, name, run)
    for cell in (cell for cell in night.cells if cell.planned.expect == "invalid"):
        _add_planted(suite, name, cell, is_toothless=cell in night.toothless)
    for cell in night.uncovered:
        case = suite.case(_class_name(name, cell.planned.matrix), f"{cell.planned.cell}: covered")
        case.add("failure", "uncovered", "The cell had no run.", "")
    return document([suite])


def _add_run(suite: JunitSuite, name: str, run: RunEnded) -> None:
    case = suite.case(_class_name(name, run.matrix), f"{run.cell}, seed {run.seed}", run.took_s)
    if run.verdict != "failed" and (run.expect == "invalid" or run.verdict == "valid"):
        return
    message = run.sentence or run.verdict
    body = "\n".join([message, *run.vacuous, run.reproduce, run.run_folder or ""])
    case.add("error" if run.verdict == "failed" else "failure", run.verdict, message, body)


def _add_planted(suite: JunitSuite, name: str, cell: CellTally, *, is_toothless: bool) -> None:
    case = suite.case(_class_name(name, cell.planned.matrix), f"{cell.planned.cell}: found")
    if is_toothless:
        message = (
            f"Found in {cell.as_expected} of {cell.finished} runs, at least "
            f"{cell.planned.at_least} must be: the night is void."
        )
        case.add("failure", "void", message, message)


def _class_name(suite: str, matrix: str) -> str:
    return f"splitbrain.{suite}.{matrix}"
