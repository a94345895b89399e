"""The faults of one seed: which kinds, when, where, and what follows on what.

- **Kinds**: each is in about half of the seeds, absent from the others.
- **Timed** faults strike anywhere in the load or in bursts; in most seeds they aim at the leader.
- **Waiting** faults strike at a happening, mostly at the node where it was, often between two
  effects. Some happenings are rare, so most wait for one of the first.
- **Sequels** begin to wait when another fault has struck, at the nodes that it hit, at others or
  anywhere: a second blow in the midst of what the first one has begun. A seed has few sorts.
- **Until**: half of what lasts heals soon after others have got on without who was hit, and has the
  time that this takes. So a deposed leader comes back with what nobody else has.

Faults prefer to wait for *turning points*: happenings that the system lists more than once.
Integers come from the seed's streams alone. Must never use a float but as a chance from a table,
nor know a happening by name.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from splitbrain.contracts.draws import where
from splitbrain.contracts.fault import UNTIL, UNTIL_COUNT, UNTIL_DELAY_US, Awaited, Fault
from splitbrain.nemesis.fault_options import AFTER, OTHER, PLACE, SAME
from splitbrain.nemesis.sorts import SORTS, delayed_by
from splitbrain.nemesis.targets import LEADER, THERE, random_target

_DRAW_LIMIT: Final = 1 << 31
_Thing = TypeVar("_Thing")


class Streams(Protocol):
    """The random streams of one seed, by purpose."""

    def between(self, purpose: str, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        ...

    def chance(self, purpose: str, probability: float) -> bool:
        """Whether something of this probability happens; draws nothing for 0."""
        ...

    def pick(self, purpose: str, things: Sequence[_Thing]) -> _Thing:
        """One of them."""
        ...


#: How many of a seed's faults have a sequel.
_SEQUEL_CHANCES: Final = (0.3, 0.6, 0.9)
#: Used where the system gives no hint.
_FAILOVER_US: Final = 1_000_000


class SwarmLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is drawn."""

    #: Numbers of voters; the second in 30 % of the seeds.
    nodes: tuple[int, int] = (3, 5)
    observers_max: int = 1
    clients_min: int = 2
    clients_max: int = 6
    #: A crowd has up to so many clients more than it takes for some slots to only read; 0: none.
    crowd_spread: int = 4
    timed_faults_max: int = 14
    triggered_faults_max: int = 18
    sequels_max: int = 12
    load_us_min: int = 2_000_000
    load_us_max: int = 8_000_000
    #: Sorts of faults; None: all that the promise allows.
    kinds: tuple[str, ...] | None = None
    workloads: tuple[str, ...] = ("register", "register", "register", "set")


class Drawing(msgspec.Struct):
    """Drawing of one seed, as far as several paragraphs need it."""

    streams: Streams
    limits: SwarmLimits
    happenings: Sequence[str]
    beyond_promise: bool
    #: A request and its answer when nothing is wrong, with a flush.
    round_trip_us: int = 0
    failover_us: int = _FAILOVER_US
    load_us: int = 0
    #: Longest time of a disk's job when nothing is wrong.
    disk_us: int = 0
    #: Happenings after which faults heal early; drawn when the first one does.
    until: list[str] = []
    #: Whether most timed faults hit whoever leads.
    aims_at_leader: bool = False


def drawn_faults(drawing: Drawing) -> tuple[Fault, ...]:
    """Timed ones, then those that wait; the index only names them."""
    streams, limits = drawing.streams, drawing.limits
    kinds = _kinds(drawing)
    if not kinds:
        return ()
    timed = streams.between("faults", 0, limits.timed_faults_max)
    faults: list[Fault] = []
    at_us = 0
    drawing.aims_at_leader = streams.chance("aim", 0.6)
    for index in range(timed):
        at_us = _timed(drawing, at_us)
        kind = streams.pick("timed", kinds)
        target = _target(drawing, kind)
        faults.append(_fault(drawing, "timed", index, kind, target, at_us))
    if drawing.happenings:
        faults += _waiting(drawing, kinds, timed)
    if timed and streams.chance("standing", 0.25):
        faults += _standing(drawing, kinds, len(faults))
    if drawing.happenings:
        faults += _sequels(drawing, kinds, faults)
    return tuple(faults)


