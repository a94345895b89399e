"""Small random histories of a consumer group: one as it should be, recorded, and perhaps spoiled.

A coordinator decides at one moment of each operation; members of a generation share out the logs at
once, members with epochs of their own give up what they lose before others get it.
"""

from random import Random
from typing import Any

import msgspec

from splitbrain.history.records import PairedOperation

LOGS: tuple[str, ...] = ("a", "b")


def operation(
    index: int, f: str, start: int, end: int | None, result: Any = None, **fields: Any
) -> PairedOperation:
    """One operation; ``outcome``, ``process``, ``argument`` and ``final`` as the checker has it."""
    return PairedOperation(
        index=index,
        process=fields.get("process", index),
        f=f,
        key=None,
        argument=fields.get("argument"),
        result=result,
        type=fields.get("outcome", "ok"),
        start=start,
        end=end,
        final=fields.get("final", False),
    )


class Member:
    """One client, which may be no member any more and not know it."""

    def __init__(self, name: str, process: int) -> None:
        self.name, self.process = name, process
        self.number = 0
        self.positions: dict[str, int] = {}
        #: Operation under way: function, start, answer once it was decided.
        self.open: list[Any] | None = None


class World:
    def __init__(self, random: Random, *, has_generations: bool) -> None:
        self.random, self.has_generations = random, has_generations
        self.operations: list[PairedOperation] = []
        self.now = 0
        self.ends = dict.fromkeys(LOGS, 0)
        self.committed: dict[str, int | None] = dict.fromkeys(LOGS)
        #: Of the group; members as the coordinator has them, with their numbers and logs.
        self.number = 0
        self.numbers: dict[str, int] = {}
        self.owned: dict[str, set[str]] = {}
        self.target: dict[str, set[str]] = {}
        self.named = 0
        self.members = [self.member() for _ in range(random.choice((1, 2, 2, 3)))]
        #: Commits that nobody heard of, and that the coordinator may still come to.
        self.late: list[tuple[str, int, dict[str, int]]] = []

    def tick(self) -> int:
        self.now += self.random.choice((0, 1, 1, 2))
        return self.now

    def member(self) -> Member:
        self.named += 1
        return Member(f"m{self.named}", 10 + self.named)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.finish()

    def step(self) -> None:
        if self.random.random() < 0.4:
            self.ends[self.random.choice(LOGS)] += 1
        if self.late and self.random.random() < 0.2:
            self.accept(*self.late.pop())
        if self.numbers and self.random.random() < 0.08:
            self.remove(self.random.choice([*self.numbers]))
        if self.random.random() < 0.15:
            start = self.tick()
            told = dict(self.committed)
            self.record("fetch-offsets", start, self.tick(), told, 5)
        place = self.random.randrange(len(self.members))
        self.go_on(place, self.members[place])

    def finish(self) -> None:
        for place, member in enumerate(self.members):
            if member.open and member.open[2]:
                self.go_on(place, member)
        self.tick()
        self.now += 1
        for log in LOGS:
            answer = [["poll", {log: [[n, self.value(log, n)] for n in range(self.ends[log])]}]]
            start = self.tick()
            fields: Any = {"argument": [["poll", {log: 0}]], "final": True}
            self.record("poll", start, self.tick(), answer, 6, **fields)
        start = self.tick()
        self.record("fetch-offsets", start, self.tick(), dict(self.committed), 6, final=True)

    @staticmethod
    def value(log: str, offset: int) -> str:
        return f"{log}{offset}"

    def record(
        self, f: str, start: int, end: int | None, result: Any, process: int, **fields: Any
    ) -> None:
        index = len(self.operations)
        self.operations.append(operation(index, f, start, end, result, process=process, **fields))

    def go_on(self, place: int, member: Member) -> None:
        if member.open is None:
            kinds = ("consume", "consume", "commit", "leave")
            weights = (4, 4, 5 if member.positions else 0, 1 if member.number else 0)
            member.open = [self.random.choices(kinds, weights)[0], self.tick(), None]
        elif member.open[2] is None:
            member.open[2] = self.decide(member, member.open[0])
            self.tick()
        else:
            f, start, (outcome, answer) = member.open
            member.open = None
            end = None if outcome == "info" else self.tick()
            self.record(f, start, end, answer, member.process, outcome=outcome)
            if outcome == "info":
                self.members[place] = self.member()

    def decide(self, member: Member, f: str) -> tuple[str, Any]:
        if f == "consume":
            return "ok", self.consume(member)
        if f == "leave":
            self.remove(member.name)
            member.positions, member.number = {}, 0
            return "ok", member.name
        offsets = dict(member.positions)
        if self.random.random() < 0.25:
            if self.random.random() < 0.5:
                self.accept(member.name, member.number, offsets)
            else:
                self.late.append((member.name, member.number, offsets))
            return "info", None
        if not self.accept(member.name, member.number, offsets):
            return "fail", None
        return "ok", {**self.standing(member), "offsets": offsets}

    def standing(self, member: Member) -> dict[str, Any]:
        kind = "generation" if self.has_generations else "epoch"
        return {"member": member.name, kind: member.number}

    def accept(self, name: str, number: int, offsets: dict[str, int]) -> bool:
        is_member = self.numbers.get(name) == number
        if is_member:
            self.committed.update(offsets)
        return is_member

    def remove(self, name: str) -> None:
        if self.numbers.pop(name, None) is not None:
            self.owned.pop(name)
            self.share_out()

    def share_out(self) -> None:
        self.number += 1
        names = sorted(self.numbers, key=lambda _: self.random.random())
        self.target = {name: set() for name in names}
        for place, log in enumerate(LOGS if names else ()):
            self.target[names[place % len(names)]].add(log)
        if self.has_generations:
            self.numbers = dict.fromkeys(names, self.number)
            self.owned = self.target

    def consume(self, member: Member) -> dict[str, Any]:
        name = member.name
        if name not in self.numbers:
            self.numbers[name], self.owned[name] = 0, set()
            member.positions = {}
            self.share_out()
        if not self.has_generations:
            self.owned[name] &= self.target[name]
            taken = {log for logs in self.owned.values() for log in logs}
            self.owned[name] |= self.target[name] - taken
            self.numbers[name] = self.number
        elif member.number != self.numbers[name]:
            member.positions = {}
        member.number = self.numbers[name]
        return self.told(member, self.owned[name], self.committed)

    def told(
        self, member: Member, owned: set[str], committed: dict[str, int | None]
    ) -> dict[str, Any]:
        """Answer to a member that owns these logs, and reads on in them."""
        logs = sorted(owned)
        began = {log: committed[log] for log in logs if log not in member.positions}
        starts = {log: began[log] or 0 if log in began else member.positions[log] for log in logs}
        read = {
            log: range(start, min(self.ends[log], start + self.random.randint(0, 2)))
            for log, start in starts.items()
        }
        member.positions = {log: starts[log] + len(found) for log, found in read.items()}
        return {
            **self.standing(member),
            "logs": logs,
            "began": began,
            "records": {
                log: [[n, self.value(log, n)] for n in found] for log, found in read.items()
            },
            "positions": dict(member.positions),
        }


