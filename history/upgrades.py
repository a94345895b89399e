"""Upgrades of earlier versions' records to those of this one; pure.

A record of an earlier schema is read as strictly as it was then, and returned as decoded JSON of
the next schema; a current one is returned as it is. Source: issue 19.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from splitbrain.contracts.draws import how, spread, where
from splitbrain.contracts.fault import US_PER_MS, Awaited, Fault
from splitbrain.contracts.names import Int64

Content = dict[str, Any]


class _Awaited1(msgspec.Struct, forbid_unknown_fields=True):
    on: str
    node: str = "any"
    epoch: Int64 | None = None
    count: Int64 = 1
    delay_ms: Int64 = 0
    timeout_ms: Int64 = 30_000


class _Fault1(msgspec.Struct):
    """Line of ``schedule.jsonl``, in milliseconds."""

    index: Int64
    kind: str
    target: str
    at_ms: Int64
    duration_ms: Int64
    draw: Int64
    options: dict[str, Any] = {}
    when: _Awaited1 | None = None


class _Moment1(msgspec.Struct, forbid_unknown_fields=True):
    at_us: int | None = None
    on: str | None = None
    node: str | None = None
    at_leader: bool = False
    epoch: int | None = None
    from_us: int | None = None
    until_us: int | None = None
    count: int = 1
    delay_us: int = 0


class _SimulatedFault1(msgspec.Struct, forbid_unknown_fields=True):
    """Fault of ``scenario.json``, with a moment."""

    index: int
    kind: str
    target: str
    when: _Moment1
    duration_us: int
    draw: int
    options: dict[str, Any] = {}


class _Scenario1(msgspec.Struct):
    """Changed fields of a scenario."""

    faults: list[_SimulatedFault1] = []


class _Scenario2(msgspec.Struct):
    faults: list[Fault] = []


def upgraded_fault(content: Content) -> Content:
    """Upgrade a line of a schedule; lines have no schema, and those of schema 1 have ``at_ms``.

    Raises:
        msgspec.ValidationError: it was no such line then either.
    """
    return UPGRADES["fault", 1](content) if "at_ms" in content else content


def upgraded_scenario(content: Content) -> Content:
    """Upgrade a scenario of any schema from which there is a way; return others as they are.

    Raises:
        msgspec.ValidationError: its faults were none then either.
        ValueError: it waits for an event that no scenario can wait for any more.
    """
    while (upgrade := UPGRADES.get(("scenario", scenario_schema(content)))) is not None:
        content = upgrade(content)
    return content


def scenario_schema(content: Content) -> Any:
    """Return a scenario's schema, else that of its faults: saved tests had none of their own.

    Faults with times mean schema 2 or later.
    """
    faults = content.get("faults")
    if "schema" in content or not faults or not isinstance(faults, list):
        return content.get("schema")
    listed = cast("list[Any]", faults)
    return None if any(isinstance(fault, dict) and "at_us" in fault for fault in listed) else 1


def _fault_1(content: Content) -> Content:
    """Turn milliseconds into microseconds."""
    old = msgspec.convert(content, _Fault1)
    when = old.when
    fault = Fault(
        old.index,
        old.kind,
        old.target,
        at_us=old.at_ms * US_PER_MS,
        duration_us=old.duration_ms * US_PER_MS,
        draw=old.draw,
        options=old.options,
        when=None
        if when is None
        else Awaited(
            when.on,
            when.node,
            when.epoch,
            when.count,
            delay_us=when.delay_ms * US_PER_MS,
            timeout_us=when.timeout_ms * US_PER_MS,
        ),
    )
    return msgspec.to_builtins(fault)


def _scenario_1(content: Content) -> Content:
    """Turn a moment into a time, and an event to wait for from then on."""
    old = msgspec.convert(content, _Scenario1).faults
    return content | {"schema": 2, "faults": [msgspec.to_builtins(_timed(fault)) for fault in old]}


def _timed(old: _SimulatedFault1) -> Fault:
    moment = old.when
    if moment.on is None and moment.at_us is None:
        message = f"the moment of fault {old.index} has neither a time nor a happening"
        raise ValueError(message)
    from_us = moment.from_us or 0
    return Fault(
        old.index,
        old.kind,
        old.target,
        at_us=from_us if moment.on is not None else (moment.at_us or 0) + moment.delay_us,
        duration_us=old.duration_us,
        draw=old.draw,
        options=old.options,
        when=None if moment.on is None else _awaited(moment.on, moment, from_us),
    )


def _awaited(on: str, moment: _Moment1, from_us: int) -> Awaited:
    if moment.at_leader and moment.node is not None:
        message = f"a fault waits for what happens at {moment.node} while it leads"
        raise ValueError(message)
    return Awaited(
        on,
        "leader" if moment.at_leader else moment.node or "any",
        moment.epoch,
        moment.count,
        delay_us=moment.delay_us,
        timeout_us=None if moment.until_us is None else moment.until_us - from_us,
    )


def _scenario_2(content: Content) -> Content:
    """Turn sweeps' own kinds and options into those of plans.

    The options that a fault's integer decided become explicit.
    """
    faults = msgspec.convert(content, _Scenario2).faults
    return content | {
        "schema": 3,
        "faults": [msgspec.to_builtins(_named(fault)) for fault in faults],
    }


def _named(fault: Fault) -> Fault:
    options = dict(fault.options)
    draws = how(fault.draw)
    kind = _NAMES_3.get(fault.kind, fault.kind)
    match fault.kind:
        case "clog":
            options.setdefault("delay_us", spread(draws, 1_000, 9))
            options["jitter_us"] = 0
        case "disk-full":
            options.setdefault("spare_bytes", draws.below(4_096))
        case "one-way":
            drawn = ("inbound", "outbound")[where(fault.draw).below(2)]
            is_inbound = options.pop("direction", drawn) == "inbound"
            kind = "one-way-in" if is_inbound else "one-way-out"
        case "clock-jump":
            size_us = spread(draws, 1_000, 20)
            delta_us = options.pop("delta_us", -size_us if draws.below(2) else size_us)
            if "offset_ms" not in options:
                options["offset_us"] = delta_us
        case "flap":
            options.setdefault("count", 3 + draws.below(6))
        case "reset":
            options.pop("direction", None)
        case _:
            pass
    return msgspec.structs.replace(fault, kind=kind, options=options)


#: Names of kinds in sweeps, and in plans.
_NAMES_3: Final = {
    "clog": "delay", "disk-full": "full-disk", "stop": "terminate", "reset": "disconnect",
}  # fmt: skip
#: Upgrade to the next schema, by record and schema.
UPGRADES: Final[Mapping[tuple[str, Any], Callable[[Content], Content]]] = {
    ("fault", 1): _fault_1,
    ("scenario", 1): _scenario_1,
    ("scenario", 2): _scenario_2,
}
