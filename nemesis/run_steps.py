"""Steps for a search whose questions cost runs: fewer faults, then less time, nodes and clients.

The load ends soon after the last fault that is left. Then what is left is pulled together, nodes,
clients and durations go down; nothing goes below what chance does by itself. Must never make a plan
that cannot be meant. Source: issue 6, item 6.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.fault import US_PER_MS, Fault, Microseconds
from splitbrain.contracts.scenario import Scenario
from splitbrain.nemesis.exact_steps import fewer_nodes
from splitbrain.nemesis.plan_text import fits
from splitbrain.nemesis.search import ListStep, ValueStep

_CLIENTS_MIN: Final = 2
#: No duration is halved below this: effects of less are those of chance.
_DURATION_US_MIN: Final = 1_000_000
#: Calm before the first fault and between two, where the plan has more: about a failover.
_CALM_US: Final = 2_000_000
#: Load after the last fault, where the plan has more.
_TAIL_US: Final = 4_000_000
#: Load that shows whether it takes a fault at all.
_FAULTLESS_US: Final = 15_000_000
#: Later than any load ends.
_EVER_US: Final = 1 << 62
_replace: Final = msgspec.structs.replace


def with_faults(plan: Scenario, faults: tuple[Fault, ...]) -> Scenario:
    """Only these of the plan's faults; the load goes on after the last as long as it did before."""
    if not faults:
        return _lasting(plan, (), _FAULTLESS_US)
    tail_us = plan.load_us - _end_us(plan.faults, plan.load_us)
    return _lasting(plan, faults, _end_us(faults, plan.load_us) + tail_us)


def _lasting(plan: Scenario, faults: Sequence[Fault], load_us: Microseconds) -> Scenario:
    """The plan with these faults; its load ends at a full millisecond, no later than it did."""
    whole_us = -(-load_us // US_PER_MS) * US_PER_MS
    return _replace(plan, faults=tuple(faults), load_us=min(plan.load_us, whole_us))


def _end_us(faults: Sequence[Fault], limit_us: Microseconds) -> Microseconds:
    """When all of them are over; one that waits may come late."""
    return min(limit_us, max(map(_latest_end_us, faults), default=0))


def _latest_end_us(fault: Fault) -> Microseconds:
    when, end_us = fault.when, fault.at_us + fault.duration_us
    if when is None:
        return end_us
    # One that waits as long as clients work may strike at the very end.
    return _EVER_US if when.timeout_us is None else end_us + when.timeout_us + when.delay_us


def _pulled_together(plan: Scenario) -> Iterator[Scenario]:
    """Less calm before, between and after the faults: as little as may be, then half of it."""
    for is_half in (False, True):
        candidate = _with_calm(plan, is_half=is_half)
        if candidate.load_us < plan.load_us and fits(candidate):
            yield candidate


def _with_calm(plan: Scenario, *, is_half: bool) -> Scenario:
    def shorter(calm_us: Microseconds, least_us: Microseconds) -> Microseconds:
        """How much of this calm goes."""
        spare_us = max(0, calm_us - least_us)
        return spare_us // 2 if is_half else spare_us

    gone_us = end_us = 0
    moved: list[Fault] = []
    for fault in sorted(plan.faults, key=lambda fault: fault.at_us):
        gone_us += shorter(fault.at_us - end_us, _CALM_US)
        moved.append(_replace(fault, at_us=fault.at_us - gone_us))
        end_us = max(end_us, _end_us((fault,), plan.load_us))
    gone_us += shorter(plan.load_us - end_us, _TAIL_US)
    return _lasting(plan, moved, plan.load_us - gone_us)


def _fewer_nodes(plan: Scenario) -> Iterator[Scenario]:
    yield from filter(fits, fewer_nodes(plan))


def _fewer_clients(plan: Scenario) -> Iterator[Scenario]:
    """Half of them, each as busy as before."""
    load = plan.load
    clients = load.clients // 2
    if clients >= _CLIENTS_MIN:
        rate = load.rate * clients / load.clients
        yield _replace(plan, load=_replace(load, clients=clients, rate=rate))


def _shorter_faults(plan: Scenario) -> Iterator[Scenario]:
    """All of them last half as long, else one of them does."""
    shorter = [
        _replace(fault, duration_us=max(_DURATION_US_MIN, fault.duration_us // 2))
        if fault.duration_us > _DURATION_US_MIN
        else fault
        for fault in plan.faults
    ]
    if len(shorter) > 1:
        yield from _if_other(plan, shorter)
    for place, fault in enumerate(shorter):
        faults = [*plan.faults[:place], fault, *plan.faults[place + 1 :]]
        yield from _if_other(plan, faults)


def _if_other(plan: Scenario, faults: Sequence[Fault]) -> Iterator[Scenario]:
    if tuple(faults) != plan.faults:
        gone_us = _end_us(plan.faults, plan.load_us) - _end_us(faults, plan.load_us)
        yield _lasting(plan, faults, plan.load_us - gone_us)


FAULTS_WITH_THEIR_LOAD: Final = ListStep("faults", lambda plan: plan.faults, with_faults)
RUN_STEPS: Final = (
    ValueStep("calm", _pulled_together),
    ValueStep("nodes", _fewer_nodes),
    ValueStep("clients", _fewer_clients),
    ValueStep("durations", _shorter_faults),
    ValueStep("calm", _pulled_together),
)
