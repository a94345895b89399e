"""The gate's findings in words, the same in every output."""

import math

from splitbrain.contracts.figure import Unit
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.catalogue import FIGURES
from splitbrain.harness.campaign.gate.evaluation import Judged
from splitbrain.harness.campaign.gate.record import FailureRecord

#: Subjects of violated thresholds that lead the sentence.
_FIRST = ("violations", "canaries_missed")
#: By the gate's verdict.
HEADLINES = {"green": "GREEN", "red": "RED", "unknown": "UNKNOWN", "failed": "HARNESS FAILED"}


def value_text(value: float | None, unit: Unit) -> str:
    """Return a figure as people read it."""
    if value is None:
        return "unknown"
    match unit:
        case "count":
            return f"{value:,.0f}"
        case "share":
            return f"{_short(value * 100, 2)} %"
        case "ms":
            return f"{_short(value, 3)} ms"
        case "per-second":
            return f"{_short(value, 1)} a second"


def _short(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def change_text(worse: float) -> str:
    """Return a change for the worse as ``12.5 % worse``; below zero it is better."""
    if math.isinf(worse):
        return "worse than none"
    share = f"{abs(worse) * 100:,.1f} %"
    if share == "0.0 %":
        return "no worse"
    return f"{share} {'worse' if worse > 0 else 'better'}"


def measured_text(threshold: Judged) -> str:
    """Return the figure of a threshold, with its samples."""
    figure = FIGURES[threshold.subject.partition("{")[0]]
    value = value_text(threshold.value, figure.unit)
    if not threshold.regression:
        where = f", in {threshold.worst_in}" if threshold.worst_in else ""
        samples = f" ({figure.samples_of}: {threshold.samples:,}{where})"
        return value if threshold.value is None else f"{value}{samples}"
    then = value_text(threshold.baseline, figure.unit)
    change = "" if threshold.change is None else f", {change_text(threshold.change)}"
    return f"{value} after {then}{change}"


def threshold_sentence(threshold: Judged) -> str:
    """Return the outcome of a threshold."""
    why = f": {threshold.reason}" if threshold.reason else ""
    match threshold.state:
        case "met":
            return f"Met: {measured_text(threshold)}."
        case "violated":
            return f"Violated: {measured_text(threshold)}{why}."
        case "unknown":
            return f"Unknown{why}."
        case "not-compared":
            return f"Not compared{why}."


def leading_sentence(
    thresholds: tuple[Judged, ...], *, tried: str, proven: int, problems: tuple[str, ...]
) -> str:
    """Return the sentence that explains the verdict; mirrors ``evaluation.verdict_of``.

    ``tried`` is the number of runs and seeds in words, empty without any.
    """
    violated = [threshold for threshold in thresholds if threshold.state == "violated"]
    unknown = [threshold for threshold in thresholds if threshold.state == "unknown"]
    if violated:
        # Equal ones keep the policy's order.
        first = min(violated, key=lambda each: (*_FIRST, each.subject).index(each.subject))
        more = f"; {counted(len(violated) - 1, 'threshold')} more" if len(violated) > 1 else ""
        return f"{first.threshold} is violated: {measured_text(first)}{more}."
    if problems:
        return problems[0]
    if not tried:
        return "There is no run and no seed, so nothing was proven."
    if unknown:
        first = unknown[0]
        more = f"; {counted(len(unknown) - 1, 'threshold')} more" if len(unknown) > 1 else ""
        return f"Nothing can be said of {first.threshold}: {first.reason}{more}."
    if not proven:
        return f"Of {tried} none is valid, so nothing was proven."
    met = sum(threshold.state == "met" for threshold in thresholds)
    how = f"{'is' if met == 1 else 'are'} met by {tried}"
    summary = f"{counted(met, 'threshold')} {how}"
    if waived := len(thresholds) - met:
        return f"{summary}, and {waived} {'is' if waived == 1 else 'are'} not compared."
    return f"{'All ' if met > 1 else ''}{summary}."


def failure_state(failure: FailureRecord) -> str:
    """Return ``new`` or ``known``, and the state of its quarantine."""
    states = [] if failure.new is None else ["new" if failure.new else "known"]
    if failure.quarantined_until is not None:
        how = "quarantine expired on" if failure.quarantine_expired else "quarantined until"
        states.append(f"{how} {failure.quarantined_until}")
    return ", ".join(states) or "counts"


def failure_title(failure: FailureRecord) -> str:
    """Return the failure in a few words."""
    shape = f": {failure.shape}" if failure.shape else ""
    return f"{failure.checker}, {failure.name or failure.kind}{shape}"
