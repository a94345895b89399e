"""Makes a failing plan small: fewer faults first, then less time, fewer nodes and clients. Pure.

Delta debugging over the faults; the load ends soon after the last of them. Then what is left is
pulled together, nodes, clients and durations go down; then the faults once more, and where one goes
after all, the rest too: each question costs runs. Whether a smaller plan still fails is asked of
the caller, who runs it, in containers k times of n or in simulation. Must never hand back a plan of
which that was not said, but for the one that it was given. Source: issue 6, item 6.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from contracts.budget import Budget
from contracts.errors import UsageError
from contracts.fault import US_PER_MS, Fault, Microseconds, Milliseconds
from contracts.names import NodeName
from nemesis.plan_file import FileFault, file_awaited, from_file_faults, in_ms
from nemesis.search import ListStep, Search, ValueStep

#: A cluster that can lose one.
_NODES_MIN: Final = 3
_CLIENTS_MIN: Final = 2
#: No duration is halved below this: effects of less are those of chance.
_DURATION_US_MIN: Final = 1_000_000
#: Calm before the first fault and between two, where the plan has more: about a failover.
_CALM_US: Final = 2_000_000
#: Load after the last fault, where the plan has more.
_TAIL_US: Final = 4_000_000
#: Load that shows whether it takes a fault at all.
_FAULTLESS_MS: Final = 15_000
#: Later than any load ends.
_EVER_US: Final = 1 << 62
_replace: Final = msgspec.structs.replace


class PlanShape(msgspec.Struct, frozen=True):
    """What of a plan may become smaller."""

    faults: tuple[Fault, ...]
    #: Of the load.
    time_limit_ms: Milliseconds
    nodes: int
    clients: int
    #: Operations per second over all clients.
    rate: float

    def words(self) -> str:
        """``2 faults, 14 s, 3 nodes, 10 clients``."""
        faults = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        return (
            f"{faults}, {self.time_limit_ms / 1000:g} s, {self.nodes} nodes, {self.clients} clients"
        )


class ShrunkPlan(msgspec.Struct, frozen=True):
    """What is left of a plan."""

    shape: PlanShape
    #: Whether no fault can be taken away alone; False where nobody knows.
    is_minimal: bool


#: Whether a smaller plan still fails, given what was made smaller; False too where nobody knows
#: because the budget ended, which the budget then says.
Fails = Callable[[PlanShape, str], bool]


def shrink_plan(start: PlanShape, fails: Fails, budget: Budget) -> ShrunkPlan:
    """The smallest plan found that fails; ``start`` itself where none does.

    Args:
        start: fails.
        fails: asked about smaller plans, maybe about one twice.
        budget: polled before each question.
    """
    search = Search(start, fails, budget)
    simplified: tuple[Fault, ...] | None = None
    while True:
        is_minimal = search.list(_FAULTS)
        if search.best.faults == simplified or search.is_over:
            return ShrunkPlan(search.best, is_minimal)
        before = search.best
        for step in _STEPS:
            search.value(step)
        if search.best == before:
            return ShrunkPlan(search.best, is_minimal)
        simplified = search.best.faults


def with_faults(shape: PlanShape, faults: tuple[Fault, ...]) -> PlanShape:
    """Only these of the plan's faults; the load goes on after the last as long as it did before."""
    limit_ms = shape.time_limit_ms
    if not faults:
        return _replace(shape, faults=(), time_limit_ms=min(limit_ms, _FAULTLESS_MS))
    limit_us = limit_ms * US_PER_MS
    tail_us = limit_us - _end_us(shape.faults, limit_us)
    return _lasting(shape, faults, _end_us(faults, limit_us) + tail_us)


