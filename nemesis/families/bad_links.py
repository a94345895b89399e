"""Fault kinds that make links bad instead of cutting them.

Shares are of packets. TCP hides doubled and overtaken packets from a program, which sees only a
slow connection; our own datagrams prove the fault.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from splitbrain.contracts.arms import LARGE_PROBE_BYTES, Shape
from splitbrain.contracts.draws import how, spread, where
from splitbrain.contracts.fault import Link, Microseconds, in_ms
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Capability
from splitbrain.nemesis.acts import Disconnect, ResetLinks, ShapeLinks, UnresetLinks, UnshapeLinks
from splitbrain.nemesis.expectations import Expectation, LinkBehaves, LinkIs, LinkShaped
from splitbrain.nemesis.families.partitions import flows, links_between
from splitbrain.nemesis.fault_kind import Course, FaultKind, Setting, Step
from splitbrain.nemesis.fault_options import (
    BlackHoleOptions,
    DelayOptions,
    DuplicateOptions,
    LossOptions,
    NoOptions,
    RateOptions,
    ReorderOptions,
    ResetOptions,
    SlowLinkOptions,
)
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, ClusterView, random_target, shuffled

#: Probes by which a link is judged.
PROBES: Final = 40
#: A healed link's greatest share of lost packets and median delay, on a loaded machine.
_LOST_MAX: Final = 0.1
_CALM_MS_MAX: Final = 100.0
#: Share of a configured delay that probes must see.
_LATE_PART: Final = 0.8
#: A slow link delays by 8 ms up to a second.
_SLOW_LINK_US: Final = 8_000
_SLOW_LINK_DOUBLINGS: Final = 7
_SLOW_LINK_US_MAX: Final = 1_000_000
#: Probes send about 3,000 kbit/s, so throughput cannot show a faster rate.
_MEASURED_KBIT_MAX: Final = 1_000


def _touching(
    hit: tuple[NodeName, ...], nodes: tuple[NodeName, ...], _draw: int, options: Any
) -> tuple[Link, ...]:
    links = links_between(hit, nodes)
    if options.direction == "both":
        return links
    is_in = options.direction == "in"
    return tuple(link for link in links if (link.destination in hit) == is_in)


def _shaped(
    shape_of: Callable[[Any], Shape], seen_of: Callable[[Link, Any], LinkBehaves]
) -> Callable[[Setting, Any], Course]:

    def course(setting: Setting, options: Any) -> Course:
        shape, links = shape_of(options), setting.links
        return Course(
            steps=(
                Step(
                    (ShapeLinks(links, shape),),
                    seen=(
                        *(LinkShaped(link, shape) for link in links),
                        *(seen_of(link, options) for link in links),
                    ),
                ),
            ),
            heal=(UnshapeLinks(links),),
            healed=(*(LinkShaped(link, None) for link in links), *_calm(links, shape)),
            resumed=flows(setting),
        )

    return course


def _calm(links: tuple[Link, ...], shape: Shape) -> tuple[Expectation, ...]:
    """Return expectations of links whose shape is removed."""
    late_ms = in_ms(shape.delay_us) or math.inf
    return tuple(
        LinkBehaves(
            link,
            lost_max=_LOST_MAX,
            doubled_max=_LOST_MAX,
            median_ms_max=max(_CALM_MS_MAX, late_ms / 2) if late_ms < math.inf else math.inf,
        )
        for link in links
    )


def likely_least(share: float) -> float:
    """Return a positive share that ``PROBES`` probes hardly ever fall below (three sigma)."""
    return max(1 / PROBES, share - 3 * math.sqrt(share * (1 - share) / PROBES))


def _lossy(link: Link, options: LossOptions) -> LinkBehaves:
    return LinkBehaves(link, lost_min=likely_least(options.loss))


def _late(link: Link, options: DelayOptions) -> LinkBehaves:
    return LinkBehaves(
        link, median_ms_min=_LATE_PART * max(1, in_ms(options.delay_us - options.varies_us))
    )


def _overtaken(link: Link, options: ReorderOptions) -> LinkBehaves:
    # Only some hurried packets have a slow one right before them.
    return LinkBehaves(link, overtaking_min=likely_least(options.reorder / 4))


def _doubled(link: Link, options: DuplicateOptions) -> LinkBehaves:
    return LinkBehaves(link, doubled_min=likely_least(options.duplicate))


def _slow(link: Link, options: RateOptions) -> LinkBehaves:
    """Expect low throughput where probes can show it, else a late large probe."""
    if options.rate_kbit <= _MEASURED_KBIT_MAX:
        return LinkBehaves(link, kbit_max=2.0 * options.rate_kbit)
    return LinkBehaves(link, median_ms_min=8 * LARGE_PROBE_BYTES / options.rate_kbit / 2)


def _swallowed(link: Link, options: BlackHoleOptions) -> LinkBehaves:
    large = 0.99 if options.bytes_max < LARGE_PROBE_BYTES else 0.0
    return LinkBehaves(link, large_lost_min=large, small_lost_max=0.5)


def _reset(setting: Setting, _options: ResetOptions) -> Course:
    links = setting.links
    return Course(
        steps=(Step((ResetLinks(links),), seen=tuple(LinkIs(link, open=False) for link in links)),),
        heal=(UnresetLinks(links),),
        healed=tuple(LinkIs(link, open=True) for link in links),
        resumed=flows(setting),
    )


def _disconnect(setting: Setting, _options: NoOptions) -> Course:
    return Course(steps=(Step((Disconnect(setting.hit),)),), heal=())


def _slow_link(setting: Setting, options: SlowLinkOptions) -> Course:
    """Delay each direction by its own amount, maybe only one of them."""
    slowed = tuple(
        (link, Shape(delay_us=delay_us))
        for link, delay_us in zip(setting.links, _delays_us(setting.draw, options), strict=True)
        if delay_us
    )
    links = tuple(link for link, _ in slowed)
    seen = (
        LinkBehaves(link, median_ms_min=_LATE_PART * in_ms(shape.delay_us))
        for link, shape in slowed
    )
    return Course(
        steps=(
            Step(
                tuple(ShapeLinks((link,), shape) for link, shape in slowed),
                seen=(*(LinkShaped(link, shape) for link, shape in slowed), *seen),
            ),
        ),
        heal=(UnshapeLinks(links),),
        healed=(
            *(LinkShaped(link, None) for link in links),
            *(calm for link, shape in slowed for calm in _calm((link,), shape)),
        ),
        resumed=flows(setting),
    )


def _delays_us(draw: int, options: SlowLinkOptions) -> tuple[Microseconds, Microseconds]:
    """Return the delays there and back: the options', else drawn; the drawn way back may be 0."""
    draws = how(draw)
    there_us = min(spread(draws, _SLOW_LINK_US, _SLOW_LINK_DOUBLINGS), _SLOW_LINK_US_MAX)
    back_us = min(spread(draws, _SLOW_LINK_US, _SLOW_LINK_DOUBLINGS), _SLOW_LINK_US_MAX)
    if draws.below(2):
        back_us = 0
    return (
        there_us if options.delay_us is None else options.delay_us,
        back_us if options.back_delay_us is None else options.back_delay_us,
    )


