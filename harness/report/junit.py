"""Writes ``junit.xml``, for CI servers: one suite per run, one case per checker, and vacuity.

Invalid is a failure, unknown an error, vacuous a failure of its own case.
"""

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.results import Results, leading_sentence
from splitbrain.harness.report.junit_document import JunitSuite, document

_SENTENCES_MAX = 10


def to_junit(results: Results) -> bytes:
    """The content of ``junit.xml``."""
    properties = {
        "run_folder": results.run_folder,
        "reproduce": results.reproduce,
        "seed": str(results.seed),
        "verdict": results.headline,
    }
    if results.not_run:
        properties["not_run"] = "; ".join(f"{name}: {why}" for name, why in results.not_run.items())
    suite = JunitSuite(results.test, results.run, properties)
    class_name = f"splitbrain.{results.test}"
    for result in results.checkers:
        case = suite.case(class_name, result.checker, seconds_of(result))
        body = violation_text(result, results.reproduce)
        if result.verdict is Verdict.INVALID:
            case.add("failure", "invalid", result.reason, body)
        elif result.verdict is Verdict.UNKNOWN:
            case.add("error", "unknown", result.reason, body)
    case = suite.case(class_name, "vacuity")
    if results.vacuous:
        case.add("failure", "vacuous", results.vacuous[0], "\n".join(results.vacuous))
    case = suite.case(class_name, "harness")
    if results.harness_failed:
        case.add("error", "harness", leading_sentence(results), "\n".join(results.problems))
    return document([suite])


def seconds_of(result: CheckResult) -> float:
    """How long the checker took."""
    seconds = result.figures.get("seconds", 0)
    return float(seconds) if isinstance(seconds, int | float) else 0.0


def violation_text(result: CheckResult, reproduce: str) -> str:
    """What a checker found, its first violations, and how to see it again; lines."""
    sentences = [
        str(violation["sentence"]) for violation in result.violations if "sentence" in violation
    ]
    return "\n".join([result.reason, *sentences[:_SENTENCES_MAX], reproduce])
