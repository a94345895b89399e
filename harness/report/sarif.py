"""SARIF 2.1.0 of violations, for code scanning: a rule for each anomaly, invariant or checker.

Source: OASIS SARIF 2.1.0, and GitHub's page on its support of it. GitHub tells alerts apart by
rule, file and ``primaryLocationLineHash``, here the failure's fingerprint: a violation that is met
again is the same alert, and one that is gone is closed.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.explanation import Explanation
from splitbrain.harness.folder.results import EXIT_HARNESS_FAILED
from splitbrain.harness.folder.tool_version import tool_version
from splitbrain.harness.report.alarms import Alarm
from splitbrain.harness.report.explanations import PARTS, Catalogue, explained, find

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
#: Name and version of the fingerprint, as SARIF wants it.
FINGERPRINT: Final = "splitbrainFingerprint/v2"
#: GitHub takes no more results of one file.
_RESULTS_MAX: Final = 5_000


def to_sarif(alarms: Iterable[Alarm], category: str, file: str | None, exit_code: int) -> bytes:
    """Return the file; alarms that are no violation are left out.

    ``category`` tells this analysis from others of the repository; ``file`` is where its violations
    are shown.
    """
    found = [alarm for alarm in alarms if alarm.rule][:_RESULTS_MAX]
    by_rule = {_id_of(alarm.rule): alarm for alarm in reversed(found)}
    rules = sorted(by_rule)
    catalogue: Catalogue = explained() if rules else {}
    driver = {
        "name": "splitbrain",
        "version": tool_version(),
        "rules": [_rule(by_rule[rule], rule, catalogue) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"splitbrain/{category}/"},
        "columnKind": "utf16CodeUnits",
        "invocations": [
            {"executionSuccessful": exit_code != EXIT_HARNESS_FAILED, "exitCode": exit_code}
        ],
        "results": [_result(alarm, rules, file) for alarm in found],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2) + b"\n"


def _id_of(rule: str) -> str:
    return "-".join(rule.split())


def _rule(alarm: Alarm, rule: str, catalogue: Any) -> dict[str, Any]:
    words = _words_on((alarm.rule, alarm.checker), catalogue)
    says = words.says or f"{alarm.checker} found this in the history of a run."
    parts = [(title, getattr(words, field)) for field, title in PARTS]
    told = [(title, content) for title, content in parts if content]
    plain = "\n\n".join([says, *(f"{title}\n{content}" for title, content in told)])
    marked = "\n\n".join([says, *(f"**{title}**\n\n{_marked(content)}" for title, content in told)])
    return {
        "id": rule,
        "name": "".join(word.capitalize() for word in rule.split("-")),
        "shortDescription": {"text": alarm.rule},
        "fullDescription": {"text": says},
        "help": {"text": plain, "markdown": marked},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["correctness", *([alarm.checker] if alarm.checker else [])]},
    }


def _marked(content: str) -> str:
    return f"```text\n{content}\n```" if "\n" in content else content


def _words_on(names: Sequence[str], catalogue: Any) -> Explanation:
    for name in names:
        try:
            return find(name, catalogue)[0][1]
        except UsageError:
            continue
    return Explanation(name=names[0], says="")


def _result(alarm: Alarm, rules: Sequence[str], file: str | None) -> dict[str, Any]:
    rule = _id_of(alarm.rule)
    where = {"artifactLocation": {"uri": file, "uriBaseId": "%SRCROOT%"}, "region": _FIRST_LINE}
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": alarm.level,
        "message": {"text": "\n".join(filter(None, (alarm.sentence, alarm.reproduce)))},
        "occurrenceCount": alarm.count,
        "properties": {"checker": alarm.checker, "reproduce": alarm.reproduce},
    }
    if file is not None:
        result["locations"] = [{"physicalLocation": where}]
    if alarm.fingerprint:
        result["partialFingerprints"] = {
            "primaryLocationLineHash": f"{alarm.fingerprint}:1",
            FINGERPRINT: alarm.fingerprint,
        }
    return result


_FIRST_LINE: Final = {"startLine": 1}
