"""Small random histories of logs: a log as it should be, recorded, and then perhaps spoiled.

A record of a plain send is visible once it is appended, one of a transaction once that committed.
"""

from random import Random
from typing import Any

import msgspec

from splitbrain.history.records import PairedOperation

Parts = list[Any]


def operation(
    index: int, f: str, argument: Any, start: int, end: int | None, **fields: Any
) -> PairedOperation:
    """One operation; ``outcome``, ``result`` and ``final`` as the checker has them."""
    return PairedOperation(
        index=index,
        process=fields.get("process", index),
        f=f,
        key=None,
        argument=argument,
        result=fields.get("result"),
        type=fields.get("outcome", "ok"),
        start=start,
        end=end,
        final=fields.get("final", False),
    )


class World:
    """One log per key, in which each moment is an append, a commit, or a read."""

    def __init__(self, random: Random, keys: int) -> None:
        self.random = random
        self.keys = [f"k{number}" for number in range(keys)]
        #: Per key offset, value, and the index of who sent it.
        self.logs: dict[str, list[tuple[int, int, int]]] = {key: [] for key in self.keys}
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.operations: list[PairedOperation] = []
        self.now = 0
        self.values = 0

    def tick(self) -> int:
        self.now += self.random.choice((0, 1, 1, 2))
        return self.now

    def append(self, key: str, value: int, index: int) -> int:
        log = self.logs[key]
        # Offsets that no record has: those of markers, and of what was aborted.
        offset = (log[-1][0] + 1 if log else 0) + self.random.choice((0, 0, 0, 1))
        log.append((offset, value, index))
        return offset

    def visible(self, key: str) -> list[tuple[int, int]]:
        """Records that are committed, up to the first that is not."""
        found: list[tuple[int, int]] = []
        for offset, value, index in self.logs[key]:
            if index in self.aborted:
                continue
            if index not in self.committed:
                break
            found.append((offset, value))
        return found

    def send(self, parts: int, f: str = "send") -> None:
        """Send that is acknowledged, has an unknown outcome, or fails."""
        random, index = self.random, len(self.operations)
        start = self.tick()
        outcome = random.choice(("ok", "ok", "ok", "info", "fail"))
        happens = outcome == "ok" or (outcome == "info" and random.random() < 0.7)
        if f == "txn" and random.random() < 0.2:
            f = "abort"
        asked: Parts = []
        answered: Parts = []
        for _ in range(parts):
            if f != "send" and ["poll"] not in asked and random.random() < 0.4:
                asked.append(["poll"])
                found = {key: self.visible(key)[-2:] for key in self.keys}
                answered.append(["poll", {k: [list(r) for r in read] for k, read in found.items()}])
                continue
            key = random.choice(self.keys)
            self.values += 1
            asked.append(["send", key, self.values])
            offset = self.append(key, self.values, index) if happens else None
            answered.append(["send", key, [offset, self.values]])
        if happens:
            (self.aborted if f == "abort" else self.committed).add(index)
        self.tick()
        self.operations.append(
            operation(
                index,
                f,
                asked,
                start,
                self.now if outcome != "info" else None,
                outcome=outcome,
                result=answered if outcome == "ok" else None,
            )
        )

    def consume(self, process: int, *, is_final: bool) -> None:
        """Assign all logs, from the beginning or an unknown place, and read them."""
        random = self.random
        place = dict.fromkeys(self.keys, 0)
        is_told = is_final or random.random() < 0.7
        starts: Any = dict(place) if is_told else [*self.keys]
        if not is_told:
            place = {key: random.choice((0, 1)) for key in self.keys}
        self.record("assign", starts, None, process, is_final=False)
        for last in (*([False] * random.choice((0, 1))), is_final):
            start = self.tick()
            found: dict[str, list[list[int]]] = {}
            positions: dict[str, int] = {}
            for key in self.keys:
                ahead = [list(one) for one in self.visible(key) if one[0] >= place[key]]
                read = ahead if last else ahead[: random.randint(0, len(ahead))]
                found[key] = read
                if read:
                    place[key] = read[-1][0] + 1
                if last or random.random() < 0.3:
                    positions[key] = place[key]
            answer = [["poll", found, positions] if positions else ["poll", found]]
            self.record("poll", [["poll"]], answer, process, is_final=last, start=start)

    def record(
        self,
        f: str,
        argument: Any,
        result: Any,
        process: int,
        *,
        is_final: bool,
        start: int | None = None,
    ) -> None:
        start = self.tick() if start is None else start
        self.operations.append(
            operation(
                len(self.operations),
                f,
                argument,
                start,
                self.tick(),
                process=process,
                result=result,
                final=is_final,
            )
        )


