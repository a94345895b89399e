"""Values that a scenario may hold, as far as the types of its fields leave it open; pure.

A scenario may come from a person's editor. An impossible value is refused before a world is made
of it, with the field and what is allowed there; inside the world it would look like a defect of
ours. Must accept every scenario that a sweep draws, a plan becomes or a search leaves.
"""

import math
from collections.abc import Iterator
from typing import Any, cast, get_args

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import PINNED_NODES, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.scenario import NODES_MAX, SEED_MAX, Scenario
from splitbrain.nemesis.awaiting import ANYWHERE, AT_LEADER
from splitbrain.nemesis.fault_options import (
    AFTER,
    OTHER,
    PLACE,
    SAME,
    UNTIL_COUNT,
    UNTIL_DELAY_US,
    read_options,
)
from splitbrain.nemesis.kinds import fault_kind, world_kind_names
from splitbrain.nemesis.targets import THERE, canonical, check_target
from splitbrain.workloads.workload import workload_names

#: Next step for an impossible value.
CORRECT = "Correct that, or take the scenario of another run"
#: Slots for which one thread does the work, as for plans.
CLIENTS_MAX = 1_000
#: A world's times are whole microseconds; this is a week of them.
TIME_US_MAX = 7 * 24 * 3600 * 1_000_000
#: Parts per million by which a clock may drift: it must still go forward.
_DRIFT_PPM_MAX = 500_000
_SCOPES = ("all", "majority")
#: Options of any fault that are whole numbers.
_WHOLE_OPTIONS = (UNTIL_COUNT, UNTIL_DELAY_US, AFTER)


class RuleError(ValueError):
    """A scenario holds what it cannot; the text names the field and says what is allowed there."""

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(problem)
        #: Next step for its author, one clause.
        self.next_step = next_step


def check_fields(content: object) -> None:
    """Refuse decoded JSON with what is no field of a scenario: it would do nothing.

    Raises:
        RuleError: says which.
    """
    for error in _unknown(content, Scenario, ""):
        raise error


def check_values(scenario: Scenario) -> None:
    """Refuse a world that cannot be.

    Raises:
        RuleError: names the field and says what is allowed.
    """
    load, recovery = scenario.load, scenario.recovery
    _whole("seed", scenario.seed, 0, SEED_MAX)
    _whole("nodes", scenario.nodes, 1, NODES_MAX)
    _whole("observers", scenario.observers, 0, NODES_MAX)
    _whole("segment_bytes", scenario.segment_bytes, 1)
    _whole("load_us", scenario.load_us, 0, TIME_US_MAX)
    for place, drift in enumerate(scenario.drift_ppm):
        _whole(f"drift_ppm[{place}]", drift, -_DRIFT_PPM_MAX, _DRIFT_PPM_MAX)
    _whole("load.clients", load.clients, 1, CLIENTS_MAX)
    # The first slot is that of which progress is demanded: it must do all that others do.
    _whole("load.readers", load.readers, 0, load.clients - 1)
    _whole("load.timeout_us", load.timeout_us, 1, TIME_US_MAX)
    if load.readers_timeout_us is not None:
        _whole("load.readers_timeout_us", load.readers_timeout_us, 1, TIME_US_MAX)
    if load.operations_per_slot is not None:
        _whole("load.operations_per_slot", load.operations_per_slot, 0)
    if not (math.isfinite(load.rate) and load.rate > 0):
        raise _refused("load.rate", load.rate, "above 0")
    _named("load.workload", load.workload, workload_names(), "workloads")
    for name, options in (("network", scenario.network), ("disk", scenario.disk)):
        _check_weather(name, options)
    _named("recovery.scope", recovery.scope, _SCOPES, "scopes")
    _whole("recovery.patience_us", recovery.patience_us, 1, TIME_US_MAX)
    _whole("recovery.settle_us", recovery.settle_us, 0, TIME_US_MAX)
    _check_faults(scenario)


def _check_weather(name: str, options: msgspec.Struct) -> None:
    """Chances are shares, times are not negative, and no least is above its most."""
    fields: dict[str, Any] = msgspec.structs.asdict(options)
    for field, value in fields.items():
        if field.endswith("_chance"):
            if not 0.0 <= value <= 1.0:
                raise _refused(f"{name}.{field}", value, "between 0 and 1")
            continue
        if not isinstance(value, int):
            continue
        _whole(f"{name}.{field}", value, 0, TIME_US_MAX)
        if field.endswith("_min") and value > (most := fields[field.removesuffix("min") + "max"]):
            most_name = f"{name}.{field.removesuffix('min')}max"
            raise _refused(f"{name}.{field}", value, f"at most {most_name}, {most:,}")


