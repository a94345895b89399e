"""An oracle for linearizability: tries every order, shares nothing with what it judges.

The semantics of each model are written down a second time here, on purpose.
"""

from functools import cache
from typing import Any

from history.records import PairedOperation


def linearizable(operations: list[PairedOperation], model: str) -> bool:
    """Whether any order of all ``ok`` and some ``info`` operations is legal and true to time."""
    present = [operation for operation in operations if operation.type != "fail"]
    after = AFTER[model]
    before = [
        sum(1 << p for p, other in enumerate(present) if precedes(other, operation))
        for operation in present
    ]
    completed = sum(1 << p for p, operation in enumerate(present) if operation.type == "ok")

    @cache
    def possible(placed: int, state: Any) -> bool:
        if placed & completed == completed:
            return True
        for place, operation in enumerate(present):
            if placed >> place & 1 or before[place] & ~placed:
                continue
            for following in after(state, operation):
                if possible(placed | 1 << place, following):
                    return True
        return False

    return possible(0, INITIAL[model])


def precedes(first: PairedOperation, second: PairedOperation) -> bool:
    """Real time, or the process where times are equal."""
    if first.end is None:
        return False
    if first.process == second.process:
        return first.index < second.index
    return first.end < second.start


def after_cas_register(state: Any, operation: PairedOperation) -> list[Any]:
    known = operation.type == "ok"
    if operation.f == "read":
        return [state] if not known or operation.result == state else []
    if operation.f == "write":
        return [operation.argument]
    expected, new = operation.argument
    if not known:
        return [new] if expected == state else [state]
    if operation.result[2]:
        return [new] if expected == state else []
    return [state] if expected != state else []


def after_kv(state: Any, operation: PairedOperation) -> list[Any]:
    if operation.f == "get":
        return [state] if operation.type != "ok" or operation.result == state else []
    return [operation.argument if operation.f == "put" else state + operation.argument]


def after_set(state: Any, operation: PairedOperation) -> list[Any]:
    if operation.f == "read":
        fits = operation.type != "ok" or set(operation.result) == set(state)
        return [state] if fits else []
    if operation.f == "add":
        return [tuple(sorted({*state, operation.argument}))]
    return [tuple(element for element in state if element != operation.argument)]


AFTER = {
    "register": after_cas_register,
    "cas-register": after_cas_register,
    "kv": after_kv,
    "set": after_set,
}
INITIAL: dict[str, Any] = {"register": None, "cas-register": None, "kv": "", "set": ()}
