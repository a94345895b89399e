"""Our controllers beside Kafka's own, under the same unmodified broker.

    python -m bench.control_plane [--failovers 5] [--fault kill] [--topics 200] [--burst 1000]
        [--profile equal] [--make own]

Three controllers and two brokers in containers, one make after the other, each measured alike:

- *start*: from the first container's creation until both brokers serve;
- *memory* of an idle controller;
- *create-topic*: latency of one after the other at the active controller, and how many a second
  come through sixteen connections;
- *failover*: the longest time without an acknowledgement around a SIGKILL of the active controller,
  around its freezing, or around its being cut off from all other nodes (not from who asks here), of
  changes asked of the controllers themselves, and of topics created through a broker that was there
  before. The broker's further time is its own time-outs.

Two profiles: ``equal`` has Kafka's default time-outs of the quorum on both sides, and brokers that
look for another controller after 2 s; ``defaults`` has each make's own, and brokers as they come.
Prints a table; the last line is one JSON object. Needs a container engine.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from kafka.errors import KafkaError

from bench.control_plane_asking import (
    PAUSE_S,
    Asker,
    Probe,
    config_change,
    creation,
    is_changed,
    is_created,
)
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import PEER_PORT
from tests.referee.brokers_view import lagging_voters, quorum_view
from tests.referee.cluster import Cluster, deployed
from tests.referee.controllers import Controllers, KafkaControllers, OwnControllers

_BROKERS: Final = 2
_CONNECTIONS: Final = 16
_PATIENCE_S: Final = 120.0
#: Acknowledgements on each way before anything is killed.
_BEFORE: Final = 5
#: Kafka's defaults, by its names, which both makes know.
_KAFKA_TIMEOUTS: Final[Mapping[str, str]] = {
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.request.timeout.ms": "2000",
    "controller.quorum.retry.backoff.ms": "20",
}
#: Default time-outs of brokers.
_BROKER_DEFAULTS: Final[Mapping[str, str]] = {
    "controller.socket.timeout.ms": "30000",
    "socket.connection.setup.timeout.ms": "10000",
    "socket.connection.setup.timeout.max.ms": "30000",
}
PROFILES: Final = ("equal", "defaults")
MAKES: Final = ("kafka", "own")
FAULTS: Final = ("kill", "pause", "partition")


class Measured(msgspec.Struct):
    """One make with one profile; times in seconds but for those of topics, milliseconds."""

    start_s: float = 0.0
    memory_mib: list[float] = []
    create_ms: list[float] = []
    burst_per_s: float = 0.0
    #: By fault.
    at_controller_s: dict[str, list[float]] = {}
    through_broker_s: dict[str, list[float]] = {}


def controllers(make: str, profile: str) -> Controllers:
    """Of this make, with this profile's time-outs."""
    settings = dict(_KAFKA_TIMEOUTS) if profile == "equal" else {}
    return KafkaControllers(settings) if make == "kafka" else OwnControllers(settings)


def measure(make: str, profile: str, options: argparse.Namespace) -> Measured:
    """Everything about one make with one profile."""
    measured = Measured()
    settings = _BROKER_DEFAULTS if profile == "defaults" else {}
    with tempfile.TemporaryDirectory(prefix="splitbrain-bench-") as folder:
        began = time.monotonic()
        made = deployed(
            Path(folder) / "run", controllers(make, profile), brokers=_BROKERS, settings=settings
        )
        with made as cluster:
            cluster.await_brokers()
            measured.start_s = time.monotonic() - began
            measured.memory_mib = [
                cluster.memory_bytes(voter.node_id) / 2**20 for voter in cluster.voters
            ]
            asyncio.run(_measure_topics(cluster, measured, options))
            for fault in options.fault or FAULTS:
                for number in range(options.failovers):
                    asyncio.run(_measure_failover(cluster, measured, fault, number))
    return measured


def _controller_addresses(cluster: Cluster) -> dict[int, Address]:
    return {
        int(voter.node_id): cluster.address(voter.node_id, PEER_PORT) for voter in cluster.voters
    }


