"""Steps that need an exact oracle: single operations, moments, weather and settings. Pure.

A step only makes candidates; whether one still fails is found by running it. Lists (faults,
operations) are for delta debugging; a single value offers its simpler neighbours, the boldest
first, and comes to an end: numbers only fall, options only go back to their defaults. Must never
make a scenario that asks for more than the one before it. Source: issue 5, item 8.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from splitbrain.contracts.scenario import (
    DiskOptions,
    Fault,
    LoadOptions,
    NetworkOptions,
    RecoveryOptions,
    Scenario,
)
from splitbrain.nemesis.search import Happened, ListStep, Pair, ValueStep

#: Fewest voters of which one may fail.
_VOTERS_MIN: Final = 3
#: Durations and moments become round to one of these, the largest that does.
_ROUND_US: Final = (1_000_000, 100_000, 10_000, 1_000)
#: No duration is halved below this: it is less than a message takes.
_DURATION_US_MIN: Final = 1_000
#: How much later than twice its time a failure may come in a smaller scenario.
_SLACK_US: Final = 200_000
_replace: Final = msgspec.structs.replace


def trimmed(scenario: Scenario, happened: Happened) -> Iterator[Scenario]:
    """Yield the scenario without what came after its failure; together, then each alone.

    The load goes on for a while after it: in a smaller scenario it may come later.
    """
    faults = tuple(fault for fault in scenario.faults if fault.index in happened.struck)
    with_faults = _replace(scenario, faults=faults)
    kept = happened.performed
    both = with_kept(with_faults, kept)
    ended = both
    if happened.failed_us is not None:
        ended = _ending(both, 2 * happened.failed_us + _SLACK_US)
    for candidate in (ended, both, with_faults, with_kept(scenario, kept)):
        if candidate != scenario:
            yield candidate


def ended(scenario: Scenario, happened: Happened) -> Scenario:
    """Return the load ends with the failure, where that is before everything heals."""
    return scenario if happened.failed_us is None else _ending(scenario, happened.failed_us)


def _ending(scenario: Scenario, at_us: int) -> Scenario:
    """The load ends at the next full millisecond, unless it does before."""
    return _replace(scenario, load_us=min(scenario.load_us, (at_us // 1_000 + 1) * 1_000))


def with_kept(scenario: Scenario, kept: Iterable[Pair]) -> Scenario:
    """Only these operations, in the order of their timetable."""
    ordered = tuple(sorted(kept, key=lambda pair: (pair[1], pair[0])))
    return _replace(scenario, load=_replace(scenario.load, kept=ordered))


def _kept(scenario: Scenario) -> tuple[Pair, ...]:
    return scenario.load.kept or ()


def _slots(scenario: Scenario) -> tuple[int, ...]:
    return tuple(sorted({slot for slot, _ in _kept(scenario)}))


#: In the order of the brief: faults, then operations, a client's together first.
FAULTS: Final = ListStep(
    "faults",
    lambda scenario: scenario.faults,
    lambda scenario, faults: _replace(scenario, faults=faults),
)
OPERATIONS_BY_CLIENT: Final = ListStep(
    "operations by client",
    _slots,
    lambda scenario, slots: with_kept(
        scenario, [pair for pair in _kept(scenario) if pair[0] in slots]
    ),
)
OPERATIONS: Final = ListStep("operations", _kept, with_kept)
BUGS: Final = ListStep(
    "planted bugs",
    lambda scenario: scenario.bugs,
    lambda scenario, bugs: _replace(scenario, bugs=bugs),
)


def _fault_steps(scenario: Scenario) -> Iterator[ValueStep]:
    """When each fault strikes and how long it lasts, one field at a time."""
    for fault in scenario.faults:
        if not fault.waits_for_node:
            yield _fault_step(fault.index, "moment", _rounder_moments)
        else:
            yield _fault_step(fault.index, "count", _lower_counts)
            yield _fault_step(fault.index, "delay", _shorter_delays)
        yield _fault_step(fault.index, "duration", _shorter_durations)


def _fault_step(index: int, field: str, simpler: Callable[[Fault], Iterable[Fault]]) -> ValueStep:
    def candidates(scenario: Scenario) -> Iterator[Scenario]:
        for place, fault in enumerate(scenario.faults):
            if fault.index == index:
                for candidate in simpler(fault):
                    faults = (*scenario.faults[:place], candidate, *scenario.faults[place + 1 :])
                    yield _replace(scenario, faults=faults)

    return ValueStep(f"{field} of fault {index}", candidates)


def _lower_counts(fault: Fault) -> Iterator[Fault]:
    assert fault.when is not None
    for count in _lower(fault.when.count, 1):
        yield _replace(fault, when=_replace(fault.when, count=count))


def _shorter_delays(fault: Fault) -> Iterator[Fault]:
    assert fault.when is not None
    for delay_us in _lower(fault.when.delay_us, 0):
        yield _replace(fault, when=_replace(fault.when, delay_us=delay_us))


def _shorter_durations(fault: Fault) -> Iterator[Fault]:
    if fault.duration_us >= 2 * _DURATION_US_MIN:
        yield _replace(fault, duration_us=fault.duration_us // 2)
    for duration_us in _rounder(fault.duration_us):
        yield _replace(fault, duration_us=duration_us)


def _rounder_moments(fault: Fault) -> Iterator[Fault]:
    for at_us in _rounder(fault.at_us):
        yield _replace(fault, at_us=at_us)


def _lower(value: int, least: int) -> Iterator[int]:
    if value > least:
        yield least
        half = value // 2
        if half > least:
            yield half
        yield value - 1


def _rounder(value: int) -> Iterator[int]:
    for unit in _ROUND_US:
        if value > unit and value % unit:
            yield value - value % unit
        elif value % unit == 0:
            return


def _fewer_clients(scenario: Scenario) -> Iterator[Scenario]:
    """No more slots than have operations, the timetable of the rest about the same."""
    load = scenario.load
    if load.kept is None:
        return
    slots = _slots(scenario)
    numbers = {slot: number for number, slot in enumerate(slots)}
    for clients, renumbered in (
        (max(1, len(slots)), numbers),
        (max(slots, default=0) + 1, {slot: slot for slot in slots}),
    ):
        if clients < load.clients:
            kept = tuple((renumbered[slot], n) for slot, n in load.kept)
            rate = load.rate * clients / load.clients
            # Slots keep their order, so those that only read stay the last.
            first_reader = load.clients - load.readers
            readers = sum(slot >= first_reader for slot in slots)
            if clients > len(slots):
                readers = max(0, clients - first_reader)
            fewer = _replace(load, clients=clients, readers=min(readers, clients - 1), rate=rate)
            yield with_kept(_replace(scenario, load=fewer), kept)


def fewer_nodes(scenario: Scenario) -> Iterator[Scenario]:
    """With fewer voters, of which one may still fail, the fewest first."""
    for nodes in range(_VOTERS_MIN, scenario.nodes):
        yield _replace(scenario, nodes=nodes, drift_ppm=scenario.drift_ppm[:nodes])


def _fewer_observers(scenario: Scenario) -> Iterator[Scenario]:
    for observers in range(scenario.observers):
        yield _replace(scenario, observers=observers)


def calm(scenario: Scenario) -> Scenario:
    """All weather and settings as they are by default."""
    plain = LoadOptions()
    load = _replace(
        scenario.load,
        timeout_us=plain.timeout_us,
        readers_timeout_us=plain.readers_timeout_us,
        workload_options={},
    )
    if load.kept == ():
        # Nobody follows the timetable any more.
        load = _replace(load, rate=plain.rate, operations_per_slot=None)
    return _replace(
        scenario,
        network=NetworkOptions(),
        disk=DiskOptions(),
        drift_ppm=(),
        through_codec=False,
        segment_bytes=_DEFAULT_SEGMENT_BYTES,
        recovery=RecoveryOptions(),
        settings={},
        beyond_promise=False,
        load=load,
    )


def _bold(scenario: Scenario) -> Iterator[Scenario]:
    """Everything at once: what is left is often enough, and all that follows costs less then."""
    idle = scenario if scenario.load.kept is None else with_kept(scenario, ())
    small = next(iter(fewer_nodes(scenario)), scenario)
    for candidate in (
        calm(_replace(idle, nodes=small.nodes, observers=0, faults=())),
        calm(idle),
        idle,
        calm(scenario),
    ):
        if candidate != scenario:
            yield candidate


def _field_as_in_calm(field: str) -> ValueStep:
    def candidates(scenario: Scenario) -> Iterator[Scenario]:
        now, wanted = getattr(scenario, field), getattr(calm(scenario), field)
        if now == wanted:
            return
        yield _replace(scenario, **{field: wanted})
        for part in _parts_as_in(now, wanted):
            yield _replace(scenario, **{field: part})

    return ValueStep(field, candidates)


def _parts_as_in(now: Any, wanted: Any) -> Iterator[Any]:
    """One part of a value as wanted, the others as they are; nothing where it has no parts."""
    if isinstance(now, dict):
        names: list[str] = list(now)  # pyright: ignore[reportUnknownArgumentType]
        for name in names:
            yield {other: now[other] for other in names if other != name}
    elif isinstance(now, msgspec.Struct):
        for name in now.__struct_fields__:
            if getattr(now, name) != getattr(wanted, name):
                yield _replace(now, **{name: getattr(wanted, name)})


def _shorter_load(scenario: Scenario) -> Iterator[Scenario]:
    if scenario.load_us >= 2 * _DURATION_US_MIN:
        yield _replace(scenario, load_us=scenario.load_us // 2)
    for load_us in _rounder(scenario.load_us):
        yield _replace(scenario, load_us=load_us)


_DEFAULT_SEGMENT_BYTES: Final = Scenario(system="", seed=0).segment_bytes

BOLD: Final = ValueStep("everything at once", _bold)
_SIZE_STEPS: Final = (
    ValueStep("clients", _fewer_clients),
    ValueStep("nodes", fewer_nodes),
    ValueStep("observers", _fewer_observers),
)
_WEATHER_STEPS: Final = tuple(
    _field_as_in_calm(field)
    for field in (
        "network",
        "disk",
        "drift_ppm",
        "through_codec",
        "segment_bytes",
        "recovery",
        "settings",
        "beyond_promise",
        "load",
    )
)
#: For failures that come after everything healed: what comes before may be short.
LENGTH_STEP: Final = ValueStep("length of the load", _shorter_load)


def exact_steps(scenario: Scenario) -> Iterator[ValueStep]:
    """Values that may be simpler, in the order in which they are tried."""
    yield from _fault_steps(scenario)
    yield from _SIZE_STEPS
    yield from _WEATHER_STEPS