def other_of_a_pair(
    hit: tuple[NodeName, ...], view: ClusterView, draw: int, _options: Any
) -> tuple[NodeName, ...]:
    """Return the target's first node and one other."""
    others = [node for node in view.nodes if node != hit[0]]
    return (hit[0], shuffled(others, where(draw).below(1 << 16))[0])


def to_and_fro(
    hit: tuple[NodeName, ...], _nodes: tuple[NodeName, ...], _draw: int, _options: Any
) -> tuple[Link, ...]:
    """Return both links between two nodes, first the one from the first node."""
    return (Link(hit[0], hit[1]), Link(hit[1], hit[0]))


def _kind(name: str, need: Capability, summary: str, **fields: Any) -> FaultKind:
    usual: dict[str, Any] = {
        "page": name,
        "needs": frozenset({need}),
        "links": _touching,
        "other_targets": (FOLLOWER, random_target(1), HALVES),
        "refused_targets": frozenset({ALL}),
        "leaves_one": True,
        "needs_up": False,
    }
    return FaultKind(name=name, summary=summary, **(usual | fields))


def _late_shape(options: DelayOptions) -> Shape:
    return Shape(delay_us=options.delay_us, jitter_us=options.varies_us)


def _overtaking_shape(options: ReorderOptions) -> Shape:
    return Shape(delay_us=options.delay_us, reorder=options.reorder)


