"""Run folders that a test edits and has judged, and what is said of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitbrain.checker.verdict import Verdict
from splitbrain.harness.folder.results import Results
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import seal
from tests.unit.harness.run_fake import FakeRun


def judged(folder: RunFolder) -> Results:
    """The judgement of a folder as a run left it."""
    seal(folder)
    return judged_as_it_is(folder)


def judged_as_it_is(folder: RunFolder) -> Results:
    """The judgement of a folder that somebody may have changed since the run."""
    return judge_and_publish(folder.root, analyze=False)


def judged_run(run: FakeRun) -> Results:
    """The judgement of a run that has just ended."""
    outcome = run.outcome
    problems = () if outcome.failure is None else (str(outcome.failure),)
    return judge_and_publish(outcome.folder.root, analyze=False, harness_problems=problems)


def verdict_of(found: Results, checker: str) -> Verdict:
    return next(result.verdict for result in found.checkers if result.checker == checker)


def verdicts(found: Results) -> dict[str, str]:
    return {result.checker.partition(":")[0]: result.verdict.value for result in found.checkers}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewrite(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def edit(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    rewrite(path, change(lines(path)))


def edit_plan(folder: RunFolder, **changes: Any) -> None:
    folder.plan.write_text(json.dumps(json.loads(folder.plan.read_text()) | changes))
