"""One seed draws every option of a simulated world (swarm testing).

Drawing the mix anew for each seed finds far more than one good mix: a world without pauses in
which every vote is followed by a crash goes where an even mix never goes. What is drawn, and why:

- **shape**: 3 voters or, in 30 %, 5; an observer in 15 %; segments of 300 bytes to 4 KiB in 35 %,
  so that rolling and recovery over several files are met within a second; the wire codec in 10 %;
- **network**: delays log-spread from 0.1 ms to 20 ms, slow messages up to 1 s; these, resets,
  stalls, lost answers and half-open ends each absent in about half of the seeds;
- **disk**: latencies from 0.5 ms to 15 ms, slow flushes, how often a crash tears;
- **settings**: the system's own, drawn by the system to fit a request's round trip. How long it
  takes to replace a leader with them is the world's time scale: fault durations, load and patience
  follow from it;
- **load**: 2 to 6 clients, 30 to 800 operations a second, registers (few values, or each once) or
  sets, short and long timeouts;
- **faults**: each kind is in about half of the seeds; timed ones, also in bursts, and ones that
  wait for a happening and mostly strike there, often between two effects; they last long enough for
  an election, or from less than a message takes to several elections. The moments that matter last
  microseconds, so the waiting ones find what the clock misses;
- **recovery**: everything heals, or (30 %) a majority only.

Integers come from ``Streams(seed, "swarm")`` alone, one stream per paragraph above, so that a new
option does not shift the others. Must never use a float but as a chance taken from a table.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from contracts.scenario import (
    DiskOptions,
    LoadOptions,
    Moment,
    NetworkOptions,
    RecoveryOptions,
    Scenario,
    SimulatedFault,
)
from contracts.simulation import RandomSource
from harness.simulation.early_heals import UNTIL, UNTIL_COUNT, UNTIL_DELAY_US
from harness.simulation.fault_acts import act_names, act_of
from harness.simulation.fault_blow import THERE
from nemesis.targets import random_target
from runtimes.simulated.streams import Streams

_DRAW_LIMIT: Final = 1 << 31
#: Kinds that fewer seeds have, because a node that meets them is out for long.
_DISK_KINDS: Final = (
    "slow-disk", "fsync-fails", "disk-full", "read-errors", "rot-log", "rot-state", "wipe",
    "roll-back",
)  # fmt: skip
#: How often a kind is drawn where a seed has it.
_WEIGHTS: Final = {
    "kill": 4, "power": 4, "partition": 4, "pause": 3, "one-way": 2, "partial": 2, "rot-log": 3,
    "fsync-fails": 2,
}  # fmt: skip
_SMALL_SEGMENT_BYTES: Final = 300
_LARGE_SEGMENT_BYTES: Final = 1 << 20
#: Used where the system gives no hint.
_FAILOVER_US: Final = 1_000_000


class SystemHints(Protocol):
    """What the swarm asks of a system; part of ``contracts.simulation.SimulatedSystem``."""

    def draw_settings(self, stream: RandomSource, round_trip_us: int) -> dict[str, str]:
        """Settings of a world with this round trip."""
        ...

    def failover_us(self, settings: dict[str, str]) -> int:
        """About how long they take to replace a dead leader."""
        ...


class SwarmLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is drawn."""

    #: Numbers of voters; the second in 30 % of the seeds.
    nodes: tuple[int, int] = (3, 5)
    observers_max: int = 1
    clients_min: int = 2
    clients_max: int = 6
    timed_faults_max: int = 12
    triggered_faults_max: int = 10
    load_us_min: int = 1_000_000
    load_us_max: int = 5_000_000
    #: Kinds of faults; None: all that the promise allows.
    kinds: tuple[str, ...] | None = None
    workloads: tuple[str, ...] = ("register", "register", "register", "set")


class _Drawing(msgspec.Struct):
    """What several paragraphs of one seed need to know."""

    streams: Streams
    limits: SwarmLimits
    happenings: Sequence[str]
    beyond_promise: bool
    #: A request and its answer when nothing is wrong, with a flush.
    round_trip_us: int = 0
    failover_us: int = _FAILOVER_US
    load_us: int = 0
    #: What a job of the disk takes at most when nothing is wrong.
    disk_us: int = 0
    #: Happenings after which faults heal early; drawn when the first one does.
    until: list[str] = []


