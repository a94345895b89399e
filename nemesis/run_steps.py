"""Steps for a search whose questions cost runs: fewer faults, then less time, nodes and clients.

The load ends soon after the last remaining fault; then calm, nodes, clients and durations shrink,
but not below the effects of chance. Must never make a meaningless plan. Source: issue 6, item 6.
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
#: Least duration after halving: shorter faults have effects like chance.
_DURATION_US_MIN: Final = 1_000_000
#: Least calm before and between faults: about a failover.
_CALM_US: Final = 2_000_000
#: Least load after the last fault.
_TAIL_US: Final = 4_000_000
#: Load of a plan without faults.
_FAULTLESS_US: Final = 15_000_000
#: Later than any load ends.
_EVER_US: Final = 1 << 62
_replace: Final = msgspec.structs.replace


def with_faults(plan: Scenario, faults: tuple[Fault, ...]) -> Scenario:
    """Return the plan with only these faults and as much load after the last as before."""
    if not faults:
        return _lasting(plan, (), _FAULTLESS_US)
    tail_us = plan.load_us - _end_us(plan.faults, plan.load_us)
    return _lasting(plan, faults, _end_us(faults, plan.load_us) + tail_us)


def _lasting(plan: Scenario, faults: Sequence[Fault], load_us: Microseconds) -> Scenario:
    """End the load at a full millisecond, no later than before."""
    whole_us = -(-load_us // US_PER_MS) * US_PER_MS
    return _replace(plan, faults=tuple(faults), load_us=min(plan.load_us, whole_us))


def _end_us(faults: Sequence[Fault], limit_us: Microseconds) -> Microseconds:
    """Return the latest time at which a fault may end."""
    return min(limit_us, max(map(_latest_end_us, faults), default=0))


def _latest_end_us(fault: Fault) -> Microseconds:
    when, end_us = fault.when, fault.at_us + fault.duration_us
    if when is None:
        return end_us
    # Without a timeout it may strike at the very end of the load.
    return _EVER_US if when.timeout_us is None else end_us + when.timeout_us + when.delay_us


def _pulled_together(plan: Scenario) -> Iterator[Scenario]:
    """Cut all spare calm before, between and after the faults, else half of it."""
    for is_half in (False, True):
        candidate = _with_calm(plan, is_half=is_half)
        if candidate.load_us < plan.load_us and fits(candidate):
            yield candidate


def _with_calm(plan: Scenario, *, is_half: bool) -> Scenario:
    def shorter(calm_us: Microseconds, least_us: Microseconds) -> Microseconds:
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
    """Halve the clients, each as busy as before."""
    load = plan.load
    clients = load.clients // 2
    if clients >= _CLIENTS_MIN:
        rate = load.rate * clients / load.clients
        yield _replace(plan, load=_replace(load, clients=clients, rate=rate))


def _shorter_faults(plan: Scenario) -> Iterator[Scenario]:
    """Halve the duration of all faults, else of one."""
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
