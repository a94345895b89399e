"""Lines of ``schedule.jsonl``: first every fault as planned, then each with its targets, pure.

A line with a time is a plan; one without is written when the plan's target is resolved.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.fault import PINNED_NODES, ActualFault, Fault
from splitbrain.history.upgrades import upgraded_fault

_line = msgspec.json.Decoder(dict[str, Any])


def is_planned(content: dict[str, Any]) -> bool:
    """Return whether a decoded line is a fault as planned, in this form or an earlier one."""
    return "at_us" in content or "at_ms" in content


def planned_fault(content: dict[str, Any]) -> Fault:
    """Return the fault of a decoded line.

    Raises:
        msgspec.ValidationError: it is none.
    """
    return msgspec.convert(upgraded_fault(content), Fault)


def decode_schedule(lines: Iterable[bytes]) -> tuple[tuple[Fault, ...], tuple[ActualFault, ...]]:
    """Decode the planned faults, and those that were injected with their targets.

    A torn last line is left out; it was never acted upon.

    Raises:
        msgspec.DecodeError: a line before the last is none of ours.
    """
    scheduled: list[Fault] = []
    actual: list[ActualFault] = []
    whole = [line for line in lines if line.strip()]
    for number, line in enumerate(whole, start=1):
        try:
            content = _line.decode(line)
            if is_planned(content):
                scheduled.append(planned_fault(content))
            else:
                actual.append(msgspec.convert(content, ActualFault))
        except UNREADABLE:
            if number < len(whole):
                raise
    return tuple(scheduled), tuple(actual)


def pin(scheduled: Iterable[Fault], actual: Iterable[ActualFault]) -> tuple[Fault, ...]:
    """Aim the schedule at the nodes that were hit, whoever leads this time.

    The symbolic target stays for the reader; a fault that was never injected keeps it in force.
    """
    nodes = {fault.index: fault.nodes for fault in actual}
    return tuple(
        msgspec.structs.replace(
            fault, options={**fault.options, PINNED_NODES: list(nodes[fault.index])}
        )
        if fault.index in nodes
        else fault
        for fault in scheduled
    )
