"""Histories of transactions of many shapes, for ``bench.transactions``."""

from bisect import bisect_left
from copy import copy
from random import Random
from typing import Any, Final, NamedTuple

from splitbrain.checker.transactions.levels import Kind
from splitbrain.history.records import PairedOperation

STEP_NS: Final = 1000


class Shape(NamedTuple):
    """Shape of a history."""

    sessions: int
    keys: int
    length_max: int
    #: Writes after which a key is replaced by a new one.
    writes_per_key: int
    #: Shares of transactions without answer, and of those that fail.
    open_share: float = 0.0
    failed_share: float = 0.0
    #: Whether each write follows a read of its key, and is all that the transaction does with it.
    is_mini: bool = False


USUAL: Final = Shape(10, 10, 4, 100)


def drawn_shape(random: Random) -> Shape:
    """Shape between the ones that the rows name."""
    return Shape(
        sessions=round(2 * 50 ** random.random()),
        keys=round(10_000 ** random.random()),
        length_max=random.randint(1, 12),
        writes_per_key=round(5 * 40 ** random.random()),
        open_share=random.choice((0.0, 0.05, 0.2)),
        failed_share=random.choice((0.0, 0.1)),
    )


def history(kind: Kind, shape: Shape, count: int, seed: int) -> list[PairedOperation]:
    """Transactions carried out one after the other, each open for as long as its session is."""
    if kind == "rows":
        return rows_history(shape, count, seed)
    random = Random(f"{seed} {kind} {shape}")
    state: dict[int, Any] = {}
    written: dict[int, int] = {}
    keys = list(range(shape.keys))
    values = 0
    operations: list[PairedOperation] = []
    for number in range(count):
        draw = random.random()
        outcome = "ok"
        if draw < shape.open_share + shape.failed_share:
            outcome = "info" if draw < shape.open_share else "fail"
        asked: list[list[Any]] = []
        answered: list[list[Any]] = []
        places = [
            min(int(random.paretovariate(1.0)) - 1, shape.keys - 1)
            for _ in range(random.randint(1, shape.length_max))
        ]
        for place in {*places} if shape.is_mini else places:
            key = keys[place]
            is_write = random.random() < 0.5
            if shape.is_mini or not is_write:
                asked.append(["r", key, None])
                answered.append(["r", key, copy(state.get(key))])
            if not is_write:
                continue
            values += 1
            f = "append" if kind == "list-append" else "w"
            asked.append([f, key, values])
            answered.append([f, key, values])
            written[key] = written.get(key, 0) + 1
            if outcome != "fail":
                state[key] = [*state.get(key, ()), values] if f == "append" else values
            if written[key] == shape.writes_per_key:
                keys[place] = shape.keys + values
        operations.append(operation_of(number, shape, asked, answered, outcome))
    return operations


def rows_history(shape: Shape, count: int, seed: int) -> list[PairedOperation]:
    """Transactions on rows, carried out one after the other; keys of the shape are groups."""
    random = Random(f"{seed} rows {shape}")
    groups = list(range(shape.keys))
    #: Rows that are there, and those of them that nobody has tried to delete; all inserts.
    there: dict[int, list[int]] = {}
    fresh: dict[int, list[int]] = {}
    inserted: dict[int, int] = {}
    operations: list[PairedOperation] = []
    ids = 0
    for number in range(count):
        draw = random.random()
        outcome = "ok"
        if draw < shape.open_share + shape.failed_share:
            outcome = "info" if draw < shape.open_share else "fail"
        asked: list[list[Any]] = []
        answered: list[list[Any]] = []
        for _ in range(random.randint(1, shape.length_max)):
            place = min(int(random.paretovariate(1.0)) - 1, shape.keys - 1)
            group = groups[place]
            rows, left = there.setdefault(group, []), fresh.setdefault(group, [])
            draw = random.random()
            if draw < 0.5:
                asked.append(["range", group, None])
                answered.append(["range", group, [*rows]])
            elif draw < 0.75 and left:
                row = left.pop(random.randrange(len(left)))
                asked.append(["delete", group, row])
                answered.append(["delete", group, row if row in rows else None])
                if outcome != "fail" and row in rows:
                    rows.remove(row)
            else:
                ids += 1
                asked.append(["insert", group, ids])
                answered.append(["insert", group, ids])
                if outcome != "fail":
                    rows.append(ids)
                    left.append(ids)
                inserted[group] = inserted.get(group, 0) + 1
                if inserted[group] == shape.writes_per_key:
                    groups[place] = shape.keys + ids
        operations.append(operation_of(number, shape, asked, answered, outcome))
    return operations


