"""Looks for a run's failure in simulation, and makes the plan small there, where it costs seconds.

A seed near the run's schedule that fails with the same verdict is taken apart by the same search as
in containers; a plan counts as failing where one of a few seeds does. What is left is a plan for
containers as it is, and only a guess there: whoever takes it has it confirmed. Source: issue 6,
item 6.
"""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.text import Text

from contracts.errors import UsageError
from contracts.scenario import Scenario
from harness.live_area import LiveArea
from harness.plain_text import printable
from harness.results import counted
from harness.simulation.folder import keep_sweep_run
from harness.simulation.judging import judged
from harness.simulation.like_command import LikeOrder, lines_of, order_of, search
from harness.simulation.likeness import like_scenario, scenario_of_shape, shape_of
from harness.simulation.trial import run
from harness.stop import Stop
from history.run_folder import RunFolder
from nemesis.plan_shrink import PlanShape, shrink_plan
from nemesis.search import SearchBudget

#: Seeds near the run's schedule that are tried.
SEEDS: Final = range(50)
#: Seeds with which a smaller plan is tried besides the one that was found.
_OTHER_SEEDS: Final = (1, 2)
#: More worlds than any search makes in its time.
_WORLDS_MAX: Final = 100_000


class Rehearsed(msgspec.Struct, frozen=True, kw_only=True):
    """What simulation had to say."""

    #: The small plan; None: the failure was not found there.
    shape: PlanShape | None
    #: Why there is none, or how it was found: whole lines.
    lines: tuple[str, ...]


def rehearsed(
    folder: RunFolder, runs_folder: Path, console: Console, stop: Stop, seconds: float
) -> Rehearsed:
    """What simulation has to say of a run; see ``Rehearsal``.

    Raises:
        HarnessError: no worker process could be started, or no folder made.
    """
    return Rehearsal(folder, runs_folder, console, stop, seconds).carry_out()


class Rehearsal:
    """One look for a run's failure in simulation.

    Args:
        folder: of the run, judged invalid.
        runs_folder: where simulated run folders go.
        console: where its progress is shown.
        stop: set by whoever does not want to wait.
        seconds: that it may take.
    """

    def __init__(
        self, folder: RunFolder, runs_folder: Path, console: Console, stop: Stop, seconds: float
    ) -> None:
        self._folder, self._runs_folder = folder, runs_folder
        self._console, self._stop = console, stop
        self._seconds = seconds
        self._began = time.monotonic()

    def carry_out(self) -> Rehearsed:
        """Find the failure, and make it small.

        Raises:
            HarnessError: no worker process could be started, or no folder made.
        """
        try:
            order = order_of(self._folder, self._runs_folder)
        except UsageError as error:
            return _nothing(f"not tried in simulation: {error.problem}.")
        with self._stopping_in_time() as stop:
            found = search(order, self._console, SEEDS, jobs=1, stop=stop)
        lines = lines_of(found, order, SEEDS)
        if found.seed is None:
            late = found.interrupted and not self._stop.is_set()
            told = f"no seed failed alike within {self._seconds:g} s." if late else lines[0]
            return _nothing(f"simulation: {told}")
        shape = shape_of(order.likeness, like_scenario(order.likeness, found.seed))
        oracle = _WorldOracle(order, found.seed, self._budget())
        with oracle.shown(self._console, shape):
            if not oracle.fails(shape, "as a plan"):
                return _nothing(
                    f"simulation: seed {found.seed} fails alike, but not as a plan that ends with "
                    "its load."
                )
            small = shrink_plan(shape, oracle.fails, oracle.budget).shape
        root = keep_sweep_run(
            judged(run(oracle.world_of(small), is_recording=True)),
            self._runs_folder,
            kind="shrunk-like",
            like=order.likeness.run,
        )
        took = f"{counted(oracle.worlds, 'world')}, {time.monotonic() - self._began:.1f} s in all"
        smaller = f"{shape.words()} -> {small.words()} ({took}); splitbrain replay {root}"
        return Rehearsed(shape=small, lines=(f"simulation: {lines[0]}", f"simulation: {smaller}"))

    def _budget(self) -> SearchBudget:
        left_s = self._seconds - (time.monotonic() - self._began)
        return SearchBudget(_WORLDS_MAX, left_s, time.monotonic, is_stopped=self._stop.is_set)

    @contextmanager
    def _stopping_in_time(self) -> Generator[Stop]:
        """A stop of its own, set when the time is over or the user wants to stop."""
        stop = Stop()
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.1):
                if self._stop.is_set() or time.monotonic() - self._began > self._seconds:
                    stop.interrupt()
                    return

        watcher = threading.Thread(target=watch, name="rehearsal", daemon=True)
        watcher.start()
        try:
            yield stop
        finally:
            over.set()
            watcher.join()


class _WorldOracle:
    """Whether a plan fails alike in one of a few seeds; exact, so each is asked about once."""

    def __init__(self, order: LikeOrder, seed: int, budget: SearchBudget) -> None:
        self._order = order
        self._seeds = dict.fromkeys((seed, *_OTHER_SEEDS))
        self.budget = budget
        self._failing: dict[bytes, Scenario | None] = {}
        self._line = ""

    @property
    def worlds(self) -> int:
        """Worlds that were run."""
        return self.budget.tries

    def world_of(self, shape: PlanShape) -> Scenario:
        """The failing world of a plan that fails."""
        world = self._failing[msgspec.json.encode(shape)]
        assert world is not None
        return world

    def fails(self, shape: PlanShape, step: str) -> bool:
        """Whether one of the plan's worlds fails with the wanted verdict."""
        digest = msgspec.json.encode(shape)
        if digest not in self._failing:
            self._line = f"in simulation: {shape.words()} ({step})"
            for seed in self._seeds:
                if self.budget.exhausted() is not None:
                    return False
                self.budget.tries += 1
                world = scenario_of_shape(self._order.likeness, shape, seed)
                if tuple(sorted(judged(run(world)).failed_by)) == self._order.wanted:
                    self._failing[digest] = world
                    break
            else:
                self._failing[digest] = None
        return self._failing[digest] is not None

    @contextmanager
    def shown(self, console: Console, shape: PlanShape) -> Generator[None]:
        """A context: what is being tried is shown while it lasts."""
        self._line = f"in simulation: {shape.words()}"

        def line() -> str:
            return f"{self.budget.elapsed_s:7.1f} s  {self._line}, {counted(self.worlds, 'world')}"

        with LiveArea(console, lambda: Text(printable(line())), line):
            yield


def _nothing(line: str) -> Rehearsed:
    return Rehearsed(shape=None, lines=(line,))
