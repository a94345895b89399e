"""Records of a history: its events and their operations, pure.

An operation is two events with the same ``process``: an ``invoke`` and one of ``ok``, ``fail``,
``info``. A process runs one operation at a time; after ``info`` it never appears again (design,
section 4). Values follow ``contracts.operations``: a completed read carries the value read, a
completed cas ``[expected, new, succeeded]``, writes and adds the value written.
"""

from typing import Any, Literal, TypedDict

import msgspec

from splitbrain.contracts.names import NO_EPOCH, Int64

EventType = Literal["invoke", "ok", "fail", "info"]


class Event(msgspec.Struct, frozen=True, omit_defaults=False, gc=False):
    """Line of ``history.jsonl``; without cycles, since it holds only JSON."""

    #: Position in the history, from 0, without gaps; orders the events of one process.
    index: Int64
    #: Nanoseconds since the run's start, monotonic. Equal times are concurrent.
    time: Int64
    #: Logical process; retired after an ``info``.
    process: Int64
    type: EventType
    #: Operation kind: ``read``, ``write``, ``cas``, ``add``, ...
    f: str
    #: Object of the operation; None in histories of one object.
    key: str | None = None
    value: Any = None
    #: Node asked (invoke) or that answered (completion), where known.
    node: str | None = None
    #: Error class for fail and info, kebab-case.
    error: str | None = None
    #: ``[epoch, offset]`` where the system returns one; the epoch may be ``NO_EPOCH``.
    position: tuple[Int64, Int64] | None = None
    #: True for final reads, taken after the last heal.
    final: bool = False


def position_text(position: tuple[int, int]) -> str:
    """Return a position in words: ``offset 7 in epoch 2``, or ``position 7`` without an epoch."""
    epoch, offset = position
    return f"position {offset}" if epoch == NO_EPOCH else f"offset {offset} in epoch {epoch}"


class EventFields(TypedDict, total=False):
    """Optional fields of an ``Event``, for its recorders."""

    key: str | None
    value: Any
    node: str | None
    error: str | None
    position: tuple[int, int] | None
    final: bool


class PairedOperation(msgspec.Struct, frozen=True, gc=False):
    """Invocation with its completion, for checkers; JSON alone, as in ``Event``.

    ``fail`` operations are removed before checking, an operation without completion is ``info``.
    """

    #: Index of the invocation event.
    index: int
    process: int
    f: str
    key: str | None
    #: From the invocation.
    argument: Any
    #: From an ``ok`` completion; None for ``info``.
    result: Any
    type: Literal["ok", "fail", "info"]
    #: Invocation time, ns.
    start: int
    #: Completion time, ns; None where the operation is open (``info``).
    end: int | None
    node: str | None = None
    error: str | None = None
    position: tuple[int, int] | None = None
    final: bool = False
