"""Samples every node once a second, and notices nodes that exit without having been asked to.

One line per node and second in ``metrics.jsonl``, with the node's state where it has no figures.
Nodes are sampled at the same time, so that one that does not answer delays no other's line.
"""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeStatus, Runtime
from splitbrain.contracts.system import System
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.history.writer import LineWriter

INTERVAL_S = 1.0
#: How long a node gets to tell the system's own figures; within the interval, so that a node that
#: does not answer costs no second.
SYSTEM_TIMEOUT_S = 0.5


class MetricLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line of ``metrics.jsonl``."""

    #: Nanoseconds since the run's start, monotonic.
    time: int
    node: NodeName
    status: NodeStatus
    cpu_seconds_total: float | None = None
    memory_bytes: int | None = None
    #: The system's own figures by its own names, null where the node did not answer.
    system: dict[str, float] | None


class MetricsSampler:
    """Samples on threads of its own."""

    def __init__(
        self,
        system: System,
        runtime: Runtime,
        clock: RunClock,
        lines: LineWriter,
        down: DownNodes,
        progress: Progress,
        stop: Stop,
    ) -> None:
        self._system, self._runtime, self._clock = system, runtime, clock
        self._lines, self._down, self._progress, self._stop = lines, down, progress, stop
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def finish(self) -> None:
        """Stop sampling."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            nodes = self._runtime.nodes()
            with ThreadPoolExecutor(len(nodes), thread_name_prefix="sample") as pool:
                due_s = self._clock.seconds()
                while not self._ending.wait(max(0.0, due_s - self._clock.seconds())):
                    for sampled in as_completed([pool.submit(self._sample, n) for n in nodes]):
                        line, exited_unasked = sampled.result()
                        self._record(line, exited_unasked=exited_unasked)
                    # On the second even where sampling takes long; missed seconds are left out.
                    due_s += INTERVAL_S * max(1, int(self._clock.seconds() - due_s) + 1)
        except HarnessError as error:
            self._stop.fail(error)

    def _sample(self, node: NodeName) -> tuple[MetricLine, bool]:
        """Return one node's line, and whether it exited unasked; on a thread of the pool."""
        excuse = self._down.excuse(node)
        time = self._clock.now()
        status = self._runtime.status(node)
        sample = self._runtime.sample(node) if status != "exited" else None
        # A node that does not run cannot answer: it is not asked.
        system: dict[str, float] | None = None
        if status == "running":
            system = self._system.metrics(self._runtime, node, SYSTEM_TIMEOUT_S)
        line = MetricLine(
            time=time,
            node=node,
            status=status,
            cpu_seconds_total=None if sample is None else sample.cpu_seconds_total,
            memory_bytes=None if sample is None else sample.memory_bytes,
            system=system,
        )
        unasked = status == "exited" and not excuse[0] and excuse == self._down.excuse(node)
        return line, unasked

    def _record(self, line: MetricLine, *, exited_unasked: bool) -> None:
        """Write one node's line; on the sampler's own thread."""
        self._lines.append(line)
        if line.status != "exited":
            self._progress.exited.discard(line.node)
        elif exited_unasked and line.node not in self._progress.exited:
            self._progress.reached(
                "node-exited", node=line.node, exit_code=self._runtime.exit_code(line.node)
            )
