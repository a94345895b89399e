"""A cluster of Kafka as its clients know it, whoever runs it; a base of adapters."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from splitbrain.contracts.errors import HarnessError, UsageError, in_one_line
from splitbrain.contracts.log import LOG
from splitbrain.contracts.operations import Client
from splitbrain.contracts.system import (
    CLIENT_PORT,
    AllowedAnomaly,
    LeaderView,
    ReadsSpeakFor,
    Route,
    System,
)
from splitbrain.systems.questions import Endpoints, not_yet

if TYPE_CHECKING:
    from splitbrain.systems.kafka.driver import KafkaDriver

#: All of a run's records are in it, unless somebody chose another.
USUAL_TOPIC: Final = "splitbrain"
#: Traits of clients, which their driver knows: settings and the values that they can have.
OF_CLIENTS: Final[Mapping[str, str | tuple[str, ...]]] = {
    "acks": ("all", "1"),
    "enable.idempotence": ("false", "true"),
    "transaction.version": ("2", "1"),
    "late.ends": ("no", "yes"),
    "late.records": ("no", "yes"),
}


def count_of(given: Mapping[str, str], name: str, most: int) -> int | None:
    """Return a setting that is a number of things, None where it is not given.

    Raises:
        UsageError: it is none, or too large.
    """
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= most):
        raise UsageError(
            f"--setting {name} cannot be {text!r}", f"Give a whole number from 1 to {most}"
        )
    return int(text)


class KafkaCluster(System):
    """All that brokers are asked by clients of their own protocol."""

    reads_speak_for: ReadsSpeakFor = "converged"

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Logs, and sets whose elements are records."""
        return (LOG, "set")

    def allowed(self) -> Sequence[AllowedAnomaly]:
        """Return what a leader that was replaced, and does not know it, answers."""
        return self._driver.allowed

    def ready(self, runtime: Endpoints) -> None:
        """Return when every broker knows all others, and the topic with its leaders."""
        action = "wait for the brokers to serve"
        driver = self._driver_at(runtime)
        for node, there in driver.targets.items():
            try:
                asyncio.run(driver.prepare(there))
            except (HarnessError, OSError, EOFError) as error:
                why = error.problem if isinstance(error, HarnessError) else in_one_line(error)
                raise not_yet(self.name, action, f"{node}: {why}") from error

    def open_client(self, runtime: Endpoints, route: Route) -> Client:
        """Return a fresh client, which asks the route's node first."""
        driver = self._driver_at(runtime)
        return driver.open_client(route.node, driver.targets[route.node])

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Return who says that it leads the first log, or the group; of several the newest."""
        return asyncio.run(self._driver_at(runtime).leader_of_first(timeout_s))

    def recovered(self, runtime: Endpoints) -> None:
        """Return when all brokers name the same leaders, and all replicas are in sync."""
        asyncio.run(self._driver_at(runtime).recovered())

    def converged(self, runtime: Endpoints) -> None:
        """Return when that is so, and no transaction or member of the load is left."""
        asyncio.run(self._driver_at(runtime).converged())

    def driver_options(self) -> dict[str, str]:
        """Return what the driver is told."""
        return {name: self.setting(name) for name in OF_CLIENTS}

    def _driver_at(self, runtime: Endpoints) -> "KafkaDriver":
        beside = () if self.experiment is None else self.observers(self.experiment)
        self._driver.targets = {
            node: runtime.endpoint(node, CLIENT_PORT)
            for node in runtime.nodes()
            if node not in beside
        }
        return self._driver

    @cached_property
    def _driver(self) -> "KafkaDriver":
        """Driver of the run's clients; raises UsageError where its package is missing."""
        from splitbrain.systems.kafka.library import driver_kind

        workload = None if self.experiment is None else self.experiment.workload
        return driver_kind()(self.driver_options(), {}, workload or LOG)
