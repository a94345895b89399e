"""The lines of ``schedule.jsonl``: first every fault as planned, then each as it became, pure.

A line with ``at_ms`` is a plan, one without is what the plan became when its target was resolved.
"""

from collections.abc import Iterable

import msgspec

from contracts.errors import UNREADABLE
from contracts.fault import ActualFault, ScheduledFault
from nemesis.targets import PINNED_NODES


class _Either(msgspec.Struct):
    at_ms: int | None = None


_either = msgspec.json.Decoder(_Either)
_scheduled = msgspec.json.Decoder(ScheduledFault)
_actual = msgspec.json.Decoder(ActualFault)


def decode_schedule(
    lines: Iterable[bytes],
) -> tuple[tuple[ScheduledFault, ...], tuple[ActualFault, ...]]:
    """The planned faults and what became of those that were injected.

    A torn last line is left out; it was never acted upon.

    Raises:
        msgspec.DecodeError: a line before the last is none of ours.
    """
    scheduled: list[ScheduledFault] = []
    actual: list[ActualFault] = []
    whole = [line for line in lines if line.strip()]
    for number, line in enumerate(whole, start=1):
        try:
            if _either.decode(line).at_ms is not None:
                scheduled.append(_scheduled.decode(line))
            else:
                actual.append(_actual.decode(line))
        except UNREADABLE:
            if number < len(whole):
                raise
    return tuple(scheduled), tuple(actual)


def pin(
    scheduled: Iterable[ScheduledFault], actual: Iterable[ActualFault]
) -> tuple[ScheduledFault, ...]:
    """The same schedule, aimed at the nodes that were hit, whoever leads this time.

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
