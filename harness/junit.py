"""Writes ``junit.xml``, for CI servers: one suite per run, one case per checker, and vacuity.

Invalid is a failure, unknown an error, vacuous a failure of its own case; nothing is ever reported
as skipped, since most servers show that in green.
"""

import re
from xml.etree import ElementTree as ET

from checker.verdict import Verdict
from harness.plain_text import printable
from harness.results import Results, leading_sentence

#: What XML 1.0 cannot hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SENTENCES_MAX = 10


def to_junit(results: Results) -> bytes:
    """The content of ``junit.xml``."""
    suite = ET.Element("testsuite", {"name": _text(results.test), "id": results.run})
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("run_folder", results.run_folder),
        ("reproduce", results.reproduce),
        ("seed", str(results.seed)),
        ("verdict", results.headline),
    ):
        ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    failures = errors = 0
    for result in results.checkers:
        case = _case(suite, results, result.checker, float(result.figures.get("seconds", 0)))
        if result.verdict is Verdict.VALID:
            continue
        sentences = [
            violation["sentence"] for violation in result.violations if "sentence" in violation
        ]
        body = "\n".join([result.reason, *map(str, sentences[:_SENTENCES_MAX]), results.reproduce])
        if result.verdict is Verdict.INVALID:
            failures += 1
            _trouble(case, "failure", "invalid", result.reason, body)
        else:
            errors += 1
            _trouble(case, "error", "unknown", result.reason, body)
    case = _case(suite, results, "vacuity", 0)
    if results.vacuous:
        failures += 1
        _trouble(case, "failure", "vacuous", results.vacuous[0], "\n".join(results.vacuous))
    case = _case(suite, results, "harness", 0)
    if results.harness_failed:
        errors += 1
        _trouble(case, "error", "harness", leading_sentence(results), "\n".join(results.problems))
    suite.set("tests", str(len(results.checkers) + 2))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    ET.indent(suite)
    return ET.tostring(suite, encoding="utf-8", xml_declaration=True)


def _case(suite: ET.Element, results: Results, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(
        suite,
        "testcase",
        {
            "classname": _text(f"splitbrain.{results.test}"),
            "name": _text(name),
            "time": f"{seconds:.3f}",
        },
    )


def _trouble(case: ET.Element, tag: str, kind: str, message: str, body: str) -> None:
    trouble = ET.SubElement(case, tag, {"type": kind, "message": _text(message)})
    trouble.text = _text(body)


def _text(text: str) -> str:
    """Text that XML can hold; control characters become visible escapes."""
    lines = "\n".join(printable(line) for line in text.split("\n"))
    return _NOT_IN_XML.sub("\ufffd", lines)
