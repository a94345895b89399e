"""Plans that show a planted bug on a real runtime, in how many of how many tries, and to whom.

``python -m bench.planted --runtime docker`` (or ``local``) runs it. The plans are the cells of
``bench/suites/planted.toml``: one for each bug that containers can show, and series that must stay
silent although a bug is on (a kill shows no missing fsync). Why the others cannot be shown says the
registry of the bugs. Each plan is also run without the bug: an alarm there, or in a silent series,
makes the exit code 1, and so does a bug that no try has shown. Nothing here judges a run: a bug is
seen where the run's own exit code is 1 and one of its checkers names a violation. The last line is
one JSON object.
"""

import json
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.campaign import RunReport, as_expected, run_once
from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.suite.cells import planned_runs
from splitbrain.harness.campaign.suite.definition import (
    Expectation,
    Matrix,
    PlannedRun,
    Suite,
    choice_of,
)
from splitbrain.harness.campaign.suite.reading import read_suite
from splitbrain.systems.kraft.planted_bugs import planted_bugs

#: Bug to plan, as a suite that ``splitbrain suite`` can run too.
SUITE: Final = Path(os.path.relpath(Path(__file__).parent / "suites" / "planted.toml"))
#: Exit code of a run that the runtime refuses, and of a run whose harness failed.
_REFUSED: Final = 64
_FAILED: Final = 3
_SEED: Final = "--seed"

