"""Conclusion of one attempt, from its folder, for the ledger's line.

A violation on the disk counts whatever became of the process. A folder can convict a run that died
or was stopped, but never acquit it: such a run is no green line. A run that died undecided
concludes as None and is done again. Judges nothing itself; an unjudged folder is handed to
``splitbrain check``.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.checker.verdict import Verdict as RunVerdict
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.harness.campaign.suite import ledger
from splitbrain.harness.campaign.suite.attempt import Attempt, Ending
from splitbrain.harness.campaign.suite.definition import PlannedRun
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.harness.folder.results import EXIT_INVALID, EXIT_UNKNOWN, Results, leading_sentence
from splitbrain.harness.folder.results import read as read_results
from splitbrain.harness.pool.child_environment import child_environment
from splitbrain.harness.report.github import unannounced
from splitbrain.history.course import read_phases
from splitbrain.history.plan import Plan, decode_plan
from splitbrain.history.run_folder import RunFolder

_CHECK_TIMEOUT_S = 900.0
_OUTPUT_TAIL_BYTES = 8192
_SENTENCE_LENGTH_MAX = 400
#: Begin of the command line's sentence about a defect of its own.
_DEFECT = "this is a defect"
#: Headline of a run, or its judging, that the user ended early: neither a verdict nor a failure.
_INTERRUPTED = "INTERRUPTED"
_HEADLINES: dict[str, ledger.Verdict] = {
    "INVALID": "invalid",
    "HARNESS FAILED": "failed",
    "UNKNOWN": "unknown",
    "VACUOUS": "vacuous",
    "VALID": "valid",
}
#: Of a program, by its exit code; any other one is a failure.
_PROGRAM_VERDICTS: dict[int, ledger.Verdict] = {EXIT_INVALID: "invalid", EXIT_UNKNOWN: "unknown"}


class Conclusion(msgspec.Struct, frozen=True):
    """Conclusion of one attempt."""

    verdict: ledger.Verdict
    exit_code: int | None
    sentence: str | None = None
    vacuous: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    run_folder: str | None = None
    reproduce: str | None = None
    system_versions: dict[str, str] = {}
    #: By the run's own plan; None where there is none.
    tool_commit: str | None = None
    #: Program: its last line, where that is JSON.
    output: Any = None
    #: Fault coverage; None where unknown.
    coverage: tuple[CoverageCell, ...] | None = None


def conclude_run(
    attempt: Attempt, tool: Sequence[str], exit_code: int, ending: Ending, timeout_s: float
) -> Conclusion | None:
    """Conclude a child of this process; None where it was interrupted and found nothing.

    ``tool`` are the words that start the command line, for ``check``; ``exit_code`` is negative for
    a signal.
    """
    folder = run_folder(attempt)
    results = _results(folder, attempt, tool)
    if results is not None and results.verdict is RunVerdict.INVALID:
        return _from_results(results, folder, exit_code)
    if ending == "interrupted":
        return None
    if ending == "out of time":
        return _failed(attempt, folder, exit_code, f"It took more than {timeout_s:g} s.")
    if results is None:
        return _failed(attempt, folder, exit_code, _last_words(attempt, exit_code))
    if exit_code != results.exit_code:
        sentence = f"It {_ended_with(exit_code)}, but its results say {results.headline}."
        return _failed(attempt, folder, exit_code, sentence)
    cut_short = results.headline == "VALID" and not (folder and _ran_to_its_end(folder))
    if cut_short or results.headline == _INTERRUPTED:
        sentence = "It was ended before its time limit, so that valid would be a guess."
        return _failed(attempt, folder, exit_code, sentence)
    return _from_results(results, folder, exit_code)


def conclude_orphan(attempt: Attempt, tool: Sequence[str]) -> Conclusion | None:
    """Conclude an attempt of a suite that died; None where it must be done again."""
    folder = run_folder(attempt)
    results = _results(folder, attempt, tool)
    if results is None or folder is None:
        return None
    is_whole = results.headline != _INTERRUPTED and _ran_to_its_end(folder)
    if is_whole or results.verdict is RunVerdict.INVALID:
        return _from_results(results, folder, None)
    return None


def conclude_program(
    run: PlannedRun, attempt: Attempt, exit_code: int, ending: Ending
) -> Conclusion | None:
    """Conclude a program by its exit code; None where it was interrupted."""
    if ending == "interrupted":
        return None
    folder, output, expected = str(attempt.root), _last_json(attempt), run.expected_exit_code

    def concluded(verdict: ledger.Verdict, sentence: str | None = None) -> Conclusion:
        return Conclusion(verdict, exit_code, sentence, run_folder=folder, output=output)

    if ending == "out of time":
        return concluded("failed", f"It took more than {run.timeout_s:g} s.")
    if exit_code == expected:
        return concluded("valid")
    sentence = f"It {_ended_with(exit_code)}, not with {expected}: {_tail_line(attempt)}"
    return concluded(_PROGRAM_VERDICTS.get(exit_code, "failed"), sentence)


def run_folder(attempt: Attempt) -> RunFolder | None:
    """Return the folder of the run that the attempt started; None if it did not get that far."""
    plans = sorted(attempt.root.glob("*/*/plan.json"))
    return RunFolder(plans[-1].parent) if plans else None


def as_expected(run: PlannedRun, conclusion: Conclusion) -> bool:
    """Return whether the verdict is the expected one.

    A planted bug counts as found when a checker found it, one of ``caught_by`` if any are named.
    """
    if run.expect == "valid" or conclusion.verdict != "invalid":
        return conclusion.verdict == run.expect
    names = {name for checker in conclusion.violated for name in (checker, checker.split(":")[0])}
    return bool(names & set(run.caught_by)) if run.caught_by else bool(names)


def _results(folder: RunFolder | None, attempt: Attempt, tool: Sequence[str]) -> Results | None:
    """Return the run's verdict; judge it now if clients had worked and nobody has judged it."""
    if folder is None:
        return None
    results = _read_results(folder)
    if results is not None or not folder.history.is_file() or not folder.history.stat().st_size:
        return results
    with suppress(OSError, subprocess.TimeoutExpired), attempt.output.open("ab") as output:
        subprocess.run(
            [*tool, "check", str(folder.root), "--no-analyze"],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_CHECK_TIMEOUT_S,
            start_new_session=True,
            env=unannounced(child_environment()),
        )
    return _read_results(folder)


