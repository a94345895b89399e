"""The smallest history for each anomaly of logs, and one beside it that only looks like it."""

from typing import Any

from splitbrain.history.records import PairedOperation
from tests.unit.checker.logs.small_logs import operation


def sent(value: int, offset: int | None, start: int, end: int | None = None, **fields: Any) -> Any:
    """Send of one record to ``k``, acknowledged unless told otherwise."""
    fields.setdefault("result", [["send", "k", [offset, value]]])
    return "send", [["send", "k", value]], start, start + 1 if end is None else end, fields


def open_send(value: int, start: int) -> Any:
    return "send", [["send", "k", value]], start, None, {"outcome": "info"}


def assigned(start: int, process: int = 9, at: Any = None) -> Any:
    return "assign", at or {"k": 0}, start, start, {"process": process}


def subscribed(start: int, process: int = 9) -> Any:
    return "subscribe", ["k"], start, start, {"process": process}


def polled(
    records: list[list[int]],
    start: int,
    position: int | None = None,
    process: int = 9,
    *,
    final: bool = False,
) -> Any:
    answer: list[Any] = ["poll", {"k": records}]
    if position is not None:
        answer.append({"k": position})
    fields = {"process": process, "result": [answer], "final": final}
    return "poll", [["poll"]], start, start + 1, fields


def txn(
    start: int, end: int | None, *parts: Any, outcome: str = "ok", process: int | None = None
) -> Any:
    """Transaction; a send is ``[key, value, offset]``, a poll ``{key: records}``."""
    asked: list[Any] = []
    answered: list[Any] = []
    for part in parts:
        if isinstance(part, dict):
            asked.append(["poll"])
            answered.append(["poll", part])
        else:
            key, value, offset = part
            asked.append(["send", key, value])
            answered.append(["send", key, [offset, value]])
    fields: dict[str, Any] = {"outcome": outcome, "result": answered if outcome == "ok" else None}
    if process is not None:
        fields["process"] = process
    return "txn", asked, start, end, fields


def given_up(start: int, end: int | None, *parts: Any, outcome: str = "ok") -> Any:
    """Transaction that its client means to abort; parts as of ``txn``."""
    _, *rest = txn(start, end, *parts, outcome=outcome)
    return "abort", *rest


def stopped(start: int, at: int, end: int, *, final: bool = True) -> list[Any]:
    """A record of ``k``, whose end is told behind the place that the read came to."""
    answer = [["poll", {"k": [[0, 1]]}, {"k": at}, {"k": end}]]
    fields = {"process": 9, "result": answer, "final": final}
    return [assigned(start), ("poll", [["poll"]], start, start + 1, fields)]


def whole(start: int, process: int = 9, **logs: list[list[int]]) -> list[Any]:
    """All of these logs by a final read: those of ``k`` are ``k=[[offset, value], ...]``."""
    ends = {key: records[-1][0] + 1 if records else 0 for key, records in logs.items()}
    answer = [["poll", logs, ends]]
    fields = {"process": process, "result": answer, "final": True}
    return [
        assigned(start, process, dict.fromkeys(logs, 0)),
        ("poll", [["poll"]], start, start + 1, fields),
    ]


def history(*rows: Any) -> list[PairedOperation]:
    """Operations of rows, in their order."""
    return [
        operation(index, f, argument, start, end, **fields)
        for index, (f, argument, start, end, fields) in enumerate(rows)
    ]


