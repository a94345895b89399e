"""An oracle for linearizability: tries every order, shares nothing with what it judges.

The semantics of each model are written down a second time here, on purpose.
"""

from functools import cache
from typing import Any

from splitbrain.history.records import PairedOperation


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


def assert_legal(
    order: list[PairedOperation], operations: list[PairedOperation], model: str
) -> None:
    """An order of a history has all that completed, is true to time, and the model allows it."""
    assert {o.index for o in operations if o.type == "ok"} <= {o.index for o in order}
    states = {INITIAL[model]}
    for place, operation in enumerate(order):
        assert not any(precedes(later, operation) for later in order[place + 1 :])
        states = {after for state in states for after in AFTER[model](state, operation)}
        assert states


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
    known = operation.type == "ok"
    if operation.f == "read":
        return [state] if not known or set(operation.result) == set(state) else []
    if operation.f == "contains":
        return [state] if not known or operation.result == (operation.argument in state) else []
    if operation.f == "add":
        return [tuple(sorted({*state, operation.argument}))]
    return [tuple(element for element in state if element != operation.argument)]


def after_txn(state: Any, operation: PairedOperation) -> list[Any]:
    """The state is the value of each of the registers x, y and z."""
    values = dict(zip("xyz", state, strict=True))
    for place, (f, name, value) in enumerate(operation.argument):
        if f == "w":
            values[name] = value
        elif operation.type == "ok" and operation.result[place] != [f, name, values[name]]:
            return []
    return [tuple(values.values())]


def after_counter(state: Any, operation: PairedOperation) -> list[Any]:
    following = state + (operation.argument or 0)
    told = operation.type == "ok" and operation.f in ("read", "add-and-get")
    return [] if told and operation.result != following else [following]


def after_fifo(state: Any, operation: PairedOperation, capacity: int = 99) -> list[Any]:
    open_ended = operation.type == "info"
    if operation.f == "enqueue":
        if len(state) == capacity:
            return [state] if open_ended or operation.result is False else []
        return [] if operation.result is False else [(*state, operation.argument)]
    if not state:
        return [state] if open_ended or operation.result is None else []
    return [state[1:]] if open_ended or operation.result == state[0] else []


def after_bounded(state: Any, operation: PairedOperation) -> list[Any]:
    return after_fifo(state, operation, capacity=2)


def after_unordered(state: Any, operation: PairedOperation) -> list[Any]:
    if operation.f == "enqueue":
        return [tuple(sorted((*state, operation.argument)))]
    open_ended = operation.type == "info"
    if not state:
        return [state] if open_ended or operation.result is None else []
    return [
        state[:place] + state[place + 1 :]
        for place, element in enumerate(state)
        if open_ended or element == operation.result
    ]


def after_stack(state: Any, operation: PairedOperation) -> list[Any]:
    """The state is the elements, the newest last."""
    if operation.f == "push":
        return [(*state, operation.argument)]
    if operation.type == "info":
        return [state[:-1]]
    newest = state[-1] if state else None
    return [state[:-1]] if operation.result == newest else []


def after_priority(state: Any, operation: PairedOperation) -> list[Any]:
    """The state is the elements, the greatest first."""
    if operation.f == "insert":
        return [tuple(sorted((*state, operation.argument), reverse=True))]
    if operation.type == "info":
        return [state[:-1]]
    return [state[:-1]] if operation.result == min(state, default=None) else []


def after_mutex(state: Any, operation: PairedOperation) -> list[Any]:
    """The state is the holder, "" for none."""
    who = operation.argument
    granted = state == "" if operation.f == "acquire" else state == who
    if operation.type == "ok" and operation.result != granted:
        return []
    if not granted:
        return [state]
    return [who if operation.f == "acquire" else ""]


def after_fenced(state: Any, operation: PairedOperation) -> list[Any]:
    """The state is the highest token accepted and the value written with it."""
    known = operation.type == "ok"
    if operation.f == "read":
        return [state] if not known or operation.result == state[1] else []
    token, value = operation.argument
    accepted = token >= state[0]
    if known and operation.result != [token, value, accepted]:
        return []
    return [(token, value)] if accepted else [state]


def after_topics(state: Any, operation: PairedOperation) -> list[Any]:
    """The state is the number of partitions, None for no topic."""
    known = operation.type == "ok"
    if operation.f == "describe":
        return [state] if not known or operation.result == state else []
    if operation.f == "create":
        created = state is None
        if known and operation.result != [operation.argument, created]:
            return []
        return [operation.argument if created else state]
    if known and operation.result != (state is not None):
        return []
    return [None]


AFTER = {
    "register": after_cas_register,
    "cas-register": after_cas_register,
    "multi-register": after_txn,
    "kv": after_kv,
    "counter": after_counter,
    "set": after_set,
    "fifo-queue": after_fifo,
    "bounded-fifo-queue": after_bounded,
    "unordered-queue": after_unordered,
    "stack": after_stack,
    "priority-queue": after_priority,
    "mutex": after_mutex,
    "fenced-register": after_fenced,
    "topics": after_topics,
}
INITIAL: dict[str, Any] = {
    "register": None,
    "cas-register": None,
    "multi-register": (None, None, None),
    "kv": "",
    "counter": 0,
    "set": (),
    "fifo-queue": (),
    "bounded-fifo-queue": (),
    "unordered-queue": (),
    "stack": (),
    "priority-queue": (),
    "mutex": "",
    "fenced-register": (0, None),
    "topics": None,
}
