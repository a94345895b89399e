"""Share group that keeps its promise, but for one defect, if any, and the history of its clients.

Clients are cut off, vanish, leave, and are heard of too late; leaders change. It shares nothing
with the checker but the form of histories.
"""

import heapq
import random
from collections.abc import Callable
from typing import Any

from splitbrain.history.records import PairedOperation
from tests.unit.checker.share_leader import LOCK_MS, Leader

LOGS = ("0", "1")
#: From here on nothing is asked for but the final operations.
ENDS_AT_MS = 2500


class Client:
    """A process, as whatever member it is."""

    def __init__(self, process: int) -> None:
        self.process, self.lives = process, 1
        self.held: dict[str, list[int]] = {log: [] for log in LOGS}
        #: Logs whose leader has dropped the connection.
        self.cut: set[str] = set()

    @property
    def member(self) -> str:
        return f"m{self.process}.{self.lives}"


class World:
    """A run, by a seed and perhaps a defect; leaders may learn late that they are replaced."""

    def __init__(self, seed: int, defect: str | None = None, *, is_late: bool = False) -> None:
        self.is_late = is_late
        #: Leaders that were replaced and do not know it, and until when.
        self.replaced: dict[str, tuple[Leader, int]] = {}
        self.random, self.defect, self.struck = random.Random(seed), defect, 0
        self.now = self.sequence = self.value = self.processes = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.leaders = {log: Leader(self) for log in LOGS}
        self.operations: list[PairedOperation] = []
        draw = self.random.random
        # Where much is unheard of, a record that nobody is given may have been given up.
        most = 1 if defect is None else 0.15
        self.loss, self.infos = draw() ** 3 * 0.5 * most, draw() ** 3 * 0.2 * most
        self.cuts, self.changes, self.eager = draw() ** 3 * 0.3 * most, draw() * 0.2, draw()

    def run(self) -> "World":
        for _ in range(self.random.randint(2, 4)):
            self._begin_client()
        while self.events:
            self.now, _, happen = heapq.heappop(self.events)
            happen()
        self._end()
        return self

    def strikes(self, defect: str) -> bool:
        does = self.defect == defect and self.random.random() < 0.2
        self.struck += does
        return does

    def at(self, delay: int, happen: Callable[[], None]) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (self.now + delay, self.sequence, happen))

    def invoke(self, process: int, f: str, argument: Any, final: bool = False) -> int:
        """Write down an operation that is open; return its index."""
        self.operations.append(
            PairedOperation(
                index=len(self.operations),
                process=process,
                f=f,
                key=None,
                argument=argument,
                result=None,
                type="info",
                start=self.now * 1_000_000,
                end=None,
                final=final,
            )
        )
        return len(self.operations) - 1

    def complete(self, index: int, type_: Any, result: Any = None) -> None:
        one = self.operations[index]
        self.operations[index] = PairedOperation(
            index=one.index,
            process=one.process,
            f=one.f,
            key=None,
            argument=one.argument,
            result=result,
            type=type_,
            start=one.start,
            end=None if type_ == "info" else self.now * 1_000_000,
            final=one.final,
        )

    def _begin_client(self) -> None:
        self.processes += 1
        client = Client(self.processes)
        self.at(self.random.randint(0, 30), lambda: self._go_on(client))

    def _go_on(self, client: Client) -> None:
        if self.now >= ENDS_AT_MS:
            return
        if self.random.random() < self.changes:
            log = self.random.choice(LOGS)
            self.replaced[log] = self.leaders[log].change(), self.now + 300 * self.is_late
        for log in LOGS:
            if self.random.random() < self.cuts and log not in client.cut:
                client.cut.add(log)
                self.leaders[log].forget(client.member)
        draw = self.random.random()
        if draw < 0.3:
            self._send(client)
        elif draw < 0.33:
            self._leave(client)
        elif draw < 0.33 + self.eager / 3 and any(client.held.values()):
            self._settle(client)
        else:
            self._acquire(client)

    def _rest(self, client: Client) -> None:
        self.at(self.random.randint(1, 40), lambda: self._go_on(client))

    def _send(self, client: Client) -> None:
        log, self.value = self.random.choice(LOGS), self.value + 1
        value = self.value
        index = self.invoke(client.process, "send", [["send", log, value]])

        def append() -> None:
            self.leaders[log].values.append(value)
            offset = len(self.leaders[log].values) - 1
            self.at(3, lambda: answer(offset))

        def answer(offset: int) -> None:
            if self.random.random() < self.infos:
                self._begin_client()
                return
            self.complete(index, "ok", [["send", log, [offset, value]]])
            self._rest(client)

        self.at(self.random.randint(1, 10), append)

    def _leave(self, client: Client) -> None:
        index, member = self.invoke(client.process, "leave", None), client.member

        def leave() -> None:
            for leader in self.leaders.values():
                leader.forget(member)
            self.at(2, answer)

        def answer() -> None:
            self.complete(index, "ok", member)
            client.lives += 1
            client.held, client.cut = {log: [] for log in LOGS}, set()
            self._rest(client)

        self.at(2, leave)

    def _acquire(self, client: Client) -> None:
        index, member = self.invoke(client.process, "acquire", None), client.member
        records: dict[str, list[list[Any]]] = {}
        unanswered = sorted(client.cut)
        client.cut = set()

        def give(leader: Leader, log: str, is_heard: bool) -> None:
            given = leader.give(member, self.random.randint(1, 3))
            if given and is_heard:
                records[log] = given

        self._ask(
            client,
            index,
            unanswered,
            give,
            lambda epochs: self._told(client, records, epochs, unanswered),
        )

    def _told(
        self,
        client: Client,
        records: dict[str, list[list[Any]]],
        epochs: dict[str, Any] | None,
        unanswered: list[str],
    ) -> dict[str, Any]:
        for log, given in records.items():
            client.held[log] += [offset for offset, *_ in given]
        return {
            "member": client.member,
            "records": records,
            "epochs": epochs,
            "unanswered": unanswered,
            "lock-ms": LOCK_MS,
        }

    def _settle(self, client: Client) -> None:
        how = self.random.choice(("accept", "accept", "release", "reject"))
        index, member = self.invoke(client.process, "settle", how), client.member
        held = {log: offsets for log, offsets in client.held.items() if offsets}
        client.held = {log: [] for log in LOGS}
        unclear = sorted(client.cut)
        client.cut = set()
        settled: dict[str, list[int]] = {}

        def settle(leader: Leader, log: str, is_heard: bool) -> None:
            done = leader.settle(member, held.get(log, []), how)
            if done and is_heard:
                settled[log] = done

        self._ask(
            client,
            index,
            unclear,
            settle,
            lambda epochs: {
                "member": client.member,
                "settled": settled,
                "unclear": {log: held[log] for log in unclear if log in held},
                "epochs": epochs,
            },
        )

    def _ask(
        self,
        client: Client,
        index: int,
        lost: list[str],
        act: Callable[[Leader, str, bool], None],
        answer_of: Callable[[dict[str, Any] | None], dict[str, Any]],
    ) -> None:
        """Ask both leaders, of which those of the lost logs do not answer, nor others that may."""
        leaders = {log: self._leader_of(log) for log in LOGS}
        before = {log: leader.epoch for log, leader in leaders.items()}
        outcome, member = self.random.random(), client.member
        if outcome < 0.02:
            self.at(5, lambda: self._complete(client, index, "fail"))
            return
        is_info = outcome < 0.02 + self.infos
        longest = 2
        for log in LOGS:
            delay = self.random.randint(1, 20)
            if log in lost:
                continue
            is_heard = self.random.random() >= self.loss
            if not is_heard:
                lost.append(log)
                # Their connection is dropped with it, sooner or later.
                self.at(delay + 1, lambda log=log: self.leaders[log].forget(member))
            if is_heard or self.random.random() < 0.7:
                late = self.random.randint(0, 300) if is_info else 0
                heard = is_heard and not is_info
                self.at(delay + late, lambda log=log, heard=heard: act(leaders[log], log, heard))
            longest = max(longest, delay + 2)

        def answer() -> None:
            if is_info:
                self._begin_client()
                return
            after = {log: leader.epoch for log, leader in leaders.items()}
            epochs: dict[str, Any] | None = {
                log: [before[log], after[log]] for log in LOGS if log not in lost
            }
            if self.random.random() < 0.05:
                epochs = None
            self._complete(client, index, "ok", answer_of(epochs))

        self.at(longest, answer)

    def _leader_of(self, log: str) -> Leader:
        """Whichever a client takes for the leader."""
        replaced, until = self.replaced.get(log, (self.leaders[log], 0))
        is_taken = self.now < until and self.random.random() < 0.5
        return replaced if is_taken else self.leaders[log]

    def _complete(self, client: Client, index: int, type_: str, result: Any = None) -> None:
        self.complete(index, type_, result)
        self._rest(client)

    def _end(self) -> None:
        """Drain the group, and read the logs."""
        self.now += LOCK_MS
        for attempt in range(self.random.randint(1, 3)):
            self._drain(is_lost=self.random.random() < self.infos, is_last=attempt > 0)
        self._drain(is_lost=False, is_last=True)
        for log, leader in self.leaders.items():
            index = self.invoke(1000, "poll", [["poll", {log: 0}]], final=True)
            self.now += 1
            pairs = [[offset, value] for offset, value in enumerate(leader.values)]
            self.complete(index, "ok", [["poll", {log: pairs}, {log: len(pairs)}]])

    def _drain(self, *, is_lost: bool, is_last: bool) -> None:
        self.processes += 1
        client = Client(self.processes)
        index = self.invoke(client.process, "acquire", None, final=True)
        before = {log: leader.epoch for log, leader in self.leaders.items()}
        records: dict[str, list[list[Any]]] = {log: [] for log in LOGS}
        for _ in range(100 if is_last else 3):
            self.now += LOCK_MS // 3
            for log, leader in self.leaders.items():
                given = leader.give(client.member, 5)
                records[log] += given
                leader.settle(client.member, [offset for offset, *_ in given], "accept")
        answer = self._told(client, records, {log: [e, e] for log, e in before.items()}, [])
        self.now += 1
        if not is_lost:
            self.complete(index, "ok", answer)
        if is_last and all(leader.is_done() for leader in self.leaders.values()):
            index = self.invoke(client.process, "acquire", None, final=True)
            self.now += 1
            self.complete(index, "ok", None)