#: Kind to its smallest history, and to one that nearly shows it.
CASES: dict[str, tuple[list[PairedOperation], list[PairedOperation]]] = {
    "lost": (
        history(sent(1, 0, 0), sent(2, 1, 2), assigned(4), polled([[1, 2]], 5)),
        # It is told to read from there.
        history(sent(1, 0, 0), sent(2, 1, 2), assigned(4, at={"k": 1}), polled([[1, 2]], 5)),
    ),
    "lost, at the end": (
        history(sent(1, 0, 0), sent(2, 1, 2), *whole(4, k=[[0, 1]])),
        # It was acknowledged once the read had begun.
        history(sent(1, 0, 0), sent(2, 1, 2, 5), *whole(4, k=[[0, 1]])),
    ),
    "lost, somewhere": (
        history(sent(1, 0, 0), sent(2, None, 2), *whole(4, k=[[0, 1]])),
        history(sent(1, 0, 0), open_send(2, 2), *whole(4, k=[[0, 1]])),
    ),
    "vanished": (
        history(
            *(open_send(1, 0), assigned(1, 8), polled([[0, 1]], 1, process=8)),
            *whole(4, k=[]),
        ),
        # It was read once the other read had begun.
        history(
            *(open_send(1, 0), assigned(1, 8), polled([[0, 1]], 4, process=8)),
            *whole(4, k=[]),
        ),
    ),
    "torn-transaction": (
        history(
            txn(0, None, ["k", 1, None], ["l", 2, None], outcome="info"),
            *whole(2, 8, k=[[0, 1]]),
            *whole(4, 9, l=[]),
        ),
        # It may have been committed between the two reads.
        history(
            txn(0, None, ["k", 1, None], ["l", 2, None], outcome="info"),
            *whole(4, 8, k=[[0, 1]]),
            *whole(2, 9, l=[]),
        ),
    ),
    "inconsistent-offsets": (
        history(sent(1, 0, 0), open_send(2, 0), assigned(4), polled([[0, 2]], 5)),
        history(sent(1, 0, 0), open_send(2, 0), assigned(4), polled([[0, 1], [1, 2]], 5)),
    ),
    "duplicated": (
        history(sent(1, 0, 0), assigned(4), polled([[0, 1], [1, 1]], 5)),
        # Two consumers read it.
        history(
            *(sent(1, 0, 0), assigned(4), polled([[0, 1]], 5), assigned(4, 8)),
            polled([[0, 1]], 5, process=8),
        ),
    ),
    "phantom": (
        history(sent(1, 0, 0), assigned(4), polled([[0, 1], [1, 7]], 5)),
        history(sent(1, 0, 0), open_send(7, 0), assigned(4), polled([[0, 1], [1, 7]], 5)),
    ),
    "aborted-read": (
        history(sent(1, None, 0, outcome="fail", result=None), assigned(4), polled([[0, 1]], 5)),
        history(open_send(1, 0), assigned(4), polled([[0, 1]], 5)),
    ),
    "aborted-read, of what was given up": (
        history(given_up(0, 1, ["k", 1, 0]), assigned(4), polled([[0, 1]], 5)),
        # Nobody reads it, and its offset is passed over.
        history(given_up(0, 1, ["k", 1, 0]), sent(2, 2, 2), *whole(4, k=[[2, 2]])),
    ),
    "aborted-read, of an abort without an answer": (
        history(given_up(0, None, ["k", 1, 0], outcome="info"), assigned(4), polled([[0, 1]], 5)),
        history(open_send(1, 0), assigned(4), polled([[0, 1]], 5)),
    ),
    "precommitted-read, of what was given up": (
        history(given_up(0, 2, ["k", 1, 0], {"k": [[0, 1]]})),
        history(given_up(0, 2, ["k", 1, 0], {"k": []})),
    ),
    "hanging-transaction": (
        history(sent(1, 0, 0), *whole(2, 8, k=[[0, 1]]), *stopped(4, 1, 3)),
        # During the run it may be open.
        history(sent(1, 0, 0), *whole(2, 8, k=[[0, 1]]), *stopped(4, 1, 3, final=False)),
    ),
    "precommitted-read": (
        history(txn(0, 2, ["k", 1, 0], {"k": [[0, 1]]})),
        # The next transaction of the process.
        history(txn(0, 2, ["k", 1, 0], process=3), txn(3, 4, {"k": [[0, 1]]}, process=3)),
    ),
    "future-read": (
        history(assigned(0), polled([[0, 1]], 0), sent(1, 0, 2)),
        history(assigned(0), polled([[0, 1]], 1), sent(1, 0, 2)),
    ),
    "G1c": (
        history(txn(0, 9, ["k", 1, 0], {"l": [[0, 2]]}), txn(0, 9, ["l", 2, 0], {"k": [[0, 1]]})),
        history(txn(0, 9, ["k", 1, 0]), txn(0, 9, ["l", 2, 0], {"k": [[0, 1]]})),
    ),
    "G1c, of three": (
        history(
            txn(0, 9, ["k", 1, 0], {"l": [[0, 2]]}),
            txn(0, 9, ["l", 2, 0], {"m": [[0, 3]]}),
            txn(0, 9, ["m", 3, 0], {"k": [[0, 1]]}),
        ),
        # Operations that are no transactions have no commit.
        history(
            (
                "send",
                [["send", "k", 1], ["poll"]],
                0,
                9,
                {
                    "result": [
                        ["send", "k", [0, 1]],
                        ["poll", {"l": [[0, 2]]}],
                    ]
                },
            ),
            txn(0, 9, ["l", 2, 0], {"k": [[0, 1]]}),
        ),
    ),
    "G1c, by time": (
        # The second read what rests on the third, and ended before that began.
        history(
            txn(0, 9, ["k", 1, 0], {"m": [[0, 3]]}),
            txn(0, 4, {"k": [[0, 1]]}),
            txn(5, 9, ["m", 3, 0]),
        ),
        history(
            txn(0, 9, ["k", 1, 0], {"m": [[0, 3]]}),
            txn(0, 4, {"k": [[0, 1]]}),
            txn(4, 9, ["m", 3, 0]),
        ),
    ),
    "G1c, by time, of a poll": (
        # It read what rests on a transaction that began once it had ended.
        history(
            txn(0, 9, ["k", 1, 0], {"m": [[0, 3]]}),
            *(assigned(2), polled([[0, 1]], 3)),
            txn(5, 9, ["m", 3, 0]),
        ),
        history(
            txn(0, 9, ["k", 1, 0], {"m": [[0, 3]]}),
            *(assigned(2), polled([[0, 1]], 3)),
            txn(4, 9, ["m", 3, 0]),
        ),
    ),
    "end-went-back": (
        history(
            *whole(0, 8, k=[]),
            assigned(2),
            polled([], 2, 2, final=True),
            assigned(4),
            polled([], 4, 1, final=True),
        ),
        # Both were under way.
        history(
            *whole(0, 8, k=[]),
            assigned(2),
            polled([], 2, 2, final=True),
            assigned(3, 7),
            polled([], 3, 1, 7, final=True),
        ),
    ),
    "nonmonotonic-send": (
        history(sent(1, 1, 0), sent(2, 0, 2), *whole(4, k=[[0, 2], [1, 1]])),
        history(sent(1, 1, 0), sent(2, 0, 1), *whole(4, k=[[0, 2], [1, 1]])),
    ),
    "nonmonotonic-send, behind a commit that others read": (
        # By 3 all of the transaction was there, whatever was read of it.
        history(
            txn(0, 9, ["l", 1, 0], ["k", 2, 1]),
            *(assigned(2, 8, {"l": 0}), txn(2, 3, {"l": [[0, 1]]}, process=8)),
            sent(3, 0, 4),
        ),
        history(
            txn(0, 9, ["l", 1, 0], ["k", 2, 1]),
            *(assigned(2, 8, {"l": 0}), txn(2, 4, {"l": [[0, 1]]}, process=8)),
            sent(3, 0, 4),
        ),
    ),
    "nonmonotonic-send, behind a commit that a poll read": (
        history(
            txn(0, 9, ["l", 1, 0], ["k", 2, 1]),
            (
                "poll",
                [["poll", {"l": 0}]],
                2,
                3,
                {"result": [["poll", {"l": [[0, 1]]}]], "process": 8},
            ),
            sent(3, 0, 4),
        ),
        history(
            txn(0, 9, ["l", 1, 0], ["k", 2, 1]),
            (
                "poll",
                [["poll", {"l": 0}]],
                2,
                4,
                {"result": [["poll", {"l": [[0, 1]]}]], "process": 8},
            ),
            sent(3, 0, 4),
        ),
    ),
    "lost, of a commit that others read": (
        history(
            txn(0, 9, ["l", 1, 0], ["k", 2, 0]),
            *(assigned(2, 8, {"l": 0}), txn(2, 3, {"l": [[0, 1]]}, process=8)),
            *whole(4, k=[]),
        ),
        history(
            txn(0, 9, ["l", 1, 0], ["k", 2, 0]),
            *(assigned(2, 8, {"l": 0}), txn(2, 4, {"l": [[0, 1]]}, process=8)),
            *whole(4, k=[]),
        ),
    ),
    "nonmonotonic-poll": (
        history(sent(1, 0, 0), assigned(2), polled([[0, 1]], 2), polled([[0, 1]], 4)),
        # It was assigned anew.
        history(
            *(sent(1, 0, 0), assigned(2), polled([[0, 1]], 2), assigned(4)),
            polled([[0, 1]], 4),
        ),
    ),
    "nonmonotonic-poll, of a group": (
        history(sent(1, 0, 0), assigned(2), polled([[0, 1]], 2), polled([[0, 1]], 4)),
        # It may have been given the log anew.
        history(sent(1, 0, 0), subscribed(2), polled([[0, 1]], 2), polled([[0, 1]], 4)),
    ),
    "nonmonotonic-poll, of its position": (
        history(sent(1, 0, 0), assigned(2), polled([[0, 1]], 2, 0)),
        history(sent(1, 0, 0), assigned(2), polled([[0, 1]], 2, 1)),
    ),
    "skipped-poll": (
        history(
            *(sent(1, 0, 0), sent(2, 1, 2), assigned(4), polled([[1, 2]], 5)),
            *whole(7, 8, k=[[0, 1], [1, 2]]),
        ),
        # Its group may have given it another place.
        history(
            *(sent(1, 0, 0), sent(2, 1, 2), subscribed(4), polled([[1, 2]], 5)),
            *whole(7, 8, k=[[0, 1], [1, 2]]),
        ),
    ),
}