def _read_results(folder: RunFolder) -> Results | None:
    with suppress(OSError, *UNREADABLE):
        return read_results(folder.results)
    return None


def _ran_to_its_end(folder: RunFolder) -> bool:
    """Return whether the run took its whole course; a run cut short proves nothing."""
    with suppress(OSError, *UNREADABLE):
        phases = {phase.phase for phase in read_phases(folder.root)}
        return "torn-down" in phases and "interrupted" not in phases
    return False


def _from_results(results: Results, folder: RunFolder | None, exit_code: int | None) -> Conclusion:
    verdict = _HEADLINES[results.headline]
    plan = _plan(folder)
    return Conclusion(
        verdict=verdict,
        exit_code=exit_code,
        sentence=None if verdict == "valid" else leading_sentence(results),
        vacuous=results.vacuous,
        violated=tuple(
            checked.checker for checked in results.checkers if checked.verdict is RunVerdict.INVALID
        ),
        run_folder=None if folder is None else str(folder.root),
        reproduce=results.reproduce,
        coverage=results.coverage,
        system_versions={} if plan is None else plan.system_versions,
        tool_commit=None if plan is None else plan.tool_commit,
    )


def _failed(
    attempt: Attempt, folder: RunFolder | None, exit_code: int, sentence: str
) -> Conclusion:
    plan = _plan(folder)
    return Conclusion(
        verdict="failed",
        exit_code=exit_code,
        sentence=sentence,
        run_folder=str(attempt.root if folder is None else folder.root),
        system_versions={} if plan is None else plan.system_versions,
        tool_commit=None if plan is None else plan.tool_commit,
    )


def _plan(folder: RunFolder | None) -> Plan | None:
    with suppress(OSError, ValueError, RecursionError):
        return None if folder is None else decode_plan(folder.plan.read_bytes())
    return None


def _last_words(attempt: Attempt, exit_code: int) -> str:
    """Return why there is no verdict: the command's own sentence if it wrote one."""
    lines = _tail(attempt)
    own = [line for line in lines if line.startswith("splitbrain: ")]
    if own and exit_code > 0:
        sentence = own[-1].removeprefix("splitbrain: ")
        before = lines[lines.index(own[-1]) - 1]
        # The line above, the end of the traceback, names the defect.
        if sentence.startswith(_DEFECT) and before != own[-1]:
            sentence = f"{before}: {sentence}"
        return sentence[:_SENTENCE_LENGTH_MAX]
    return f"It {_ended_with(exit_code)} without a verdict: {_tail_line(attempt)}"


def _ended_with(exit_code: int) -> str:
    return f"ended with exit code {exit_code}" if exit_code >= 0 else f"died of signal {-exit_code}"


def _tail(attempt: Attempt) -> list[str]:
    text = ""
    with suppress(OSError), attempt.output.open("rb") as output:
        size = output.seek(0, 2)
        output.seek(max(0, size - _OUTPUT_TAIL_BYTES))
        text = output.read().decode("utf-8", "replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _tail_line(attempt: Attempt) -> str:
    lines = _tail(attempt)
    return lines[-1][:_SENTENCE_LENGTH_MAX] if lines else "it printed nothing."


def _last_json(attempt: Attempt) -> Any:
    """Return the last line as JSON, None if it is none; a long one is read whole."""
    last = b""
    with suppress(OSError), attempt.output.open("rb") as output:
        for line in output:
            last = line if line.strip() else last
    with suppress(ValueError):
        return json.loads(last)
    return None


def prune(folder: Path, *, is_program: bool) -> None:
    """Remove a valid run's folder but for plan, faults and verdict; keep a program's output."""
    run, attempt = RunFolder(folder), Attempt(folder)
    kept = {attempt.record, attempt.output} if is_program else {run.plan, run.schedule, run.faults}
    kept |= set() if is_program else {run.results, run.summary, run.junit}
    for path in folder.iterdir():
        if path in kept:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
