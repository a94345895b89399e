"""The smallest history for each kind of violation of groups, and one beside it that is none."""

from typing import Any

from splitbrain.history.records import PairedOperation
from tests.unit.checker.groups.small_groups import operation

Row = tuple[str, int, int | None, Any, dict[str, Any]]


def consumed(
    start: int,
    member: str = "m1",
    number: int = 1,
    *,
    logs: str = "a",
    began: dict[str, int | None] | None = None,
    reads: dict[str, list[int]] | None = None,
    has_epoch: bool = False,
    **fields: Any,
) -> Row:
    """A member that owns logs, and reads the records at these offsets."""
    read = reads or {}
    answer = {
        "member": member,
        "epoch" if has_epoch else "generation": number,
        "logs": [*logs],
        "began": began or {},
        "records": {log: [[at, f"{log}{at}"] for at in offsets] for log, offsets in read.items()},
        "positions": {log: max(read.get(log) or [-1]) + 1 for log in logs},
    }
    fields.setdefault("process", int(member[1:]))
    return "consume", start, fields.pop("end", start + 1), answer, fields


def committed(
    offset: int, start: int, member: str = "m1", number: int = 1, *, log: str = "a", **fields: Any
) -> Row:
    kind = "epoch" if fields.pop("has_epoch", False) else "generation"
    answer = {"member": member, kind: number, "offsets": {log: offset}}
    fields.setdefault("process", int(member[1:]))
    return "commit", start, fields.pop("end", start + 1), answer, fields


def open_commit(start: int, member: str = "m1", *, outcome: str = "info") -> Row:
    fields = {"outcome": outcome, "process": int(member[1:])}
    return "commit", start, None if outcome == "info" else start + 1, None, fields


def told(offset: int | None, start: int, *, final: bool = False) -> Row:
    return "fetch-offsets", start, start + 1, {"a": offset}, {"final": final, "process": 5}


def visible(*offsets: int, start: int = 90) -> Row:
    """A final read of log ``a``, by somebody who is in no group."""
    records = [[at, f"a{at}"] for at in offsets]
    fields = {"final": True, "process": 6, "argument": [["poll", {"a": 0}]]}
    return "poll", start, start + 1, [["poll", {"a": records}]], fields


def history(*rows: Row) -> list[PairedOperation]:
    """Operations of rows, in their order."""
    return [
        operation(index, f, start, end, result, **fields)
        for index, (f, start, end, result, fields) in enumerate(rows)
    ]


READ = consumed(0, reads={"a": [0, 1]})
#: The same records once more, to the next member.
AGAIN = consumed(10, "m2", 2, began={"a": None}, reads={"a": [0, 1]})

