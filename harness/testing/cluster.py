"""The cluster of one test: deployed, asked, broken and judged in the test's own order.

It stands in a run's folder, which tells all of it: ``splitbrain check`` comes to the same verdict.
Whatever the test does, its faults are healed and its nodes removed.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import Address, Capability, Runtime
from splitbrain.contracts.system import CLIENT_PORT, Route, System
from splitbrain.harness.console.stop import NotYetError
from splitbrain.harness.folder.results import EXIT_VALID, Results
from splitbrain.harness.folder.store import create_run, drop_data
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.run.options import (
    PreparedTest,
    TestOptions,
    prepare,
    refuse_faults,
)
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.harness.run.stage import Stage, Timing
from splitbrain.harness.testing.client import RecordedClient
from splitbrain.harness.testing.client_loop import ClientLoop
from splitbrain.harness.testing.fault_planner import FaultPlanner
from splitbrain.harness.testing.ordered_fault import OrderedFault
from splitbrain.harness.testing.refusals import OneSentence
from splitbrain.harness.testing.verdict_text import why_it_fails
from splitbrain.nemesis.plan import needs, parse
from splitbrain.nemesis.targets import LEADER

__tracebackhide__ = True  # pytest shows the test's own line

#: Length of a fault that has several strokes, where the test names none.
_SECONDS: Final = 5.0
#: Operations a second of the workload, by which a heal is seen to let clients be served again.
_ASKING_RATE: Final = 50.0
_LOOK_S: Final = 0.05


class Cluster:
    """A context: the cluster stands until it is left, or until it is judged."""

    def __init__(
        self,
        options: TestOptions,
        system: System,
        make_runtime: Callable[[], Runtime],
        *,
        name: str,
        driven_by: str,
        timing: Timing | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            options: the experiment's ``nemesis`` names the faults that nodes must be equipped for.
            system: a fresh adapter.
            make_runtime: makes the runtime, once everything else fits.
            name: folder above the run's own.
            driven_by: the test, as pytest names it.
            timing: how long to wait; by default as the system says.
        """
        self._options, self._system, self._make_runtime = options, system, make_runtime
        self._name, self._driven_by, self._timing = name, driven_by, timing
        self._context = ExitStack()
        self._equipment: frozenset[Capability] = frozenset()
        self._test: PreparedTest | None = None
        self._stage: Stage | None = None
        self._clients: ClientLoop | None = None
        self._is_over = False
        self._results: Results | None = None
        self._in_force: list[OrderedFault] = []

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        with OneSentence():
            return self._standing(over=True)[1].folder.root

    @property
    def root(self) -> Path | None:
        """The same; None before there is one."""
        return None if self._stage is None else self._stage.folder.root

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Names of the nodes: those that vote, then the others."""
        return self._standing(over=True)[0].all_nodes

    @property
    def seed(self) -> int:
        """Seed of the workload and of what faults leave to chance."""
        return self._options.experiment.seed

    def __enter__(self) -> Self:
        """Start the nodes and wait until the cluster can serve.

        Raises:
            UsageError: something does not exist or does not fit.
            HarnessError: the cluster could not be started; nothing is left of it.
        """
        with OneSentence():
            if self._test is not None:
                raise UsageError("the cluster was started before", "Ask splitbrain for another")
            try:
                self._prepare()
                self._start()
            except BaseException:
                self._finish(in_order=False)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Judge it if nobody has, unless the test has failed; remove the nodes in any case."""
        if kind is not None:
            self._finish(in_order=False)
        elif self._results is None:
            self.check()

    def client(self, on: str | None = None) -> RecordedClient:
        """Return a client whose operations are recorded.

        Each thread that uses it is a process of the history. It follows the leader, or keeps to
        one node.

        Args:
            on: name of that node.
        """
        with OneSentence():
            test, stage, clients = self._standing()
            nodes = test.all_nodes
            if on is not None and on not in nodes:
                raise UsageError(
                    f"the cluster has no node {on!r}", or_nearest(on, nodes, "cluster's nodes")
                )
            route = Route("leader", nodes[0]) if on is None else Route("pinned", NodeName(on))
            return RecordedClient(clients, route, self._standing, stage.stop)

    def address(self, node: str, port: str = CLIENT_PORT) -> Address:
        """Return host and port of a node's port, for clients of the test's own."""
        with OneSentence():
            return self._standing()[0].runtime.endpoint(NodeName(node), port)

    def leader(self) -> NodeName | None:
        """Ask the nodes who leads; None where nobody does, or the system cannot say."""
        with OneSentence():
            test, stage, _ = self._standing()
            return test.system.leader(
                test.runtime, stage.timing.nemesis.leader_query_us / 1e6
            ).leader

    @contextmanager
    def fault(
        self, kind: str, on: str | None = None, *, seconds: float = _SECONDS, **options: Any
    ) -> Generator[OrderedFault]:
        """Inject a fault and see it take effect; heal it and see it gone when the context is left.

        Args:
            kind: any that ``splitbrain test --nemesis`` knows.
            on: target: a role such as ``leader``, a node's name; by default the kind's usual one.
            seconds: how long its course takes, of a kind with several strokes such as ``flap``; it
                is in force until the context is left.
            options: the kind's own, by the names that plan files have.

        Raises:
            UsageError: there is no such fault, target or option.
            CapabilityError: it cannot be had here.
            HarnessError: it did not take effect, or would not go.
        """
        with OneSentence(), ExitStack() as asking:
            _, stage, clients = self._standing()
            asked_since: list[int] = []

            def undone() -> None:
                # Clients must be seen to be served again, and the test asks nothing meanwhile.
                if not clients.is_loaded:
                    asked_since.append(clients.workload.changes)
                    asking.enter_context(clients.loading(_ASKING_RATE))

            fault = self._planner.planned(kind, on, seconds, options)
            ordered = OrderedFault(self._nemesis, fault, undone=undone)
            self._in_force.append(ordered)
            try:
                ordered.begin()
                yield ordered
            finally:
                ordered.end()
                self._in_force.remove(ordered)
            for changes in asked_since:
                _await_change(stage, clients, changes)

    @contextmanager
    def loading(self, rate: float | None = None) -> Generator[None]:
        """Perform the workload's own operations while the context lasts, beside those of the test.

        Args:
            rate: operations a second over all worker slots; by default the experiment's.
        """
        with OneSentence():
            _, stage, clients = self._standing()
            if rate is not None and not rate > 0:
                raise UsageError(f"a load has the rate {rate}", "Choose one above 0")
            with clients.loading(rate):
                yield
            self._raise_failure(stage)

    def load(self, seconds: float, rate: float | None = None) -> None:
        """Perform the workload's own operations for some seconds."""
        with OneSentence(), self.loading(rate):
            self._standing()[1].stop.wait(seconds)

    def check(self) -> Results:
        """Judge the run, and fail the test unless it is valid; see ``judge``.

        Raises:
            AssertionError: a checker found a violation, or nothing was proven; says which.
            HarnessError: the harness or its environment failed, and no checker found a violation.
        """
        results = self.judge()
        stage = self._stage
        if results.exit_code != EXIT_VALID:
            if stage is not None and stage.stop.failure and results.headline != "INVALID":
                raise stage.stop.failure.with_traceback(None)
            raise AssertionError(why_it_fails(results, self.seed))
        return results

    def judge(self) -> Results:
        """End the run as every run ends, and return what all checkers say of it.

        Faults are healed, the nodes agree, everything is read once more; then the nodes are
        removed, so that nothing can be asked afterwards.
        """
        with OneSentence():
            if self._results is None:
                _, stage, clients = self._standing(over=True)
                if (self._in_force or clients.is_loaded) and not self._is_over:
                    inside = "a fault is in force" if self._in_force else "a load is under way"
                    raise UsageError(
                        f"{inside}, and the judgement is of what comes after it too",
                        "Leave its `with` block before check()",
                    )
                self._finish(in_order=True)
                failed = stage.stop.failure
                problems = () if failed is None else (str(failed),)
                root = stage.folder.root
                self._results = judge_and_publish(root, analyze=False, harness_problems=problems)
                if self._results.exit_code == EXIT_VALID and not self._options.keep_data:
                    drop_data(stage.folder)
            return self._results

    def _standing(self, *, over: bool = False) -> tuple[PreparedTest, Stage, ClientLoop]:
        """Return its parts; ``over``: also once it is over."""
        if self._test is None or self._stage is None or self._clients is None:
            raise UsageError(
                "the cluster is not started", "Write `with splitbrain.cluster(...) as cluster:`"
            )
        if self._is_over and not over:
            raise UsageError(
                "the cluster is over: it ends where it is judged, or with its `with` block",
                "Do this before check()",
            )
        return self._test, self._stage, self._clients

    def _prepare(self) -> None:
        wanted = parse(self._options.experiment.nemesis)
        equipment = tuple(
            Fault(number, item.kind, item.target or LEADER, 0, 0, 0)
            for number, item in enumerate(wanted)
        )
        test = prepare(self._options, self._system, self._make_runtime)
        refuse_faults(equipment, test.system, test.runtime)
        test.runtime.prepare(test.system.images())
        seed, runs = test.experiment.seed, self._options.runs_folder
        living = self._context.enter_context(create_run(runs, self._name, seed))
        plan = plan_of(test, self._name, living.run_id)
        plan = msgspec.structs.replace(plan, driven_by=self._driven_by)
        timing = self._timing or Timing.of(test.system.tempo(), test.experiment.recovery_limit_s)
        self._equipment = needs(equipment)
        self._test = test
        self._stage = Stage(test, plan, living, timing, self._equipment)
        self._context.callback(self._stage.close)
        self._clients = ClientLoop(test, self._stage)

    def _start(self) -> None:
        test, stage, _ = self._standing()
        self._context.enter_context(stage.attempts.watching_threads())
        stage.attempts.attempt(stage.start)
        self._raise_failure(stage)
        self._nemesis = stage.nemesis()
        stage.progress.reached("load-started")
        self._planner = FaultPlanner(test, stage, self._equipment)

    def _finish(self, *, in_order: bool) -> None:
        """Heal, settle where all is in order, stop, collect and take down; once."""
        stage, clients = self._stage, self._clients
        if self._is_over or stage is None or clients is None:
            self._context.close()
            return
        self._is_over = True
        attempt = stage.attempts.attempt
        if not in_order and stage.stop.failure is None:
            stage.stop.interrupt()
        with self._context, ExitStack() as steps:
            steps.callback(attempt, clients.close)
            steps.callback(stage.end)
            if stage.progress.phase != "load-started":
                return
            for ordered in self._in_force:
                attempt(ordered.end)
            attempt(self._nemesis.heal_everything)
            stage.progress.reached("load-ended")
            attempt(lambda: stage.settle(clients.read_finally))

    def _raise_failure(self, stage: Stage) -> None:
        if stage.stop.failure is not None:
            raise stage.stop.failure


def _await_change(stage: Stage, clients: ClientLoop, before: int) -> None:
    """Wait until a change was acknowledged; where none is, the judgement tells."""

    def look() -> None:
        if clients.workload.changes <= before:
            raise NotYetError("no change acknowledged")

    patience_s = stage.timing.nemesis.resumed_us / 1e6
    with suppress(NotYetError):
        stage.stop.retrying(patience_s, _LOOK_S, NotYetError)(look)
