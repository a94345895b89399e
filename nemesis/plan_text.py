"""Writer of plan files: a schedule as TOML that ``nemesis.plan_file`` reads. Pure."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import US_PER_MS, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import Scenario
from splitbrain.nemesis.plan_file import FileFault, file_awaited, from_file_faults, in_ms

#: Fields left out when empty.
_IF_ANY: Final = ("options", "when")


def plan_toml(faults: Sequence[Fault], comment: Sequence[str] = ()) -> str:
    """Return a plan file of these faults.

    Args:
        faults: at least one.
        comment: lines above them.
    """
    lines = [f"# {line}" for line in comment]
    lines.append(f"overlap = {_overlap(faults)}")
    for fault in sorted(faults, key=lambda fault: fault.at_us):
        lines += ["", "[[faults]]"]
        lines += [f"{name} = {_value(value)}" for name, value in _fields(fault).items()]
    return "\n".join(lines) + "\n"


def fits(plan: Scenario) -> bool:
    """Return whether a plan file can hold the plan's faults, given its nodes and load."""
    nodes = tuple(NodeName(f"n{number}") for number in range(1, plan.nodes + 1))
    overlap = max(1, len(plan.faults))
    try:
        from_file_faults(
            tuple(map(_file_fault, plan.faults)), nodes, plan.load_us // US_PER_MS, overlap=overlap
        )
    except UsageError:
        return False
    return True


def _file_fault(fault: Fault) -> FileFault:
    return FileFault(
        kind=fault.kind,
        target=fault.target,
        at_ms=in_ms(fault.at_us),
        duration_ms=in_ms(fault.duration_us),
        draw=fault.draw,
        options=fault.options,
        when=None if fault.when is None else file_awaited(fault.when),
    )


def _fields(fault: Fault) -> dict[str, Any]:
    fields = msgspec.to_builtins(_file_fault(fault))
    return {name: value for name, value in fields.items() if value or name not in _IF_ANY}


def _overlap(faults: Sequence[Fault]) -> int:
    """Return the most timed faults in force at once; awaiting faults do not count."""
    timed = [fault for fault in faults if not fault.waits_for_node]
    counts = [
        sum(other.at_us <= fault.at_us < other.at_us + other.duration_us for other in timed)
        for fault in timed
    ]
    return max(counts, default=1)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        members = [f"{_key(name)} = {_value(member)}" for name, member in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return f"{{ {', '.join(members)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(member) for member in value)}]"  # pyright: ignore[reportUnknownVariableType]
    # JSON text, numbers and booleans are valid TOML, except for surrogate pairs.
    return json.dumps(value, ensure_ascii=not isinstance(value, str))


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)