def draw_scenario(
    seed: int,
    *,
    system: str,
    bugs: Sequence[str] = (),
    base: SwarmLimits | None = None,
    happenings: Sequence[str] = (),
    hints: SystemHints | None = None,
    beyond_promise: bool = False,
) -> Scenario:
    """The world of a seed; a function of the arguments alone.

    Args:
        seed: master seed of the world.
        system: its name.
        bugs: planted ones; they change nothing else of the world.
        base: bounds of what is drawn.
        happenings: what faults may wait for; none: no fault waits.
        hints: draws the system's settings; None: its defaults.
        beyond_promise: whether faults may go beyond what Raft promises to survive.
    """
    streams = Streams(seed, "swarm")
    drawing = _Drawing(streams, base or SwarmLimits(), happenings, beyond_promise)
    network, disk = _network(streams), _disk(streams)
    drawing.round_trip_us = 2 * (network.delay_us_max + disk.latency_us_max)
    drawing.disk_us = disk.latency_us_max
    settings: dict[str, str] = {}
    if hints is not None:
        settings = hints.draw_settings(streams.stream("settings"), drawing.round_trip_us)
        drawing.failover_us = max(hints.failover_us(settings), 2 * drawing.round_trip_us)
    limits = drawing.limits
    drawing.load_us = max(
        _log_spread(streams, "load", limits.load_us_min, limits.load_us_max),
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
            _log_spread(streams, "shape", _SMALL_SEGMENT_BYTES, 4_096)
            if streams.chance("shape", 0.35)
            else _LARGE_SEGMENT_BYTES
        ),
        through_codec=streams.chance("shape", 0.1),
        drift_ppm=_drift(streams, nodes + observers),
        network=network,
        disk=disk,
        load=_load(drawing),
        faults=_faults(drawing),
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
    # Where most messages are slow this ends with the faults: clients give up a connection that
    # takes long to open, so a world whose every message did would never recover.
    is_crawling = streams.chance("network", 0.03)
    delay_us_max = _log_spread(streams, "network", 200, 20_000)
    delay_us_min = max(100, delay_us_max >> streams.between("network", 0, 5))
    return NetworkOptions(
        delay_us_min=delay_us_min,
        delay_us_max=delay_us_max,
        slow_chance=0.5 if is_crawling else pick("network", (0.0, 0.0, 0.01, 0.05)),
        slow_us_max=max(delay_us_max, _log_spread(streams, "network", 20_000, 1_000_000)),
        reset_chance=pick("network", (0.0, 0.0, 0.003, 0.02)),
        lost_answer_chance=pick("network", (0.0, 0.0, 0.003, 0.02)),
        stall_chance=pick("network", (0.0, 0.0, 0.002, 0.01)),
        stall_us_max=_log_spread(streams, "network", 20_000, 1_000_000),
        half_open_chance=pick("network", (0.0, 0.3, 1.0)),
    )


def _disk(streams: Streams) -> DiskOptions:
    pick = streams.pick
    return DiskOptions(
        latency_us_min=pick("disk", (50, 100, 400)),
        latency_us_max=pick("disk", (500, 2_000, 5_000, 15_000)),
        slow_chance=pick("disk", (0.0, 0.0, 0.01, 0.05)),
        slow_us_max=_log_spread(streams, "disk", 20_000, 500_000),
        torn_chance=pick("disk", (0.0, 0.5, 1.0)),
    )


def _drift(streams: Streams, nodes: int) -> tuple[int, ...]:
    """Usual quartz in half of the seeds, a broken clock in a few."""
    most = streams.pick("drift", (0, 0, 0, 0, 0, 100, 100, 100, 100, 20_000))
    if not most:
        return ()
    return tuple(streams.between("drift", -most, most) for _ in range(nodes))


def _load(drawing: _Drawing) -> LoadOptions:
    streams, limits = drawing.streams, drawing.limits
    workload = streams.pick("clients", limits.workloads)
    options: dict[str, str] = {}
    if workload == "register":
        options = {"values": streams.pick("clients", ("small", "unique"))}
    return LoadOptions(
        workload=workload,
        workload_options=options,
        clients=streams.between("clients", limits.clients_min, limits.clients_max),
        rate=streams.pick("clients", (30.0, 100.0, 200.0, 400.0, 800.0)),
        # To connect, to be sent elsewhere and to be replicated takes several round trips.
        timeout_us=max(
            streams.pick("clients", (100_000, 300_000, 1_000_000)), 10 * drawing.round_trip_us
        ),
    )


def _faults(drawing: _Drawing) -> tuple[SimulatedFault, ...]:
    """Timed ones, then those that wait; the index only names them."""
    streams, limits = drawing.streams, drawing.limits
    kinds = _kinds(drawing)
    if not kinds:
        return ()
    timed = streams.between("faults", 0, limits.timed_faults_max)
    faults: list[SimulatedFault] = []
    at_us = 0
    for index in range(timed):
        at_us = _timed(drawing, at_us)
        kind = streams.pick("timed", kinds)
        target = streams.pick("timed", act_of(kind).targets)
        faults.append(_fault(drawing, "timed", index, kind, target, Moment(at_us=at_us)))
    if drawing.happenings:
        faults += _waiting(drawing, kinds, timed)
    if timed and streams.chance("standing", 0.25):
        faults += _standing(drawing, kinds, len(faults))
    return tuple(faults)


