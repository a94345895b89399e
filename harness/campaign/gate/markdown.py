"""The gate as Markdown, for the summary page of a CI job: new failures first.

A page may have 1 MiB on GitHub; the rest is cut at the end of a line, and that is said. All text
from outside is escaped.
"""

from collections import Counter
from collections.abc import Iterator

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.record import FailureRecord, GateRecord, RunRecord, State
from splitbrain.harness.campaign.gate.sentences import (
    HEADLINES,
    failure_state,
    failure_title,
    measured_text,
)
from splitbrain.harness.console.plain_text import markdown, printable, value_text

#: Limit of one step's summary, with room for the step's own text.
BYTES_MAX = 1_000_000
_CASES_MAX = 3
_SENTENCE_MAX = 400
_STATE_WORDS: dict[State, str] = {
    "violated": "**violated**",
    "unknown": "**unknown**",
    "not-compared": "not compared",
    "met": "met",
}
_CUT = "\n_The rest does not fit here and stands in gate.json._\n"


def to_markdown(record: GateRecord, bytes_max: int = BYTES_MAX) -> str:
    """Return the content of ``gate.md``, at most so many bytes of UTF-8."""
    lines: list[str] = []
    left = bytes_max - len(_CUT.encode())
    for line in _lines(record):
        left -= len(line.encode()) + 1
        if left < 0:
            return "\n".join(lines) + _CUT
        lines.append(line)
    return "\n".join(lines) + "\n"


def _lines(record: GateRecord) -> Iterator[str]:
    yield f"# Gate {markdown(record.tier)}: {HEADLINES[record.verdict]}"
    yield ""
    yield markdown(record.sentence)
    yield ""
    spared = [failure for failure in record.failures if failure.is_spared]
    left = [failure for failure in record.failures if not failure.is_spared]
    expired = [failure for failure in left if failure.quarantine_expired and not failure.new]
    others = [failure for failure in left if not failure.quarantine_expired and not failure.new]
    yield from _failures("New failures", [failure for failure in left if failure.new])
    yield from _failures("Failures whose quarantine is over", expired)
    yield from _thresholds(record)
    title = "Failures" if record.baseline is None else "Known failures"
    yield from _failures(title, others)
    yield from _failures("Quarantined failures", spared)
    resolved = [f"{fingerprint} was not met again" for fingerprint in record.resolved]
    yield from _list("Resolved since the baseline", resolved)
    idle = [
        f"{quarantine.fingerprint}, until {quarantine.until}: {quarantine.reason}. "
        "Remove it if the failure is gone."
        for quarantine in record.idle_quarantines
    ]
    yield from _list("Quarantines that met nothing", idle)
    if record.runs or not record.sweeps:
        yield from _runs(record)
    yield from _list("Sweeps", [f"{sweep.sweep}: {sweep.sentence}" for sweep in record.sweeps])
    yield from _list("Notes", (*record.problems, *record.notes))


def _failures(title: str, failures: list[FailureRecord]) -> Iterator[str]:
    if not failures:
        return
    yield f"## {title}"
    yield ""
    for failure in failures:
        state = f"{counted(failure.runs, 'run')}, {markdown(failure_state(failure))}"
        yield f"### `{failure.fingerprint}` {markdown(failure_title(failure))} ({state})"
        yield ""
        if failure.quarantine_reason is not None:
            yield f"Quarantined because: {markdown(failure.quarantine_reason)}"
            yield ""
        for case in failure.cases[:_CASES_MAX]:
            sentence = markdown(value_text(case.sentence, _SENTENCE_MAX))
            yield f"- {markdown(case.run)}: {sentence}"
            yield ""
            yield from _command(case.reproduce)
        if failure.runs > _CASES_MAX:
            yield f"- and {counted(failure.runs - _CASES_MAX, 'run')} more"
        yield ""


def _command(text: str) -> Iterator[str]:
    yield f"      {printable(' '.join(text.split()))}"
    yield ""


def _thresholds(record: GateRecord) -> Iterator[str]:
    yield "## Thresholds"
    yield ""
    yield "| threshold | | found | why |"
    yield "|---|---|---|---|"
    for state in ("violated", "unknown", "not-compared", "met"):
        for threshold in record.of_state(state):
            implied = " (implied)" if threshold.implied else ""
            yield (
                f"| {markdown(threshold.threshold)}{implied} | {_STATE_WORDS[state]} "
                f"| {markdown(measured_text(threshold))} | {markdown(threshold.reason)} |"
            )
    yield ""


def _runs(record: GateRecord) -> Iterator[str]:
    yield "## Runs"
    yield ""
    yield "| system | workload | runtime | outcome | runs |"
    yield "|---|---|---|---|---|"
    sums = Counter(_row(run) for run in record.runs)
    for row, count in sorted(sums.items()):
        yield f"| {' | '.join(map(markdown, row))} | {count:,} |"
    yield ""
    proven = ("valid", "invalid")
    wrong = [run for run in record.runs if run.flaky or run.outcome not in proven]
    wrong = [run for run in wrong if not run.canary]
    if not wrong:
        return
    yield "### Runs that prove nothing, and flaky ones"
    yield ""
    for run in wrong:
        flaky = ", passed on a retry" if run.flaky else ""
        sentence = markdown(value_text(run.sentence, _SENTENCE_MAX))
        yield f"- {markdown(run.run)} ({run.outcome}{flaky}): {sentence}"
        yield ""
        yield from _command(run.reproduce)


def _row(run: RunRecord) -> tuple[str, ...]:
    outcome = run.outcome
    if run.canary:
        how = "found" if run.outcome == "invalid" else "not shown, found by others of its cell"
        outcome = f"expected violation {'missed' if run.canary_missed else how}"
    return run.system, run.workload, run.runtime, outcome


def _list(title: str, sentences: "list[str] | tuple[str, ...]") -> Iterator[str]:
    if not sentences:
        return
    yield f"## {title}"
    yield ""
    for sentence in sentences:
        yield f"- {markdown(sentence)}"
    yield ""
