"""One run's cluster, from the empty folder to the collected evidence; who works on it is not here.

``harness.run.runner`` puts the load and the nemesis of a plan on it, ``harness.testing`` the steps
of a test. A failure is kept in ``stop`` and never keeps the next step from being done; whatever
happens, nothing is left running. Source: design, sections 5 and 7.
"""

import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Capability, NodeSpec
from splitbrain.contracts.system import Tempo
from splitbrain.harness.console.stop import Stop, within
from splitbrain.harness.folder.ballast import Ballast
from splitbrain.harness.folder.manifest import open_manifest, write_manifest
from splitbrain.harness.folder.store import LivingRun
from splitbrain.harness.run import convergence
from splitbrain.harness.run.attempts import Attempts
from splitbrain.harness.run.digest_watch import DigestWatch
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.ending import ACT_TIMEOUT_S, Ending
from splitbrain.harness.run.evidence import Observer
from splitbrain.harness.run.leader_watch import LeaderWatch
from splitbrain.harness.run.metrics import MetricsSampler
from splitbrain.harness.run.nemesis_driver import NemesisDriver
from splitbrain.harness.run.options import PreparedTest, equipped
from splitbrain.harness.run.plan_record import write_plan
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.state_tailer import StateEventTailer
from splitbrain.harness.run.state_watch import StateWatch
from splitbrain.harness.run.traffic import Traffic
from splitbrain.harness.run.violation_watch import ViolationWatch, freeze_nodes
from splitbrain.history.plan import Plan, changed_words, decode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import HistoryWriter, LineWriter
from splitbrain.nemesis.aim import Patience


class Timing(msgspec.Struct, frozen=True):
    """How long a run waits for the cluster, in seconds."""

    ready_s: float
    converged_s: float = Tempo().converged_s
    interrupted_s: float = convergence.INTERRUPTED_PATIENCE_S
    nemesis: Patience = Patience()

    @classmethod
    def of(cls, tempo: Tempo, recovery_limit_s: float | None = None) -> "Timing":
        """Return the waits for a system of this tempo; none ends before the promised recovery."""
        nemesis = Patience(
            started_us=round(1e6 * tempo.started_s),
            healed_us=round(1e6 * tempo.started_s),
            resumed_us=round(1e6 * tempo.resumed_s),
        )
        converged_s = max(tempo.converged_s, recovery_limit_s or 0.0)
        return cls(tempo.ready_s, converged_s, nemesis=nemesis)