def snapshot_rows(count: int, seed: int, sessions: int = 10) -> list[PairedOperation]:
    """Transactions on rows that see what was committed when they began, as snapshots do.

    None waits for another, so that they are not serializable; each row is deleted once at most.
    """
    shape = Shape(sessions, 10, 4, 20)
    random = Random(f"{seed} snapshot rows")
    groups = list(range(shape.keys))
    #: By row of a group, the transactions that inserted and deleted it.
    rows: dict[int, dict[int, list[int]]] = {}
    operations: list[PairedOperation] = []
    ids = 0
    for number in range(count):
        # Those of the other sessions have not ended.
        seen = number - sessions
        parts: list[list[Any]] = []
        for _ in range(random.randint(1, shape.length_max)):
            place = min(int(random.paretovariate(1.0)) - 1, shape.keys - 1)
            group = groups[place]
            mine = rows.setdefault(group, {})
            shown = [
                row
                for row, (born, *gone) in mine.items()
                if (born <= seen or born == number)
                and not any(by <= seen or by == number for by in gone)
            ]
            draw = random.random()
            if draw < 0.5:
                parts.append(["range", group, shown])
            elif draw < 0.75 and (left := [row for row in shown if len(mine[row]) == 1]):
                row = random.choice(left)
                parts.append(["delete", group, row])
                mine[row].append(number)
            else:
                ids += 1
                parts.append(["insert", group, ids])
                mine[ids] = [number]
                if len(mine) == shape.writes_per_key:
                    groups[place] = shape.keys + ids
        asked = [[way, group, None if way == "range" else row] for way, group, row in parts]
        operations.append(operation_of(number, shape, asked, parts, "ok"))
    return operations


def operation_of(
    number: int, shape: Shape, asked: list[Any], answered: list[Any], outcome: Any
) -> PairedOperation:
    """Transaction of this number, in its session and at its time."""
    # A session that saw an open one goes on under another number.
    process = number if outcome == "info" else number % shape.sessions
    return PairedOperation(
        index=number,
        process=process if outcome != "info" else 1_000_000 + number,
        f="txn",
        key=None,
        argument=asked,
        result=answered if outcome == "ok" else None,
        type=outcome,
        start=number * STEP_NS,
        end=None if outcome == "info" else (number + shape.sessions) * STEP_NS - 1,
    )


def ring(count: int) -> list[PairedOperation]:
    """Transactions each of which missed the append of the next one, the last that of the first."""
    shape = Shape(count, count, 2, 1)
    found: list[PairedOperation] = []
    for number in range(count - 1):
        parts = [["r", (number + 1) % (count - 1), None], ["append", number, 1]]
        found.append(operation_of(number, shape, parts, parts, "ok"))
    # Everything overlaps; one more saw all of them.
    keys = range(count - 1)
    asked, answered = [["r", key, None] for key in keys], [["r", key, [1]] for key in keys]
    found.append(operation_of(count - 1, shape, asked, answered, "ok"))
    return found


def skewed(count: int, seed: int) -> list[PairedOperation]:
    """Transactions on snapshots up to ten transactions old, none of which overwrites another's."""
    random = Random(seed)
    shape = Shape(10, 10, 4, 100)
    state: dict[int, tuple[int, ...]] = dict.fromkeys(range(shape.keys), ())
    past = [state]
    born = shape.keys
    found: list[PairedOperation] = []
    for number in range(count):
        seen = random.choice(past)
        free = [key for key in state if seen.get(key) == state[key]]
        keys = random.sample(sorted(seen), 3)
        asked: list[list[Any]] = [["r", key, None] for key in keys]
        answered: list[list[Any]] = [["r", key, [*seen[key]]] for key in keys]
        state = dict(state)
        if free:
            key = random.choice(free)
            for parts in (asked, answered):
                parts.append(["append", key, number])
            state[key] = (*state[key], number)
            if len(state[key]) == shape.writes_per_key:
                del state[key]
                state[born] = ()
                born += 1
        past = [*past, state][-10:]
        found.append(operation_of(number, shape, asked, answered, "ok"))
    return found


def lagging(shape: Shape, count: int, seed: int) -> list[PairedOperation]:
    """Transactions on registers, each of which sees what others did a while ago.

    A session never goes back and sees all of its own, so this is causal, and not serial.
    """
    random = Random(f"{seed} lagging {shape}")
    #: Transactions that wrote each key, and their values.
    written: dict[int, tuple[list[int], list[int]]] = {}
    keys = list(range(shape.keys))
    #: Number of transactions from the first one on that each session has seen.
    seen = [0] * shape.sessions
    values = 0
    found: list[PairedOperation] = []
    for number in range(count):
        session = number % shape.sessions
        seen[session] = max(seen[session], number - random.randint(0, shape.sessions))
        asked: list[list[Any]] = []
        answered: list[list[Any]] = []
        own: dict[int, int] = {}
        for _ in range(random.randint(1, shape.length_max)):
            place = min(int(random.paretovariate(1.0)) - 1, shape.keys - 1)
            key = keys[place]
            if random.random() < 0.5:
                txns, shown = written.get(key, ([], []))
                version = bisect_left(txns, seen[session])
                value = own.get(key, shown[version - 1] if version else None)
                asked.append(["r", key, None])
                answered.append(["r", key, value])
                continue
            values += 1
            own[key] = values
            asked.append(["w", key, values])
            answered.append(["w", key, values])
        for key, value in own.items():
            txns, shown = written.setdefault(key, ([], []))
            txns.append(number)
            shown.append(value)
            if len(txns) == shape.writes_per_key and key in keys:
                keys[keys.index(key)] = shape.keys + values
        seen[session] = number + 1 if own else seen[session]
        found.append(operation_of(number, shape, asked, answered, "ok"))
    return found
