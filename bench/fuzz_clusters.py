"""Clusters of node processes on loopback, for ``bench.port_fuzz``: started, told of, tried at last.

Must never send a frame that an honest client would not.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

import tenacity

from bench.fuzz_connections import PATIENCE_S
from bench.fuzz_frames import World
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.nodes.broker.forwarding import FORWARDED
from splitbrain.nodes.broker.serving import ANSWERED
from splitbrain.nodes.server.controller.controller_service import SERVED
from splitbrain.nodes.server.machine.configuration import read_configuration
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.runtimes.local.runtime import LocalRuntime
from splitbrain.systems.kraft.adapter import KraftSystem
from splitbrain.systems.kraft.deployment import CONFIGURATION_FILE, CONFIGURATION_FOLDER

#: For a cluster to start, its brokers too.
_READY_PATIENCE_S: Final = 60.0


class NoLeaderError(Exception):
    """A quorum has no leader."""


def _retrying(patience_s: float) -> tenacity.Retrying:
    return tenacity.Retrying(
        stop=tenacity.stop_after_delay(patience_s), wait=tenacity.wait_fixed(0.05), reraise=True
    )


class Cluster:
    """Node processes on loopback."""

    def __init__(self, name: str, folder: Path, options: Experiment) -> None:
        self.name = name
        self.folder = folder
        self.system = KraftSystem()
        self.runtime = LocalRuntime("processes")
        self._spec = self.system.deployment(RunId(name), folder, options, self.runtime.place)

    def start(self) -> None:
        """Start all nodes; returns when they serve."""
        self.runtime.deploy(self._spec)
        _retrying(_READY_PATIENCE_S)(self.system.ready, self.runtime)

    def world(self, node: NodeName) -> World:
        """Names of the cluster that frames may use."""
        file = self.folder / "nodes" / node / CONFIGURATION_FOLDER / CONFIGURATION_FILE
        configuration = read_configuration(file)
        served: Collection[ApiKey] = ()
        if configuration.is_broker:
            served = FORWARDED | ANSWERED
        elif configuration.state_machine == "metadata":
            served = SERVED
        return World(
            configuration.cluster_id,
            configuration.voters,
            configuration.node_id,
            tuple(sorted(key for key in served if key is not ApiKey.DESCRIBE_QUORUM)),
        )

    def leader(self, but: NodeName | None = None) -> NodeName:
        """The present leader, another node than ``but``; waits for it, raises NoLeaderError."""

        def found() -> NodeName:
            view = self.system.leader(self.runtime, PATIENCE_S)
            if view.leader is None or view.leader == but:
                raise NoLeaderError(f"{self.name} elects nobody any more (epoch {view.epoch})")
            return view.leader

        return _retrying(PATIENCE_S)(found)

    def elects(self) -> str | None:
        """End the leader; why the others have no new one soon, None if they have."""
        try:
            old = self.leader()
            self.runtime.kill(old)
            self.leader(but=old)
            self.runtime.start(old)
            _retrying(_READY_PATIENCE_S)(self.system.ready, self.runtime)
        except (NoLeaderError, HarnessError) as error:
            return str(error)
        return None
