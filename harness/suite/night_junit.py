"""Writes a night's ``junit.xml``, for CI servers: one case per run, one per planted bug's cell.

An unexpected violation, and a run that proves nothing, is a failure; a failed harness an error. A
planted bug that went unseen fails its cell's own case. Nothing is ever reported as skipped, since
most servers show that in green.
"""

from xml.etree import ElementTree as ET

from harness.plain_text import printable
from harness.suite.ledger import RunEnded
from harness.suite.tally import CellTally, NightTally


def to_junit(night: NightTally) -> bytes:
    """The content of ``junit.xml``."""
    suite = ET.Element("testsuite", {"name": printable(night.began.suite), "id": night.began.night})
    failures = errors = 0
    for run in night.runs:
        trouble = _add_run(suite, run)
        failures += trouble == "failure"
        errors += trouble == "error"
    checked = [cell for cell in night.cells if cell.planned.expect == "invalid"]
    for cell in checked:
        failures += _add_planted(suite, cell, is_toothless=cell in night.toothless)
    for cell in night.uncovered:
        case = _case(suite, cell.planned.matrix, f"{cell.planned.cell}: covered", 0.0)
        failures += 1
        _trouble(case, "failure", "uncovered", "The cell had no run.", "")
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    ET.indent(suite)
    return ET.tostring(suite, encoding="utf-8", xml_declaration=True)


def _add_run(suite: ET.Element, run: RunEnded) -> str | None:
    """One run's case; ``failure``, ``error`` or None."""
    case = _case(suite, run.matrix, f"{run.cell}, seed {run.seed}", run.took_s)
    if run.verdict != "failed" and (run.expect == "invalid" or run.verdict == "valid"):
        return None
    tag = "error" if run.verdict == "failed" else "failure"
    message = run.sentence or run.verdict
    body = "\n".join([message, *run.vacuous, run.reproduce, run.run_folder or ""])
    _trouble(case, tag, run.verdict, message, body)
    return tag


def _add_planted(suite: ET.Element, cell: CellTally, *, is_toothless: bool) -> bool:
    """The case of one planted bug; whether it failed."""
    case = _case(suite, cell.planned.matrix, f"{cell.planned.cell}: found", 0.0)
    if is_toothless:
        message = (
            f"Found in {cell.as_expected} of {cell.finished} runs, at least "
            f"{cell.planned.at_least} must be: the night is void."
        )
        _trouble(case, "failure", "void", message, message)
    return is_toothless


def _case(suite: ET.Element, matrix: str, name: str, seconds: float) -> ET.Element:
    attributes = {
        "classname": f"splitbrain.{printable(suite.get('name', ''))}.{printable(matrix)}",
        "name": printable(name),
        "time": f"{seconds:.3f}",
    }
    return ET.SubElement(suite, "testcase", attributes)


def _trouble(case: ET.Element, tag: str, kind: str, message: str, body: str) -> None:
    trouble = ET.SubElement(case, tag, {"type": kind, "message": printable(message)})
    trouble.text = "\n".join(printable(line) for line in body.split("\n"))
