"""Functions of the workload ``groups``, and the words of their answers.

A consumer group shares out the logs of ``contracts.log`` among its members. The answer of a
``consume`` says as whom and in which generation of the group (or, where each member has epochs of
its own, in which epoch) its consumer read, which logs the group gave it, the committed offsets from
which it began to read those that are new to it, what it read, and the next offsets that it would.
"""

from typing import Final

#: Name of the workload and of its checker.
GROUPS: Final = "groups"
#: ``null`` -> ``{member, generation or epoch, logs, began, records, positions}``.
CONSUME: Final = "consume"
#: ``null`` -> ``{member, generation or epoch, offsets}``: the positions of the last ``consume``.
COMMIT: Final = "commit"
#: ``null`` -> the member that left; null: it was none.
LEAVE: Final = "leave"
#: ``null`` -> ``{log: committed offset, null for none}``.
FETCH_OFFSETS: Final = "fetch-offsets"

MEMBER: Final = "member"
GENERATION: Final = "generation"
EPOCH: Final = "epoch"
#: Logs of a member, by their names.
ASSIGNED: Final = "logs"
#: ``{log: committed offset, null for none}``.
BEGAN: Final = "began"
#: ``{log: [[offset, value], ...]}``.
RECORDS: Final = "records"
#: ``{log: next offset}``.
POSITIONS: Final = "positions"
#: ``{log: offset}``.
OFFSETS: Final = "offsets"
