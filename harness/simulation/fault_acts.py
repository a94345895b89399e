"""Every kind of fault of the simulated world: those of ``nemesis``, and those that only it has.

Each act says what it did and gives back how to undo it; healing is part of the fault. Acts on disks
are in ``disk_acts``. Must never choose when to strike, nor whether the promise allows it: that is
the driver's.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from contracts.errors import UsageError
from contracts.fault import US_PER_MS, ActualFault, Fault, Link
from contracts.simulation import Timer
from harness.simulation.course_acts import states_of, strike_course
from harness.simulation.disk_acts import DISK_ACTS
from harness.simulation.fault_blow import (
    Act,
    Blow,
    Struck,
    in_ms,
    named,
    nodes_of_target,
    spread,
    where,
)
from nemesis.fault_options import read_options
from nemesis.kinds import fault_kind
from nemesis.nearest import or_nearest
from nemesis.partitions import links_between
from nemesis.targets import ALL, FOLLOWER, HALVES, LEADER, ClusterView, random_target, shuffled

#: Cuts and restores of a flapping link.
_FLAPS_MIN: Final = 3
_FLAPS_SPAN: Final = 6
#: Clogs delay by 1 ms up to half a second, clock jumps by 1 ms up to half an hour.
_CLOG_US: Final = 1_000
_CLOG_DOUBLINGS: Final = 9
_JUMP_US: Final = 1_000
_JUMP_DOUBLINGS: Final = 20
#: Of a disk on which nothing comes to an end: the longest job takes minutes.
_STALLED_FACTOR: Final = 100_000
#: A slow link delays by 8 ms up to a second.
_SLOW_LINK_US: Final = 8_000
_SLOW_LINK_DOUBLINGS: Final = 7
_SLOW_LINK_US_MAX: Final = 1_000_000
#: Nodes that a cut between two of them with a third one beside needs.
_PARTIAL_NODES: Final = 3


def _between(fault: Fault, view: ClusterView) -> ActualFault | None:
    """The nodes, and all links between them and the rest."""
    actual = nodes_of_target(fault, view)
    if actual is None:
        return None
    links = links_between(actual.nodes, view.nodes)
    return msgspec.structs.replace(actual, links=links) if links else None


def _inbound_or_outbound(fault: Fault, view: ClusterView) -> ActualFault | None:
    """The nodes, and one direction of the links between them and the rest."""
    actual = _between(fault, view)
    if actual is None:
        return None
    drawn = ("inbound", "outbound")[where(fault.draw).below(2)]
    is_inbound = fault.options.get("direction", drawn) == "inbound"
    links = tuple(link for link in actual.links if (link.destination in actual.nodes) == is_inbound)
    return msgspec.structs.replace(actual, links=links)


def _one_pair(fault: Fault, view: ClusterView) -> ActualFault | None:
    """The target and one other node, which a third one still reaches."""
    actual = nodes_of_target(fault, view)
    if actual is None or len(view.nodes) < _PARTIAL_NODES:
        return None
    first = actual.nodes[0]
    others = [node for node in view.nodes if node != first]
    second = shuffled(others, where(fault.draw).below(1 << 16))[0]
    return msgspec.structs.replace(
        actual, nodes=(first, second), links=(Link(first, second), Link(second, first))
    )


def _cut(blow: Blow) -> Struck:
    """Cut the fault's links."""
    reach = blow.reach
    reach.cut(blow.links)
    words = ", ".join(f"{link.source} to {link.destination}" for link in blow.links)

    def heal() -> str:
        waiting = reach.network.waiting_count(blow.links)
        reach.restore(blow.links)
        return f"{len(blow.links)} links open; {waiting} messages had waited"

    return Struck(f"{len(blow.links)} links cut: {words}", heal)


