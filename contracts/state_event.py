"""State events: a running node's own word of role, epoch, high watermark and log changes."""

from typing import Any, Final, Literal

import msgspec

from splitbrain.contracts.names import Int64

StateEventKind = Literal[
    "started", "role", "part", "high-watermark", "append", "commit", "truncate", "stopped", "fatal"
]
#: Keys of ``StateEvent.detail`` of a ``part``, which has leaders and epochs of its own beside those
#: by which faults are aimed: its name, its epoch, the node's role in it, and the id of its leader.
PART: Final = "part"
PART_EPOCH: Final = "epoch"
PART_ROLE: Final = "role"
PART_LEADER: Final = "leader"


class Resigning(msgspec.Struct, frozen=True):
    """Promise that a leader which hears nothing of a majority stops to lead, however cut off."""

    #: Longest time, ms, beside a leader of a later epoch.
    within_ms: int
    #: Part that it leads (``PART``); None: that by which faults are aimed.
    part: str | None = None


class StateEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a node's ``state_events.jsonl``, in the order of ``sequence``."""

    #: Node's name.
    node: str
    #: Position in the node's own stream within one incarnation, from 0, without gaps.
    sequence: Int64
    #: Number of this start of the node's process, from 0, increasing.
    incarnation: Int64
    kind: StateEventKind
    #: Leader epoch that the node is in.
    epoch: Int64
    #: role: the new role, lower case (``leader``, ``follower``, ...).
    role: str | None = None
    #: role: numeric id of the leader that the node believes in, None if none.
    leader: Int64 | None = None
    #: append, commit: end offset (exclusive); truncate: the new end offset; high-watermark: it.
    offset: Int64 | None = None
    #: append, commit: first offset.
    base_offset: Int64 | None = None
    #: Reason, in words, for stopped and fatal; else None.
    reason: str | None = None
    #: Node's own monotonic clock, nanoseconds, meaningful within one machine only.
    node_time: Int64 | None = None
    #: Nanoseconds since the run's start, stamped by the harness on arrival; None before that.
    time: Int64 | None = None
    #: Anything else of interest (vote granted to, voters, ...). ``flushed``: end offset of what
    #: the node has on its disk for good, of its own log and never more than that; a node that does
    #: not tell it meets no fault that may make it forget.
    detail: dict[str, Any] = {}
