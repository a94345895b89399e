"""JUnit XML as CI servers read it (xunit2, ``junit-10.xsd``), and ``junit.xml`` of a run.

A *flaky* case passes, and servers that know the word show that it did not always. Nothing is ever
reported as skipped, since most servers show that in green. Properties belong to a suite: the schema
allows none in a case.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Literal
from xml.etree import ElementTree as ET

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.folder.results import Results, leading_sentence

_SENTENCES_MAX = 10


def to_junit(results: Results) -> bytes:
    """Return the content of ``junit.xml``."""
    properties = {
        "run_folder": results.run_folder,
        "reproduce": results.reproduce,
        "seed": str(results.seed),
        "verdict": results.headline,
    }
    if results.not_run:
        properties["not_run"] = "; ".join(f"{name}: {why}" for name, why in results.not_run.items())
    if results.too_short:
        properties["too_short"] = " ".join(results.too_short.values())
    suite = JunitSuite(results.test, results.run, properties)
    class_name = f"splitbrain.{results.test}"
    for result in results.checkers:
        case = suite.case(class_name, result.checker, seconds_of(result))
        body = violation_text(result, results.reproduce)
        if result.verdict is Verdict.INVALID:
            case.add("failure", "invalid", headline_of(result), body)
        elif result.verdict is Verdict.UNKNOWN:
            case.add("error", "unknown", result.reason, body)
        elif result.allowed:
            case.note(result.reason)
    case = suite.case(class_name, "vacuity")
    if results.vacuous:
        case.add("failure", "vacuous", results.vacuous[0], "\n".join(results.vacuous))
    case = suite.case(class_name, "harness")
    if results.harness_failed:
        case.add("error", "harness", leading_sentence(results), "\n".join(results.problems))
    return document([suite])


def seconds_of(result: CheckResult) -> float:
    """Return the checker's time."""
    seconds = result.figures.get("seconds", 0)
    return float(seconds) if isinstance(seconds, int | float) else 0.0


def violation_text(result: CheckResult, reproduce: str) -> str:
    """Return a checker's finding, its first violations, and the command to repeat it; lines."""
    sentences = [
        str(violation.get("account", violation.get("sentence")))
        for violation in result.violations
        if "sentence" in violation
    ]
    headline = headline_of(result)
    first = [headline] if result.reason in headline else [headline, result.reason]
    others = [sentence for sentence in sentences if sentence not in headline]
    return "\n".join([*first, *others[:_SENTENCES_MAX], reproduce])


#: Characters that XML 1.0 cannot hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Trouble = Literal["failure", "error", "flakyFailure", "flakyError"]


class JunitSuite:
    """One ``testsuite`` in the making; ``suite_id`` is the run or the night."""

    def __init__(self, name: str, suite_id: str, properties: Mapping[str, str] = {}) -> None:
        self._element = ET.Element("testsuite", {"name": xml_text(name), "id": xml_text(suite_id)})
        self._counts = {"tests": 0, "failures": 0, "errors": 0}
        self._seconds = 0.0
        if properties:
            listed = ET.SubElement(self._element, "properties")
            for key, value in properties.items():
                ET.SubElement(listed, "property", {"name": key, "value": xml_text(value)})

    def case(self, class_name: str, name: str, seconds: float = 0.0) -> "JunitCase":
        """Add a case that passes unless trouble is added to it."""
        self._counts["tests"] += 1
        self._seconds += seconds
        attributes = {
            "classname": xml_text(class_name),
            "name": xml_text(name),
            "time": f"{seconds:.3f}",
        }
        return JunitCase(ET.SubElement(self._element, "testcase", attributes), self._counts)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return ``tests``, ``failures`` and ``errors``."""
        return self._counts

    def element(self) -> ET.Element:
        """Return the suite with its sums."""
        for name, count in self._counts.items():
            self._element.set(name, str(count))
        self._element.set("time", f"{self._seconds:.3f}")
        return self._element


class JunitCase:
    """One ``testcase`` in the making."""

    def __init__(self, element: ET.Element, counts: dict[str, int]) -> None:
        self._element, self._counts = element, counts

    def add(self, trouble: Trouble, kind: str, message: str, body: str) -> None:
        """Add trouble: one word ``kind``, one sentence ``message``, all of it in ``body``."""
        attributes = {"type": xml_text(kind), "message": xml_text(message)}
        ET.SubElement(self._element, trouble, attributes).text = xml_text(body)
        if trouble == "failure":
            self._counts["failures"] += 1
        elif trouble == "error":
            self._counts["errors"] += 1

    def note(self, text: str) -> None:
        """Add to the output of the case."""
        ET.SubElement(self._element, "system-out").text = xml_text(text)


def document(suites: Iterable[JunitSuite], name: str | None = None) -> bytes:
    """Return the file: a single nameless suite, else all suites in ``testsuites``."""
    made = list(suites)
    if name is None and len(made) == 1:
        root = made[0].element()
    else:
        root = ET.Element("testsuites", {"name": xml_text(name or "splitbrain")})
        for key in ("tests", "failures", "errors"):
            root.set(key, str(sum(suite.counts[key] for suite in made)))
        root.extend(suite.element() for suite in made)
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def xml_text(text: str) -> str:
    """Return text that XML can hold; control characters become visible escapes."""
    lines = "\n".join(printable(line) for line in text.split("\n"))
    return _NOT_IN_XML.sub("\ufffd", lines)
