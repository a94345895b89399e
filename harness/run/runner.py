"""Runs one test from the empty folder to the collected evidence; judges nothing.

A failure anywhere, ours, the environment's or a defect, ends the load and goes on with healing and
collecting, so that what is there can be judged; whatever happens, nothing is left running. Source:
design, sections 5 and 7.
"""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.console.interrupts import LEFT_EXIT_CODE, Interrupts
from splitbrain.harness.folder.store import LivingRun, create_run
from splitbrain.harness.run.clients import Load, LoadSetup
from splitbrain.harness.run.live import LiveDisplay
from splitbrain.harness.run.load.messages import SystemClients, fixed_endpoints
from splitbrain.harness.run.load_phase import LoadPhase
from splitbrain.harness.run.options import PreparedTest
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.harness.run.stage import Stage, Timing
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.plan import needs


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


#: Length of a load for which no session is started before its end.
_SHORT_S: Final = 15.0


class Analyst(Protocol):
    """Somebody who analyses the run after its verdict."""

    def prepare(self, run_folder: Path) -> None:
        """Get ready while the nodes start, without disturbing them or the clients later."""
        ...

    def begin(self) -> None:
        """Get ready at once: the clients are through, and the nodes are stopped now."""
        ...


def run_test(
    test: PreparedTest,
    console: Console,
    timing: Timing | None = None,
    interrupts: Interrupts | None = None,
    analyst: Analyst | None = None,
) -> RunOutcome:
    """Run one prepared test, shown on the console.

    Without ``interrupts`` of the command around it the run takes the signals itself.
    ``analyst`` is told when the clients begin, and when they are through.

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
        run = _Run(
            test,
            name,
            living,
            timing or Timing.of(test.system.tempo(), test.experiment.recovery_limit_s),
            analyst,
        )
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
    """The load and the nemesis of one plan, on a stage."""

    def __init__(
        self,
        test: PreparedTest,
        name: str,
        living: LivingRun,
        timing: Timing,
        analyst: Analyst | None,
    ) -> None:
        self._test, self._analyst = test, analyst
        plan = plan_of(test, name, living.run_id)
        self._stage = Stage(test, plan, living, timing, needs(test.schedule))
        for fault in test.schedule:
            self._stage.plan_fault(fault)
        self.stop, self.attempts = self._stage.stop, self._stage.attempts
        self.progress, self.close = self._stage.progress, self._stage.close
        self.loaded = False

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
            f"`splitbrain check {self._stage.folder.root}` judges what was recorded."
        )

    def carry_out(self) -> None:
        """The whole course; failures of the harness are kept in ``stop``."""
        try:
            self.attempts.attempt(self._course)
        finally:
            self._stage.end()

    def _course(self) -> None:
        if self._analyst is not None and self._test.experiment.time_limit_s > _SHORT_S:
            self._analyst.prepare(self._stage.folder.root)
        self._stage.start()
        if not self.stop.is_set():
            phase = self._load_phase()
            self.loaded = True
            phase.run()
            self._stage.settle(phase.read_finally)
            if self._analyst is not None and not self.stop.is_set():
                self._analyst.begin()

    def _load_phase(self) -> LoadPhase:
        test, stage = self._test, self._stage
        system, runtime = test.system, test.runtime
        load = msgspec.convert(test.experiment, Load, from_attributes=True)
        return LoadPhase(
            LoadSetup(test.nodes, test.workload, load, test.asked_observers),
            partial(system.open_client, runtime),
            carry_out=stage.nemesis().run,
            history=stage.history,
            clock=stage.clock,
            progress=self.progress,
            stop=self.stop,
            opener_for_workers=lambda: SystemClients(
                system, fixed_endpoints(runtime, stage.node_specs)
            ),
        )
