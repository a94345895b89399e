"""Seeded small histories: true ones built from points in time, then often spoiled in one place.

Times are small integers, so that ties are frequent.
"""

from collections.abc import Iterator
from random import Random

import msgspec

from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import AFTER, INITIAL
from tests.unit.checker.small_operations import OBJECTS

#: Share of the spoiled ones in which an operation was moved; in the others an answer was changed.
SHARE_MOVED = 0.15
#: Kinds that put an element in and take one out.
PUT_AND_TAKE = {
    "fifo-queue": ("enqueue", "dequeue"),
    "stack": ("push", "pop"),
    "priority-queue": ("insert", "delete-min"),
}


def random_history(random: Random, model: str, size_max: int = 9) -> list[PairedOperation]:
    """Operations in the order of their invocation; valid in about half of the cases."""
    skeleton = _skeleton(random, model, random.randint(2, size_max))
    history = _answered(random, skeleton, model)
    if random.random() < OBJECTS[model].spoiled:
        history = _spoiled(random, history, model)
    return history


def contradictions(
    random: Random, model: str, count: int
) -> Iterator[tuple[list[PairedOperation], PairedOperation]]:
    """So many violations: what was invoked until the return that no order has a place for; it."""
    found = 0
    while found < count:
        history = random_history(random, model, size_max=7)
        outcome = Search(problem := Problem(history, MODELS[model]), Unlimited()).run()
        if outcome.verdict is not Verdict.VALID:
            found += 1
            last = history[problem.place_by_rank[outcome.dead_ends[0].rank]]
            yield [o for o in history if o.start <= (last.end or 0)], last


def history_with_a_lie(
    random: Random, model: str, size: int
) -> tuple[list[PairedOperation], int | None]:
    """A true history in which one answer was changed, and the index of its operation.

    It may be valid nevertheless. None where no answer can be changed.
    """
    history = _answered(random, _skeleton(random, model, size), model)
    return _with_another_answer(random, history, model)


def history_of_unique_values(
    random: Random, size_max: int = 9, *, twice: float = 0.0
) -> list[PairedOperation]:
    """Reads and writes of one register in which hardly any value is written twice.

    Args:
        random: decides everything.
        size_max: operations at most.
        twice: share of writes of a value that was written before.
    """
    return _of_unique_values(random, "register", ("write", "read"), size_max, twice)


def unique_elements(
    random: Random, size_max: int = 9, *, twice: float = 0.0, model: str = "fifo-queue"
) -> list[PairedOperation]:
    """The same of a queue or stack and its elements; processes hardly ever go on at once."""
    history = _of_unique_values(random, model, PUT_AND_TAKE[model], size_max, twice)
    if random.random() < 0.4:
        history = _with_two_swapped(random, model, size_max)
    return history if random.random() < 0.1 else with_pauses(history)


def _of_unique_values(
    random: Random, model: str, functions: tuple[str, str], size_max: int, twice: float
) -> list[PairedOperation]:
    put, get = functions
    skeleton = _skeleton(random, model, random.randint(2, size_max))
    written: list[int] = []
    for place, operation in enumerate(skeleton):
        if operation.f == put:
            again = written and random.random() < twice
            written.append(random.choice(written) if again else place)
            skeleton[place] = msgspec.structs.replace(operation, argument=written[-1])
    history = _answered(random, skeleton, model)
    reads = [n for n, o in enumerate(history) if o.f == get and o.type == "ok"]
    for place in reads[: random.choice((0, 1, 2, 2))]:
        value = random.choice([None, 99, *written])
        history[place] = msgspec.structs.replace(history[place], result=value)
    return history


def _with_two_swapped(random: Random, model: str, size: int) -> list[PairedOperation]:
    """A true history of unique elements in which two takes have each other's answer."""
    put, take = PUT_AND_TAKE[model]
    skeleton = [
        msgspec.structs.replace(o, argument=place) if o.f == put else o
        for place, o in enumerate(_skeleton(random, model, size))
    ]
    history = _answered(random, skeleton, model)
    takes = [n for n, o in enumerate(history) if o.f == take and o.type == "ok"]
    if len(takes) > 1:
        one, other = random.sample(takes, 2)
        swapped = history[one].result, history[other].result
        history[other] = msgspec.structs.replace(history[other], result=swapped[0])
        history[one] = msgspec.structs.replace(history[one], result=swapped[1])
    return history


def with_pauses(history: list[PairedOperation]) -> list[PairedOperation]:
    """The same times in finer units, and a moment between any two operations of one process."""
    last: dict[int, int] = {}
    spread: list[PairedOperation] = []
    for operation in history:
        start = max(100 * operation.start, last.get(operation.process, -1) + 1)
        end = None if operation.end is None else max(100 * operation.end, start)
        last[operation.process] = start if end is None else end
        spread.append(msgspec.structs.replace(operation, start=start, end=end))
    return sorted(spread, key=lambda operation: (operation.start, operation.index))


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
        f, argument = OBJECTS[model].ask(random)
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
    return _indexed(operations)


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
        if operation.type == "ok":
            result = OBJECTS[model].answer(random, state, operation)
            answered[place] = operation = msgspec.structs.replace(operation, result=result)
        elif random.random() >= 0.6:
            continue
        state = random.choice(AFTER[model](state, operation))
    return answered


def _spoiled(
    random: Random, operations: list[PairedOperation], model: str
) -> list[PairedOperation]:
    """One answer changed, or one completed operation moved to another time."""
    if random.random() < SHARE_MOVED:
        return _moved(random, operations)
    return _with_another_answer(random, operations, model)[0]


def _with_another_answer(
    random: Random, operations: list[PairedOperation], model: str
) -> tuple[list[PairedOperation], int | None]:
    """One answer changed, and the index of its operation; None where none can be."""
    others = {
        place: found
        for place, operation in enumerate(operations)
        if operation.type == "ok" and (found := OBJECTS[model].other(random, operation)) is not None
    }
    if not others:
        return operations, None
    place = random.choice(sorted(others))
    spoiled = list(operations)
    (result,) = others[place]
    spoiled[place] = msgspec.structs.replace(operations[place], result=result)
    return spoiled, spoiled[place].index


def _moved(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    """One completed operation some time earlier or later, by a process of its own."""
    completed = [place for place, operation in enumerate(operations) if operation.end is not None]
    if not completed:
        return operations
    place = random.choice(completed)
    operation = operations[place]
    assert operation.end is not None, "it is one of those that were completed"
    start = max(0, operation.start + random.choice((-6, -4, -3, 3, 4, 6)))
    moved = msgspec.structs.replace(
        operation,
        start=start,
        end=start + operation.end - operation.start,
        process=1 + max(other.process for other in operations),
    )
    others = operations[:place] + operations[place + 1 :]
    return _indexed([*others, moved])


def _indexed(operations: list[PairedOperation]) -> list[PairedOperation]:
    """By start; of one process the order of the list is that of invocation, and stays."""
    return [
        msgspec.structs.replace(operation, index=2 * number)
        for number, operation in enumerate(sorted(operations, key=lambda one: one.start))
    ]
