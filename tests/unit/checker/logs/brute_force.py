"""Oracle of small histories of logs: is there any course of events that explains all answers?

Slow and independent of the checker: it looks for a moment of each append, commit and final look at
the end, among all moments at which something began or ended. Records whose offsets nobody told are
not placed, so histories must tell them, or nobody may read them.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

from splitbrain.history.records import PairedOperation

Record = tuple[str, int]


def is_explained(operations: list[PairedOperation]) -> bool:
    """Return whether some course of events explains a history."""
    world = Facts(operations)
    return world.are_plain and any(map(world.is_possible, world.choices()))


class Facts:
    """All that answers say, by itself."""

    def __init__(self, operations: list[PairedOperation]) -> None:
        self.operations = {one.index: one for one in operations}
        self.sender: dict[Record, int] = {
            (part[1], part[2]): one.index
            for one in operations
            if one.f in ("send", "txn", "abort")
            for part in one.argument
            if part[0] == "send"
        }
        #: Value at each offset.
        self.at: dict[tuple[str, int], set[int]] = {}
        #: Readers of each record.
        self.readers: dict[Record, list[int]] = {}
        #: Offsets that a consumer passed, without those it read.
        self.passed: set[tuple[str, int]] = set()
        #: Key, offset, operation: all below was settled by its end.
        self.settled: list[tuple[str, int, int]] = []
        #: Key, end, operation, whether it had everything from the beginning, values it had.
        self.ends: list[tuple[str, int, int, bool, set[int]]] = []
        self.are_plain = True
        for one in operations:
            if one.type == "ok" and one.f in ("send", "txn"):
                for part in one.result:
                    if part[0] == "send" and part[2][0] is not None:
                        self.stands(part[1], part[2][0], part[2][1])
        for process in {one.process for one in operations}:
            self.consume([one for one in operations if one.process == process])
        self.are_plain = self.are_plain and all(len(values) == 1 for values in self.at.values())
        places: dict[Record, set[int]] = {}
        for (key, offset), values in self.at.items():
            for value in values:
                places.setdefault((key, value), set()).add(offset)
        self.are_plain = self.are_plain and all(len(found) == 1 for found in places.values())
        self.are_plain = self.are_plain and self.passed.isdisjoint(self.at)

    def stands(self, key: str, offset: int, value: int) -> None:
        self.at.setdefault((key, offset), set()).add(value)

    def consume(self, operations: list[PairedOperation]) -> None:
        place: dict[str, int | None] = {}
        first: dict[str, int] = {}
        had: dict[str, set[int]] = {}
        for one in operations:
            if one.f == "assign":
                starts = one.argument if isinstance(one.argument, dict) else {}
                place, first, had = dict(starts), dict(starts), {}
            if one.f not in ("poll", "txn", "abort") or one.type != "ok":
                if one.f != "assign" and ["poll"] in one.argument:
                    place, first = {}, {}
                continue
            for part in one.result:
                if part[0] == "poll":
                    positions = part[2] if part[2:] else {}
                    for key, read in part[1].items():
                        self.read(one, key, read, place, first, had)
                        if key in positions:
                            self.told(one, key, positions[key], place, first, had)

    def read(self, one: PairedOperation, key: str, read: Any, *state: Any) -> None:
        place, first, had = state
        for offset, value in read:
            self.stands(key, offset, value)
            self.readers.setdefault((key, value), []).append(one.index)
            had.setdefault(key, set()).add(value)
            now = place.get(key)
            if now is None:
                first.setdefault(key, offset)
            else:
                self.are_plain = self.are_plain and offset >= now
                self.pass_over(one, key, now, offset)
            place[key] = offset + 1

    def told(self, one: PairedOperation, key: str, position: int, *state: Any) -> None:
        place, first, had = state
        if place.get(key) is not None:
            self.are_plain = self.are_plain and position >= place[key]
            self.pass_over(one, key, place[key], position)
        first.setdefault(key, position)
        place[key] = position
        if one.final:
            self.settled.append((key, position, one.index))
            is_whole = first[key] == 0
            self.ends.append((key, position, one.index, is_whole, had.get(key, set())))

    def pass_over(self, one: PairedOperation, key: str, first: int, end: int) -> None:
        if end > first:
            self.passed |= {(key, offset) for offset in range(first, end)}
            self.settled.append((key, end, one.index))

    def choices(self) -> Iterator[dict[int, int]]:
        """Yield commit times of all transactions that committed."""
        times = sorted({t for one in self.operations.values() for t in (one.start, one.end) if t})
        times = [0, *times]
        can: list[list[tuple[int, int] | None]] = []
        for one in self.operations.values():
            if one.f != "txn" or one.type == "fail":
                continue
            last = max(times) if one.end is None else one.end
            can.append([(one.index, time) for time in times if one.start <= time <= last])
            if one.type == "info":
                can[-1].append(None)
        for chosen in product(*can):
            yield dict(filter(None, chosen))

    def is_possible(self, commits: dict[int, int]) -> bool:
        """Return whether these commits explain what was read, and appends can be placed."""
        for (key, value), readers in self.readers.items():
            sender = self.sender.get((key, value))
            if sender is None or self.operations[sender].type == "fail":
                return False
            if self.operations[sender].f == "abort":
                return False
            of = self.operations[sender]
            for reader in readers:
                by = self.operations[reader]
                if of.f == "txn":
                    if sender not in commits or reader == sender:
                        return False
                    until = commits[reader] if by.f == "txn" else by.end
                    # Two that read each other cannot both be the earlier one.
                    if until is None or commits[sender] > until:
                        return False
        return not self.reads_in_a_circle() and self.has_all(commits) and self.can_append(commits)

    def reads_in_a_circle(self) -> bool:
        before: dict[int, set[int]] = {}
        for record, readers in self.readers.items():
            sender = self.sender[record]
            for reader in readers:
                if self.operations[sender].f == self.operations[reader].f == "txn":
                    before.setdefault(reader, set()).add(sender)
        while True:
            more = {
                one: found | {far for near in found for far in before.get(near, ())}
                for one, found in before.items()
            }
            if more == before:
                return any(one in found for one, found in before.items())
            before = more

    def has_all(self, commits: dict[int, int]) -> bool:
        """Return whether whole reads have every record that was committed before they began."""
        for key, end, index, is_whole, had in self.ends:
            began = self.operations[index].start
            for (of, value), sender in self.sender.items():
                one = self.operations[sender]
                by = commits.get(sender) if one.f == "txn" else one.end
                if one.f == "abort":
                    continue
                if of != key or by is None or by >= began or one.type == "fail":
                    continue
                if one.f == "send" and one.type != "ok":
                    continue
                places = [at for at in self.at if at[0] == key and value in self.at[at]]
                if not places and is_whole and value not in had:
                    return False
                if any(offset >= end for _, offset in places):
                    return False
        return True

    def can_append(self, commits: dict[int, int]) -> bool:
        """Return whether appends can have moments that rise with their offsets."""
        for key in {key for key, _ in self.at} | {key for key, *_ in self.ends}:
            chain: list[tuple[float, int, float]] = []
            for (of, offset), values in self.at.items():
                if of != key:
                    continue
                (value,) = values
                sender = self.sender[key, value]
                one = self.operations[sender]
                last = [
                    self.operations[reader].end for reader in self.readers.get((key, value), [])
                ]
                if one.type == "ok" or sender in commits:
                    last.append(commits.get(sender, one.end))
                chain.append((offset, one.start, min([t for t in last if t is not None])))
            # Something below stood there by then, be it a marker.
            for of, end, index in self.settled:
                if of == key:
                    chain.append((end - 0.5, 0, self.operations[index].end or 0))
            # An end lies before everything that came after it.
            for of, end, index, *_ in self.ends:
                if of == key:
                    chain.append((end - 0.25, self.operations[index].start, float("inf")))
            now = 0
            for _, start, last in sorted(chain):
                now = max(now, start)
                if now > last:
                    return False
        return True