def _check_faults(scenario: Scenario) -> None:
    total = scenario.nodes + scenario.observers
    nodes = tuple(NodeName(f"n{number}") for number in range(1, total + 1))
    taken: set[int] = set()
    for place, fault in enumerate(scenario.faults):
        field = f"faults[{place}]"
        _whole(f"{field}.index", fault.index, 0)
        if fault.index in taken:
            raise _refused(f"{field}.index", fault.index, "another one than every other fault's")
        taken.add(fault.index)
        _named(f"{field}.kind", fault.kind, world_kind_names(), "faults")
        _check_moment(field, fault, nodes)
        _check_target(f"{field}.target", fault, nodes)
        _whole(f"{field}.duration_us", fault.duration_us, 0, TIME_US_MAX)
        _whole(f"{field}.draw", fault.draw, 0)
        _check_options(f"{field}.options", fault, nodes)


def _check_moment(field: str, fault: Fault, nodes: tuple[NodeName, ...]) -> None:
    _whole(f"{field}.at_us", fault.at_us, 0, TIME_US_MAX)
    when = fault.when
    if when is None:
        return
    _named(f"{field}.when.node", when.node, (ANYWHERE, AT_LEADER, *nodes), "nodes")
    _whole(f"{field}.when.count", when.count, 1)
    _whole(f"{field}.when.delay_us", when.delay_us, 0, TIME_US_MAX)
    if when.timeout_us is not None:
        _whole(f"{field}.when.timeout_us", when.timeout_us, 1, TIME_US_MAX)


def _check_target(field: str, fault: Fault, nodes: tuple[NodeName, ...]) -> None:
    if fault.target == THERE:
        if not fault.waits_for_node:
            allowed = "another target where the fault waits for no node (when)"
            raise _refused(field, THERE, allowed)
        return
    try:
        check_target(canonical(fault.target), nodes, leave_one=False)
    except UsageError as error:
        raise RuleError(f"{field}: {error.problem}", error.next_step) from error


def _check_options(field: str, fault: Fault, nodes: tuple[NodeName, ...]) -> None:
    options = fault.options
    for name in _WHOLE_OPTIONS:
        value = options.get(name, 0)
        if not isinstance(value, int):
            raise _refused(f"{field}.{name}", value, "a whole number")
    try:
        read_options(fault.kind, fault_kind(fault.kind).options, options)
    except UsageError as error:
        raise RuleError(f"{field}: {error.problem}", error.next_step) from error
    if options.get(PLACE, SAME) not in (SAME, OTHER):
        raise _refused(f"{field}.{PLACE}", options[PLACE], f"{SAME} or {OTHER}")
    if PINNED_NODES in options:
        pinned = options[PINNED_NODES]
        named = cast("list[object]", pinned) if isinstance(pinned, list) else [pinned]
        if any(node not in nodes for node in named) or not isinstance(pinned, list):
            allowed = f"a list of {', '.join(nodes)}"
            raise _refused(f"{field}.{PINNED_NODES}", options[PINNED_NODES], allowed)


def _whole(field: str, value: int, least: int, most: int | None = None) -> None:
    if value < least or (most is not None and value > most):
        allowed = f"at least {least:,}" if most is None else f"between {least:,} and {most:,}"
        raise _refused(field, value, allowed)


def _named(field: str, value: str, names: tuple[str, ...] | list[str], plural: str) -> None:
    if value not in names:
        raise RuleError(f"{field} cannot be {value!r}", or_nearest(value, names, plural))


def _refused(field: str, value: object, allowed: str) -> RuleError:
    return RuleError(f"{field} cannot be {value!r}: it must be {allowed}", CORRECT)


def _unknown(content: object, struct: type[msgspec.Struct], place: str) -> Iterator[RuleError]:
    if not isinstance(content, dict):
        return
    given = cast("dict[str, object]", content)
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
    for name, value in given.items():
        if name not in fields:
            yield RuleError(f"{place}{name} is no field", or_nearest(name, fields, "fields"))
        elif (inner := _struct_of(fields[name])) is not None:
            members = cast("list[object]", value) if isinstance(value, list) else [value]
            for number, member in enumerate(members):
                index = f"[{number}]" if isinstance(value, list) else ""
                yield from _unknown(member, inner, f"{place}{name}{index}.")


def _struct_of(type_: Any) -> type[msgspec.Struct] | None:
    for held in (type_, *get_args(type_)):
        if isinstance(held, type) and issubclass(held, msgspec.Struct):
            return held
    return None
