"""Runs of plans without nodes: what each comes to is said by the test, run folders included."""

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict
from splitbrain.harness.campaign.shrinking.run_oracle import Answer, Try, Watcher
from splitbrain.harness.campaign.shrinking.search_folder import SearchFolder
from splitbrain.harness.console.interrupts import Interrupts
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.run_folder import RunFolder
from splitbrain.systems import registry as systems

WANTED = ReplayVerdict("INVALID", ("linearizability:cas-register",))
OTHER = ReplayVerdict("INVALID", ("lost-commits",))
VALID = ReplayVerdict("VALID")

#: Outcome of a plan's run; the number counts all runs, from 0.
Script = Callable[[Scenario, int], ReplayVerdict | str | None]


def needs(*indexes: int) -> Script:
    """Fails as wanted where these faults are there."""
    return lambda plan, _: WANTED if {*indexes} <= {fault.index for fault in plan.faults} else VALID


def ready(_options: TestOptions) -> Any:
    """A prepared run, as far as a search looks at it."""
    return SimpleNamespace(
        runtime=SimpleNamespace(teardown=lambda: None), system=systems.system("kraft")
    )


class ScriptedRuns:
    """In the place of ``PlanRuns``."""

    script: Script
    results: bytes
    asked: list[Scenario]
    during: Callable[[int], None]

    def __init__(
        self,
        _options: TestOptions,
        folder: SearchFolder,
        stop: Stop,
        _interrupts: Interrupts,
        _ready: object,
    ) -> None:
        self._folder, self._stop = folder, stop
        self._numbers = itertools.count()

    def run(self, plan: Scenario, number: int) -> Try:
        """As the script says: a verdict, the problem of the harness, or an interruption."""
        if plan.faults:
            self._folder.plan_file(plan, number)
        run_number = next(self._numbers)
        self.asked.append(plan)
        self.during(run_number)
        came_to = type(self).script(plan, run_number)
        root = self._folder.root / "kraft-register" / f"run-{run_number}"
        root.mkdir(parents=True)
        RunFolder(root).results.write_bytes(self.results)
        if came_to is None:
            self._stop.interrupt()
            return Try(verdict=None, folder=root, seconds=1.0)
        if isinstance(came_to, str):
            return Try(verdict=None, folder=root, seconds=1.0, problem=came_to)
        return Try(verdict=came_to, folder=root, seconds=1.0)


class Silent(Watcher):
    """A watcher that keeps the answers."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def answered(self, answer: Answer) -> None:
        """Keep it."""
        self.answers.append(answer)


def kept_runs(root: Path) -> list[str]:
    """Names of the run folders that a search has kept."""
    return sorted(path.name for path in (root / "kraft-register").iterdir())
