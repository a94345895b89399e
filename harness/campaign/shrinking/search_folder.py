"""Folder of a search: its plan, its tries and the runs worth keeping.

``<runs>/shrinking/<run>/``: ``plan.toml``, the smallest plan so far; ``tries.jsonl``, one line per
try, also of those whose run folders were removed; ``plans/``, every plan that was tried;
``tries.log``, the runs' output; and below the test's name the run folders of the tries with the
wanted verdict of the smallest plan. Written as it happens: a killed search leaves its best. Must
never remove a folder that it did not have made. Source: issue 6, item 6.
"""

import shutil
from pathlib import Path
from typing import TextIO

import msgspec

from splitbrain.contracts.fault import US_PER_MS
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.shrinking.description import size_of
from splitbrain.harness.campaign.shrinking.run_oracle import Answer, Try
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import ELSEWHERE, tell_refusal
from splitbrain.harness.folder.store import new_folder
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import LineWriter
from splitbrain.nemesis.plan_text import plan_toml

FOLDER = "shrinking"
PLAN = "plan.toml"
LEDGER = "tries.jsonl"


class TryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``tries.jsonl``."""

    #: Counts the plans, from 1.
    plan: int
    step: str
    #: Indexes in the searched run's schedule.
    faults: tuple[int, ...]
    time_limit_ms: int
    nodes: int
    clients: int
    #: In lower case, with the checkers; None: the run was not carried out.
    verdict: str | None
    same: bool
    seconds: float
    #: Below the search's folder; removed where the plan was not taken, or a smaller one was.
    folder: str | None
    problem: str | None = None


class SearchFolder:
    """Folder of one search; close it at the end; raise HarnessError if it cannot be made."""

    def __init__(self, runs_folder: Path, run: str, *, keeps_tries: bool = False) -> None:
        """Make the folder; ``run`` names the searched run."""
        self._keeps_tries = keeps_tries
        with tell_refusal("make the folder of the search", runs_folder, ELSEWHERE):
            self.root = new_folder(runs_folder.absolute() / FOLDER, run)
            #: The smallest plan.
            self.plan = self.root / PLAN
            self._plans = self.root / "plans"
            self._plans.mkdir()
            self.log: TextIO = (self.root / "tries.log").open("a", encoding="utf-8")
        self._ledger = LineWriter(self.root / LEDGER)
        self._best: Answer | None = None

    def close(self) -> None:
        """Close the files."""
        self._ledger.close()
        self.log.close()

    def plan_file(self, plan: Scenario, number: int) -> Path:
        """Return a plan's file, written if it is missing; raise HarnessError if that fails."""
        path = self._plans / f"{number:03}.toml"
        if not path.exists():
            self._write(path, plan_toml(plan.faults, [size_of(plan).text]))
        return path

    def took(self, answer: Answer, made: Try, *, is_same: bool) -> None:
        """Note a try."""
        plan = answer.plan
        self._ledger.append(
            TryLine(
                plan=answer.number,
                step=answer.step,
                faults=tuple(fault.index for fault in plan.faults),
                time_limit_ms=plan.load_us // US_PER_MS,
                nodes=plan.nodes,
                clients=plan.load.clients,
                verdict=None if made.verdict is None else made.verdict.text,
                same=is_same,
                seconds=round(made.seconds, 1),
                folder=(None if made.folder is None else str(made.folder.relative_to(self.root))),
                problem=made.problem,
            )
        )

    def answered(self, answer: Answer, comment: list[str]) -> None:
        """Keep the runs of a plan that fails, remove the others.

        ``comment`` goes above the plan, where it is the best so far.

        Raises:
            HarnessError: the disk refuses.
        """
        self._forget(answer.others)
        if not answer.fails:
            self._forget(answer.folders)
            return
        if answer.plan.faults:
            self._write(self.plan, plan_toml(answer.plan.faults, comment))
        else:
            self.plan.unlink(missing_ok=True)
        if self._best is not None:
            self._forget(self._best.folders)
        self._best = answer

    def _forget(self, folders: tuple[Path, ...]) -> None:
        for folder in () if self._keeps_tries else folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _write(self, path: Path, content: str) -> None:
        with tell_refusal("write the plan", path):
            write_atomically(path, content.encode())


def runs_folder_of(folder: RunFolder) -> Path:
    """Return the folder of all runs, also for a run that lies in a search's folder."""
    runs = folder.root.parent.parent
    return runs.parent.parent if (runs / LEDGER).exists() else runs
