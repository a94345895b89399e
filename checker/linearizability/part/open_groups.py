"""Groups of the operations without answer (``info``) of one part, those that matter.

A search counts how many of a group it has used, always the earliest invoked first. Operations that
can have enabled no answer are dropped, as the model declares.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

from splitbrain.checker.models.model import Call, Model

NO_PREDECESSOR: Final = -1


class OpenGroup(NamedTuple):
    """Operations without answer that are equal in everything but their invocation."""

    call: int
    #: Rank that its process completed at the very moment of the invocation, or ``NO_PREDECESSOR``;
    #: operations that have one stand in a group of their own.
    predecessor: int
    #: Invocation times, ascending.
    starts: tuple[int, ...]
    #: Places among the part's operations, in the same order.
    places: tuple[int, ...]
    #: Position of the count in the packed integer.
    shift: int
    #: Mask of the shifted count; 0 for a group without limit.
    mask: int
    #: Added to the packed integer for each use; 0 for a group without limit.
    increment: int


class OpenGroups(NamedTuple):
    """All groups of a part."""

    groups: list[OpenGroup]
    #: One bit on top of each group's count, for comparing packed counts.
    guard: int
    #: Number of dropped operations.
    dropped: int


class OpenOperation(NamedTuple):
    """Operation without answer."""

    place: int
    call: int
    start: int
    predecessor: int


def group_open(
    operations: Iterable[OpenOperation],
    known: Iterable[int],
    calls: Sequence[Call],
    model: Model,
    unlimited: Container[int],
) -> OpenGroups:
    """Return the groups in the order of their first operation.

    Args:
        operations: by start.
        known: numbers of the calls of completed operations.
        calls: calls by number.
        model: declares what can be dropped.
        unlimited: places of operations that may take effect any number of times.
    """
    members: dict[tuple[int, int], list[OpenOperation]] = {}
    for operation in operations:
        members.setdefault((operation.call, operation.predecessor), []).append(operation)
    if not members:
        return OpenGroups([], 0, 0)
    droppable = model.droppable({calls[call] for call, _ in members}, {calls[c] for c in known})
    groups: list[OpenGroup] = []
    shift = dropped = guard = 0
    for (call, predecessor), equal in members.items():
        if calls[call] in droppable:
            dropped += len(equal)
            continue
        without_limit = any(operation.place in unlimited for operation in equal)
        count_bits = 0 if without_limit else len(equal).bit_length()
        groups.append(
            OpenGroup(
                call=call,
                predecessor=predecessor,
                starts=tuple(operation.start for operation in equal),
                places=tuple(operation.place for operation in equal),
                shift=shift,
                mask=(1 << count_bits) - 1,
                increment=0 if without_limit else 1 << shift,
            )
        )
        if not without_limit:
            guard |= 1 << (shift + count_bits)
            shift += count_bits + 1
    return OpenGroups(groups, guard, dropped)
