"""The gate for CI servers: a suite of the thresholds, then one suite per run, a case per checker.

Seed and reproduce line are properties of a run's suite. A violation is a failure even if its
replays were valid; a quarantined one is flaky, and so is a run that failed without a violation and
was valid in a replay or a later try. A planted bug of a suite that was found passes.
"""

from typing import Final

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.campaign.gate.failures import Failures
from splitbrain.harness.campaign.gate.gated_run import GatedRun
from splitbrain.harness.campaign.gate.record import GateRecord
from splitbrain.harness.campaign.gate.sentences import threshold_sentence
from splitbrain.harness.report.junit import (
    JunitCase,
    JunitSuite,
    Trouble,
    document,
    seconds_of,
    violation_text,
)

#: Of a threshold that is not met, by its state.
_TROUBLES: Final[dict[str, Trouble]] = {"violated": "failure", "unknown": "error"}


def to_junit(
    record: GateRecord, runs: tuple[GatedRun, ...], failures: Failures, flaky: frozenset[str]
) -> bytes:
    """Return the content of ``gate.xml``."""
    suites = [_thresholds(record)]
    suites += [_run(run, failures, is_flaky=run.name in flaky) for run in runs]
    return document(suites, f"splitbrain gate, {record.tier}")


def _thresholds(record: GateRecord) -> JunitSuite:
    properties = {
        "policy": record.policy,
        "tier": record.tier,
        "baseline": record.baseline or "none",
        "verdict": record.verdict,
    }
    suite = JunitSuite(f"gate {record.tier}", record.at, properties)
    class_name = f"splitbrain.gate.{record.tier}"
    for threshold in record.thresholds:
        case = suite.case(class_name, threshold.threshold)
        sentence = threshold_sentence(threshold)
        if (trouble := _TROUBLES.get(threshold.state)) is None:
            case.note(sentence)
        else:
            case.add(trouble, threshold.state, sentence, sentence)
    case = suite.case(class_name, "anything proven")
    is_open = record.verdict in ("unknown", "failed")
    if is_open and not any(threshold.state in _TROUBLES for threshold in record.thresholds):
        case.add("error", record.verdict, record.sentence, record.sentence)
    return suite


def _run(run: GatedRun, failures: Failures, *, is_flaky: bool) -> JunitSuite:
    properties = {
        "seed": "none" if run.seed is None else str(run.seed),
        "reproduce": run.reproduce,
        "outcome": run.outcome,
        "system": run.system,
        "version": run.version,
        "workload": run.workload,
        "runtime": run.runtime,
    }
    if run.folder_text is not None:
        properties["run_folder"] = run.folder_text
    suite = JunitSuite(f"{run.system} {run.workload}", run.name, properties)
    class_name = f"splitbrain.{run.system}.{run.workload}.{run.runtime}"
    checkers = {result.checker for result in run.checkers}
    others = [result for result in run.invalid if result.checker not in checkers]
    for result in (*run.checkers, *others):
        case = suite.case(class_name, f"{result.checker}, {run.name}", seconds_of(result))
        if not run.is_canary:
            _judge(case, run, result, failures, is_flaky=is_flaky)
    case = suite.case(class_name, f"run, {run.name}", run.took_s)
    _judge_whole(case, run, is_flaky=is_flaky)
    return suite


def _judge(
    case: JunitCase, run: GatedRun, result: CheckResult, failures: Failures, *, is_flaky: bool
) -> None:
    if result.verdict is Verdict.VALID:
        if result.allowed:
            case.note(result.reason)
        return
    body = violation_text(result, run.reproduce)
    if result.verdict is Verdict.UNKNOWN:
        case.add("flakyError" if is_flaky else "error", "unknown", result.reason, body)
        return
    failure = failures.of(result)
    assert failure is not None, "every violation of a selection is one of its failures"
    novelty = "" if failure.is_new is None else ", new" if failure.is_new else ", known"
    body = f"{failure.text}{novelty}\n{body}"
    if failure.is_spared:
        assert failure.quarantine is not None
        why = f"Quarantined until {failure.quarantine.until}: {failure.quarantine.reason}"
        case.add("flakyFailure", failure.text, headline_of(result), f"{why}\n{body}")
        return
    if failure.quarantine is not None:
        body = f"Its quarantine ended on {failure.quarantine.until}.\n{body}"
    if is_flaky:
        body = f"It was violated, though a replay did not show it again.\n{body}"
    case.add("failure", failure.text, headline_of(result), body)


def _judge_whole(case: JunitCase, run: GatedRun, *, is_flaky: bool) -> None:
    """Add outcomes that no checker states: a run that proves nothing, or is missing."""
    body = "\n".join([run.sentence, *run.problems, run.reproduce])
    if run.is_canary:
        if run.canary_missed:
            case.add(
                "failure", "canary", "The violation that the suite expects was not found.", body
            )
        return
    if run.outcome == "vacuous":
        case.add("flakyFailure" if is_flaky else "failure", "vacuous", run.sentence, body)
    elif run.outcome == "unknown" and any(
        result.verdict is Verdict.UNKNOWN for result in run.checkers
    ):
        # The checker's own case says it.
        return
    elif run.outcome in ("failed", "unjudged", "unknown"):
        case.add("flakyError" if is_flaky else "error", run.outcome, run.sentence, body)
    elif run.died_before:
        sentence = f"{run.died_before} tries before it died before they could tell anything."
        case.add("flakyError", "died", sentence, body)
