"""What the commands ``test``, ``check``, ``analyze`` and ``replay`` do.

Running and judging are apart: a run leaves a folder, judging reads it, and a folder left by a dead
run is judged in the same way.
"""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from checker.verdict import Verdict
from contracts.errors import UsageError
from harness import judge as judging
from harness import summary
from harness.log_collection import DATA_FOLDER
from harness.options import TestOptions, prepare
from harness.replay import replay_options
from harness.results import Results
from harness.runner import RunOutcome, run_test
from harness.store import find_run
from harness.upkeep import ensure_images, salvage
from harness.waiting import JUDGING, Waiting, unseen
from history.run_folder import RunFolder
from nemesis.nearest import or_nearest


def run_and_judge(options: TestOptions, console: Console, *, analyze: bool = True) -> int:
    """Run a test, judge it, print the verdict; returns the exit code."""
    results = run_once(options, console, analyze=analyze)
    return results.exit_code


def run_once(options: TestOptions, console: Console, *, analyze: bool) -> Results:
    """Run a test, judge it and print the verdict.

    Raises:
        HarnessError: the run ended before a client had worked, so that there is nothing to judge.
    """
    from runtimes import registry as runtimes
    from systems import registry as systems

    _require(options.system, systems.names(), "system")
    test = prepare(
        options, systems.system(options.system), lambda: runtimes.runtime(options.runtime)
    )
    ensure_images(options.runtime)
    outcome = run_test(test, console)
    results = judge_outcome(outcome, console, analyze=analyze)
    summary.render(results, console)
    drop_data(outcome.folder, results, keep=options.keep_data)
    return results


def judge_outcome(outcome: RunOutcome, console: Console, *, analyze: bool) -> Results:
    """Judge what a run left, and say so meanwhile; its failure, if any, counts as the harness's.

    Raises:
        HarnessError: the failure itself, where clients never worked.
    """
    if outcome.failure is not None and not outcome.loaded:
        raise outcome.failure
    problems = () if outcome.failure is None else (str(outcome.failure),)
    return judging.judge(
        outcome.folder.root,
        analyze=analyze,
        harness_problems=problems,
        during=Waiting(console).during,
    )


def drop_data(folder: RunFolder, results: Results, *, keep: bool) -> None:
    """Remove the nodes' data folders of a run that proved to be in order; they are large."""
    if keep or results.exit_code != 0:
        return
    for node in folder.node_names():
        shutil.rmtree(folder.node(node) / DATA_FOLDER, ignore_errors=True)


def check(
    path: Path,
    model: str,
    history_format: str | None,
    console: Console,
    *,
    as_json: bool,
    analyze: bool,
) -> int:
    """Judge a run folder or a bare history; returns the exit code."""
    if not path.exists():
        raise UsageError(f"there is no {path}", "Name a run folder or a history file")
    # Nothing but the results may stand beside JSON.
    during = unseen if as_json else Waiting(console).during
    if path.is_dir():
        folder = find_run(path)
        salvage(folder)
        results = judging.judge(folder.root, analyze=analyze, during=during)
    else:
        with during(JUDGING):
            results = judging.judge_history(path, model, history_format)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(results) + b"\n")
        sys.stdout.flush()
    else:
        summary.render(results, console)
    return results.exit_code


def analyze(run: Path, console: Console) -> int:
    """Run the Spark analysis of a run folder again and judge it."""
    folder = find_run(run)
    shutil.rmtree(folder.operations, ignore_errors=True)
    shutil.rmtree(folder.analysis, ignore_errors=True)
    results = judging.judge(folder.root, analyze=True, during=Waiting(console).during)
    summary.render(results, console)
    return results.exit_code


def replay(
    run: Path,
    console: Console,
    *,
    pinned: bool,
    times: int,
    runtime: str | None,
    runs_folder: Path | None,
    analyze: bool,
) -> int:
    """Run a recorded plan again, and say how often it came out invalid.

    Returns the worst exit code: a violation, then a failed harness, then unknown, then valid.
    """
    options = replay_options(run, pinned=pinned, runs_folder=runs_folder, runtime=runtime)
    codes: list[int] = []
    invalid = 0
    for _ in range(times):
        results = run_once(options, console, analyze=analyze)
        codes.append(results.exit_code)
        invalid += results.verdict is Verdict.INVALID
    replays = "replay" if times == 1 else "replays"
    console.print(Text(f"{invalid} of {times} {replays} came out invalid."))
    return next(code for code in (1, 3, 2, 0) if code in codes)


def _require(name: str, names: Iterable[str], what: str) -> None:
    known = list(names)
    if name not in known:
        raise UsageError(f"there is no {what} called {name!r}", or_nearest(name, known, f"{what}s"))