def right_history(random: Random, *, transactions: bool) -> list[PairedOperation]:
    """A history of a log as it should be."""
    world = World(random, 2 if transactions else 1)
    for turn in range(random.randint(2, 4)):
        world.send(random.randint(1, 3 if transactions else 1), "txn" if transactions else "send")
        if random.random() < 0.4:
            world.consume(100 + turn, is_final=random.random() < 0.3)
    world.consume(200, is_final=True)
    return world.operations


def spoiled(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    """The same with one thing changed; often it still makes sense."""
    found = [*operations]
    kind = random.randrange(6)
    if kind == 4:
        return forgotten(random, found)
    if kind == 5:
        return seen_early(random, found)
    place = random.randrange(len(found))
    chosen = found[place]
    result: Any = msgspec.json.decode(msgspec.json.encode(chosen.result))
    fields: dict[str, Any] = {}
    match kind:
        case 0:
            fields["start"] = random.randint(0, chosen.start)
            if chosen.end is not None:
                fields["start"] = random.randint(0, chosen.end)
        case 1 if chosen.end is not None:
            fields["end"] = random.randint(chosen.start, chosen.end + 4)
        case 2 if chosen.type == "ok" and chosen.f in ("send", "txn"):
            fields |= {"type": "fail", "result": None}
        case _ if result:
            part = random.choice(result)
            if part[0] == "send":
                part[2][0] = max(0, part[2][0] + random.choice((-1, 1)))
            else:
                spoil_poll(random, part)
            fields["result"] = result
        case _:
            pass
    found[place] = msgspec.structs.replace(chosen, **fields)
    return found


def sends_of(operations: list[PairedOperation]) -> list[tuple[int, str, int]]:
    """Place of the operation, key, value."""
    return [
        (place, part[1], part[2])
        for place, one in enumerate(operations)
        if one.f in ("send", "txn", "abort")
        for part in one.argument
        if part[0] == "send"
    ]


def forgotten(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    """One record is in no answer, and whether it was sent is open."""
    sends = sends_of(operations)
    if not sends:
        return operations
    place, key, value = random.choice(sends)
    found: list[PairedOperation] = []
    for one in operations:
        result: Any = msgspec.json.decode(msgspec.json.encode(one.result))
        for part in result or ():
            if part[0] == "poll" and key in part[1]:
                part[1][key] = [record for record in part[1][key] if record[1] != value]
        found.append(msgspec.structs.replace(one, result=result))
    if random.random() < 0.7:
        found[place] = msgspec.structs.replace(found[place], type="info", result=None, end=None)
    return found


def seen_early(random: Random, operations: list[PairedOperation]) -> list[PairedOperation]:
    """An operation reads at its end what another one sent, where that had its place."""
    at = {
        (key, value): offset
        for one in operations
        for part in one.result or ()
        if part[0] == "poll"
        for key, records in part[1].items()
        for offset, value in records
    }
    readers = [
        place
        for place, one in enumerate(operations)
        if one.type == "ok" and one.f != "assign" and ["poll"] in one.argument
    ]
    transactions = [place for place in readers if operations[place].f == "txn"]
    if transactions and random.random() < 0.7:
        readers = transactions
    chosen = operations[random.choice(readers)] if readers and at else None
    if chosen is None:
        return operations
    result: Any = msgspec.json.decode(msgspec.json.encode(chosen.result))
    key, value = random.choice([*at])
    read = next(part for part in result if part[0] == "poll")[1].setdefault(key, [])
    if value not in [known for _, known in read]:
        read.append([at[key, value], value])
        read.sort()
    found = [*operations]
    start = random.choice((chosen.start, 0))
    found[operations.index(chosen)] = msgspec.structs.replace(chosen, result=result, start=start)
    return found


def spoil_poll(random: Random, part: Any) -> None:
    """Change one record or position of an answer."""
    key = random.choice([*part[1]])
    read = part[1][key]
    kind = random.randrange(4)
    if part[2:] and part[2] and kind == 0:
        place = random.choice([*part[2]])
        part[2][place] = max(0, part[2][place] + random.choice((-1, 1)))
    elif read and kind == 1:
        read.pop(random.randrange(len(read)))
    elif read and kind == 2:
        record = random.choice(read)
        record[0] = max(0, record[0] + random.choice((-1, 1)))
    elif read:
        random.choice(read)[1] = random.randint(1, 6)
