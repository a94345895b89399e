"""Small random histories of transactions, about half of them violating a level."""

from random import Random
from typing import Any

from splitbrain.history.records import PairedOperation

#: Ways in which reads come about: one transaction after the other, from snapshots, from anywhere,
#: the future too.
WAYS = ("serial", "snapshot", "anywhere", "anywhere")


def transaction(
    index: int,
    micro_operations: list[list[Any]],
    start: int,
    end: int | None,
    *,
    process: int | None = None,
    outcome: str = "ok",
    final: bool = False,
    asked: list[list[Any]] | None = None,
) -> PairedOperation:
    """One transaction; its argument is its answer without what was read, or ``asked``."""
    if asked is None:
        asked = [
            [f, key, None if f in ("r", "range") else value] for f, key, value in micro_operations
        ]
    return PairedOperation(
        index=index,
        process=index if process is None else process,
        f="txn",
        key=None,
        argument=asked,
        result=micro_operations if outcome == "ok" else None,
        type=outcome,  # type: ignore[arg-type]
        start=start,
        end=None if outcome == "info" else end,
        final=final,
    )


def random_transactions(random: Random, kind: str) -> list[PairedOperation]:
    """Two to four transactions of one to three micro-operations over one to three keys."""
    count = random.choice((2, 3, 3, 4))
    keys = ["x", "y", "z"][: random.choice((1, 2, 2, 3))]
    write = "append" if kind == "list-append" else "w"
    values = iter(range(1, 100))
    asked = [
        [
            [write, key, next(values)] if random.random() < 0.5 else ["r", key, None]
            for key in random.choices(keys, k=random.choice((1, 2, 2, 3)))
        ]
        for _ in range(count)
    ]
    outcomes = [random.choices(("ok", "info", "fail"), (10, 1, 1))[0] for _ in range(count)]
    way = random.choice(WAYS)
    order = random.sample(range(count), count)
    answers = _answered(random, kind, asked, outcomes, order, way)
    for _ in range(random.choice((0, 0, 1, 2))):
        _spoil(random, kind, answers)
    return in_time(random, answers, outcomes, order)


def random_open_transactions(random: Random, kind: str) -> list[PairedOperation]:
    """Three or four transactions that read, each key once, and then write what they had not read.

    Reads show what some transaction left behind, so that orders alone are to be found, or are not.
    """
    count = random.choice((3, 4, 4))
    keys = ["x", "y", "z"][: random.choice((2, 3, 3))]
    values = iter(range(1, 100))
    written: list[dict[str, int]] = [
        {key: next(values) for key in random.sample(keys, random.choice((0, 1, 1, 2)))}
        for _ in range(count)
    ]
    answers: list[list[list[Any]]] = []
    for txn, own in enumerate(written):
        reads: list[list[Any]] = []
        for key in random.sample(keys, random.choice((0, 1, 1, 2))):
            others = [each[key] for n, each in enumerate(written) if key in each and n != txn]
            if kind == "list-append":
                # The first one alone, so that all else is unread.
                value: Any = others[:1] if random.random() < 0.25 and key not in own else []
                reads.append(["r", key, value])
            else:
                reads.append(["r", key, random.choice([None, *others, *others])])
        write = "append" if kind == "list-append" else "w"
        answers.append([*reads, *([write, key, value] for key, value in own.items())])
    outcomes: list[str] = random.choices(["ok", "info"], (12, 1), k=count)
    if random.random() < 0.3:
        return in_time(random, answers, outcomes, random.sample(range(count), count))
    starts = sorted(random.choices((0, 5, 40), k=count))
    return [
        transaction(n, parts, starts[n], starts[n] + random.choice((20, 60)), outcome=outcomes[n])
        for n, parts in enumerate(answers)
    ]