async def _measure_topics(
    cluster: Cluster, measured: Measured, options: argparse.Namespace
) -> None:
    active = (await asyncio.to_thread(quorum_view, cluster.bootstrap)).leader
    addresses = _controller_addresses(cluster)
    askers = [Asker(addresses) for _ in range(_CONNECTIONS)]
    try:
        for number in range(options.topics):
            began = time.monotonic()
            answer = await askers[0].ask(active, creation(f"one-{number}"))
            if not is_created(answer):
                raise RuntimeError(f"a topic was refused: {answer}")
            measured.create_ms.append((time.monotonic() - began) * 1_000)

        async def burst(asker: Asker, first: int) -> None:
            for number in range(first, options.burst, _CONNECTIONS):
                answer = await asker.ask(active, creation(f"burst-{number}"))
                if not is_created(answer):
                    raise RuntimeError(f"a topic was refused: {answer}")

        began = time.monotonic()
        await asyncio.gather(*(burst(asker, first) for first, asker in enumerate(askers)))
        measured.burst_per_s = options.burst / (time.monotonic() - began)
    finally:
        for asker in askers:
            asker.close()


async def _measure_failover(cluster: Cluster, measured: Measured, fault: str, number: int) -> None:
    inflict = {"kill": cluster.kill, "pause": cluster.pause, "partition": cluster.isolate}[fault]
    active = (await asyncio.to_thread(quorum_view, cluster.bootstrap)).leader
    addresses = _controller_addresses(cluster)
    broker = cluster.brokers[0]
    straight = Asker(addresses)
    through = Asker({broker: cluster.address(broker, "client")})
    prefix = f"{fault}-{number}"
    probes = (
        Probe(straight, tuple(addresses), config_change, is_changed),
        Probe(through, (broker,), lambda n: creation(f"{prefix}-{n}"), is_created),
    )
    try:
        for probe in probes:
            probe.start()
        await _until(lambda: all(len(probe.acknowledged) >= _BEFORE for probe in probes))
        await asyncio.to_thread(inflict, active)
        inflicted = time.monotonic()
        await _until(
            lambda: all(
                any(
                    sent > inflicted and node_id != active
                    for sent, _, node_id in probe.acknowledged
                )
                for probe in probes
            )
        )
    finally:
        for probe in probes:
            await probe.stop()
        straight.close()
        through.close()
    measured.at_controller_s.setdefault(fault, []).append(probes[0].longest_gap_s())
    measured.through_broker_s.setdefault(fault, []).append(probes[1].longest_gap_s())
    await asyncio.to_thread(cluster.restore)
    await asyncio.to_thread(_await_whole, cluster)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - set by tasks of the same loop, in bursts
            await asyncio.sleep(PAUSE_S)


def _await_whole(cluster: Cluster) -> None:
    """Return when every controller has caught up again, so that each kill meets the same quorum."""

    def whole() -> bool:
        try:
            return not lagging_voters(cluster.bootstrap)
        except KafkaError:
            return False

    cluster.await_true("all controllers have caught up", whole, _PATIENCE_S)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description="Our controllers beside Kafka's own.")
    parser.add_argument("--failovers", type=int, default=5, help="of each fault")
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--burst", type=int, default=1_000)
    parser.add_argument("--profile", action="append", choices=PROFILES)
    parser.add_argument("--make", action="append", choices=MAKES)
    options = parser.parse_args()
    results: dict[str, Measured] = {}
    for profile in options.profile or PROFILES:
        for make in options.make or MAKES:
            results[f"{profile} {make}"] = measure(make, profile, options)
            print(f"{profile} {make}: done", flush=True)
    _print_table(results)
    line = {
        "bench": "control_plane",
        "load_average": round(os.getloadavg()[0], 2),
        "results": {name: msgspec.to_builtins(result) for name, result in results.items()},
    }
    print(msgspec.json.encode(line).decode())


def _print_table(results: Mapping[str, Measured]) -> None:
    columns = list(results.values())
    print(f"{'':<34}" + "".join(f"{name:>18}" for name in results))

    def row(title: str, cells: list[Any]) -> None:
        print(f"{title:<34}" + "".join(f"{cell:>18}" for cell in cells))

    row("start, s", [f"{column.start_s:.1f}" for column in columns])
    row(
        "idle controller, MiB",
        [f"{statistics.median(column.memory_mib):.0f}" for column in columns],
    )
    row("create-topic, ms: p50, p99", [_pair(column.create_ms) for column in columns])
    row("create-topic, a second", [f"{column.burst_per_s:.0f}" for column in columns])
    for fault in FAULTS:
        if any(fault in column.at_controller_s for column in columns):
            at = [_spread(column.at_controller_s.get(fault, [])) for column in columns]
            through = [_spread(column.through_broker_s.get(fault, [])) for column in columns]
            row(f"{fault}: at a controller, s", at)
            row(f"{fault}: through a broker, s", through)


def _pair(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f}, {ordered[int(len(ordered) * 0.99)]:.1f}"


def _spread(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


if __name__ == "__main__":
    main()
