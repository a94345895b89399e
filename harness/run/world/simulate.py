"""Runs one scenario from its first step to its evidence.

Nodes start, clients work and faults strike until the load's time is over; everything that is to
heal heals; progress is demanded; what was touched is read once more. The first invariant that does
not hold ends the run, and so does anything that a node or the world raises: a defect is a finding
(``INV-31``), never swallowed. The evidence is kept in every case, and what was open stays open.

Same scenario, same run, bit for bit: whether the story is recorded, or somebody watches, changes
nothing. Must never know a system by name.
"""

import traceback
from collections.abc import Callable
from typing import Final

from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import UNTIL
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.scenario import NodeCrashed, Scenario, Violation, ViolationError
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.run.load.reading import readers
from splitbrain.harness.run.load.routes import reader_slots
from splitbrain.harness.run.load.seat import Books, Processes
from splitbrain.harness.run.world.fault_driver import FaultDriver
from splitbrain.harness.run.world.load import (
    SimulatedLoad,
    VirtualClient,
    VirtualFinalReads,
    VirtualHistory,
)
from splitbrain.harness.run.world.recovery import LIVENESS, Recovery
from splitbrain.history.course import Phase, PhaseName
from splitbrain.history.plan import sub_seed
from splitbrain.history.timeline_records import TimelineViolation
from splitbrain.simulation.world.world import SimulatedWorld
from splitbrain.workloads.workload import workload

#: Id of the invariant in ``docs/invariants.md``: nothing raises but what says why.
DEFECT: Final = "INV-31"
_NS_PER_US: Final = 1_000
#: Nodes start within this time, in an order that the seed draws.
_START_SPREAD_US: Final = 20_000
#: How often the world is looked at while the final reads are under way.
_LOOK_US: Final = 5_000
_STREAM: Final = "course"


class _StoppedError(Exception):
    """The step was reached at which the run was to stop."""


def simulate(
    scenario: Scenario,
    system: SimulatedSystem,
    *,
    muted: frozenset[str] = frozenset(),
    is_recording: bool = False,
    watch: Callable[[SimulatedWorld], None] | None = None,
    stop_at_step: int | None = None,
) -> SimulationOutcome:
    """Run a scenario.

    ``muted`` are ids of invariants that do not watch; ``is_recording`` keeps the story of the run.
    ``watch`` is called after every step, for those who look for a defect, and must change nothing;
    the run ends after ``stop_at_step``, with the evidence of then.

    Raises:
        UsageError: the scenario names something that does not exist, or ``muted`` does.
    """
    _check_happenings(scenario, system)
    _check_muted(muted, system)
    if scenario.unwatched:
        muted |= {*system.invariants, *LIVENESS}
    world = SimulatedWorld(scenario, system, muted=muted, is_recording=is_recording)
    return _Course(world, muted, _stopping(world, watch, stop_at_step)).run()