#: Kind to its smallest history, and to one that nearly shows it.
CASES: dict[str, tuple[list[PairedOperation], list[PairedOperation]]] = {
    "lost-commit": (
        history(READ, committed(2, 2), told(None, 8, final=True)),
        # Nobody was told that it is committed.
        history(READ, open_commit(2), told(None, 8, final=True)),
    ),
    "lost-commit, as a member begins": (
        history(READ, committed(2, 2), AGAIN),
        # It was acknowledged once the other had begun to ask.
        history(READ, committed(2, 2, end=12), AGAIN),
    ),
    "lost-commit, to an older one": (
        history(READ, committed(1, 2), committed(2, 4), told(1, 8, final=True)),
        # The older one was open all the time.
        history(READ, committed(1, 2, end=7), committed(2, 4, process=3), told(1, 8, final=True)),
    ),
    "lost-commit, to an open one whose member was fenced": (
        history(
            *(consumed(0, reads={"a": [0]}), open_commit(2)),
            consumed(4, "m2", 2, began={"a": None}, reads={"a": [0, 1]}),
            *(committed(2, 6, "m2", 2), told(1, 8, final=True)),
        ),
        # It may still have come when the other was told, and before that one committed.
        history(
            *(consumed(0, reads={"a": [0]}), open_commit(2)),
            consumed(4, "m2", 2, began={"a": None}, reads={"a": [0, 1]}, end=6),
            *(committed(2, 6, "m2", 2), told(1, 8, final=True)),
        ),
    ),
    "lost-commit, of another member's epoch": (
        history(
            consumed(0, reads={"a": [0]}, has_epoch=True),
            committed(1, 2, has_epoch=True),
            consumed(4, "m2", 2, began={"a": None}, has_epoch=True),
        ),
        # Its log was free, so that nobody gave anything up, and time alone says what came first.
        history(
            consumed(0, reads={"a": [0]}, has_epoch=True),
            committed(1, 2, has_epoch=True),
            consumed(4, "m2", 2, began={"a": 1}, has_epoch=True),
        ),
    ),
    "stale-offset": (
        history(READ, committed(2, 2), told(None, 8)),
        history(READ, committed(2, 2, end=8), told(None, 8)),
    ),
    "stale-offset, to an older one": (
        history(READ, committed(1, 2, process=3), committed(2, 4), told(1, 8)),
        # The older one may have come at any time.
        history(READ, open_commit(2), committed(1, 4, process=3), told(2, 8)),
    ),
    "stale-offset, to a member of the same generation": (
        history(READ, committed(2, 2), consumed(8, began={"a": None})),
        history(READ, committed(2, 2), consumed(8, began={"a": 2})),
    ),
    "stale-offset, to the member whose epoch went on": (
        history(
            consumed(0, reads={"a": [0]}, has_epoch=True),
            committed(1, 2, has_epoch=True),
            consumed(4, "m1", 2, began={"a": None}, has_epoch=True),
        ),
        history(
            consumed(0, reads={"a": [0]}, has_epoch=True),
            committed(1, 2, has_epoch=True),
            consumed(4, "m1", 2, began={"a": 1}, has_epoch=True),
        ),
    ),
    "two-owners": (
        history(consumed(0), consumed(20, "m2")),
        history(consumed(0), consumed(20, "m2", 2), consumed(30, "m3", 2, logs="b")),
    ),
    "two-owners, of one epoch": (
        history(consumed(0, has_epoch=True), consumed(20, "m2", has_epoch=True)),
        # A member that was removed may learn it late, and an epoch is no generation.
        history(
            *(consumed(0, has_epoch=True), consumed(20, "m2", 2, has_epoch=True)),
            *(consumed(30, has_epoch=True), consumed(40, "m3", 1)),
        ),
    ),
    "outdated-commit-accepted": (
        history(READ, consumed(4, "m2", 2), committed(2, 6)),
        history(READ, consumed(4, "m2", 2), committed(2, 5)),
    ),
    "outdated-commit-accepted, in a generation that gave it nothing": (
        history(READ, consumed(4, "m2", 2, logs="b"), committed(2, 6)),
        # Epochs of other logs say nothing of this one.
        history(
            consumed(0, reads={"a": [0, 1]}, has_epoch=True),
            consumed(4, "m2", 2, logs="b", has_epoch=True),
            committed(2, 6, has_epoch=True),
        ),
    ),
    "outdated-commit-accepted, of an epoch": (
        history(
            consumed(0, reads={"a": [0, 1]}, has_epoch=True),
            *(consumed(4, "m2", 3, has_epoch=True), consumed(5, "m1", 2, has_epoch=True)),
            committed(2, 8, has_epoch=True),
        ),
        # It is the owner itself that went on.
        history(
            consumed(0, reads={"a": [0, 1]}, has_epoch=True),
            consumed(4, "m1", 2, has_epoch=True),
            committed(2, 8, has_epoch=True),
        ),
    ),
    "outdated-commit-accepted, of an epoch that its own member left first": (
        history(
            consumed(0, reads={"a": [0, 1]}, has_epoch=True),
            *(consumed(4, "m1", 2, has_epoch=True), consumed(6, "m2", 3, has_epoch=True)),
            committed(2, 9, has_epoch=True),
        ),
        history(
            consumed(0, reads={"a": [0, 1]}, has_epoch=True),
            *(consumed(4, "m1", 2, has_epoch=True), consumed(6, "m2", 3, has_epoch=True)),
            committed(2, 7, has_epoch=True),
        ),
    ),
    "phantom-offset": (
        history(READ, told(2, 4)),
        history(READ, open_commit(2), told(2, 4)),
    ),
    "phantom-offset, of what was refused": (
        history(READ, open_commit(2, outcome="fail"), told(2, 4)),
        history(READ, open_commit(2, outcome="fail"), told(None, 4)),
    ),
    "phantom-offset, before anybody asked": (
        history(READ, told(2, 4), committed(2, 6)),
        history(READ, told(2, 4), committed(2, 5)),
    ),
    "delivered-to-nobody": (
        history(consumed(0, reads={"a": [1]}), committed(2, 2), visible(0, 1)),
        # Offsets without a record, as those of markers, are nobody's.
        history(consumed(0, reads={"a": [1]}), committed(2, 2), visible(1)),
    ),
    "delivered-to-nobody, below a commit": (
        history(consumed(0, reads={"a": [1]}), committed(1, 2), visible(0, 1)),
        # The offset of a commit is of the next record.
        history(consumed(0, reads={"a": [0]}), committed(1, 2), visible(0, 1)),
    ),
    "delivered-to-nobody, by the offset alone": (
        history(
            *(consumed(0, reads={"a": [1]}), open_commit(2), told(2, 8, final=True)),
            visible(0, 1),
        ),
        # Whether it was committed nobody knows.
        history(consumed(0, reads={"a": [1]}), open_commit(2), visible(0, 1)),
    ),
    "delivered-to-nobody, of another log": (
        history(consumed(0, logs="ab", reads={"a": [1], "b": [0]}), committed(2, 2), visible(0, 1)),
        history(
            consumed(0, logs="ab", reads={"a": [0, 1], "b": [0]}), committed(2, 2), visible(0, 1)
        ),
    ),
    "passed-before-delivery": (
        history(
            *(consumed(0, reads={"a": [1]}), committed(2, 2)),
            *(consumed(4, "m2", 2, reads={"a": [0]}), visible(0, 1)),
        ),
        # Just then it was delivered.
        history(
            *(consumed(0, reads={"a": [1]}), committed(2, 2)),
            *(consumed(0, "m2", 2, reads={"a": [0]}, end=2), visible(0, 1)),
        ),
    ),
    "passed-before-delivery, below a commit": (
        history(
            *(consumed(0, reads={"a": [1]}), committed(1, 2)),
            *(consumed(4, "m2", 2, reads={"a": [0]}), visible(0, 1)),
        ),
        history(
            *(consumed(0, reads={"a": [0]}), committed(1, 2)),
            *(consumed(4, "m2", 2, reads={"a": [1]}), visible(0, 1)),
        ),
    ),
    "passed-before-delivery, whoever it is delivered to again": (
        history(
            *(consumed(0, reads={"a": [1]}), committed(2, 2)),
            *(consumed(4, "m2", 2, reads={"a": [0]}), consumed(6, "m2", 2, reads={"a": [0]})),
            visible(0, 1),
        ),
        # Somebody who asked earlier was answered later, and somebody else asked later.
        history(
            consumed(0, reads={"a": [0, 1]}, end=20),
            *(consumed(1, "m2", 2, logs="b", reads={"a": [0, 1]}), committed(2, 4, "m2", 2)),
            *(consumed(30, "m2", 3, logs="b", reads={"a": [0, 1]}), visible(0, 1)),
        ),
    ),
    "passed-before-delivery, by the offset alone": (
        history(
            *(consumed(0, reads={"a": [1]}), open_commit(2), told(2, 4)),
            *(consumed(6, "m2", 2, reads={"a": [0]}), visible(0, 1)),
        ),
        history(
            *(consumed(0, reads={"a": [1]}), open_commit(2), told(2, 4)),
            *(consumed(4, "m2", 2, reads={"a": [0]}), visible(0, 1)),
        ),
    ),
}