def _lasting(shape: PlanShape, faults: Sequence[Fault], load_us: Microseconds) -> PlanShape:
    """The plan with these faults; its load ends at a full millisecond, no later than it did."""
    limit_ms = min(shape.time_limit_ms, -(-load_us // US_PER_MS))
    return _replace(shape, faults=tuple(faults), time_limit_ms=limit_ms)


def fits(shape: PlanShape) -> bool:
    """Whether the faults can be meant in a cluster of so many nodes."""
    nodes = tuple(NodeName(f"n{number}") for number in range(1, shape.nodes + 1))
    try:
        from_file_faults(
            file_faults(shape.faults), nodes, shape.time_limit_ms, overlap=max(1, len(shape.faults))
        )
    except UsageError:
        return False
    return True


def file_faults(faults: Sequence[Fault]) -> tuple[FileFault, ...]:
    """The faults as a plan file has them."""
    return tuple(
        FileFault(
            kind=fault.kind,
            target=fault.target,
            at_ms=in_ms(fault.at_us),
            duration_ms=in_ms(fault.duration_us),
            draw=fault.draw,
            options=fault.options,
            when=None if fault.when is None else file_awaited(fault.when),
        )
        for fault in faults
    )


def _end_us(faults: Sequence[Fault], limit_us: Microseconds) -> Microseconds:
    """When all of them are over; one that waits may come late."""
    return min(limit_us, max(map(_latest_end_us, faults), default=0))


def _latest_end_us(fault: Fault) -> Microseconds:
    when, end_us = fault.when, fault.at_us + fault.duration_us
    if when is None:
        return end_us
    # One that waits as long as clients work may strike at the very end.
    return _EVER_US if when.timeout_us is None else end_us + when.timeout_us + when.delay_us


def _pulled_together(shape: PlanShape) -> Iterator[PlanShape]:
    """Less calm before, between and after the faults: as little as may be, then half of it."""
    for is_half in (False, True):
        candidate = _with_calm(shape, is_half=is_half)
        if candidate.time_limit_ms < shape.time_limit_ms and fits(candidate):
            yield candidate


def _with_calm(shape: PlanShape, *, is_half: bool) -> PlanShape:
    def shorter(calm_us: Microseconds, least_us: Microseconds) -> Microseconds:
        """How much of this calm goes."""
        spare_us = max(0, calm_us - least_us)
        return spare_us // 2 if is_half else spare_us

    limit_us = shape.time_limit_ms * US_PER_MS
    gone_us = end_us = 0
    moved: list[Fault] = []
    for fault in sorted(shape.faults, key=lambda fault: fault.at_us):
        gone_us += shorter(fault.at_us - end_us, _CALM_US)
        moved.append(_replace(fault, at_us=fault.at_us - gone_us))
        end_us = max(end_us, _end_us((fault,), limit_us))
    gone_us += shorter(limit_us - end_us, _TAIL_US)
    return _lasting(shape, moved, limit_us - gone_us)


def _fewer_nodes(shape: PlanShape) -> Iterator[PlanShape]:
    for nodes in range(_NODES_MIN, shape.nodes):
        candidate = _replace(shape, nodes=nodes)
        if fits(candidate):
            yield candidate


def _fewer_clients(shape: PlanShape) -> Iterator[PlanShape]:
    """Half of them, each as busy as before."""
    clients = shape.clients // 2
    if clients >= _CLIENTS_MIN:
        yield _replace(shape, clients=clients, rate=shape.rate * clients / shape.clients)


def _shorter_faults(shape: PlanShape) -> Iterator[PlanShape]:
    """All of them last half as long, else one of them does."""
    shorter = [
        _replace(fault, duration_us=max(_DURATION_US_MIN, fault.duration_us // 2))
        if fault.duration_us > _DURATION_US_MIN
        else fault
        for fault in shape.faults
    ]
    if len(shorter) > 1:
        yield from _if_other(shape, shorter)
    for place, fault in enumerate(shorter):
        faults = [*shape.faults[:place], fault, *shape.faults[place + 1 :]]
        yield from _if_other(shape, faults)


def _if_other(shape: PlanShape, faults: Sequence[Fault]) -> Iterator[PlanShape]:
    if tuple(faults) != shape.faults:
        limit_us = shape.time_limit_ms * US_PER_MS
        gone_us = _end_us(shape.faults, limit_us) - _end_us(faults, limit_us)
        yield _lasting(shape, faults, limit_us - gone_us)


_FAULTS: Final = ListStep[PlanShape]("faults", lambda shape: shape.faults, with_faults)
_STEPS: Final = (
    ValueStep[PlanShape]("calm", _pulled_together),
    ValueStep[PlanShape]("nodes", _fewer_nodes),
    ValueStep[PlanShape]("clients", _fewer_clients),
    ValueStep[PlanShape]("durations", _shorter_faults),
    ValueStep[PlanShape]("calm", _pulled_together),
)