#: Carries out one run: its arguments, its seed, its folder.
Carry = Callable[[list[str], int, Path], RunReport]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command."""

    runtime: str
    #: Bugs; empty: all.
    bugs: tuple[str, ...] = ()
    #: Runs of each plan with the bug, and without it.
    tries: int = 3
    controls: int = 1
    first_seed: int = 1
    runs_folder: Path | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One plan, and what it is run for."""

    #: Name of the cell in the suite.
    name: str
    bug: str
    #: invalid: it shows the bug. valid: it must not, although the bug is on.
    expect: Expectation
    #: Checkers of which one must have found it; empty: any.
    caught_by: tuple[str, ...]
    runs: tuple[PlannedRun, ...]
    #: The same without the bug.
    controls: tuple[PlannedRun, ...]

    @property
    def plan(self) -> str:
        """One line that makes its first run again."""
        return f"splitbrain test {' '.join(self.runs[0].arguments)}"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a series."""

    bug: str
    expect: Expectation
    plan: str
    #: Runs that came to a verdict.
    tries: int
    detections: int
    #: Checker to the number of runs in which it found a violation.
    seen_by: dict[str, int]
    #: Seconds from the start of the command to the verdict, of the runs that saw it.
    median_s: float | None
    control_runs: int
    control_alarms: int
    #: Runs that the harness or its environment could not bring to a verdict.
    failed: int
    #: The runtime cannot have this plan.
    is_refused: bool

    @property
    def is_as_wanted(self) -> bool:
        """Whether the bug was seen, or was not where it must not be, and never without it."""
        if self.is_refused:
            return True
        seen = self.detections > 0
        return seen == (self.expect == "invalid") and not self.control_alarms


def series_of(suite: Suite, wanted: Wanted) -> list[Series]:
    """Return the series of a suite whose bug is asked for, with their seeds.

    Raises:
        UsageError: there is no such bug, or none of them has a plan.
    """
    unknown = [bug for bug in wanted.bugs if bug not in planted_bugs()]
    if unknown:
        raise UsageError(
            f"there is no planted bug {unknown[0]!r}", f"Use one of: {', '.join(planted_bugs())}"
        )
    results: list[Series] = []
    for matrix in suite.matrix:
        bug = choice_of(matrix, "bug")
        if not isinstance(bug, str):
            raise UsageError(f"the cell {matrix.name!r} is of no planted bug", "Name one bug")
        if wanted.bugs and bug not in wanted.bugs:
            continue
        correct = msgspec.structs.replace(
            matrix, bug=None, expect="valid", at_least="all", caught_by=()
        )
        results.append(
            Series(
                name=matrix.name,
                bug=bug,
                expect=matrix.expect,
                caught_by=matrix.caught_by,
                runs=_runs(suite, matrix, wanted, wanted.tries),
                controls=_runs(suite, correct, wanted, wanted.controls),
            )
        )
    return results


def _runs(suite: Suite, matrix: Matrix, wanted: Wanted, count: int) -> tuple[PlannedRun, ...]:
    if not count:
        return ()
    seeds = tuple(range(wanted.first_seed, wanted.first_seed + count))
    own = msgspec.structs.replace(matrix, runtime=wanted.runtime, seeds=seeds)
    return planned_runs(msgspec.structs.replace(suite, matrix=(own,), program=()), 0)


def shown(series: Series, runs_folder: Path, carry: Carry = run_once) -> Shown:
    """Run a series; one that the runtime refuses is not tried again."""
    reports: list[RunReport] = []
    for run in series.runs:
        reports.append(carried(run, runs_folder / "planted", carry))
        if reports[-1].exit_code == _REFUSED:
            break
    is_refused = any(report.exit_code == _REFUSED for report in reports)
    controls = [
        carried(run, runs_folder / "correct", carry)
        for run in (() if is_refused else series.controls)
    ]
    judged = [report for report in reports if report.exit_code not in (_REFUSED, _FAILED)]
    seen = [report for report in judged if _is_detection(report, series.caught_by)]
    return Shown(
        bug=series.bug,
        expect=series.expect,
        plan=series.plan,
        tries=len(judged),
        detections=len(seen),
        seen_by=dict(Counter(name for report in seen for name in report.violated).most_common()),
        median_s=statistics.median(report.took_s for report in seen) if seen else None,
        control_runs=len(controls),
        control_alarms=sum(report.exit_code == 1 for report in controls),
        failed=sum(report.exit_code == _FAILED for report in (*reports, *controls)),
        is_refused=is_refused,
    )


def carried(run: PlannedRun, folder: Path, carry: Carry) -> RunReport:
    """Carry out one planned run below a folder."""
    arguments = list(run.arguments)
    place = arguments.index(_SEED)
    folder.mkdir(parents=True, exist_ok=True)
    return carry([*arguments[:place], *arguments[place + 2 :]], run.seed, folder)


def _is_detection(report: RunReport, caught_by: Collection[str]) -> bool:
    if not as_expected(report, "invalid"):
        return False
    # A checker is named with its model: linearizability:cas-register.
    checkers = {name.partition(":")[0] for name in report.violated}
    return not caught_by or bool(checkers.intersection(caught_by))


def run(wanted: Wanted) -> int:
    """Run all series and print; 1 where one did not come out as it must.

    Raises:
        UsageError: there is no such bug.
    """
    folder = wanted.runs_folder or Path(tempfile.mkdtemp(prefix="planted-"))
    results: list[Shown] = []
    for number, series in enumerate(series_of(read_suite(SUITE).suite, wanted)):
        result = shown(series, folder / f"{number:02}-{series.bug}")
        results.append(result)
        print("\n".join(lines_of(result)), flush=True)
    reasons = reasons_of(wanted.bugs)
    if reasons:
        print("\nnot to be shown by a container:")
    for bug, reason in reasons.items():
        print(f"  {bug}: {reason}")
    print(json.dumps(summary(results, reasons, wanted)))
    return 0 if all(result.is_as_wanted for result in results) else 1


def reasons_of(bugs: Collection[str]) -> dict[str, str]:
    """Bug to why no container can show it; empty ``bugs``: of all."""
    return {
        name: bug.unseen_on_machines
        for name, bug in planted_bugs().items()
        if bug.unseen_on_machines and (not bugs or name in bugs)
    }


def lines_of(result: Shown) -> list[str]:
    """Print one series for people."""
    if result.is_refused:
        sentence = "this runtime cannot have the plan"
    else:
        by = ", ".join(f"{name} {count}" for name, count in result.seen_by.items())
        sentence = f"{result.detections} of {result.tries}" + (f", by {by}" if by else "")
        if result.median_s is not None:
            sentence += f"; median {result.median_s:.0f} s from start to verdict"
        if result.control_runs:
            sentence += f"; without the bug {result.control_alarms} of {result.control_runs}"
        if result.failed:
            sentence += f"; {result.failed} runs failed for other reasons"
    silent = " (must not be seen)" if result.expect == "valid" else ""
    wrong = "" if result.is_as_wanted else "  NOT AS IT MUST BE"
    return [f"{result.bug}{silent}: {sentence}{wrong}", f"    {result.plan}"]


def summary(results: Sequence[Shown], reasons: dict[str, str], wanted: Wanted) -> dict[str, Any]:
    """Return the JSON line."""
    planned = [result for result in results if result.expect == "invalid"]
    silent = [result for result in results if result.expect == "valid"]

    def row(result: Shown) -> dict[str, Any]:
        fields = msgspec.structs.asdict(result)
        return {name: value for name, value in fields.items() if name not in ("bug", "expect")}

    return {
        "bench": "planted",
        "runtime": wanted.runtime,
        "tries": wanted.tries,
        "planned_bugs": len(planned),
        "shown_bugs": sum(result.detections > 0 for result in planned),
        "control_runs": sum(result.control_runs for result in results),
        "control_alarms": sum(result.control_alarms for result in results),
        "silent_alarms": sum(result.detections for result in silent),
        "bugs": {result.bug: row(result) for result in planned},
        "silent": {result.bug: row(result) for result in silent},
        "unseen_because": reasons,
    }


def run_or_refuse(wanted: Wanted) -> int:
    """As ``run``; what the user asked for wrongly is said in one sentence, 64."""
    try:
        return run(wanted)
    except UsageError as error:
        print(f"bench.planted: {error.problem}. {error.next_step}.", file=sys.stderr)
        return _REFUSED