def _target(drawing: Drawing, kind: str) -> str:
    """Of a timed fault: one of the kind's own, or the leader where the seed aims at it."""
    streams = drawing.streams
    own = SORTS[kind].targets
    target = streams.pick("timed", own)
    if drawing.aims_at_leader and LEADER in own and streams.chance("aim", 0.7):
        return LEADER
    return target


def _waiting(drawing: Drawing, kinds: Sequence[str], first: int) -> list[Fault]:
    """Faults at happenings; a seed has mostly few sorts of them."""
    streams, limits = drawing.streams, drawing.limits
    faults: list[Fault] = []
    # A seed waits for few sorts of happenings, so that it does much of the same.
    awaited = [
        streams.pick("triggered", drawing.happenings)
        for _ in range(streams.between("triggered", 1, 4))
    ]
    for index in range(first, first + streams.between("faults", 0, limits.triggered_faults_max)):
        kind = streams.pick("triggered", kinds)
        own = SORTS[kind].targets
        target = THERE if streams.chance("triggered", 0.75) else streams.pick("triggered", own)
        when = Awaited(
            on=streams.pick("triggered", awaited),
            count=_count(drawing),
            delay_us=_delay(drawing, "triggered"),
        )
        faults.append(_fault(drawing, "triggered", index, kind, target, when))
    return faults


def _count(drawing: Drawing) -> int:
    """Draw one of the happenings: an early one, since some are rare, or any."""
    streams = drawing.streams
    if streams.chance("triggered", 0.6):
        return streams.between("triggered", 1, 2)
    return log_spread(streams, "triggered", 1, 32)


def _delay(drawing: Drawing, purpose: str) -> int:
    """Between two effects, while the disk is at it, or some time later."""
    streams = drawing.streams
    if streams.chance(purpose, 0.5):
        return 0
    late_us = streams.pick(purpose, (max(100, drawing.disk_us), 50_000))
    return log_spread(streams, purpose, 50, late_us)


def _sequels(drawing: Drawing, kinds: Sequence[str], firsts: Sequence[Fault]) -> list[Fault]:
    """Second blows, each in the midst of what one fault has begun."""
    streams = drawing.streams
    chance = streams.pick("sequels", _SEQUEL_CHANCES)
    # As with what faults wait for: a seed does much of the same.
    awaited = [streams.pick("sequels", _turning_points(drawing)) for _ in range(2)]
    chosen = [streams.pick("sequels", kinds) for _ in range(3)]
    faults: list[Fault] = []
    for first in firsts:
        if len(faults) >= drawing.limits.sequels_max or not streams.chance("sequels", chance):
            continue
        kind = streams.pick("sequels", chosen)
        own = SORTS[kind].targets
        target = THERE if streams.chance("sequels", 0.75) else streams.pick("sequels", own)
        when = Awaited(
            on=streams.pick("sequels", awaited),
            count=streams.pick("sequels", (1, 1, 1, 2, 3)),
            delay_us=_delay(drawing, "sequels"),
        )
        fault = _fault(drawing, "sequels", len(firsts) + len(faults), kind, target, when)
        place = streams.pick("sequels", (SAME, OTHER, None))
        where = {} if place is None else {PLACE: place}
        options = fault.options | {AFTER: first.index} | where
        faults.append(msgspec.structs.replace(fault, options=options))
    return faults


