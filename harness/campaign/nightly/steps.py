"""Steps after a suite's night: its runs into the lake, all runs of it, the gate, and room.

Each step is a command of its own in a child process, so that it can be stopped when its time is up,
dies alone, and dies with the night (``owned_step``). Each may be done twice: an ingest finds
nothing new, a gate writes the same files, pruned folders are gone. A folder of a valid run is
pruned only once the lake has it.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.nightly.definition import Nightly
from splitbrain.harness.campaign.nightly.record import (
    ROOM_TO_GO_ON,
    STEPS,
    NightlyRecord,
    Nights,
    Step,
    StepEnded,
)
from splitbrain.harness.campaign.suite.conclusion import prune
from splitbrain.harness.campaign.suite.conductor import TOOL
from splitbrain.harness.campaign.suite.tally import NightTally
from splitbrain.harness.console.pace import time_words
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.results import EXIT_HARNESS_FAILED, EXIT_UNKNOWN
from splitbrain.harness.pool.child_environment import child_environment
from splitbrain.harness.report.github import unannounced
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.lake.sources import find_runs

_END_PATIENCE_S: Final = 10.0
_MORE: Final = "give the night more as time_budget, or more of it as analysis_budget."
_OWNED: Final = f"{__package__}.owned_step"
#: Exit codes that are answers; any other is a failure of the harness.
_ANSWERS: Final = (0, 1, 2)


class Steps:
    """The steps of one night.

    ``tally`` is the night by its ``ledger``, ``runs`` the folder of its runs, ``lake`` a folder or
    URI, and ``tool`` the beginning of a command line.
    """

    def __init__(
        self,
        file: Nightly,
        nights: Nights,
        tally: NightTally,
        *,
        ledger: Path,
        runs: Path,
        lake: str,
        console: Console,
        tool: Sequence[str] = TOOL,
    ) -> None:
        self._file, self._tally = file, tally
        self._night = tally.began.night
        self._answers = nights.folder(self._night)
        self._ledger, self._runs, self._lake = ledger, runs, lake
        self._console, self._tool = console, tuple(tool)
        self._doers: dict[Step, Callable[[NightlyRecord, float], tuple[int, str | None]]] = {
            "ingest": self._ingest,
            "analyze": self._analyze,
            "gate": self._gate,
            "prune": self._prune,
        }

    def carry_out(self, step: Step, record: NightlyRecord) -> StepEnded:
        """Do one step in the time that is left; raise HarnessError if there can be no folder."""
        used_s = sum(done.took_s for done in record.steps.values())
        # A suite that was done early leaves its time.
        spent_s = sum(run.took_s for run in self._tally.runs)
        left_s = max(self._file.analysis_s, self._file.budget_s - spent_s) - used_s
        most = f", at most {time_words(left_s)}" if left_s > 0 else ""
        self._say(f"Step {STEPS.index(step) + 1} of {len(STEPS)}: {step}{most}")
        began_s = time.monotonic()
        code, sentence = self._doers[step](record, left_s)
        if sentence is not None:
            self._say(f"{step}: {sentence}")
        return StepEnded(code, round(time.monotonic() - began_s, 3), sentence)

    def _ingest(self, _: NightlyRecord, timeout_s: float) -> tuple[int, str | None]:
        if not self._has_runs():
            return 0, "no run left a folder, so nothing was put into the lake."
        return self._command(("ingest", str(self._runs), "--lake", self._lake), timeout_s)

    def _has_runs(self) -> bool:
        return self._runs.is_dir() and next(iter(find_runs(self._runs)), None) is not None

    def _analyze(self, record: NightlyRecord, timeout_s: float) -> tuple[int, str | None]:
        if not self._has_runs():
            return 0, None
        options = ("--report", str(self._answers / "all-runs"), "--since", self._tally.began.at)
        # The gate comes after it, and needs time too.
        return self._command(("analyze", "--lake", self._lake, *options), timeout_s / 2)

    def _gate(self, _: NightlyRecord, timeout_s: float) -> tuple[int, str | None]:
        with tell_refusal("make the folder of the night's answers", self._answers, ROOM_TO_GO_ON):
            self._answers.mkdir(parents=True, exist_ok=True)
        gate = ["gate", f"{self._ledger}@{self._night}", "--policy", str(self._file.policy)]
        if self._file.tier is not None:
            gate += ["--tier", self._file.tier]
        gate += ["--baseline", self._file.baseline, "--output", str(self._answers)]
        return self._command(gate, timeout_s)

    def _prune(self, record: NightlyRecord, _: float) -> tuple[int, str | None]:
        ingested = record.steps.get("ingest")
        if self._file.keep_valid or self._file.suite.suite.keep_valid:
            return 0, None
        if ingested is None or ingested.exit_code != 0:
            return 0, "all folders are kept, because the lake does not have their runs."
        valid = [
            RunFolder(Path(run.run_folder))
            for run in self._tally.runs
            if run.verdict == "valid" and run.as_expected
            if run.run_folder is not None and not run.is_program
        ]
        there = [folder for folder in valid if folder.history.exists()]
        for folder in there:
            prune(folder.root, is_program=False)
        return 0, f"{counted(len(there), 'valid run')} kept the results alone; the lake has all."

    def _command(self, arguments: Sequence[str], timeout_s: float) -> tuple[int, str | None]:
        """Run a command of this tool; return its exit code and a problem around it."""
        if timeout_s <= 0:
            return EXIT_UNKNOWN, f"there was no time left for it: {_MORE}"
        self._console.file.flush()
        owned = (sys.executable, "-P", "-m", _OWNED, str(os.getpid()))
        with subprocess.Popen(
            [*owned, *self._tool, *arguments],
            stdin=subprocess.DEVNULL,
            env=unannounced(child_environment()),
        ) as process:
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                _end(process)
                stopped = f"it was stopped after {timeout_s:.0f} s, its time"
                return EXIT_UNKNOWN, f"{stopped}: {_MORE}"
            except BaseException:
                _end(process)
                raise
        if code in _ANSWERS:
            return code, None
        return EXIT_HARNESS_FAILED, f"it ended with exit code {code}."

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_PATIENCE_S)
        return
    process.kill()
    process.wait()