class _Course:
    """One run, one use."""

    def __init__(
        self, world: SimulatedWorld, muted: frozenset[str], stop: Callable[[], bool] | None
    ) -> None:
        """``stop``: called after every step of the world, says whether that was the last."""
        scenario = world.scenario
        self._scenario, self._world, self._stop = scenario, world, stop
        self._violation: Violation | None = None
        self._phases: list[Phase] = []
        self._history = VirtualHistory(world)
        options = scenario.load
        observers = world.cluster.observers
        nodes = [node for node in world.cluster.nodes if node not in observers]
        self._workload = workload(
            options.workload,
            seed=sub_seed(scenario.seed, "workload"),
            slots=options.clients,
            readers=reader_slots(nodes, options.clients, observers, options.readers),
            options=options.workload_options,
        )
        history, functions = self._history, self._workload.functions
        self._books = Books(
            *(history, history, Processes(options.clients), functions), options.timeout_us
        )
        self._load = SimulatedLoad(world, world.cluster, self._workload, options, self._books)
        self._faults = FaultDriver(world, self._history)
        self._recovery = Recovery(
            world, self._faults, self._load, self._history, self._run_until, muted
        )

    def run(self) -> SimulationOutcome:
        """From the first step to the evidence."""
        self._guarded(self._live)
        return self._evidence()

    def _live(self) -> None:
        """The course of the world; an invariant that does not hold raises ViolationError."""
        world, cluster = self._world, self._world.cluster
        for node in cluster.nodes:
            offset_us = world.between(_STREAM, 0, _START_SPREAD_US)
            world.after(offset_us, lambda node=node: cluster.start(node))
        self._reached("deployed")
        self._reached("load-started")
        self._faults.begin()
        self._load.begin()
        self._run_until(self._scenario.load_us)
        self._recovery.heal()
        self._reached("healed")
        if self._recovery.is_due:
            self._recovery.await_progress()
            self._recovery.await_progress_apart()
        self._load.rest()
        self._reached("load-ended")
        if self._recovery.is_due:
            self._recovery.await_rest()
            self._reached("converged")
            self._read_finally()
        self._load.close()
        cluster.finish()
        self._reached("stopped")

    def _read_finally(self) -> None:
        """Read everything that was touched, from every node that is healed."""
        world, workload = self._world, self._workload
        cluster, healed = world.cluster, self._recovery.healed
        observers = [node for node in healed if node in cluster.observers]
        nodes = [node for node in healed if node not in observers]
        requests = readers(nodes, observers, workload.final_reads(), workload)
        reads = [
            VirtualFinalReads(
                VirtualClient(place, route, cluster, self._books), route.kind, operations, world
            )
            for place, (route, operations) in enumerate(requests)
        ]
        for reader in reads:
            reader.ask()
        while not all(reader.is_over for reader in reads):
            self._run_until(world.now + _LOOK_US)
        self._reached("final-reads-ended")

    def _run_until(self, until_us: int) -> None:
        """Let the world run; raise _StoppedError at the step at which to stop."""
        if self._world.run(until_us, self._stop):
            raise _StoppedError

    def _guarded(self, action: Callable[[], None]) -> None:
        """Whatever goes wrong in the world becomes the run's violation, the first one only."""
        try:
            action()
        except _StoppedError:
            return
        except ViolationError as error:
            self._violated(error)
        except (Exception, NodeCrashed) as error:  # noqa: BLE001 - a defect is a finding
            self._violated(ViolationError(DEFECT, _sentence(error), kind=_kind(error)))

    def _violated(self, error: ViolationError) -> None:
        if self._violation is not None:
            return
        violation = self._violation = self._world.violation(error)
        self._world.record(TimelineViolation.of(violation))
        self._reached("failed", f"{violation.invariant}: {violation.problem}")

    def _reached(self, phase: PhaseName, detail: str | None = None) -> None:
        time, events = self._world.now * _NS_PER_US, len(self._history.events)
        self._phases.append(Phase(time, phase, detail=detail, events=events))

    def _evidence(self) -> SimulationOutcome:
        world, cluster, history = self._world, self._world.cluster, self._history
        logs: dict[NodeName, CommittedLog] = {}
        events: dict[NodeName, tuple[StateEvent, ...]] = {}
        figures: dict[str, int] = {}

        def collect() -> None:
            for node in cluster.nodes:
                events[node] = cluster.state_events(node)
            figures.update(cluster.figures())
            for node in cluster.nodes:
                log = cluster.committed_log(node)
                if log is not None:
                    logs[node] = log

        trace_hash, steps, now = world.trace_hash, world.step, world.now
        self._guarded(collect)
        return SimulationOutcome(
            scenario=self._scenario,
            violation=self._violation,
            trace_hash=trace_hash,
            steps=steps,
            virtual_us=now,
            events=tuple(history.events),
            faults=tuple(self._faults.events),
            struck=tuple(self._faults.struck),
            state_events=events,
            committed_logs=logs,
            unlike=self._recovery.unlike,
            lie=cluster.lie(),
            figures={
                **figures,
                "believed_lies": int(cluster.lie() is not None),
                "operations": sum(1 for event in history.events if event.type == "invoke"),
                "acknowledged": history.traffic.counts().ok,
                "faults": len(self._faults.struck),
                "messages": world.network.delivered_count,
                "resets": world.network.reset_count,
            },
            phases=tuple(self._phases),
            story=tuple(world.story),
        )


def _check_happenings(scenario: Scenario, system: SimulatedSystem) -> None:
    known = tuple(dict.fromkeys((*system.happenings, *system.happenings_undrawn)))
    for fault in scenario.faults:
        awaited = fault.when.on if fault.when is not None and fault.waits_for_node else None
        for name in (awaited, fault.options.get(UNTIL)):
            if name is not None and name not in known:
                raise UsageError(
                    f"fault {fault.index} waits for {name!r}, which does not happen",
                    or_nearest(name, known, "happenings"),
                )


def _check_muted(muted: frozenset[str], system: SimulatedSystem) -> None:
    known = (*system.invariants, *LIVENESS)
    for name in sorted(muted):
        if name not in known:
            raise UsageError(
                f"there is no invariant {name!r} that could be muted",
                or_nearest(name, known, "invariants"),
            )


def _stopping(
    world: SimulatedWorld, watch: Callable[[SimulatedWorld], None] | None, stop_at_step: int | None
) -> Callable[[], bool] | None:
    """Return the calls after every step, None where there are none."""
    if watch is None and stop_at_step is None:
        return None

    def stop() -> bool:
        if watch is not None:
            watch(world)
        return stop_at_step is not None and world.step >= stop_at_step

    return stop


def _sentence(error: BaseException) -> str:
    """Return the error and its place, without a path of this machine."""
    place, line = _raised_at(error)
    return f"{type(error).__name__}: {error} ({place}, line {line})"


def _kind(error: BaseException) -> str:
    """Return the part of an error that a run which fails alike shares: no message, no line."""
    return f"{type(error).__name__} in {_raised_at(error)[0]}"


def _raised_at(error: BaseException) -> tuple[str, int]:
    """Module and function, and the line."""
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}", line
