"""Draw of every option of a simulated world from one seed (swarm testing).

Drawing the mix anew for each seed finds far more than one good mix: a world without pauses in which
every vote is followed by a crash goes where an even mix never goes. The options, and why:

- **shape**: 3 voters or, in 30 %, 5; an observer in 15 %; segments of 300 bytes to 4 KiB in 35 %,
  so that rolling and recovery over several files happen within a second; the wire codec in 10 %;
- **network**: delays log-spread from 0.1 ms to 20 ms, slow messages up to 1 s; these, resets,
  stalls, lost answers and half-open ends each absent in about half of the seeds;
- **disk**: latencies from 0.5 ms to 15 ms, slow flushes, how often a crash tears;
- **settings**: the system's own, drawn to fit a request's round trip. The time to replace a leader
  is the world's time scale: fault durations, load and patience follow from it;
- **load**: 2 to 6 clients or, in 40 %, a crowd, in which some only read, each pinned to a node, so
  that no write holds them up and they ask newly elected and deposed leaders; 30 to 800 operations a
  second, registers (few values, or each once) or sets, short and long timeouts;
- **faults**: ``nemesis.swarm``, at times, at happenings and as sequels of others; from less than a
  message takes to several elections. The moments that matter last microseconds, so faults that wait
  for a happening find bugs that timed ones miss;
- **recovery**: everything heals, or (40 %) a majority only.

Integers come from ``Streams(seed, "swarm")`` alone, one stream per paragraph above, so that a new
option does not shift the others. Must never use a float but as a chance taken from a table.
"""

from collections.abc import Sequence
from typing import Final

from splitbrain.contracts.scenario import (
    DiskOptions,
    LoadOptions,
    NetworkOptions,
    RecoveryOptions,
    Scenario,
)
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.nemesis.swarm import Drawing, SwarmLimits, drawn_faults, log_spread
from splitbrain.simulation.world.streams import Streams

_SMALL_SEGMENT_BYTES: Final = 300
SMALL_SEGMENT_BYTES_MAX: Final = 4_096
_LARGE_SEGMENT_BYTES: Final = 1 << 20


def draw_scenario(
    seed: int,
    *,
    system: str,
    bugs: Sequence[str] = (),
    base: SwarmLimits | None = None,
    happenings: Sequence[str] = (),
    hints: SimulatedSystem | None = None,
    beyond_promise: bool = False,
) -> Scenario:
    """Draw the world of a seed; a function of the arguments alone.

    ``bugs`` are planted and change nothing else of the world; faults may wait for ``happenings``;
    ``hints`` draw the system's settings; ``beyond_promise`` allows faults beyond Raft's promise.
    """
    streams = Streams(seed, "swarm")
    drawing = Drawing(streams, base or SwarmLimits(), happenings, beyond_promise)
    network, disk = _network(streams), _disk(streams)
    drawing.round_trip_us = 2 * (network.delay_us_max + disk.latency_us_max)
    drawing.disk_us = disk.latency_us_max
    settings: dict[str, str] = {}
    if hints is not None:
        settings = hints.draw_settings(streams.stream("settings"), drawing.round_trip_us)
        drawing.failover_us = max(hints.failover_us(settings), 2 * drawing.round_trip_us)
    limits = drawing.limits
    drawing.load_us = max(
        log_spread(streams, "load", limits.load_us_min, limits.load_us_max),
        4 * drawing.failover_us,
    )
    nodes = limits.nodes[1 if streams.chance("shape", 0.3) else 0]
    observers = min(limits.observers_max, 1 if streams.chance("shape", 0.15) else 0)
    return Scenario(
        system=system,
        seed=seed,
        nodes=nodes,
        observers=observers,
        bugs=tuple(bugs),
        settings=settings,
        segment_bytes=(
            log_spread(streams, "shape", _SMALL_SEGMENT_BYTES, SMALL_SEGMENT_BYTES_MAX)
            if streams.chance("shape", 0.35)
            else _LARGE_SEGMENT_BYTES
        ),
        through_codec=streams.chance("shape", 0.1),
        drift_ppm=_drift(streams, nodes + observers),
        network=network,
        disk=disk,
        load=_load(drawing, nodes + observers),
        faults=drawn_faults(drawing),
        load_us=drawing.load_us,
        recovery=RecoveryOptions(
            scope="majority" if streams.chance("recovery", 0.4) else "all",
            patience_us=max(10_000_000, 40 * drawing.failover_us),
            settle_us=3 * drawing.failover_us,
        ),
        beyond_promise=beyond_promise,
    )


def _network(streams: Streams) -> NetworkOptions:
    pick = streams.pick
    # Where most messages are slow, that ends with the faults: clients give up a connection that
    # takes long to open, so such a world would never recover.
    is_crawling = streams.chance("network", 0.03)
    delay_us_max = log_spread(streams, "network", 200, 20_000)
    delay_us_min = max(100, delay_us_max >> streams.between("network", 0, 5))
    return NetworkOptions(
        delay_us_min=delay_us_min,
        delay_us_max=delay_us_max,
        slow_chance=0.5 if is_crawling else pick("network", (0.0, 0.0, 0.01, 0.05)),
        slow_us_max=max(delay_us_max, log_spread(streams, "network", 20_000, 1_000_000)),
        reset_chance=pick("network", (0.0, 0.0, 0.003, 0.02)),
        lost_answer_chance=pick("network", (0.0, 0.0, 0.003, 0.02)),
        stall_chance=pick("network", (0.0, 0.0, 0.002, 0.01)),
        stall_us_max=log_spread(streams, "network", 20_000, 1_000_000),
        half_open_chance=pick("network", (0.0, 0.3, 1.0)),
    )


def _disk(streams: Streams) -> DiskOptions:
    pick = streams.pick
    return DiskOptions(
        latency_us_min=pick("disk", (50, 100, 400)),
        latency_us_max=pick("disk", (500, 2_000, 5_000, 15_000)),
        slow_chance=pick("disk", (0.0, 0.0, 0.01, 0.05)),
        slow_us_max=log_spread(streams, "disk", 20_000, 500_000),
        torn_chance=pick("disk", (0.0, 0.5, 1.0)),
    )


def _drift(streams: Streams, nodes: int) -> tuple[int, ...]:
    """Draw usual quartz in half of the seeds, a broken clock in a few."""
    most = streams.pick("drift", (0, 0, 0, 0, 0, 100, 100, 100, 100, 20_000))
    if not most:
        return ()
    return tuple(streams.between("drift", -most, most) for _ in range(nodes))


def _load(drawing: Drawing, nodes: int) -> LoadOptions:
    streams, limits = drawing.streams, drawing.limits
    workload = streams.pick("clients", limits.workloads)
    options: dict[str, str] = {}
    if workload == "register":
        options = {"values": streams.pick("clients", ("small", "unique"))}
    return LoadOptions(
        workload=workload,
        workload_options=options,
        clients=(
            2 * nodes + streams.between("clients", 1, limits.crowd_spread)
            if limits.crowd_spread and streams.chance("clients", 0.4)
            else streams.between("clients", limits.clients_min, limits.clients_max)
        ),
        rate=streams.pick("clients", (30.0, 100.0, 200.0, 400.0, 800.0)),
        # To connect, to be sent elsewhere and to be replicated takes several round trips.
        timeout_us=max(
            streams.pick("clients", (30_000, 100_000, 300_000, 1_000_000)),
            10 * drawing.round_trip_us,
        ),
    )
