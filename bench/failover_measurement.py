"""Hits the leader of a cluster again and again and times how long writes stay away.

Works through the public interfaces of the system and the runtime alone. Must never leave a fault
in place when it begins the next one.
"""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

import msgspec

from bench.failover_arithmetic import (
    Failover,
    TimedFault,
    failover,
    leader_changed_before,
)
from bench.failover_cluster import PATIENCE_S, Cluster
from bench.failover_writers import WriterOptions, Writers
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Runtime

FAULTS: Final = ("kill", "pause", "partition")
#: Faults come at a random moment within this after the cluster works, so that no timer of the
#: system is met at the same phase each time.
PHASE_S_MAX: Final = 0.5
#: A leader that was deposed by itself just before the fault spoils a measurement; so many may be.
SPOILT_COUNT_MAX: Final = 20
_VIEW_TIMEOUT_S: Final = 2.0


class Measurements(msgspec.Struct):
    """Of one kind of fault."""

    failovers: list[Failover] = msgspec.field(default_factory=list[Failover])
    #: Faults after which no write was acknowledged in time.
    unfinished_count: int = 0
    #: Faults that met a leader which was deposed already; repeated.
    spoilt_count: int = 0


def inject(runtime: Runtime, fault: str, leader: NodeName) -> None:
    """Hit the leader."""
    match fault:
        case "kill":
            runtime.kill(leader)
        case "pause":
            runtime.pause(leader)
        case _:
            runtime.cut(links_around(runtime, leader))


def heal(runtime: Runtime, fault: str, leader: NodeName) -> None:
    """Undo it."""
    match fault:
        case "kill":
            runtime.start(leader)
        case "pause":
            runtime.resume(leader)
        case _:
            runtime.restore(links_around(runtime, leader))


def links_around(runtime: Runtime, node: NodeName) -> list[Link]:
    """Both directions between the node and every other one; clients reach it still."""
    others = [other for other in runtime.nodes() if other != node]
    return [Link(node, other) for other in others] + [Link(other, node) for other in others]


async def measure(
    cluster: Cluster,
    fault: str,
    run_count: int,
    options: WriterOptions,
    phases: random.Random,
    tell: Callable[[int, TimedFault, Failover | None], None],
) -> Measurements:
    """Hit the leader so many times; each time the cluster is whole again before.

    ``tell`` gets the number of each measurement, its fault and what it came to, as it ends.
    """
    measurements = Measurements()
    number = 0
    while number < run_count and measurements.spoilt_count <= SPOILT_COUNT_MAX:
        writers = Writers(cluster.system, cluster.runtime, options, cluster.served_by())
        hit = await _measure_once(cluster, fault, writers, phases, options)
        if leader_changed_before(writers.acknowledgements, hit):
            measurements.spoilt_count += 1
            continue
        number += 1
        result = failover(writers.acknowledgements, hit)
        if result is None:
            measurements.unfinished_count += 1
        else:
            measurements.failovers.append(result)
        tell(number, hit, result)
    return measurements


async def _measure_once(
    cluster: Cluster,
    fault: str,
    writers: Writers,
    phases: random.Random,
    options: WriterOptions,
) -> TimedFault:
    """Hit the leader, wait for the failover's end, make the cluster whole again."""
    writers.start()
    try:
        hit = await _hit(cluster, fault, writers, phases, tells_epochs=options.tells_epochs)

        def is_over() -> bool:
            return failover(writers.acknowledgements, hit) is not None

        await writers.until(is_over, PATIENCE_S)
    finally:
        await writers.stop()
    await asyncio.to_thread(_restore, cluster, fault, hit.leader)
    return hit


async def _hit(
    cluster: Cluster, fault: str, writers: Writers, phases: random.Random, *, tells_epochs: bool
) -> TimedFault:
    """Wait until the cluster works, find the leader, hit it."""
    served = await writers.until(
        lambda: any(a.follows for a in writers.acknowledgements), PATIENCE_S
    )
    if not served:
        raise HarnessError(
            "write before a fault",
            cluster.system.name,
            f"no write was acknowledged within {PATIENCE_S:g} s",
            "Try the system without faults first",
        )
    await asyncio.sleep(phases.random() * PHASE_S_MAX)  # a random phase is what is wanted
    writers.acknowledgements.clear()
    view = await asyncio.to_thread(cluster.system.leader, cluster.runtime, _VIEW_TIMEOUT_S)
    epoch = view.epoch if tells_epochs else None
    if view.leader is None or (tells_epochs and epoch is None):
        raise HarnessError(
            "find the leader",
            cluster.system.name,
            "writes are acknowledged and no node leads",
            "Look at what the system says of itself",
        )
    writers.expect_new_leader()
    asked_ns = time.monotonic_ns()
    await asyncio.to_thread(inject, cluster.runtime, fault, view.leader)
    return TimedFault(view.leader, epoch, asked_ns, time.monotonic_ns())


def _restore(cluster: Cluster, fault: str, leader: NodeName) -> None:
    heal(cluster.runtime, fault, leader)
    cluster.await_ready()
    cluster.await_converged()
