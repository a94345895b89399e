"""A cluster of Kafka that is there already and stays: clients load it, and no fault is made.

Where its brokers are, which topic clients have and what is promised of it are settings of the run,
found by ``systems.kafka.verifying``.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.contracts.runtime import STANDING, Address, DeploymentSpec, NodeSpec
from splitbrain.contracts.system import CLIENT_PORT, AllowedAnomaly, Place, Tempo
from splitbrain.history.plan import voters
from splitbrain.history.run_folder import RunFolder
from splitbrain.systems.kafka.access import read_access
from splitbrain.systems.kafka.cluster import OF_CLIENTS, KafkaCluster

if TYPE_CHECKING:
    from splitbrain.systems.kafka.driver import KafkaDriver

BROKERS: Final = "brokers"
CLIENT_FILE: Final = "command.config"
TOPIC: Final = "topic"
PARTITIONS: Final = "partitions"
REPLICAS: Final = "replicas"
MIN_IN_SYNC: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
#: Kinds of violations that follow where a new leader lacks what the former one acknowledged.
_BY_LOSS: Final = (
    *("lost", "vanished", "inconsistent-offsets", "end-went-back", "nonmonotonic-send"),
    *("nonmonotonic-poll", "skipped-poll", "torn-transaction"),
)


class StandingKafka(KafkaCluster):
    """Adapter of one run."""

    name = "kafka-cluster"
    runtimes = (STANDING,)
    settings: Mapping[str, str | tuple[str, ...]] = {
        **OF_CLIENTS,
        **dict.fromkeys((BROKERS, CLIENT_FILE, TOPIC, PARTITIONS, REPLICAS), ""),
        MIN_IN_SYNC: "2",
        UNCLEAN: ("false", "true"),
    }

    def tempo(self) -> Tempo:
        """Nothing is started; transactions may be open at the end."""
        return Tempo(ready_s=60, converged_s=90, resumed_s=45)

    def allowed(self) -> Sequence[AllowedAnomaly]:
        """Return what brokers may lose under the configuration in force, too."""
        return (
            *super().allowed(),
            *(AllowedAnomaly("log", kind, why) for why in self.weak[:1] for kind in _BY_LOSS),
        )

    @cached_property
    def weak(self) -> list[str]:
        """Return the settings under which Kafka itself may lose what was acknowledged; clauses."""
        found: list[str] = []
        if self.setting("acks") != "all":
            found.append("with acks=1 the leader alone has what it acknowledges")
        if self.setting(UNCLEAN) == "true":
            found.append(f"with {UNCLEAN}=true a replica that lacks records may lead")
        if self.setting(MIN_IN_SYNC) == "1":
            found.append(f"with {MIN_IN_SYNC}=1 a leader acknowledges what it alone has")
        return found

    def check_options(self, options: Experiment) -> None:
        """Refuse a run for which nobody has looked at the cluster."""
        if not options.settings.get(BROKERS):
            raise UsageError(
                f"{self.name} is a cluster that is there already, and none is named",
                "Use `splitbrain kafka-verify HOST:PORT`",
            )
        super().check_options(options)

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        """Describe where the brokers are."""
        addresses = addresses_of(self.setting(BROKERS))
        if len(addresses) != options.nodes:
            raise UsageError(
                f"--nodes is {options.nodes}, and {BROKERS} names {len(addresses)}",
                f"Give --nodes {len(addresses)}",
            )
        folder = RunFolder(run_folder)
        nodes = tuple(
            NodeSpec(
                name=node,
                image="",
                command=(),
                environment={},
                ports=place(node, folder.node(node), {CLIENT_PORT: there.port}).ports,
                data_path="",
                host=there.host,
            )
            for node, there in zip(voters(options.nodes), addresses, strict=True)
        )
        return DeploymentSpec(run_id=run_id, run_folder=run_folder, nodes=nodes)

    def driver_options(self) -> dict[str, str]:
        """Return what the driver is told of the topic, too."""
        mine = {name: self.setting(name) for name in (TOPIC, PARTITIONS, REPLICAS)}
        return {**super().driver_options(), **{name: text for name, text in mine.items() if text}}

    @cached_property
    def _driver(self) -> "KafkaDriver":
        driver = super()._driver
        if file := self.setting(CLIENT_FILE):
            driver.access, _ = read_access(Path(file))
        return driver


def addresses_of(text: str) -> list[Address]:
    """Return the addresses of ``host:port,host:port``; raises ValueError with the part."""
    return [_address(part.strip()) for part in text.split(",")]


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()):
        raise ValueError(text)
    return Address(host.strip("[]"), int(port))