class Stage:
    """A cluster and the files of its run; ``start``, work, ``settle``, ``end``, ``close``."""

    def __init__(
        self,
        test: PreparedTest,
        plan: Plan,
        living: LivingRun,
        timing: Timing,
        needed: AbstractSet[Capability],
    ) -> None:
        """Make the files of the run.

        Args:
            test: what is to be run.
            plan: the record of it.
            living: the run's folder.
            timing: how long to wait for the cluster.
            needed: what the nodes are to be equipped for.

        Raises:
            HarnessError: the disk refuses.
        """
        self._test, self._plan, self._living, self.timing = test, plan, living, timing
        self._needed = needed
        self._system, self._runtime, self.folder = test.system, test.runtime, living.folder
        self.clock = RunClock()
        self._files = ExitStack()
        self.stop = Stop()
        self.attempts = Attempts(living.folder, self.stop)
        self._is_deployed = False
        self.node_specs: tuple[NodeSpec, ...] = ()
        write_plan(self.folder, plan)
        open_manifest(self.folder)
        self._ballast = Ballast(self.folder.root)
        self._ballast.take()
        self._schedule = self._files.enter_context(LineWriter(self.folder.schedule))
        self.history = HistoryWriter(self.folder.history, self.clock.now)
        self._files.callback(self.history.close)
        self._faults = self._files.enter_context(LineWriter(self.folder.faults))
        self._metrics = self._files.enter_context(LineWriter(self.folder.metrics))
        self._leaders = self._files.enter_context(LineWriter(self.folder.leaders))
        phases = self._files.enter_context(LineWriter(self.folder.phases))
        stop, count = self.stop, lambda: self.history.count
        self.progress = Progress(self.clock, phases, Traffic(), events=count, failed=stop.fail)
        self._down = DownNodes()
        #: Ends of the threads that look on, in the order in which they began.
        self._onlookers: list[Callable[[], None]] = []
        self._digests: DigestWatch | None = None
        self._tailer: StateEventTailer | None = None
        self._watch = StateWatch()
        self._ending = Ending(
            test,
            living,
            self._ballast,
            self._down,
            self.clock,
            self.progress,
            stop,
            self.attempts,
        )

    def plan_fault(self, fault: Fault) -> None:
        """Put a fault as planned into the schedule."""
        self._schedule.append(fault)

    def start(self) -> None:
        """Start the nodes and wait until the cluster can serve.

        Raises:
            HarnessError: it cannot.
        """
        self.progress.reached("deploying")
        for node in self._test.all_nodes:
            self.folder.node(node).mkdir(parents=True, exist_ok=True)
        root, place = self.folder.root, self._runtime.place
        spec = self._system.deployment(self._living.run_id, root, self._test.experiment, place)
        spec = equipped(spec, self._needed)
        self._start_tailer()
        self.node_specs = spec.nodes
        self._runtime.deploy(spec)
        self._is_deployed = True
        self._plan = msgspec.structs.replace(self._plan, runtime_versions=self._runtime.versions())
        write_plan(self.folder, self._plan)
        self._tell_changes()
        self.progress.reached("deployed")
        convergence.await_ready(self._system, self._runtime, self.timing.ready_s, self.stop)
        if not self.stop.is_set():
            self.progress.reached("ready")
        self._start_onlookers()

    def _tell_changes(self) -> None:
        """Say what a replay runs on that the replayed run did not: engine, kernel, images."""
        if self._plan.replay_of is None:
            return
        try:
            replayed = decode_plan(RunFolder(Path(self._plan.replay_of)).plan.read_bytes())
        # It was there when the replay began; the replay goes on without it.
        except (OSError, ValueError, RecursionError):
            return
        changed = changed_words(replayed.runtime_versions, self._plan.runtime_versions)
        if changed is not None:
            self.progress.say(changed)

    def _start_tailer(self) -> None:
        raw = {
            node: path
            for node in self._test.all_nodes
            if (path := self._system.state_event_file(self.folder.root, node)) is not None
        }
        self._tailer = StateEventTailer(
            raw, self.folder, self.clock, self.progress, self.stop, self._watch
        )
        self._tailer.start()

    def _start_onlookers(self) -> None:
        system, runtime, clock, stop = self._system, self._runtime, self.clock, self.stop
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
        if system.declares_digests:
            lines = self._files.enter_context(LineWriter(self.folder.digests))
            self._digests = DigestWatch(system, runtime, clock, lines, stop)
            self._digests.start()
            self._onlookers.append(self._digests.finish)
        if self._plan.experiment.stop_on_violation:
            watch = ViolationWatch(self.folder.history, self._plan, runtime, self.progress, stop)
            watch.start()
            self._onlookers.append(watch.finish)

    def nemesis(self) -> NemesisDriver:
        """Return what carries out faults on this cluster."""
        system, runtime = self._system, self._runtime

        def answers(node: NodeName, timeout_s: float) -> bool:
            return system.metrics(runtime, node, timeout_s) is not None

        traffic, watch = self.progress.traffic, self._watch
        members = system.members(runtime)
        return NemesisDriver(
            schedule=self._test.schedule,
            runtime=runtime,
            leader=partial(system.leader, runtime),
            observer=Observer(
                runtime, traffic, self.clock, answers=answers, watch=watch, members=members
            ),
            recovered=partial(system.recovered, runtime),
            clock=self.clock,
            faults=self._faults,
            schedule_file=self._schedule,
            down=self._down,
            progress=self.progress,
            stop=self.stop,
            record_at=system.record_at,
            patience=self.timing.nemesis,
            watch=watch if system.tells_events_at_once else None,
            members=members,
            observers=self._test.observers,
        )

    def settle(self, read_finally: Callable[[], int]) -> None:
        """Wait until the nodes agree once all is healed, and take the final reads.

        ``read_finally`` returns how many of them could not be settled. Nodes that are frozen stay
        so, with those that an act of the nemesis brought back meanwhile.
        """
        if self.stop.frozen.is_set():
            freeze_nodes(self._runtime)
            return
        if self.stop.failure is None:
            self.progress.reached("healed")
        in_order = not self.stop.is_set()
        timing = self.timing
        patience_s = timing.converged_s if in_order else timing.interrupted_s
        missing = convergence.await_converged(
            self._system, self._runtime, patience_s, self.stop, timing.interrupted_s
        )
        self.progress.reached("converged" if missing is None else "not-converged", detail=missing)
        if in_order and not self.stop.is_set():
            unsettled = read_finally()
            detail = f"{unsettled} could not be settled" if unsettled else None
            self.progress.reached("final-reads-ended", detail=detail)
        if self._digests is not None and self.stop.failure is None:
            # Members that have not converged by now hardly will.
            last_s = patience_s if missing is None else timing.interrupted_s
            ask = partial(self._digests.ask_last, last_s)
            within(ask, last_s + ACT_TIMEOUT_S, "ask for the last digests", self._living.run_id)

    def end(self) -> None:
        """Stop the nodes, collect, take down; each step is tried whatever became of the others.

        The reason of an early end is recorded.
        """
        attempt, ending = self.attempts.attempt, self._ending
        if self.stop.interrupted:
            self.progress.reached("interrupted")
        with ExitStack() as steps:
            # Last in, first out: collected before the nodes are removed.
            steps.callback(attempt, ending.take_down)
            steps.callback(attempt, self._collect)
            if self._is_deployed:
                steps.callback(attempt, ending.stop_nodes)
            for finish in self._onlookers:
                steps.callback(attempt, finish)
        if self.stop.failure is not None:
            self.progress.reached(
                "failed", detail=str(self.stop.failure), since=self._failed_since()
            )

    def _collect(self) -> None:
        if self._tailer is not None:
            self.attempts.attempt(self._tailer.finish)
        if self._is_deployed:
            self._ending.collect()

    def _failed_since(self) -> int | None:
        """When the failure was noticed, ns since the run's start."""
        if self.stop.failed_at is None:
            return None
        return self.clock.now() - (time.monotonic_ns() - self.stop.failed_at)

    def close(self) -> None:
        """Sync and close the files of the run, and seal them."""
        self._ballast.release()
        try:
            self._files.close()
            # While nodes are left, more of their output may still be fetched.
            if self.progress.phase == "torn-down":
                write_manifest(self.folder)
        except HarnessError as error:
            self.stop.fail(error)
