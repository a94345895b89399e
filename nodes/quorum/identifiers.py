"""Ids, epochs and offsets of the quorum, as distinct types."""

from typing import Final, NewType

#: Numeric id of a node, as in Kafka's ``node.id``.
NodeId = NewType("NodeId", int)
#: Directory id: 32 lower-case hex digits; ``NO_DIRECTORY`` where a peer sends none.
DirectoryId = NewType("DirectoryId", str)
#: Leader epoch (Raft's term), from 0.
Epoch = NewType("Epoch", int)
#: Log offset; an *end* offset is one past the last record.
Offset = NewType("Offset", int)
#: Microseconds on the host's monotonic clock (or the virtual one).
Microseconds = NewType("Microseconds", int)
#: One life of the process; never reused by a restarted node, so a late answer to an earlier life
#: never matches.
Incarnation = NewType("Incarnation", int)
#: A transport connection as seen by its owner; never reused within an incarnation.
ConnectionId = NewType("ConnectionId", int)
#: Request number on the owner's side; unique within an incarnation.
CorrelationId = NewType("CorrelationId", int)

NO_DIRECTORY: Final = DirectoryId("0" * 32)
#: High watermark that is not known yet; real Kafka halts on a 0 in its place.
UNKNOWN_OFFSET: Final = Offset(-1)
NO_EPOCH: Final = Epoch(-1)