def _standing(drawing: Drawing, kinds: Sequence[str], index: int) -> list[Fault]:
    """One machine that is worse than the others all the time."""
    streams = drawing.streams
    kind = streams.pick("standing", ("slow-disk", "delay"))
    if kind not in kinds:
        return []
    slowness = {
        "slow-disk": {"factor": log_spread(streams, "standing", 3, 48)},
        "delay": delayed_by(log_spread(streams, "standing", 500, drawing.failover_us // 12)),
    }
    fault = Fault(
        index=index,
        kind=kind,
        target=random_target(1),
        at_us=0,
        duration_us=drawing.load_us,
        draw=streams.between("standing", 0, _DRAW_LIMIT),
        options=slowness[kind],
    )
    return [fault]


def _fault(
    drawing: Drawing, purpose: str, index: int, name: str, target: str, moment: int | Awaited
) -> Fault:
    streams = drawing.streams
    duration_us = _duration(drawing, purpose)
    sort = SORTS[name]
    until = {} if sort.is_instant else _until(drawing)
    if until:
        # Mostly it waits for others to get on without the node hit: give them the time.
        duration_us = streams.between("until", drawing.failover_us, 2 * drawing.failover_us)
    draw = streams.between(purpose, 0, _DRAW_LIMIT)
    kinds = sort.kinds
    return Fault(
        index=index,
        kind=kinds[where(draw).below(len(kinds))],
        target=target,
        at_us=moment if isinstance(moment, int) else 0,
        duration_us=duration_us,
        draw=draw,
        options=until | sort.options(draw),
        when=None if isinstance(moment, int) else moment,
    )


def _turning_points(drawing: Drawing) -> Sequence[str]:
    """Return the happenings listed more than once; all, where the system prefers none."""
    happenings = drawing.happenings
    return [name for name in happenings if happenings.count(name) > 1] or happenings


def _until(drawing: Drawing) -> dict[str, Any]:
    """Soon after others have gone on: options of a fault that heals early, mostly none."""
    streams = drawing.streams
    if not drawing.happenings or not streams.chance("until", 0.45):
        return {}
    if not drawing.until:
        # As with what faults wait for: a seed does much of the same.
        drawing.until = [streams.pick("until", _turning_points(drawing)) for _ in range(2)]
    return {
        UNTIL: streams.pick("until", drawing.until),
        UNTIL_COUNT: log_spread(streams, "until", 1, 4),
        UNTIL_DELAY_US: log_spread(streams, "until", 50, max(100, drawing.failover_us // 6)),
    }


def _timed(drawing: Drawing, last_us: int) -> int:
    """Anywhere in the load, or soon after the last one: trouble that comes in bursts."""
    streams, end_us = drawing.streams, drawing.load_us * 9 // 10
    if streams.chance("timed", 0.4):
        return min(end_us, last_us + log_spread(streams, "timed", 1_000, 2 * drawing.failover_us))
    return streams.between("timed", 0, end_us)


def _duration(drawing: Drawing, purpose: str) -> int:
    """Until a leader is given up by others but not by itself yet, or of any size."""
    streams, failover_us = drawing.streams, drawing.failover_us
    if streams.chance(purpose, 0.25):
        return streams.between(purpose, failover_us // 3, failover_us * 2 // 3)
    if streams.chance(purpose, 0.6):
        return streams.between(purpose, failover_us // 4, 2 * failover_us)
    return log_spread(streams, purpose, 1_000, 4 * failover_us)


def _kinds(drawing: Drawing) -> tuple[str, ...]:
    """Draw the sorts that this seed has, each as often as its weight."""
    streams, limits = drawing.streams, drawing.limits
    chosen: list[str] = []
    for name in limits.kinds or SORTS:
        # Drawn for every sort, so that leaving one out does not shift the others.
        sort = SORTS[name]
        is_in = streams.chance("rare kinds" if sort.is_rare else "kinds", sort.chance)
        if is_in and (drawing.beyond_promise or not sort.lies):
            chosen += [name] * sort.weight
    return tuple(chosen)


def log_spread(streams: Streams, purpose: str, low: int, high: int) -> int:
    """Return an integer from low to high, its size spread about evenly over the doublings."""
    doublings = max(0, (high // max(low, 1)).bit_length() - 1)
    base = low << streams.between(purpose, 0, doublings)
    return min(high, streams.between(purpose, base, 2 * base - 1))
