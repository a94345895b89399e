"""Runs one test from the empty folder to the collected evidence; judges nothing.

A failure anywhere, ours, the environment's or a defect, ends the load and goes on with healing and
collecting, so that what is there can be judged; whatever happens, nothing is left running. Source:
design, sections 5 and 7.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeSpec
from splitbrain.harness.console.interrupts import LEFT_EXIT_CODE, Interrupts
from splitbrain.harness.console.stop import Stop, within
from splitbrain.harness.folder.ballast import Ballast
from splitbrain.harness.folder.manifest import open_manifest, write_manifest
from splitbrain.harness.folder.store import LivingRun, create_run
from splitbrain.harness.run import convergence
from splitbrain.harness.run.attempts import Attempts
from splitbrain.harness.run.clients import Load, LoadSetup
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.ending import ACT_TIMEOUT_S, Ending
from splitbrain.harness.run.evidence import Observer
from splitbrain.harness.run.leader_watch import LeaderWatch
from splitbrain.harness.run.live import LiveDisplay
from splitbrain.harness.run.load.messages import SystemClients, fixed_endpoints
from splitbrain.harness.run.load_phase import LoadPhase
from splitbrain.harness.run.metrics import MetricsSampler
from splitbrain.harness.run.nemesis_driver import NemesisDriver
from splitbrain.harness.run.options import PreparedTest, equipped
from splitbrain.harness.run.plan_record import plan_of, write_plan
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.state_tailer import StateEventTailer
from splitbrain.harness.run.state_watch import StateWatch
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import HistoryWriter, LineWriter
from splitbrain.nemesis.aim import Patience
from splitbrain.nemesis.plan import needs


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
    #: The user did not want to wait for the end in order.
    hurried: bool = False


def run_test(
    test: PreparedTest,
    console: Console,
    timing: Timing | None = None,
    interrupts: Interrupts | None = None,
) -> RunOutcome:
    """Run one prepared test, shown on the console.

    Without ``interrupts`` of the command around it the run takes the signals itself.

    Raises:
        HarnessError: not even the run folder could be made.
    """
    name = f"{test.system.name}-{test.workload.name}"
    with ExitStack() as context:
        if interrupts is None:
            interrupts = context.enter_context(Interrupts(console.print))
        living = context.enter_context(
            create_run(test.options.runs_folder, name, test.experiment.seed)
        )
        run = _Run(test, name, living, timing or Timing())
        title = f"splitbrain {name}, seed {test.experiment.seed}, {living.run_id}"
        display = LiveDisplay(console, run.progress, title)

        def farewell() -> tuple[str, int]:
            display.abandon()
            return run.farewell(), LEFT_EXIT_CODE

        try:
            with (
                interrupts.during(run.interrupt, run.hurry, farewell=farewell),
                run.attempts.watching_threads(),
                display,
            ):
                run.carry_out()
        finally:
            run.close()
        stop = run.stop
        return RunOutcome(
            living.folder, stop.failure, stop.interrupted, run.loaded, stop.haste.is_set()
        )


class _Run:
    """One run's parts and their order."""

    def __init__(self, test: PreparedTest, name: str, living: LivingRun, timing: Timing) -> None:
        self._test, self._living, self._timing = test, living, timing
        self._system, self._runtime, self._folder = test.system, test.runtime, living.folder
        self._clock = RunClock()
        self._files = ExitStack()
        self.stop = Stop()
        self.attempts = Attempts(living.folder, self.stop)
        self.loaded = False
        self._is_deployed = False
        self._node_specs: tuple[NodeSpec, ...] = ()
        self._plan = plan_of(test, name, living.run_id)
        write_plan(self._folder, self._plan)
        open_manifest(self._folder)
        self._ballast = Ballast(self._folder.root)
        self._ballast.take()
        self._schedule = self._lines_of_schedule(test.schedule)
        self._history = HistoryWriter(self._folder.history, self._clock.now)
        self._files.callback(self._history.close)
        self._faults = self._files.enter_context(LineWriter(self._folder.faults))
        self._metrics = self._files.enter_context(LineWriter(self._folder.metrics))
        self._leaders = self._files.enter_context(LineWriter(self._folder.leaders))
        phases = self._files.enter_context(LineWriter(self._folder.phases))
        stop, count = self.stop, lambda: self._history.count
        self.progress = Progress(self._clock, phases, Traffic(), events=count, failed=stop.fail)
        self._down = DownNodes()
        #: Ends of the threads that look on, in the order in which they began.
        self._onlookers: list[Callable[[], None]] = []
        self._tailer: StateEventTailer | None = None
        self._watch = StateWatch()
        self._ending = Ending(
            test, living, self._ballast, self._down, self.progress, stop, self.attempts
        )

    def interrupt(self) -> str:
        """The user wants to stop: heal, stop, collect."""
        self.progress.say("interrupted: healing, stopping and collecting; once more to hurry")
        self.stop.interrupt()
        return ""

    def hurry(self) -> str:
        """The user wants to stop now: no more waiting, but the nodes are removed."""
        self.progress.say(
            "interrupted again: removing the nodes at once; once more to leave them to "
            "`splitbrain clean`"
        )
        self.stop.hurry()
        return ""

    def farewell(self) -> str:
        """Return the last sentence of a process that is left with nodes still there."""
        return (
            "left at once. The watchdog stops the nodes, `splitbrain clean` removes them; "
            f"`splitbrain check {self._folder.root}` judges what was recorded."
        )

    def close(self) -> None:
        """Sync and close the files of the run, and seal them."""
        self._ballast.release()
        try:
            self._files.close()
            # While nodes are left, more of their output may still be fetched.
            if self.progress.phase == "torn-down":
                write_manifest(self._folder)
        except HarnessError as error:
            self.stop.fail(error)

    def carry_out(self) -> None:
        """The whole course; failures of the harness are kept in ``stop``."""
        try:
            self.attempts.attempt(self._course)
            if self.stop.interrupted:
                self.progress.reached("interrupted")
        finally:
            self._end()
        if self.stop.failure is not None:
            self.progress.reached(
                "failed", detail=str(self.stop.failure), since=self._failed_since()
            )

    def _failed_since(self) -> int | None:
        """When the failure was noticed, ns since the run's start."""
        if self.stop.failed_at is None:
            return None
        return self._clock.now() - (time.monotonic_ns() - self.stop.failed_at)

    def _course(self) -> None:
        self._start_nodes()
        if not self.stop.is_set():
            self._work()

    def _start_nodes(self) -> None:
        self.progress.reached("deploying")
        for node in self._test.all_nodes:
            self._folder.node(node).mkdir(parents=True, exist_ok=True)
        root, place = self._folder.root, self._runtime.place
        spec = self._system.deployment(self._living.run_id, root, self._test.experiment, place)
        spec = equipped(spec, needs(self._test.schedule))
        self._start_tailer()
        self._node_specs = spec.nodes
        self._runtime.deploy(spec)
        self._is_deployed = True
        self._plan = msgspec.structs.replace(self._plan, runtime_versions=self._runtime.versions())
        write_plan(self._folder, self._plan)
        self.progress.reached("deployed")
        convergence.await_ready(self._system, self._runtime, self._timing.ready_s, self.stop)
        if not self.stop.is_set():
            self.progress.reached("ready")
        self._start_onlookers()

    def _start_onlookers(self) -> None:
        system, runtime, clock, stop = self._system, self._runtime, self._clock, self.stop
        sampler = MetricsSampler(
            system, runtime, clock, self._metrics, self._down, self.progress, stop
        )
        sampler.start()
        self._onlookers.append(
            lambda: within(sampler.finish, ACT_TIMEOUT_S, "stop sampling", self._living.run_id)
        )
        leader = partial(system.leader, runtime)
        leader_watch = LeaderWatch(leader, clock, self._leaders, self.progress, stop)
        leader_watch.start()
        self._onlookers.append(leader_watch.finish)

    def _start_tailer(self) -> None:
        raw = {
            node: path
            for node in self._test.all_nodes
            if (path := self._system.state_event_file(self._folder.root, node)) is not None
        }
        self._tailer = StateEventTailer(
            raw, self._folder, self._clock, self.progress, self.stop, self._watch
        )
        self._tailer.start()

    def _work(self) -> None:
        phase = self._load_phase()
        self.loaded = True
        phase.run()
        if self.stop.failure is None:
            self.progress.reached("healed")
        in_order = not self.stop.is_set()
        timing = self._timing
        patience_s = timing.converged_s if in_order else timing.interrupted_s
        missing = convergence.await_converged(
            self._system, self._runtime, patience_s, self.stop, timing.interrupted_s
        )
        self.progress.reached("converged" if missing is None else "not-converged", detail=missing)
        if in_order and not self.stop.is_set():
            unsettled = phase.read_finally()
            detail = f"{unsettled} could not be settled" if unsettled else None
            self.progress.reached("final-reads-ended", detail=detail)

    def _load_phase(self) -> LoadPhase:
        system, runtime = self._system, self._runtime

        def answers(node: NodeName, timeout_s: float) -> bool:
            return system.metrics(runtime, node, timeout_s) is not None

        traffic, watch = self.progress.traffic, self._watch
        nemesis = NemesisDriver(
            schedule=self._test.schedule,
            runtime=runtime,
            leader=partial(system.leader, runtime),
            observer=Observer(runtime, traffic, self._clock, answers=answers, watch=watch),
            clock=self._clock,
            faults=self._faults,
            schedule_file=self._schedule,
            down=self._down,
            progress=self.progress,
            stop=self.stop,
            record_at=system.record_at,
            patience=self._timing.nemesis,
            watch=watch if system.declares_state_events else None,
            observers=self._test.observers,
        )
        test = self._test
        load = msgspec.convert(test.experiment, Load, from_attributes=True)
        return LoadPhase(
            LoadSetup(test.nodes, test.workload, load, test.observers),
            partial(system.open_client, runtime),
            carry_out=nemesis.run,
            history=self._history,
            clock=self._clock,
            progress=self.progress,
            stop=self.stop,
            opener_for_workers=lambda: SystemClients(
                system, fixed_endpoints(runtime, self._node_specs)
            ),
        )

    def _end(self) -> None:
        """Stop the nodes, collect, take down; each step is tried whatever became of the others."""
        attempt, ending = self.attempts.attempt, self._ending
        with ExitStack() as steps:
            # Last in, first out: collected before the nodes are removed.
            steps.callback(attempt, ending.take_down)
            steps.callback(attempt, self._collect)
            if self._is_deployed:
                steps.callback(attempt, ending.stop_nodes)
            for finish in self._onlookers:
                steps.callback(attempt, finish)

    def _collect(self) -> None:
        if self._tailer is not None:
            self.attempts.attempt(self._tailer.finish)
        if self._is_deployed:
            self._ending.collect()

    def _lines_of_schedule(self, schedule: tuple[Fault, ...]) -> LineWriter:
        lines = self._files.enter_context(LineWriter(self._folder.schedule))
        for fault in schedule:
            lines.append(fault)
        return lines
