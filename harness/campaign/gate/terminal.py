"""The gate on the terminal: short, the verdict last, where the eye is when a command ends."""

from rich.console import Console
from rich.text import Text

from splitbrain.harness.campaign.gate.record import FailureRecord, GateRecord
from splitbrain.harness.campaign.gate.words import (
    failure_state,
    failure_title,
    headline,
    threshold_sentence,
)
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.folder.results import counted

_FAILURES_MAX = 10
_RUNS_MAX = 5
_STYLES = {
    "green": "bold black on green",
    "red": "bold white on red",
    "unknown": "bold black on yellow",
    "failed": "bold black on yellow",
}


def show(record: GateRecord, console: Console) -> None:
    """Print the summary."""
    lines = [f"Gate {record.tier} of {record.policy}", ""]
    width = max((len(one.threshold) for one in record.thresholds), default=0)
    lines.append("Thresholds")
    for one in record.thresholds:
        implied = " (implied)" if one.implied else ""
        lines.append(f"  {one.threshold:<{width}}  {threshold_sentence(one)}{implied}")
    if record.failures:
        lines += ["", "Failures"]
        for failure in record.failures[:_FAILURES_MAX]:
            lines += _failure(failure)
        if len(record.failures) > _FAILURES_MAX:
            lines.append(f"  and {len(record.failures) - _FAILURES_MAX:,} more")
    wrong = [
        run for run in record.runs if run.outcome not in ("valid", "invalid") and not run.canary
    ]
    if wrong:
        lines += ["", "Runs that prove nothing"]
        lines += [
            f"  {run.outcome:<8}  {run.run}: {run.sentence.partition(chr(10))[0]}"
            for run in wrong[:_RUNS_MAX]
        ]
        if len(wrong) > _RUNS_MAX:
            lines.append(f"  and {len(wrong) - _RUNS_MAX:,} more")
    told = [f"{one} was not met again." for one in record.resolved]
    told += [
        f"The quarantine of {one.fingerprint} met nothing: remove it if the failure is gone."
        for one in record.idle_quarantines
    ]
    told += [*record.notes, *record.problems]
    if told:
        lines += ["", "Notes", *(f"  {sentence}" for sentence in told)]
    for line in (*lines, ""):
        console.print(Text(printable(line)), soft_wrap=True)
    verdict = Text(f" {headline(record)} ", style=_STYLES[record.verdict])
    console.print(verdict + Text(f" {printable(record.sentence)}"), soft_wrap=True)


def _failure(failure: FailureRecord) -> list[str]:
    first = failure.cases[0]
    state = f"{counted(failure.runs, 'run')}, {failure_state(failure)}"
    return [
        f"  {failure.fingerprint}  {failure_title(failure)} ({state})",
        f"    {first.run}: {first.sentence}",
        f"    {first.reproduce}",
    ]
