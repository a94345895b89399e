"""Generated histories of one or more registers, the same for every program that measures.

Clients work without pause; each operation takes effect at a moment of its interval, so the history
is linearizable until a violation is planted: one late read answers a value that nobody wrote, or
(``with_stale_read``) one that was overwritten before it began. Everything follows from the seed.
"""

import heapq
from random import Random
from typing import Any, Literal

import msgspec

from splitbrain.history.records import PairedOperation

#: Mean duration of an operation and mean pause between two of one client, microseconds.
_DURATION_US = 1_000
_PAUSE_US = 100
_NANOSECONDS_PER_US = 1_000


class HistoryOptions(msgspec.Struct, frozen=True):
    """Shape of a generated history."""

    operations: int
    clients: int
    #: Number of distinct values; 0 for a new value in every write.
    values: int = 5
    keys: int = 1
    #: ``cas``: a third each of read, write and cas; ``register``: half reads, half writes;
    #: ``append``: half gets, half appends of text; ``text``: also a put for three appends;
    #: ``queue``, ``stack``, ``priority``: half puts, half takes of the oldest, newest or least.
    mix: Literal["cas", "register", "append", "text", "queue", "stack", "priority"] = "cas"
    #: Share of operations that change something and have no answer.
    info: float = 0.0
    violation: bool = False
    seed: int = 0


_KINDS = {
    "cas": ("read", "write", "cas"),
    "register": ("read", "write"),
    "append": ("get", "append"),
    "text": ("get", "append", "get", "append", "get", "append", "get", "put"),
    "queue": ("enqueue", "dequeue"),
    "stack": ("push", "pop"),
    "priority": ("insert", "delete-min"),
}
_READS = frozenset({"read", "get"})
_TAKES = frozenset({"dequeue", "pop", "delete-min"})


def generate(options: HistoryOptions) -> list[PairedOperation]:
    """Operations in the order of their invocation, each key's in one stream."""
    random = Random(f"{options}")
    intervals = _intervals(random, options)
    moments = sorted(
        (random.uniform(start, end), place) for place, (start, end, _) in enumerate(intervals)
    )
    state: dict[str, Any] = {}
    answers: list[tuple[str, str, Any, Any, bool]] = [("", "", None, None, True)] * len(intervals)
    for fresh, (_, place) in enumerate(moments, start=1):
        key = f"r{random.randrange(options.keys)}"
        f = random.choice(_KINDS[options.mix])
        new = fresh if options.values == 0 else random.randrange(options.values)
        open_ended = f not in _READS and random.random() < options.info
        happens = not open_ended or random.random() < 0.5
        argument, result = _perform(random, f, key, new, state, options, happens=happens)
        answers[place] = (f, key, argument, result, open_ended)
    operations = [
        _operation(place, interval, answer)
        for place, (interval, answer) in enumerate(zip(intervals, answers, strict=True))
    ]
    return _with_violation(random, operations) if options.violation else operations


def _intervals(random: Random, options: HistoryOptions) -> list[tuple[int, int, int]]:
    """Start, end and client of every operation, by start, in nanoseconds."""
    free = [(random.randrange(_DURATION_US), client) for client in range(options.clients)]
    heapq.heapify(free)
    intervals: list[tuple[int, int, int]] = []
    for _ in range(options.operations):
        start, client = heapq.heappop(free)
        end = start + 1 + int(random.expovariate(1 / _DURATION_US))
        intervals.append((start * _NANOSECONDS_PER_US, end * _NANOSECONDS_PER_US, client))
        heapq.heappush(free, (end + 1 + int(random.expovariate(1 / _PAUSE_US)), client))
    return intervals


