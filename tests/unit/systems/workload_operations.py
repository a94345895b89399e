"""Operations of each workload in a row, and the answers of a system that serves it alone."""

from typing import Any

from splitbrain.contracts.bank import ACCOUNTS, BALANCE
from splitbrain.contracts.operations import Operation

_FULL = dict.fromkeys(ACCOUNTS, BALANCE)


def _asked(f: str, value: Any = None) -> Operation:
    return Operation(f, "k", value)


#: By workload: what is asked, and the answer.
CONVERSATIONS: dict[str, list[tuple[Operation, Any]]] = {
    "counter": [
        (_asked("read"), None),
        (_asked("add-and-get", 3), 3),
        (_asked("add-and-get", 2), 5),
        (_asked("read"), 5),
    ],
    "bank": [
        (_asked("read"), _FULL),
        (_asked("transfer", ["0", "3", 15]), ["0", "3", 15, True]),
        (_asked("transfer", ["0", "3", 15]), ["0", "3", 15, False]),
        (_asked("read"), {**_FULL, "0": BALANCE - 15, "3": BALANCE + 15}),
    ],
    "kv": [
        (_asked("get"), None),
        (_asked("append", "(1)"), "(1)"),
        (_asked("append", "(2)"), "(2)"),
        (_asked("get"), "(1)(2)"),
        (_asked("put", "(3)"), "(3)"),
        (_asked("append", "(4)"), "(4)"),
        (_asked("get"), "(3)(4)"),
    ],
    "multi-register": [
        (_asked("txn", [["r", "x", None], ["w", "y", 1]]), [["r", "x", None], ["w", "y", 1]]),
        (_asked("txn", [["w", "x", 2], ["r", "x", None]]), [["w", "x", 2], ["r", "x", 2]]),
        (_asked("txn", [["r", "y", None], ["r", "x", None]]), [["r", "y", 1], ["r", "x", 2]]),
    ],
    "mutex": [
        (_asked("release", 1), False),
        (_asked("acquire", 1), True),
        (_asked("acquire", 2), False),
        (_asked("release", 2), False),
        (_asked("release", 1), True),
        (_asked("acquire", 2), True),
    ],
    "sessions": [(_asked("write", 1), 1), (_asked("read"), 1)],
}

#: Of the workload ``lease``, by one client: without a token, with one, and with the next.
LEASED: list[Operation] = [
    _asked("write", [None, 6]),
    _asked("acquire"),
    _asked("acquire"),
    _asked("write", [None, 7]),
    _asked("release"),
    _asked("acquire"),
    _asked("write", [None, 8]),
    _asked("read"),
]
