"""Seeded small histories: true ones built from points in time, then often spoiled in one place.

Times are small integers, so that ties are frequent.
"""

from random import Random
from typing import Any

import msgspec

from history.records import PairedOperation
from tests.unit.checker.brute_force import AFTER, INITIAL

VALUES = (0, 1, 2)
#: Share of the histories that are spoiled; some stay valid nevertheless.
SPOILED = {"register": 0.85, "cas-register": 0.6, "kv": 0.8, "set": 0.6}


def random_history(random: Random, model: str, size_max: int = 9) -> list[PairedOperation]:
    """Operations in the order of their invocation; valid in about half of the cases."""
    skeleton = _skeleton(random, model, random.randint(2, size_max))
    history = _answered(random, skeleton, model)
    if random.random() < SPOILED[model]:
        history = _spoiled(random, history, model)
    return history


def _skeleton(random: Random, model: str, size: int) -> list[PairedOperation]:
    """Intervals and arguments, no answers yet."""
    processes = random.randint(2, 4)
    share_open = random.choice((0.0, 0.15, 0.3))
    clock = dict.fromkeys(range(processes), 0)
    slots = list(range(processes))
    operations: list[PairedOperation] = []
    for _ in range(size):
        slot = random.randrange(processes)
        process = slots[slot]
        start = clock[process] + random.randint(0, 2)
        end: int | None = start + random.choice((0, 1, 2, 3, 6))
        f, argument = _request(random, model)
        if random.random() < share_open:
            end = None
            slots[slot] = max(slots) + 1
            clock[slots[slot]] = start + 1
        else:
            clock[process] = end or 0
        operations.append(
            PairedOperation(
                index=0,
                process=process,
                f=f,
                key=None,
                argument=argument,
                result=None,
                type="info" if end is None else "ok",
                start=start,
                end=end,
            )
        )
    # Of one process the list order is the order of invocation; sorting by start keeps it.
    operations.sort(key=lambda operation: operation.start)
    return [
        msgspec.structs.replace(operation, index=2 * number)
        for number, operation in enumerate(operations)
    ]


def _request(random: Random, model: str) -> tuple[str, Any]:
    value = random.choice(VALUES)
    if model == "kv":
        f = random.choice(("get", "get", "put", "append"))
        return f, None if f == "get" else "abc"[value]
    if model == "set":
        f = random.choice(("read", "read", "add", "add", "remove"))
        return f, None if f == "read" else value
    kinds = ("read", "read", "write") if model == "register" else ("read", "write", "cas", "cas")
    f = random.choice(kinds)
    if f == "cas":
        return f, [value, random.choice(VALUES)]
    return f, None if f == "read" else value


def _answered(
    random: Random, operations: list[PairedOperation], model: str
) -> list[PairedOperation]:
    """Answers from a run in which each operation takes effect at a point of its interval."""
    points: list[tuple[float, int]] = []
    last_by_process: dict[int, float] = {}
    for place, operation in enumerate(operations):
        end = operation.start + 8 if operation.end is None else operation.end
        point = random.uniform(operation.start, end)
        # Of one process a later operation never takes effect before an earlier one.
        point = max(point, last_by_process.get(operation.process, 0.0))
        last_by_process[operation.process] = point
        points.append((point, place))
    state = INITIAL[model]
    answered = list(operations)
    for _, place in sorted(points):
        operation = operations[place]
        if operation.type == "info":
            if random.random() < 0.6:
                (state,) = AFTER[model](state, operation)
            continue
        result = operation.argument
        if operation.f in ("read", "get"):
            result = list(state) if model == "set" else state
        elif operation.f == "cas":
            result = [*operation.argument, state == operation.argument[0]]
        answered[place] = operation = msgspec.structs.replace(operation, result=result)
        (state,) = AFTER[model](state, operation)
    return answered


def _spoiled(
    random: Random, operations: list[PairedOperation], model: str
) -> list[PairedOperation]:
    """One answer or one interval changed."""
    completed = [place for place, operation in enumerate(operations) if operation.type == "ok"]
    telling = [place for place in completed if operations[place].f in ("read", "get", "cas")]
    if not telling:
        return operations
    place = random.choice(telling)
    spoiled = list(operations)
    operation = operations[place]
    result: Any
    if operation.f == "cas":
        result = [*operation.argument, not operation.result[2]]
    elif model == "kv":
        result = operation.result + random.choice("abc") if random.random() < 0.5 else ""
    elif model == "set":
        result = sorted(set(operation.result) ^ {random.choice(VALUES)})
    else:
        result = random.choice([None, *VALUES])
    spoiled[place] = msgspec.structs.replace(operation, result=result)
    return spoiled
