"""Small random histories of transactions on rows, about half of them violating a level."""

from random import Random
from typing import Any

from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.small_transactions import in_time

#: As in ``small_transactions``.
WAYS = ("serial", "snapshot", "anywhere", "anywhere")
Rows = dict[str, list[int]]


def random_row_transactions(random: Random) -> list[PairedOperation]:
    """Two to four transactions of one to three micro-operations over one or two groups."""
    count = random.choice((2, 3, 3, 4))
    groups = ["g", "h"][: random.choice((1, 1, 2))]
    inserted: list[tuple[str, int]] = []
    asked: list[list[list[Any]]] = []
    for _ in range(count):
        parts: list[list[Any]] = []
        for _ in range(random.choice((1, 2, 2, 3))):
            group = random.choice(groups)
            if random.random() < 0.4:
                inserted.append((group, len(inserted) + 1))
                parts.append(["insert", group, len(inserted)])
            else:
                parts.append(["range", group, None])
        asked.append(parts)
    for group, row in inserted:
        if random.random() < 0.6:
            parts = random.choice(asked)
            parts.insert(random.randint(0, len(parts)), ["delete", group, row])
    outcomes = [random.choices(("ok", "info", "fail"), (10, 2, 1))[0] for _ in range(count)]
    order = random.sample(range(count), count)
    answers = _answered(random, asked, outcomes, order, random.choice(WAYS))
    for _ in range(random.choice((0, 0, 1, 2))):
        _spoil(random, answers, inserted)
    return in_time(random, answers, outcomes, order, asked)


def _answered(
    random: Random,
    asked: list[list[list[Any]]],
    outcomes: list[str],
    order: list[int],
    way: str,
) -> list[list[list[Any]]]:
    states: list[set[tuple[str, int]]] = [set()]
    answers: list[list[list[Any]]] = [[] for _ in asked]
    for txn in order:
        back = 1 if way == "serial" else random.choice((1, 2, 3))
        seen = set(states[max(len(states) - back, 0)])
        after = set(states[-1])
        for f, group, row in asked[txn]:
            if way == "anywhere":
                seen = set(random.choice(states))
            if f == "range":
                there = [other for name, other in sorted(seen) if name == group]
                answers[txn].append([f, group, there])
            elif f == "insert":
                seen.add((group, row))
                after.add((group, row))
                answers[txn].append([f, group, row])
            else:
                answers[txn].append([f, group, row if (group, row) in seen else None])
                seen.discard((group, row))
                after.discard((group, row))
        happened = outcomes[txn] == "ok" or (outcomes[txn] == "info" and random.random() < 0.6)
        if happened or random.random() < 0.1:
            states.append(after)
    return answers


def _spoil(random: Random, answers: list[list[list[Any]]], inserted: list[tuple[str, int]]) -> None:
    """Change one answer."""
    parts = [part for each in answers for part in each if part[0] != "insert"]
    if not parts:
        return
    part = random.choice(parts)
    rows = [row for group, row in inserted if group == part[1]]
    if part[0] == "range":
        extra = random.choice([*rows, *rows, 99]) if rows else 99
        part[2] = part[2][1:] if part[2] and random.random() < 0.5 else [*part[2], extra]


def named(history: list[PairedOperation]) -> str:
    """A history for people."""
    return "\n".join(f"{o.index} {o.process} {o.type} {o.argument} {o.result}" for o in history)