KINDS: Final = (
    _kind(
        "loss", "loss", "Loses a share of the packets between the target and the others.",
        course=_shaped(lambda options: Shape(loss=options.loss), _lossy), options=LossOptions,
        reveals=(
            "Requests and answers are lost one by one and sent again. What is carried out twice, "
            "or counted twice, shows here."
        ),
        picture=(
            "n1 -- write 4 --x    n2\n"
            "n1 -- write 4 ---->  n2   sent again: is it carried out once?\n"
            "n1    x---- done --  n2\n"
            "n1 -- write 4 ---->  n2   and again"
        ),
    ),
    _kind(
        "delay", "delay", "Delays every packet between the target and the others, with jitter.",
        course=_shaped(_late_shape, _late), options=DelayOptions,
        reveals=(
            "Answers arrive after their question was given up. Elections start that nobody needs, "
            "and late answers must not count for a newer request."
        ),
        picture=(
            "n1 -- Vote, epoch 5 --------\\\n"
            "n1 -- Vote, epoch 6 --\\      \\      asked anew: the answer was late\n"
            "n2                     6 ...  5    the answer to 5 must not count for 6"
        ),
    ),
    _kind(
        "reorder", "delay", "Lets a share of the packets overtake those before them.",
        needs=frozenset({"delay", "reorder"}),
        course=_shaped(_overtaking_shape, _overtaken), options=ReorderOptions, page="delay",
        reveals=(
            "Protocols that rely on the order in which packets arrive show it here; TCP repairs "
            "the order and pays with time."
        ),
        picture=(
            "n1  sends     1  2  3  4\n"
            "n2  receives  1  3  2  4"
        ),
    ),
    _kind(
        "duplicate", "duplicate", "Delivers a share of the packets twice.",
        course=_shaped(lambda options: Shape(duplicate=options.duplicate), _doubled),
        options=DuplicateOptions, page="delay",
        reveals=(
            "What arrives twice must be carried out once. TCP removes duplicates, so this is for "
            "protocols of their own over datagrams."
        ),
        picture=(
            "n1 -- add 1 --+-->  n2   carried out\n"
            "              \\-->  n2   once more: must change nothing"
        ),
    ),
    _kind(
        "rate", "rate", "Lets few kilobits a second through between the target and the others.",
        course=_shaped(lambda options: Shape(rate_kbit=options.rate_kbit), _slow),
        options=RateOptions,
        reveals=(
            "Large messages, such as snapshots and catch-up, take so long that heartbeats wait "
            "behind them and healthy leaders are given up."
        ),
        picture=(
            "n1 (leader) == snapshot ======================> n3\n"
            'n1 (leader)            heartbeat waits behind it  n3: "the leader is gone"'
        ),
    ),
    _kind(
        "black-hole", "black-hole", "Lets small packets pass and large ones vanish.",
        course=_shaped(lambda options: Shape(bytes_max=options.bytes_max), _swallowed),
        options=BlackHoleOptions,
        reveals=(
            "Heartbeats arrive, records do not: a leader that looks alive and can commit nothing. "
            "Wrongly set MTUs do this in production."
        ),
        picture=(
            'n1 (leader)  -- heartbeat, 80 bytes ----->  n2   arrives: "the leader lives"\n'
            "n1 (leader)  -- records, 1,400 bytes --x    n2   never: nothing is committed"
        ),
    ),
    _kind(
        "reset", "reset", "Resets the connections between the target and the others.",
        course=_reset, options=ResetOptions,
        reveals=(
            "A connection ends in the midst of a request, whose outcome is unknown. Who calls it "
            "failed, or sends it again unasked, errs."
        ),
        picture=(
            "client -- write 4 -->  n1     taken in, perhaps\n"
            "client  x-- done ----  n1     the connection ends: unknown, not failed"
        ),
    ),
    _kind(
        "slow-link", "delay", "Delays what the target and one other node send to each other, much.",
        course=_slow_link, options=SlowLinkOptions, page="delay", joined=other_of_a_pair,
        links=to_and_fro, other_targets=(FOLLOWER, random_target(1)),
        refused_targets=frozenset({ALL, HALVES}), nodes_min=3,
        reveals=(
            "One pair is slow and all others are fast: old messages overtake nothing and still "
            "arrive, in a later epoch."
        ),
        picture=(
            "n1 ---------------> n3   at once\n"
            "n1 -- epoch 5 ~~~~~~~~~~~~~~~~> n2   arrives when epoch 6 has begun"
        ),
    ),
    _kind(
        "disconnect", "disconnect", "Breaks every connection of the target once.",
        course=_disconnect, page="reset", links=None, is_instant=True, needs_up=True,
        other_targets=(FOLLOWER, random_target(1), ALL), refused_targets=frozenset({HALVES}),
        leaves_one=False,
        reveals=(
            "Every client and peer connects again at once. State that was tied to a connection "
            "must not be lost, nor outlive it."
        ),
        picture=(
            "n1, n3, clients  --x  n2        all at once\n"
            "n1, n3, clients  ---> n2        and all come back in one moment"
        ),
    ),
)  # fmt: skip
