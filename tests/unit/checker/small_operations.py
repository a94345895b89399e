"""Parts of small histories, per model: requests, true answers, and other answers.

Of each of ``OBJECTS``, ``ask`` draws what is asked, ``answer`` what a correct object answers in a
state, and ``other`` an answer that could be a lie, alone in a tuple; None where an operation
answers nothing that could be one. States are those of ``brute_force``.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from splitbrain.history.records import PairedOperation

VALUES = (0, 1, 2)


def ask_register(random: Random) -> tuple[str, Any]:
    f = random.choice(("read", "read", "write"))
    return f, None if f == "read" else random.choice(VALUES)


def ask_cas(random: Random) -> tuple[str, Any]:
    f = random.choice(("read", "write", "cas", "cas"))
    value = random.choice(VALUES)
    return f, [value, random.choice(VALUES)] if f == "cas" else None if f == "read" else value


def answer_cas(_: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "cas":
        return [*operation.argument, state == operation.argument[0]]
    return state if operation.f == "read" else operation.argument


def other_cas(random: Random, operation: PairedOperation) -> Any:
    if operation.f == "cas":
        return ([*operation.argument, not operation.result[2]],)
    return (random.choice([None, *VALUES]),) if operation.f == "read" else None


def ask_txn(random: Random) -> tuple[str, Any]:
    names = random.choices("xyz", weights=(5, 4, 1), k=random.choice((1, 2, 2, 3)))
    return "txn", [
        ["w", name, random.choice(VALUES)] if random.random() < 0.45 else ["r", name, None]
        for name in names
    ]


def answer_txn(_: Random, state: Any, operation: PairedOperation) -> Any:
    values = dict(zip("xyz", state, strict=True))
    answer: list[Any] = []
    for f, name, value in operation.argument:
        if f == "w":
            values[name] = value
        answer.append([f, name, values[name]])
    return answer


def other_txn(random: Random, operation: PairedOperation) -> Any:
    reads = [place for place, part in enumerate(operation.result) if part[0] == "r"]
    if not reads:
        return None
    answer = [[*part] for part in operation.result]
    answer[random.choice(reads)][2] = random.choice([None, *VALUES])
    return (answer,)


def ask_kv(random: Random) -> tuple[str, Any]:
    f = random.choice(("get", "get", "put", "append"))
    return f, None if f == "get" else random.choice("abc")


def answer_kv(_: Random, state: Any, operation: PairedOperation) -> Any:
    return state if operation.f == "get" else operation.argument


def other_kv(random: Random, operation: PairedOperation) -> Any:
    if operation.f != "get":
        return None
    return (operation.result + random.choice("abc") if random.random() < 0.5 else "",)


def ask_counter(random: Random) -> tuple[str, Any]:
    f = random.choice(("read", "read", "add", "add-and-get"))
    # Counted up only in half of the histories: one process asks for one sign.
    return f, None if f == "read" else random.choice((0, 1, 1, 2, 5, -1))


def answer_counter(_: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "add":
        return operation.argument
    return state + (operation.argument or 0)


def other_counter(random: Random, operation: PairedOperation) -> Any:
    if operation.f == "add":
        return None
    return (operation.result + random.choice((-2, -1, 1, 2, 5)),)


def ask_set(random: Random) -> tuple[str, Any]:
    f = random.choice(("read", "contains", "add", "add", "remove"))
    return f, None if f == "read" else random.choice(VALUES)


def answer_set(_: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "contains":
        return operation.argument in state
    return [*state] if operation.f == "read" else operation.argument


def other_set(random: Random, operation: PairedOperation) -> Any:
    if operation.f == "contains":
        return (not operation.result,)
    if operation.f == "read":
        return (sorted({*operation.result} ^ {random.choice(VALUES)}),)
    return None


def ask_queue(random: Random) -> tuple[str, Any]:
    f = random.choice(("enqueue", "dequeue"))
    return f, None if f == "dequeue" else random.choice((*VALUES, 3, 4))


def answer_fifo(_: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "enqueue":
        return operation.argument
    return state[0] if state else None


def answer_bounded(random: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "enqueue" and len(state) == 2:
        return False
    return answer_fifo(random, state, operation)


def answer_unordered(random: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "enqueue":
        return operation.argument
    return random.choice(state) if state else None


def other_queue(random: Random, operation: PairedOperation) -> Any:
    if operation.f == "enqueue":
        return None
    return (random.choice([element for element in (None, *VALUES) if element != operation.result]),)


def other_bounded(random: Random, operation: PairedOperation) -> Any:
    if operation.f == "enqueue":
        return (operation.argument if operation.result is False else False,)
    return other_queue(random, operation)


def ask_stack(random: Random) -> tuple[str, Any]:
    f = random.choice(("push", "pop"))
    return f, None if f == "pop" else random.choice((*VALUES, 3, 4))


def answer_stack(_: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "push":
        return operation.argument
    return state[-1] if state else None


def ask_priority(random: Random) -> tuple[str, Any]:
    f = random.choice(("insert", "delete-min"))
    return f, None if f == "delete-min" else random.choice((*VALUES, 3, 4))


def answer_priority(_: Random, state: Any, operation: PairedOperation) -> Any:
    return operation.argument if operation.f == "insert" else min(state, default=None)


def other_taken(random: Random, operation: PairedOperation) -> Any:
    return None if operation.argument is not None else other_queue(random, operation)


def ask_mutex(random: Random) -> tuple[str, Any]:
    return random.choice(("acquire", "acquire", "release")), random.choice("ab")


def answer_mutex(_: Random, state: Any, operation: PairedOperation) -> Any:
    return state == ("" if operation.f == "acquire" else operation.argument)


def other_mutex(_: Random, operation: PairedOperation) -> Any:
    return (not operation.result,)


def ask_fenced(random: Random) -> tuple[str, Any]:
    if random.random() < 0.35:
        return "read", None
    return "write", [random.choice((1, 2, 3)), random.choice(VALUES)]


def answer_fenced(_: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "read":
        return state[1]
    return [*operation.argument, operation.argument[0] >= state[0]]


def other_fenced(random: Random, operation: PairedOperation) -> Any:
    if operation.f == "read":
        return (random.choice([None, *VALUES]),)
    return ([*operation.argument, not operation.result[2]],)


def ask_topics(random: Random) -> tuple[str, Any]:
    f = random.choice(("create", "create", "delete", "describe"))
    return f, random.choice((1, 2, 3)) if f == "create" else None


def answer_topics(_: Random, state: Any, operation: PairedOperation) -> Any:
    if operation.f == "create":
        return [operation.argument, state is None]
    return state if operation.f == "describe" else state is not None


def other_topics(random: Random, operation: PairedOperation) -> Any:
    if operation.f == "create":
        return ([operation.argument, not operation.result[1]],)
    if operation.f == "delete":
        return (not operation.result,)
    return (random.choice([None, 1, 2, 3]),)


class SmallObject(NamedTuple):
    ask: Callable[[Random], tuple[str, Any]]
    answer: Callable[[Random, Any, PairedOperation], Any]
    other: Callable[[Random, PairedOperation], Any]
    #: Share of the histories that are spoiled; some stay valid nevertheless.
    spoiled: float


OBJECTS = {
    "register": SmallObject(ask_register, answer_cas, other_cas, 0.95),
    "cas-register": SmallObject(ask_cas, answer_cas, other_cas, 0.85),
    "multi-register": SmallObject(ask_txn, answer_txn, other_txn, 0.9),
    "kv": SmallObject(ask_kv, answer_kv, other_kv, 0.95),
    "counter": SmallObject(ask_counter, answer_counter, other_counter, 0.7),
    "set": SmallObject(ask_set, answer_set, other_set, 0.88),
    "fifo-queue": SmallObject(ask_queue, answer_fifo, other_queue, 0.8),
    "bounded-fifo-queue": SmallObject(ask_queue, answer_bounded, other_bounded, 0.7),
    "unordered-queue": SmallObject(ask_queue, answer_unordered, other_queue, 0.8),
    "stack": SmallObject(ask_stack, answer_stack, other_taken, 0.8),
    "priority-queue": SmallObject(ask_priority, answer_priority, other_taken, 0.8),
    "mutex": SmallObject(ask_mutex, answer_mutex, other_mutex, 0.72),
    "fenced-register": SmallObject(ask_fenced, answer_fenced, other_fenced, 0.82),
    "topics": SmallObject(ask_topics, answer_topics, other_topics, 0.78),
}