def _perform(
    random: Random,
    f: str,
    key: str,
    new: Any,
    state: dict[str, Any],
    options: HistoryOptions,
    *,
    happens: bool,
) -> tuple[Any, Any]:
    """Argument and answer of one operation at its moment; changes the state."""
    value = state.get(key)
    if f in _READS:
        return None, value
    if f == "write":
        if happens:
            state[key] = new
        return new, new
    if f in ("put", "append"):
        text = f"x {new} y"
        if happens:
            state[key] = text if f == "put" else (value or "") + text
        return text, text
    if f in ("enqueue", "push", "insert"):
        if happens:
            state.setdefault(key, []).append(new)
        return new, new
    if f in _TAKES:
        place = {"dequeue": 0, "pop": -1}.get(f)
        if not happens or not value:
            return None, None
        return None, value.pop(value.index(min(value)) if place is None else place)
    expected = value if options.values == 0 else random.randrange(options.values)
    if happens and expected == value:
        state[key] = new
    return [expected, new], [expected, new, expected == value]


def _operation(
    place: int, interval: tuple[int, int, int], answer: tuple[str, str, Any, Any, bool]
) -> PairedOperation:
    start, end, client = interval
    f, key, argument, result, open_ended = answer
    return PairedOperation(
        index=place,
        process=-1 - place if open_ended else client,
        f=f,
        key=key,
        argument=argument,
        result=None if open_ended else result,
        type="info" if open_ended else "ok",
        start=start,
        end=None if open_ended else end,
    )


def _with_violation(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    """Spoil one answer in the last tenth: a value never written, or another element taken there.

    Another element, where there are few, may leave an order.
    """
    late = [
        place
        for place in range(len(operations) * 9 // 10, len(operations))
        if operations[place].f in _READS | _TAKES and operations[place].type == "ok"
    ]
    place = random.choice(late)
    answers = [operations[n].result for n in late if operations[place].f in _TAKES]
    others = [answer for answer in answers if answer != operations[place].result]
    spoiled = list(operations)
    answer = random.choice(others) if others else "never written"
    spoiled[place] = msgspec.structs.replace(operations[place], result=answer)
    return spoiled


def with_stale_read(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    """Spoil one late read of a history without ``info``: it answers a value surely overwritten.

    A get of text that is appended to lacks the end of it, from an append that returned before.

    Sure is: every operation that could set the value returned before an acknowledged write of
    another value began, which returned before the read began.

    Raises:
        ValueError: no read of the last half can be spoiled so.
    """
    reads = [
        place
        for place in range(len(operations) // 2, len(operations))
        if operations[place].f in _READS
    ]
    random.shuffle(reads)
    for place in reads:
        read = operations[place]
        values = (_shortened if read.f == "get" else _overwritten)(operations, read)
        if values:
            spoiled = list(operations)
            value = random.choice(values)
            spoiled[place] = msgspec.structs.replace(operations[place], result=value)
            return spoiled
    raise ValueError("no read of the last half can answer a value that was surely overwritten")


def _shortened(operations: list[PairedOperation], read: PairedOperation) -> list[Any]:
    """Answers of a get without the text of an append that returned before, and what follows it."""
    done = (o for o in operations if o.f == "append" and o.end is not None and o.end < read.start)
    places = (str(read.result or "").find(o.argument) for o in done if o.key == read.key)
    return [read.result[:place] for place in sorted(places) if place > 0][-10:]


def _overwritten(operations: list[PairedOperation], read: PairedOperation) -> list[Any]:
    """Values that no operation can have left for this read, though some wrote them."""
    last_set_ns: dict[Any, int] = {}
    for operation in operations:
        if operation.f == "read" or operation.key != read.key or operation.end is None:
            continue
        if operation.f == "cas" and not operation.result[2]:
            continue
        if read.end is not None and operation.start <= read.end:
            value = operation.argument if operation.f == "write" else operation.argument[1]
            last_set_ns[value] = max(last_set_ns.get(value, 0), operation.end)
    last_write_ns = max((o.start for o in operations if _writes_before(o, read)), default=-1)
    return sorted(value for value, end in last_set_ns.items() if end < last_write_ns)


def _writes_before(operation: PairedOperation, read: PairedOperation) -> bool:
    same_key = operation.f == "write" and operation.key == read.key
    return same_key and operation.end is not None and operation.end < read.start
