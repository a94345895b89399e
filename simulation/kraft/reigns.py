"""Troubled reigns: what is added to many worlds of registers, leader after leader.

Each leader in turn is struck some time after its election, mostly so that nothing reaches it any
more, until another one commits. It comes back before it has noticed, with fetches of its past still
on their way and with reads that it could not confirm, while clients that only read go on asking it.
Other blows fall on voters between a vote and the next election. Timeouts are long enough for a
successor to commit within the time in which a leader believes in itself: on slow networks hardly
any deposed leader would meet anybody.

Integers come from the stream alone. Source: issue 24, item 2.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from splitbrain.contracts.fault import UNTIL, UNTIL_COUNT, UNTIL_DELAY_US, Awaited, Fault
from splitbrain.contracts.random_source import RandomSource
from splitbrain.contracts.scenario import Scenario

_US_PER_MS: Final = 1_000
_US_PER_S: Final = 1_000_000
_DRAW_LIMIT: Final = 1 << 31
#: All but one world in so many.
_EVERY: Final = 3
#: Round trips in a fetch timeout, at least: to be elected and to commit takes about six, and a
#: leader that hears nobody resigns half a timeout after its followers give it up.
_ROUND_TRIPS_MIN: Final = 24
#: Timeouts that stand to the fetch timeout as before.
_TIMEOUTS: Final = (
    *("fetch_timeout_ms", "election_timeout_ms_min", "election_timeout_ms_max"),
    *("election_back_off_ms_max", "request_timeout_ms", "retry_back_off_ms", "fetch_max_wait_ms"),
)
_REIGNS_MIN: Final = 3
_REIGNS_SPREAD: Final = 8
#: One such world in so many has no other faults, which mostly end a reign before its time.
_UNDISTURBED_EVERY: Final = 2
#: All but one cut in so many come as a leader answers a fetch: then the next one is under way.
_AT_ANSWERS_EVERY: Final = 3
#: Faults of a leader that last until another one has committed, or has had the time for it.
_CUTS: Final = (*("one-way-in",) * 5, "partition", "partition", "pause")
#: Faults of a voter at the moment of a vote.
_BLOWS: Final = ("kill", "kill", "power", "terminate")
#: One reign in so many is cut the other way, at its beginning: answers to the first fetches come
#: when their followers have another leader.
_LULLS_EVERY: Final = 4
#: Request timeouts, in fetch timeouts. Kafka's are equal by default; with a shorter one an answer
#: that comes after the next election finds its connection closed.
_REQUESTS: Final = (0, 1, 2)
_VOTES: Final = ("votes", "persisted", "asks-for-votes")
_READERS_PER_VOTER: Final = 3
#: Operations of a slot in a fetch timeout, at least.
_PACE: Final = 6


def with_troubled_reigns(scenario: Scenario, stream: RandomSource) -> Scenario:
    """Return the scenario with such reigns, or, in a third of the worlds, as it is."""
    if not int(stream.random() * _EVERY):
        return scenario
    scenario = _unhurried(scenario, _REQUESTS[int(stream.random() * len(_REQUESTS))])
    fetch_us = int(scenario.settings["fetch_timeout_ms"]) * _US_PER_MS
    if int(stream.random() * _UNDISTURBED_EVERY):
        scenario = msgspec.structs.replace(scenario, faults=())
    faults = tuple(_faults(scenario, fetch_us, stream))
    load = scenario.load
    readers = _READERS_PER_VOTER * scenario.nodes
    clients = max(load.clients, 2 * scenario.nodes)
    slots = clients + readers
    pace = max(load.rate / load.clients, _PACE * _US_PER_S / fetch_us)
    return msgspec.structs.replace(
        scenario,
        faults=scenario.faults + faults,
        load=msgspec.structs.replace(
            load,
            workload="register",
            workload_options=load.workload_options or {"values": "unique"},
            clients=slots,
            readers=readers,
            readers_timeout_us=max(fetch_us // 4, 4 * _round_trip_us(scenario)),
            rate=float(int(pace * slots)),
        ),
    )


def _unhurried(scenario: Scenario, requests: int) -> Scenario:
    """With timeouts that leave a successor the time to commit.

    ``requests``: fetch timeouts in a request timeout; 0: as it was.
    """
    settings, recovery = scenario.settings, scenario.recovery
    fetch_us = int(settings["fetch_timeout_ms"]) * _US_PER_MS
    longer = max(1, -(-_ROUND_TRIPS_MIN * _round_trip_us(scenario) // fetch_us))
    timeouts = {name: str(longer * int(settings[name])) for name in _TIMEOUTS}
    if requests:
        timeouts["request_timeout_ms"] = str(requests * int(timeouts["fetch_timeout_ms"]))
    return msgspec.structs.replace(
        scenario,
        settings=settings | timeouts,
        recovery=msgspec.structs.replace(
            recovery,
            patience_us=longer * recovery.patience_us,
            settle_us=longer * recovery.settle_us,
        ),
    )


def _round_trip_us(scenario: Scenario) -> int:
    return 2 * (scenario.network.delay_us_max + scenario.disk.latency_us_max)


def _faults(scenario: Scenario, fetch_us: int, stream: RandomSource) -> Iterator[Fault]:
    index = max((fault.index for fault in scenario.faults), default=-1) + 1
    for reign in range(1, _REIGNS_MIN + 1 + int(stream.random() * _REIGNS_SPREAD)):
        if int(stream.random() * _LULLS_EVERY):
            yield _cut(index, reign, scenario.load_us, fetch_us, stream)
        else:
            yield _lull(index, reign, fetch_us, stream)
        index += 1
    for _ in range(int(stream.random() * _REIGNS_SPREAD)):
        yield _blow(index, fetch_us, stream)
        index += 1


def _cut(index: int, reign: int, load_us: int, fetch_us: int, stream: RandomSource) -> Fault:
    """A leader is struck within a fetch timeout of its election, or as it answers a fetch."""
    at_us, when = 0, Awaited("leads", count=reign, delay_us=1 + int(stream.random() * fetch_us))
    if int(stream.random() * _AT_ANSWERS_EVERY):
        at_us = int(stream.random() * (load_us * 9 // 10))
        when = Awaited("answers-fetch", "leader", count=1 + int(stream.random() * 4))
    options: dict[str, object] = {}
    # A leader that hears nobody resigns after one and a half fetch timeouts.
    duration_us = fetch_us * 3 // 2 - int(stream.random() * (fetch_us // 6))
    if int(stream.random() * 2):
        options = {
            UNTIL: "commits",
            UNTIL_COUNT: 2 + int(stream.random() * 4),
            UNTIL_DELAY_US: 1 + int(stream.random() * (fetch_us // 5)),
        }
    return Fault(
        index=index,
        kind=_CUTS[int(stream.random() * len(_CUTS))],
        target="there",
        at_us=at_us,
        when=when,
        duration_us=duration_us,
        draw=int(stream.random() * _DRAW_LIMIT),
        options=options,
    )


def _blow(index: int, fetch_us: int, stream: RandomSource) -> Fault:
    """A voter ends where a vote is given, and is back at once."""
    return Fault(
        index=index,
        kind=_BLOWS[int(stream.random() * len(_BLOWS))],
        target="there",
        at_us=0,
        when=Awaited(
            _VOTES[int(stream.random() * len(_VOTES))],
            count=1 + int(stream.random() * 12),
            delay_us=int(stream.random() * fetch_us) // 8,
        ),
        duration_us=1 + int(stream.random() * (fetch_us // 5)),
        draw=int(stream.random() * _DRAW_LIMIT),
    )


def _lull(index: int, reign: int, fetch_us: int, stream: RandomSource) -> Fault:
    """Nobody hears a leader from soon after its election on, until another one leads."""
    return Fault(
        index=index,
        kind="one-way-out",
        target="there",
        at_us=0,
        when=Awaited("leads", count=reign, delay_us=1 + int(stream.random() * (fetch_us // 8))),
        duration_us=fetch_us * 5 // 2,
        draw=int(stream.random() * _DRAW_LIMIT),
        options={
            UNTIL: "leads",
            UNTIL_COUNT: 1,
            UNTIL_DELAY_US: 1 + int(stream.random() * (fetch_us // 8)),
        },
    )
