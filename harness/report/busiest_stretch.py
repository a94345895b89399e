"""Finds where most was going on at once, to show of a history in which nothing is wrong. Pure."""

import heapq
from collections.abc import Sequence

from splitbrain.history.records import PairedOperation


def busiest(operations: Sequence[PairedOperation]) -> list[PairedOperation]:
    """What was open on one object at the first moment at which most of its operations were.

    Only answered operations count: those without answer never end, and would make the end of
    every history its busiest moment. Empty where nothing was answered. n log n.
    """
    ends_by_key: dict[str | None, list[int]] = {}
    most, place = 0, None
    answered = [operation for operation in operations if operation.type == "ok"]
    for operation in sorted(answered, key=lambda one: (one.start, one.index)):
        if operation.end is None:
            continue
        ends = ends_by_key.setdefault(operation.key, [])
        while ends and ends[0] < operation.start:
            heapq.heappop(ends)
        heapq.heappush(ends, operation.end)
        if len(ends) > most:
            most, place = len(ends), operation
    if place is None:
        return []
    return [
        operation
        for operation in answered
        if operation.key == place.key
        and operation.end is not None
        and operation.start <= place.start <= operation.end
    ]
