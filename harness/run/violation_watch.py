"""Waits for the first violation of the history while it grows, and freezes the nodes at it.

Frozen nodes are left as they are: nothing is healed, read or written any more, so that their logs
and data are those of the moment. The judgement is in another process (``beginning_judge``), for the
clients' event loop must not wait for it; one that dies ends the run, for nobody would look.
"""

import select
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.names import is_for_good
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import SIMULATED, Runtime
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.run.beginning_judge import Task
from splitbrain.harness.run.progress import Progress
from splitbrain.history.plan import Plan

_MODULE: Final = f"{__package__}.beginning_judge"
#: Longest time from the end of the load to that of the watch.
_POLL_S: Final = 0.1
#: Of one judgement; what takes longer is decided when the run is over.
_TIME_BUDGET_S: Final = 20.0
_MEMORY_BUDGET_MIB: Final = 4096


def refuse_unwatchable(experiment: Experiment, checkers: Sequence[str]) -> None:
    """Refuse ``--stop-on-violation`` where nobody can tell a violation before the end.

    Raises:
        UsageError: says why not.
    """
    if not experiment.stop_on_violation:
        return
    if experiment.runtime == SIMULATED:
        raise UsageError(
            "--stop-on-violation does not fit --runtime simulated",
            "Leave it out: a simulated world ends at the first invariant that is violated",
        )
    if not any(map(is_for_good, checkers)):
        raise UsageError(
            f"--stop-on-violation does not fit the workload {experiment.workload!r}: "
            f"{' and '.join(checkers)} can judge a whole history only",
            "Leave it out, or choose a workload such as register or list-append",
        )


class ViolationWatch:
    """Follows the history from ``start`` to ``finish``."""

    def __init__(
        self, history: Path, plan: Plan, runtime: Runtime, progress: Progress, stop: Stop
    ) -> None:
        checkers = tuple(filter(is_for_good, plan.checkers))
        evidence = Evidence((), functions=dict(plan.functions), allowed=plan.allowed)
        self._task = Task(history, checkers, evidence, _TIME_BUDGET_S, _MEMORY_BUDGET_MIB)
        self._runtime, self._progress, self._stop = runtime, progress, stop
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="violation watch", daemon=True)

    def start(self) -> None:
        """Begin to look.

        Raises:
            HarnessError: no process can be started.
        """
        try:
            self._child = FramedChild(_MODULE)
        except OSError as error:
            raise _failure(str(error)) from error
        self._child.send(self._task)
        self._thread.start()

    def finish(self) -> None:
        """Stop looking."""
        self._ending.set()
        self._thread.join()
        self._child.close()

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._child.flush()
                if not select.select([self._child.output], [], [], _POLL_S)[0]:
                    continue
                self._child.receive()
                for sentence in self._child.arrived():
                    return self._freeze(sentence)
                if self._child.is_gone:
                    raise _failure(f"it {self._child.end()}")
        except OSError:
            self._stop.fail(_failure(f"it {self._child.end()}"))
        except HarnessError as error:
            self._stop.fail(error)

    def _freeze(self, sentence: str) -> None:
        self._stop.freeze()
        freeze_nodes(self._runtime)
        self._progress.reached("stopped-at-violation", detail=sentence)


def freeze_nodes(runtime: Runtime) -> None:
    """Freeze every node that runs, all at once.

    Raises:
        HarnessError: the runtime failed.
    """
    nodes = runtime.nodes()

    def freeze(node: NodeName) -> None:
        if runtime.status(node) == "running":
            runtime.pause(node)

    with ThreadPoolExecutor(max(1, len(nodes)), thread_name_prefix="freeze") as pool:
        list(pool.map(freeze, nodes))


def _failure(problem: str) -> HarnessError:
    return HarnessError(
        "judge the history while it grows",
        "the process that does",
        problem,
        "Run it without --stop-on-violation; the history is judged at the end then.",
    )
