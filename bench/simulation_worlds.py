"""The fixed worlds whose cost ``bench.simulation`` measures: made by hand, not by the swarm.

Three voters, five clients on registers, or on topics with two brokers besides, the default timeouts
of the quorum, a fault every two or three seconds: kill, partition, power cut and pause in turn, of
the leader or of a drawn node, for 0.4 to 1.2 s. Everything heals in the end. Must never depend on
what the swarm draws, so that figures can be compared between versions.
"""

from typing import Final

from splitbrain.contracts.fault import Fault
from splitbrain.contracts.scenario import LoadOptions, Scenario
from splitbrain.nemesis.targets import LEADER, random_target
from splitbrain.simulation.kraft.cluster import KraftCluster
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.world.world import SimulatedWorld

#: Any will do; it settles delays, latencies and who is hit.
WORLD_SEED: Final = 7
_US: Final = 1_000_000
_KINDS: Final = ("kill", "partition", "power", "pause")
_TARGETS: Final = (LEADER, random_target(1), LEADER)
#: From one fault to the next, in turn.
_PAUSES_US: Final = (2 * _US, 3 * _US)
_DURATIONS_US: Final = (400_000, 800_000, 1_200_000)
#: Far apart, so that each fault's own choices differ.
_DRAW_STRIDE: Final = 1_000_003


def fixed_world(*, rate: float, load_s: int = 30, clients: int = 5, brokers: int = 0) -> Scenario:
    """Return a world of three voters in trouble.

    Args:
        rate: operations per second that all clients together are asked for.
        load_s: seconds of load and faults; recovery comes after.
        clients: worker slots.
        brokers: with any, Kafka's metadata is above the log, and clients create and delete topics.
    """
    workload = "topics" if brokers else "register"
    return Scenario(
        system="kraft",
        seed=WORLD_SEED,
        observers=brokers,
        state_machine="metadata" if brokers else "registers",
        load=LoadOptions(workload=workload, clients=clients, rate=rate),
        faults=_faults(load_s * _US),
        load_us=load_s * _US,
    )


class UnhashedSimulation(KraftSimulation):
    """The same worlds without the trace hash; what is hashed is encoded all the same."""

    def cluster(
        self, world: SimulatedWorld, *, muted: frozenset[str] = frozenset()
    ) -> KraftCluster:
        """All machines of a world that forgets what happened."""
        assert isinstance(world, SimulatedWorld)
        world.absorb = _forget
        return super().cluster(world, muted=muted)


def _forget(content: bytes) -> None:
    """Nothing is kept of what happened."""


def _faults(load_us: int) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    at_us = 0
    while True:
        index = len(faults)
        at_us += _PAUSES_US[index % len(_PAUSES_US)]
        if at_us >= load_us:
            return tuple(faults)
        faults.append(
            Fault(
                index=index,
                kind=_KINDS[index % len(_KINDS)],
                target=_TARGETS[index % len(_TARGETS)],
                at_us=at_us,
                duration_us=_DURATIONS_US[index % len(_DURATIONS_US)],
                draw=index * _DRAW_STRIDE,
            )
        )
