"""Runs one test from the empty folder to the collected evidence; judges nothing.

The course: make the folder and its plan, start the nodes, wait for a leader, load and break,
heal, wait for one mind, read finally, stop, collect, take down. A failure of the harness anywhere
ends the load and goes on with healing and collecting, so that what is there can be judged; whatever
happens, nothing is left running. Source: design, sections 5 and 7.
"""

from collections.abc import Callable
from contextlib import ExitStack

import msgspec
from rich.console import Console

from contracts.errors import HarnessError
from contracts.fault import ScheduledFault
from harness import convergence
from harness.down_nodes import DownNodes
from harness.evidence import Observer
from harness.interrupts import interrupting
from harness.live import LiveDisplay
from harness.load_phase import LoadPhase
from harness.log_collection import collect_node
from harness.metrics import MetricsSampler
from harness.nemesis_driver import NemesisDriver, Patience
from harness.options import PreparedTest
from harness.phases import phases_path
from harness.plan_record import plan_of, write_plan
from harness.progress import Progress
from harness.run_clock import RunClock
from harness.state_tailer import StateEventTailer
from harness.stop import Stop, patiently
from harness.store import LivingRun, create_run
from harness.traffic import Traffic
from history.run_folder import RunFolder
from history.writer import HistoryWriter, LineWriter

#: An engine under load may refuse for a moment to remove what it is still stopping.
_TEARDOWN_PATIENCE_S = 30.0


class Timing(msgspec.Struct, frozen=True):
    """How long a run waits for the cluster, in seconds."""

    ready_s: float = convergence.READY_PATIENCE_S
    converged_s: float = convergence.CONVERGED_PATIENCE_S
    interrupted_s: float = convergence.INTERRUPTED_PATIENCE_S
    nemesis: Patience = Patience()


class RunOutcome(msgspec.Struct, frozen=True):
    """How a run went, verdict apart."""

    folder: RunFolder
    #: First failure of the harness or its environment.
    failure: HarnessError | None
    interrupted: bool
    #: Whether clients have worked, so that there is something to judge.
    loaded: bool


def run_test(test: PreparedTest, console: Console, timing: Timing | None = None) -> RunOutcome:
    """Run one prepared test.

    Raises:
        HarnessError: not even the run folder could be made.
    """
    name = f"{test.system.name}-{test.options.workload}"
    with create_run(test.options.runs_folder, name, test.options.seed) as living:
        run = _Run(test, name, living, timing or Timing())
        title = f"splitbrain {name}, seed {test.options.seed}, {living.run_id}"
        try:
            with interrupting(run.stop), LiveDisplay(console, run.progress, title):
                run.carry_out()
        finally:
            run.close()
        return RunOutcome(living.folder, run.stop.failure, run.stop.interrupted, run.loaded)