def _flap(blow: Blow) -> Struck:
    """Cut and restore the fault's links again and again."""
    reach, world = blow.reach, blow.reach.world
    flaps = blow.chosen("count", _FLAPS_MIN + blow.draws.below(_FLAPS_SPAN))
    half_us = max(1, blow.duration_us // (2 * flaps))
    is_cut = False
    cuts = 0
    pending: Timer | None = None

    def turn() -> None:
        nonlocal is_cut, cuts, pending
        if is_cut:
            reach.restore(blow.links)
        else:
            reach.cut(blow.links)
            cuts += 1
        is_cut = not is_cut
        pending = world.after(half_us, turn) if is_cut or cuts < flaps else None

    def heal() -> str:
        if pending is not None:
            pending.cancel()
        if is_cut:
            reach.restore(blow.links)
        return f"{len(blow.links)} links open after {cuts} cuts"

    turn()
    return Struck(f"{len(blow.links)} links cut and restored every {in_ms(half_us)}", heal)


def _clog(blow: Blow) -> Struck:
    """Slow the fault's links down."""
    delay_us = blow.chosen("delay_us", spread(blow.draws, _CLOG_US, _CLOG_DOUBLINGS))
    blow.reach.clog(blow.links, delay_us)

    def heal() -> str:
        blow.reach.unclog(blow.links, delay_us)
        return f"{len(blow.links)} links as before"

    return Struck(f"{len(blow.links)} links slower by {in_ms(delay_us)}", heal)


def _slow_link(blow: Blow) -> Struck:
    """Slow each direction of the fault's link down, by much, for itself; maybe only one."""
    reach, links = blow.reach, blow.links
    delays_us: list[int] = []
    for name in ("delay_us", "back_delay_us"):
        drawn = min(spread(blow.draws, _SLOW_LINK_US, _SLOW_LINK_DOUBLINGS), _SLOW_LINK_US_MAX)
        is_spared = delays_us and blow.draws.below(2)
        delays_us.append(blow.chosen(name, 0 if is_spared else drawn))
    slowed = [(link, delay_us) for link, delay_us in zip(links, delays_us, strict=True) if delay_us]
    for link, delay_us in slowed:
        reach.clog((link,), delay_us)
    before = reach.network.slowed_count(links)

    def heal() -> str:
        for link, delay_us in slowed:
            reach.unclog((link,), delay_us)
        count = reach.network.slowed_count(links) - before
        return f"{len(slowed)} links as before; {count} messages were slowed"

    words = ", ".join(
        f"{link.source} to {link.destination} slower by {delay_us} us" for link, delay_us in slowed
    )
    return Struck(words or "no link slower", heal)


def _stop(blow: Blow) -> Struck:
    """Ask the nodes to end, as an operator does; what has not ended when healed is killed."""
    reach = blow.reach
    for node in blow.nodes:
        reach.terminate(node)

    def heal() -> str:
        words: list[str] = []
        for node in blow.nodes:
            if reach.cluster.is_up(node):
                reach.end(node)
                words.append(f"{node} had not ended yet and was killed")
            else:
                words.append(f"{node} had ended")
            reach.start(node)
        return f"{'; '.join(words)}; {states_of(blow)}"

    return Struck(f"{named(blow.nodes)} asked to end", heal)


def _reset(blow: Blow) -> Struck:
    """Reset every connection of the nodes."""
    count = sum(blow.reach.network.reset(node) for node in blow.nodes)
    return Struck(f"{count} connections reset", lambda: "nothing to undo")


def _jump_clock(blow: Blow) -> Struck:
    """Move the wall clocks, and back again when healed."""
    size_us = spread(blow.draws, _JUMP_US, _JUMP_DOUBLINGS)
    delta_us = blow.chosen("delta_us", -size_us if blow.draws.below(2) else size_us)
    cluster = blow.reach.cluster
    for node in blow.nodes:
        cluster.jump_clock(node, delta_us)

    def heal() -> str:
        for node in blow.nodes:
            cluster.jump_clock(node, -delta_us)
        return "the clock is right again"

    return Struck(f"the clock of {named(blow.nodes)} jumped by {in_ms(delta_us)}", heal)


_ANY = (LEADER, LEADER, FOLLOWER, random_target(1))
_COMMON = (LEADER, FOLLOWER, random_target(1))

#: What sweeps draw from. What else plans may name is in ``_PLAN_ACTS``: a new kind there leaves
#: every seed as it was.
_ACTS: Final[dict[str, Act]] = {
    act.name: act
    for act in (
        *(
            Act(
                name,
                strike_course(fault_kind(name)),
                resolve=fault_kind(name).actual,
                needs_up=name != "partition",
                targets=targets,
            )
            for name, targets in (
                ("partition", (*_COMMON, HALVES)),
                ("kill", _COMMON),
                ("pause", _COMMON),
                ("power", (*_COMMON, ALL)),
            )
        ),
        Act("one-way", _cut, _inbound_or_outbound, needs_up=False, targets=(*_ANY, HALVES)),
        Act("partial", _cut, _one_pair, needs_up=False, targets=_ANY),
        Act("flap", _flap, _between, needs_up=False, targets=(*_ANY, HALVES)),
        Act("clog", _clog, _between, needs_up=False, targets=(*_ANY, HALVES)),
        Act("slow-link", _slow_link, _one_pair, needs_up=False, targets=_ANY),
        Act("stop", _stop, targets=(*_ANY, ALL)),
        Act("reset", _reset, targets=(*_ANY, ALL), is_instant=True),
        Act("clock-jump", _jump_clock, targets=(*_ANY, ALL)),
        *DISK_ACTS,
    )
}


def _as(name: str, own: str, options_of: Callable[[Any], dict[str, Any]]) -> Act:
    """A kind of plans that the simulation knows by a name, and by options, of its own."""
    kind, act = fault_kind(name), _ACTS[own]

    def strike(blow: Blow) -> Struck:
        given = options_of(read_options(name, kind.options, blow.options))
        return act.strike(msgspec.structs.replace(blow, options={**blow.options, **given}))

    return msgspec.structs.replace(act, name=name, strike=strike, resolve=kind.actual)


_PLAN_ACTS: Final[dict[str, Act]] = {
    act.name: act
    for act in (
        *(
            Act(
                name,
                strike_course(fault_kind(name)),
                resolve=fault_kind(name).actual,
                needs_up=fault_kind(name).needs_up,
                targets=fault_kind(name).targets(),
            )
            for name in (
                "bridge", "majorities-ring", "minority-third", "one-way-in", "one-way-out",
                "cut-then-kill", "terminate", "restart", "rolling-restart", "crash-loop",
                "clock-strobe",
            )
        ),
        _as("delay", "clog", lambda told: {"delay_us": told.delay_ms * US_PER_MS}),
        _as("full-disk", "disk-full", lambda _: {"spare_bytes": 0}),
        _as("disk-stall", "slow-disk", lambda _: {"factor": _STALLED_FACTOR}),
        _as("disk-error", "fsync-fails", lambda _: {"count": 1}),
        _as("flip", "rot-log", lambda _: {"restart": 1}),
        _as("restore", "roll-back", lambda _: {}),
    )
}  # fmt: skip


def act_names() -> tuple[str, ...]:
    """Names of the kinds of faults that sweeps draw from, sorted."""
    return tuple(sorted(_ACTS))


def all_act_names() -> tuple[str, ...]:
    """Names of all kinds of faults that a scenario may hold: those, and those of plans alone."""
    return tuple(sorted((*_ACTS, *_PLAN_ACTS)))


def is_of_plans_alone(kind: str) -> bool:
    """Whether it comes from plans, and so has the options of the nemesis' kind."""
    return kind in _PLAN_ACTS


def act_of(kind: str) -> Act:
    """The act of this name.

    Raises:
        UsageError: there is none.
    """
    act = _ACTS.get(kind) or _PLAN_ACTS.get(kind)
    if act is None:
        raise UsageError(
            f"there is no fault called {kind!r} in the simulation",
            or_nearest(kind, (*_ACTS, *_PLAN_ACTS), "faults"),
        )
    return act


def is_simulated(kind: str) -> bool:
    """Whether a simulated world can carry out this kind."""
    return kind in _ACTS or kind in _PLAN_ACTS