def random_mini_transactions(random: Random, kind: str) -> list[PairedOperation]:
    """Two to four transactions of which each write follows a read of its key; all are answered."""
    count = random.choice((2, 3, 4, 4))
    keys = ["x", "y", "z"][: random.choice((1, 2, 3))]
    write = "append" if kind == "list-append" else "w"
    values = iter(range(1, 100))
    asked: list[list[list[Any]]] = []
    for _ in range(count):
        parts: list[list[Any]] = []
        for key in random.sample(keys, random.randint(1, min(2, len(keys)))):
            parts.append(["r", key, None])
            if random.random() < 0.6:
                parts.append([write, key, next(values)])
        asked.append(parts)
    outcomes = [random.choices(("ok", "fail"), (12, 1))[0] for _ in range(count)]
    order = random.sample(range(count), count)
    answers = _answered(random, kind, asked, outcomes, order, random.choice(WAYS))
    if random.random() < 0.3:
        _spoil(random, kind, answers)
    return in_time(random, answers, outcomes, order)


def _answered(
    random: Random,
    kind: str,
    asked: list[list[list[Any]]],
    outcomes: list[str],
    order: list[int],
    way: str,
) -> list[list[list[Any]]]:
    states: list[dict[str, Any]] = [{}]
    answers: list[list[list[Any]]] = [[] for _ in asked]
    for txn in order:
        back = 1 if way == "serial" else random.choice((1, 2, 3))
        seen = dict(states[max(len(states) - back, 0)])
        after = dict(states[-1])
        for f, key, value in asked[txn]:
            if way == "anywhere":
                seen = {**random.choice(states), **{k: v for k, v in seen.items() if k != key}}
            if f == "r":
                answers[txn].append([f, key, seen.get(key)])
                continue
            for state in (seen, after):
                state[key] = [*state.get(key, []), value] if kind == "list-append" else value
            answers[txn].append([f, key, value])
        happened = outcomes[txn] == "ok" or (outcomes[txn] == "info" and random.random() < 0.5)
        if happened or random.random() < 0.1:
            states.append(after)
    if way == "anywhere":
        for part in (part for parts in answers for part in parts if part[0] == "r"):
            if random.random() < 0.4:
                part[2] = random.choice(states).get(part[1])
    return answers


def _spoil(random: Random, kind: str, answers: list[list[list[Any]]]) -> None:
    reads = [part for parts in answers for part in parts if part[0] == "r"]
    if not reads:
        return
    part = random.choice(reads)
    written = [p[2] for parts in answers for p in parts if p[0] != "r" and p[1] == part[1]]
    if kind == "list-append":
        part[2] = part[2] or []
        choice = random.random()
        if choice < 0.5:
            part[2] = part[2][:-1]
        elif choice < 0.7:
            part[2] = random.sample(part[2], len(part[2]))
        else:
            part[2] = [*part[2], random.choice([*written, 99])]
    elif written:
        part[2] = random.choice([None, *written])


def in_time(
    random: Random,
    answers: list[list[list[Any]]],
    outcomes: list[str],
    order: list[int],
    asked: list[list[list[Any]]] | None = None,
) -> list[PairedOperation]:
    """Give them times around the order in which they happened, mostly.

    ``asked`` is needed where it is not what was answered without reads.
    """
    processes = random.choice((1, 2, 3))
    free: dict[int, int] = {}
    history: list[PairedOperation] = []
    lanes = list(range(processes))
    for place, txn in enumerate(order):
        lane = random.randrange(processes)
        # A process that saw an open one is never seen again.
        process = lanes[lane]
        start = max(free.get(process, 0), 10 * place - random.choice((0, 5, 15)))
        end = start + random.choice((4, 9, 19))
        free[process] = end + random.choice((0, 1))
        if outcomes[txn] == "info":
            lanes[lane] += processes
        history.append(
            transaction(
                place,
                answers[txn],
                start,
                end,
                process=process,
                outcome=outcomes[txn],
                asked=None if asked is None else asked[txn],
            )
        )
    history.sort(key=lambda o: (o.start, o.index))
    return history