def right_history(random: Random, *, has_generations: bool) -> list[PairedOperation]:
    """A history of a group that keeps all that it promises."""
    world = World(random, has_generations=has_generations)
    world.run(random.randint(12, 40))
    return in_order(world.operations)


def in_order(operations: list[PairedOperation]) -> list[PairedOperation]:
    """Operations by their start, with indexes to match."""
    found = sorted(operations, key=lambda one: one.start)
    return [msgspec.structs.replace(one, index=index) for index, one in enumerate(found)]


def spoiled(random: Random, history: list[PairedOperation]) -> list[PairedOperation]:
    """The same with one answer or one time changed; it may be a right one all the same."""
    place = random.randrange(len(history))
    one = history[place]
    changed = one
    if random.random() < 0.2 and one.end is not None:
        # A process does one thing after the other.
        least = max([o.end or 0 for o in history[:place] if o.process == one.process], default=0)
        later = [o.start for o in history[place + 1 :] if o.process == one.process]
        start = random.randint(least, one.end)
        end = random.randint(start, max(one.end, min([one.end + 3, *later])))
        changed = msgspec.structs.replace(one, start=start, end=end)
    elif one.f == "commit" and one.type == "fail":
        changed = _accepted(one, history[:place])
    elif one.type == "ok" and isinstance(one.result, dict) and one.result:
        result = msgspec.json.decode(msgspec.json.encode(one.result))
        (_spoil_told if one.f == "fetch-offsets" else _spoil_answer)(random, result)
        changed = msgspec.structs.replace(one, result=result)
    return in_order([*history[:place], changed, *history[place + 1 :]])


def _accepted(commit: PairedOperation, before: list[PairedOperation]) -> PairedOperation:
    """A commit that was refused, as if it had not been."""
    mine = [one for one in before if one.process == commit.process and one.f == "consume"]
    last: dict[str, Any] = mine[-1].result
    answer = {key: last[key] for key in ("member", "generation", "epoch") if key in last}
    answer["offsets"] = last["positions"]
    return msgspec.structs.replace(commit, type="ok", result=answer)


def _spoil_told(random: Random, told: dict[str, Any]) -> None:
    log = random.choice([*told])
    told[log] = random.choice((None, 0, 1, 2, 3))


def _spoil_answer(random: Random, answer: dict[str, Any]) -> None:
    kind = "generation" if "generation" in answer else "epoch"
    choice = random.randrange(5)
    if choice == 0:
        answer[kind] = max(0, answer[kind] + random.choice((-1, 1)))
    elif choice == 1:
        answer["member"] = f"m{random.randint(1, 4)}"
    elif answer.get("began") and choice == 2:
        _spoil_told(random, answer["began"])
    elif answer.get("offsets"):
        answer["offsets"][random.choice([*answer["offsets"]])] += random.choice((1, 1, 2))
    elif answer.get("records"):
        records = answer["records"][random.choice([*answer["records"]])]
        if records:
            records.pop(random.randrange(len(records)))
        elif answer["logs"]:
            answer["logs"] = [*LOGS]