def _waiting(drawing: _Drawing, kinds: Sequence[str], first: int) -> list[SimulatedFault]:
    """Faults at happenings; a seed has mostly few sorts of them."""
    streams, limits = drawing.streams, drawing.limits
    faults: list[SimulatedFault] = []
    # A seed waits for few sorts of happenings, so that it does much of the same.
    awaited = [
        streams.pick("triggered", drawing.happenings)
        for _ in range(streams.between("triggered", 1, 4))
    ]
    for index in range(first, first + streams.between("faults", 0, limits.triggered_faults_max)):
        kind = streams.pick("triggered", kinds)
        own = act_of(kind).targets
        target = THERE if streams.chance("triggered", 0.75) else streams.pick("triggered", own)
        moment = Moment(
            on=streams.pick("triggered", awaited),
            count=_log_spread(streams, "triggered", 1, 32),
            delay_us=_delay(drawing),
        )
        faults.append(_fault(drawing, "triggered", index, kind, target, moment))
    return faults


def _delay(drawing: _Drawing) -> int:
    """Between two effects, while the disk is at it, or some time later."""
    streams = drawing.streams
    if streams.chance("triggered", 0.5):
        return 0
    late_us = streams.pick("triggered", (max(100, drawing.disk_us), 50_000))
    return _log_spread(streams, "triggered", 50, late_us)


def _standing(drawing: _Drawing, kinds: Sequence[str], index: int) -> list[SimulatedFault]:
    """One machine that is worse than the others all the time."""
    streams = drawing.streams
    kind = streams.pick("standing", ("slow-disk", "clog"))
    if kind not in kinds:
        return []
    slowness = {
        "slow-disk": {"factor": _log_spread(streams, "standing", 3, 48)},
        "clog": {"delay_us": _log_spread(streams, "standing", 500, drawing.failover_us // 12)},
    }
    fault = SimulatedFault(
        index=index,
        kind=kind,
        target=random_target(1),
        when=Moment(at_us=0),
        duration_us=drawing.load_us,
        draw=streams.between("standing", 0, _DRAW_LIMIT),
        options=slowness[kind],
    )
    return [fault]


def _fault(
    drawing: _Drawing, purpose: str, index: int, kind: str, target: str, moment: Moment
) -> SimulatedFault:
    streams = drawing.streams
    return SimulatedFault(
        index=index,
        kind=kind,
        target=target,
        when=moment,
        duration_us=_duration(drawing, purpose),
        draw=streams.between(purpose, 0, _DRAW_LIMIT),
        options={} if act_of(kind).is_instant else _until(drawing),
    )


def _until(drawing: _Drawing) -> dict[str, Any]:
    """Soon after others have gone on: options of a fault that heals early, mostly none."""
    streams = drawing.streams
    if not drawing.happenings or not streams.chance("until", 0.3):
        return {}
    if not drawing.until:
        # As with what faults wait for: a seed does much of the same.
        drawing.until = [streams.pick("until", drawing.happenings) for _ in range(2)]
    return {
        UNTIL: streams.pick("until", drawing.until),
        UNTIL_COUNT: _log_spread(streams, "until", 1, 8),
        UNTIL_DELAY_US: _log_spread(streams, "until", 50, max(100, drawing.failover_us // 6)),
    }


def _timed(drawing: _Drawing, last_us: int) -> int:
    """Anywhere in the load, or soon after the last one: trouble that comes in bursts."""
    streams, end_us = drawing.streams, drawing.load_us * 9 // 10
    if streams.chance("timed", 0.4):
        return min(end_us, last_us + _log_spread(streams, "timed", 1_000, 2 * drawing.failover_us))
    return streams.between("timed", 0, end_us)


def _duration(drawing: _Drawing, purpose: str) -> int:
    """Until a leader is given up by others but not by itself yet, or of any size."""
    streams, failover_us = drawing.streams, drawing.failover_us
    if streams.chance(purpose, 0.25):
        return streams.between(purpose, failover_us // 3, failover_us * 2 // 3)
    if streams.chance(purpose, 0.6):
        return streams.between(purpose, failover_us // 4, 2 * failover_us)
    return _log_spread(streams, purpose, 1_000, 4 * failover_us)


def _kinds(drawing: _Drawing) -> tuple[str, ...]:
    """The kinds that this seed has, each as often as its weight."""
    streams, limits = drawing.streams, drawing.limits
    chosen: list[str] = []
    for kind in limits.kinds or act_names():
        # Drawn for every kind, so that leaving one out does not shift the others.
        is_in = streams.chance("kinds", 0.4 if kind in _DISK_KINDS else 0.5)
        if is_in and (drawing.beyond_promise or act_of(kind).rule != "lies"):
            chosen += [kind] * _WEIGHTS.get(kind, 1)
    return tuple(chosen)


def _log_spread(streams: Streams, purpose: str, low: int, high: int) -> int:
    """An integer from low to high, its size spread about evenly over the doublings."""
    doublings = max(0, (high // max(low, 1)).bit_length() - 1)
    base = low << streams.between(purpose, 0, doublings)
    return min(high, streams.between(purpose, base, 2 * base - 1))