class _Run:
    """One run's parts and their order."""

    def __init__(self, test: PreparedTest, name: str, living: LivingRun, timing: Timing) -> None:
        self._test = test
        self._living = living
        self._timing = timing
        self._system, self._runtime = test.system, test.runtime
        self._folder = living.folder
        self._clock = RunClock()
        self._files = ExitStack()
        self.stop = Stop()
        self.loaded = False
        self._is_deployed = False
        self._plan = plan_of(test, name, living.run_id)
        write_plan(self._folder, self._plan)
        self._schedule = self._lines_of_schedule(test.schedule)
        self._history = HistoryWriter(self._folder.history, self._clock.now)
        self._files.callback(self._history.close)
        self._faults = self._files.enter_context(LineWriter(self._folder.faults))
        self._metrics = self._files.enter_context(LineWriter(self._folder.metrics))
        phases = self._files.enter_context(LineWriter(phases_path(self._folder.root)))
        self.progress = Progress(self._clock, phases, Traffic())
        self._down = DownNodes()
        self._sampler: MetricsSampler | None = None
        self._tailer: StateEventTailer | None = None

    def close(self) -> None:
        """Sync and close the files of the run."""
        self._files.close()

    def carry_out(self) -> None:
        """The whole course; failures of the harness are kept in ``stop``."""
        try:
            self._start_nodes()
            if not self.stop.is_set():
                self._work()
        except HarnessError as error:
            self.stop.fail(error)
        finally:
            if self.stop.interrupted:
                self.progress.reached("interrupted")
            self._end()
            if self.stop.failure is not None:
                self.progress.reached("failed", detail=str(self.stop.failure))

    def _start_nodes(self) -> None:
        self.progress.reached("deploying")
        spec = self._system.deployment(
            self._living.run_id, self._folder.root, self._test.system_options
        )
        for node in self._test.nodes:
            self._folder.node(node).mkdir(parents=True, exist_ok=True)
        self._start_tailer()
        self._runtime.deploy(spec)
        self._is_deployed = True
        self._plan = msgspec.structs.replace(self._plan, runtime_versions=self._runtime.versions())
        write_plan(self._folder, self._plan)
        self.progress.reached("deployed")
        convergence.await_ready(self._system, self._runtime, self._timing.ready_s, self.stop)
        if not self.stop.is_set():
            self.progress.reached("ready")
        system, runtime = self._system, self._runtime
        self._sampler = MetricsSampler(
            runtime=runtime,
            system_metrics=lambda node, timeout_s: system.metrics(runtime, node, timeout_s),
            clock=self._clock,
            lines=self._metrics,
            down=self._down,
            progress=self.progress,
            stop=self.stop,
        )
        self._sampler.start()

    def _start_tailer(self) -> None:
        raw = {
            node: path
            for node in self._test.nodes
            if (path := self._system.state_event_file(self._folder.root, node)) is not None
        }
        self._tailer = StateEventTailer(raw, self._folder, self._clock, self.progress, self.stop)
        self._tailer.start()

    def _work(self) -> None:
        """Load and break, heal, converge, read finally."""
        phase = self._load_phase()
        self.loaded = True
        phase.run()
        self.progress.reached("healed")
        in_order = not self.stop.is_set()
        missing = convergence.await_converged(
            self._system,
            self._runtime,
            self._timing.converged_s if in_order else self._timing.interrupted_s,
        )
        self.progress.reached("converged" if missing is None else "not-converged", detail=missing)
        if in_order and not self.stop.is_set():
            unsettled = phase.read_finally()
            detail = f"{unsettled} could not be settled" if unsettled else None
            self.progress.reached("final-reads-ended", detail=detail)

    def _load_phase(self) -> LoadPhase:
        system, runtime = self._system, self._runtime
        nemesis = NemesisDriver(
            schedule=self._test.schedule,
            runtime=runtime,
            leader=lambda timeout_s: system.leader(runtime, timeout_s),
            observer=Observer(runtime, self.progress.traffic, self._clock),
            clock=self._clock,
            faults=self._faults,
            schedule_file=self._schedule,
            down=self._down,
            progress=self.progress,
            stop=self.stop,
            patience=self._timing.nemesis,
        )
        return LoadPhase(
            nodes=self._test.nodes,
            workload=self._test.workload,
            load=self._test.load,
            open_client=lambda route: system.open_client(runtime, route),
            nemesis=nemesis,
            history=self._history,
            clock=self._clock,
            progress=self.progress,
            stop=self.stop,
        )

    def _end(self) -> None:
        """Stop the nodes, collect, take down; each step is tried whatever became of the others."""
        if self._sampler is not None:
            self._sampler.finish()
        with ExitStack() as steps:
            # Last in, first out: collected before the nodes are removed.
            steps.callback(self._attempt, self._take_down)
            steps.callback(self._attempt, self._collect)
            steps.callback(self._attempt, self._stop_nodes)

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except HarnessError as error:
            self.stop.fail(error)

    def _stop_nodes(self) -> None:
        if not self._is_deployed:
            return
        for node in self._test.nodes:
            if self._runtime.status(node) in ("running", "paused"):
                self._runtime.kill(node)
        self.progress.reached("stopped")

    def _collect(self) -> None:
        if self._tailer is not None:
            self._tailer.finish()
        if not self._is_deployed:
            return
        problems = [
            problem
            for node in self._test.nodes
            if (problem := collect_node(self._system, self._runtime, self._folder, node))
        ]
        self.progress.reached("collected", detail="; ".join(problems) or None)

    def _take_down(self) -> None:
        patiently(self._runtime.teardown, _TEARDOWN_PATIENCE_S, 1.0, HarnessError)
        self.progress.reached("torn-down")

    def _lines_of_schedule(self, schedule: tuple[ScheduledFault, ...]) -> LineWriter:
        lines = self._files.enter_context(LineWriter(self._folder.schedule))
        for fault in schedule:
            lines.append(fault)
        return lines
