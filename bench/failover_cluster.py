"""A cluster that lives as long as a benchmark: deployed, waited for, taken down.

Works through the public interfaces of the system and the runtime alone. Must never leave anything
behind, whatever happens in between.
"""

import contextlib
import fcntl
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec
from tenacity import Retrying, stop_after_delay, wait_fixed

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Runtime
from splitbrain.contracts.system import System
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.registry import runtime as make_runtime
from splitbrain.systems.registry import system as make_system

PATIENCE_S: Final = 90.0
_INTERVAL_S: Final = 0.05


class Cluster(msgspec.Struct, frozen=True):
    """A deployed cluster."""

    system: System
    runtime: Runtime
    run_folder: Path

    def served_by(self) -> tuple[NodeName, ...]:
        """Return the nodes that clients ask."""
        options = self.system.experiment
        if options is None or self.system.observers_serve:
            return tuple(self.runtime.nodes())
        beside = self.system.observers(options)
        return tuple(node for node in self.runtime.nodes() if node not in beside)

    def await_ready(self) -> None:
        """Wait until it serves; raises what the adapter says is missing."""
        for attempt in _patiently():
            with attempt:
                self.system.ready(self.runtime)

    def await_converged(self) -> None:
        """Wait until all nodes hold the same log; raises what the adapter says is missing.

        The writers must rest, or the ends of the logs never meet.
        """
        for attempt in _patiently():
            with attempt:
                self.system.converged(self.runtime)

    def state_event_files(self) -> dict[NodeName, Path]:
        """Of the nodes that write state events."""
        files = {
            node: self.system.state_event_file(self.run_folder, node)
            for node in self.runtime.nodes()
        }
        return {node: file for node, file in files.items() if file is not None}


@contextlib.contextmanager
def deployed(
    system: System | str, runtime_name: str, options: Experiment, purpose: str
) -> Generator[Cluster]:
    """A cluster that serves; gone afterwards.

    Raises:
        HarnessError: the environment refuses, or an option does not exist.
    """
    system = make_system(system) if isinstance(system, str) else system
    system.experiment = options
    system.check_options(options)
    runtime = make_runtime(runtime_name)
    with tempfile.TemporaryDirectory(prefix=f"splitbrain-{purpose}-") as folder:
        run_folder = Path(folder)
        with RunFolder(run_folder).lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run_id = RunId(f"{purpose}-{run_folder.name[-8:]}")
            cluster = Cluster(system, runtime, run_folder)
            try:
                runtime.prepare(system.images())
                runtime.deploy(system.deployment(run_id, run_folder, options, runtime.place))
                cluster.await_ready()
                yield cluster
            finally:
                runtime.teardown()


def _patiently() -> Retrying:
    return Retrying(stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(_INTERVAL_S), reraise=True)
