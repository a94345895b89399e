"""The end of a run: stop the nodes, collect what they leave, remove them; whatever happened before.

Each step, and each node's share of it, is tried for itself and given up when it hangs, so that one
broken node or a slow engine costs no other's evidence.
"""

from collections.abc import Callable
from functools import partial

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.harness.console.stop import Stop, patiently, within
from splitbrain.harness.folder.ballast import Ballast
from splitbrain.harness.folder.store import LivingRun
from splitbrain.harness.run.attempts import Attempts
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.log_collection import collect_node, dump_logs
from splitbrain.harness.run.options import PreparedTest
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock

#: An engine under load may refuse for a moment to remove what it is still stopping.
_TEARDOWN_PATIENCE_S = 30.0
#: No single act at the end of a run takes longer, or it hangs.
ACT_TIMEOUT_S = 120.0


class Ending:
    """Steps on the nodes of one run when its course is over."""

    def __init__(
        self,
        test: PreparedTest,
        living: LivingRun,
        ballast: Ballast,
        down: DownNodes,
        clock: RunClock,
        progress: Progress,
        stop: Stop,
        attempts: Attempts,
    ) -> None:
        self._system, self._runtime, self._nodes = test.system, test.runtime, test.all_nodes
        self._run_id, self._folder = living.run_id, living.folder
        self._ballast, self._down, self._clock, self._progress = ballast, down, clock, progress
        self._stop, self._attempts = stop, attempts

    def stop_nodes(self) -> None:
        """Kill what runs, and notice what ended by itself since it was last looked at."""
        stopped = self._attempt_each(self._stop_node, "stop the node")
        # From here on the nodes write no more, and what is left to be written matters most.
        self._ballast.release()
        if stopped:
            self._progress.reached("stopped")

    def _attempt_each(self, act: Callable[[NodeName], None], action: str) -> bool:
        """Do it to each node, each in time; whether all of it succeeded."""

        def attempted(node: NodeName) -> bool:
            return self._attempts.attempt(
                lambda: within(lambda: act(node), ACT_TIMEOUT_S, action, node)
            )

        succeeded = [attempted(node) for node in self._nodes]
        return all(succeeded)

    def _stop_node(self, node: NodeName) -> None:
        status = self._runtime.status(node)
        if status in ("running", "paused"):
            self._runtime.kill(node)
        elif status == "exited" and node not in {*self._down.all(), *self._progress.exited}:
            exit_code = self._runtime.exit_code(node)
            self._progress.reached("node-exited", node=node, exit_code=exit_code)

    def collect(self) -> None:
        """Fetch each stopped node's output and data, and dump their logs."""
        collect = partial(collect_node, self._runtime, self._folder)
        self._attempt_each(collect, "collect from the node")
        problems: list[str] = []
        if not self._stop.haste.is_set():
            wall_start_ns = self._clock.wall_start_ns()
            problems = dump_logs(self._system, self._folder, self._nodes, wall_start_ns)
        self._progress.reached("collected", detail="; ".join(problems) or None)

    def take_down(self) -> None:
        """Remove the nodes.

        Raises:
            HarnessError: the runtime could not, or hangs.
        """
        teardown = partial(
            patiently, self._runtime.teardown, _TEARDOWN_PATIENCE_S, 1.0, HarnessError
        )
        within(teardown, ACT_TIMEOUT_S, "remove the nodes", self._run_id)
        self._progress.reached("torn-down")
