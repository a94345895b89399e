"""Checker of share groups: no record lost, held by two, delivered once it is settled, or made up.

By the promises of a log's leader, which locks what it gives to a member and has it on disk before
it tells anybody that it is settled. Each rule asks for its evidence; of answers without it nothing
follows.

- *Lost*: a record that was acknowledged, and that a final read shows, was given to nobody, though a
  final ``acquire`` that began after that saw the end of its log. It is no loss where it may have
  been given ``DELIVERIES_MAX`` times (no less is set for the group) to acquires that nobody heard
  of, so that it is gone: to those that ended ``info``, at any time, and to those that tell that the
  log's leader did not answer, up to their end, after which no request of theirs may arrive. They
  ask each leader once, but for final ones. Whoever tells that it saw the end of a log waited until
  no lock was left there.
- *Redelivered*: it was accepted or rejected, and an ``acquire`` that was invoked once that had been
  acknowledged is given it again, in the same epoch of the leader or a later one. *Stale* is what a
  leader of an earlier epoch gives, which was replaced and does not know it.
- *Two holders*: see ``checker.share_groups.holds``; a leader keeps its locks as long as its epoch.
- *Phantom*: what is given at an offset is that which the final read, and every other ``acquire``,
  shows there; one answer has a record once, but for a final one, which asks again and again.

The group reads its logs from their beginning, they lose nothing by retention, and nobody moves the
group's offsets. Records are in no transactions. Equal times are concurrent. n log n. Source:
KIP-932.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from itertools import accumulate
from typing import Any, Final, NamedTuple

from splitbrain.checker.findings import Findings, end_of
from splitbrain.checker.logs.parts import Sent, parts_of
from splitbrain.checker.logs.whole import shown_at, value_at, whole_logs
from splitbrain.checker.share_groups.holds import Sessions, sessions_of, two_holders
from splitbrain.checker.share_groups.readings import (
    NS_PER_MS,
    Acquired,
    Place,
    Settlement,
    Unheard,
    acquired_of,
    epochs_of,
    settlement_of,
)
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.log import SEND
from splitbrain.contracts.share_groups import (
    ACQUIRE,
    DELIVERIES_MAX,
    REJECT,
    SETTLE,
    SHARE_GROUPS,
)
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

LOST: Final = "lost-record"
REDELIVERED: Final = "redelivered"
TWO_HOLDERS: Final = "two-holders"
PHANTOM: Final = "phantom-record"
STALE: Final = "stale-delivery"
#: Most telling first.
KINDS: Final = (LOST, REDELIVERED, TWO_HOLDERS, PHANTOM, STALE)


class _Delivery(NamedTuple):
    value: Hashable
    acquired: Acquired


class _Settled(NamedTuple):
    """A settlement of a record whose leader is known."""

    end: int
    #: Epoch that the leader claimed after it.
    epoch: int
    settlement: Settlement


def check(operations: Iterable[PairedOperation], budget: Budget) -> CheckResult:
    """Judge a whole history, of one group."""
    return _Judgement(operations, budget).conclude()


class _Judgement:
    def __init__(self, operations: Iterable[PairedOperation], budget: Budget) -> None:
        self._operations = sorted(operations, key=lambda operation: operation.index)
        self._findings = Findings(SHARE_GROUPS, budget, KINDS)
        self._whole = whole_logs(self._operations)
        #: By index.
        self._acquired: dict[int, Acquired] = {}
        self._settlements: dict[int, Settlement] = {}
        self._unheard = Unheard()
        self._deliveries: dict[Place, list[_Delivery]] = {}
        #: Records that were accepted or rejected.
        self._settled: dict[Place, list[Settlement]] = {}
        #: The final acquire that found no more in any log, and began last.
        self._drained: PairedOperation | None = None
        #: Logs of which something was sent or given.
        self._logs: set[str] = set()
        self._maybe_exhausted = 0

    def conclude(self) -> CheckResult:
        return self._findings.conclude(self._judge)

    def _judge(self) -> tuple[dict[str, Any], str, str | None]:
        for operation in self._operations:
            self._findings.poll()
            self._read(operation)
        self._unheard.sort()
        self._judge_sends()
        sessions = sessions_of(self._operations, self._acquired, self._settlements)
        for place, deliveries in self._deliveries.items():
            self._findings.poll(len(deliveries))
            self._judge_values(place, deliveries)
            settlements = self._settled.get(place)
            if settlements:
                self._judge_redelivered(place, deliveries, settlements)
            # Nearly all records are given once.
            if len(deliveries) > 1:
                self._judge_holders(place, deliveries, sessions)
        figures = {
            "acquired": len(self._deliveries),
            "deliveries": sum(map(len, self._deliveries.values())),
            "settled": len(self._settled),
            "maybe-exhausted": self._maybe_exhausted,
        }
        acquired = len(self._deliveries)
        reason = (
            f"{counted(acquired, 'record')} {'was' if acquired == 1 else 'were'} delivered, "
            f"{len(self._settled):,} of them settled for good, and none of these again."
        )
        return figures, reason, self._lack()

    def _read(self, operation: PairedOperation) -> None:
        if operation.f == ACQUIRE and operation.type == "ok" and operation.result is None:
            if self._drained is None or operation.start > self._drained.start:
                self._drained = operation
        elif operation.f == ACQUIRE and operation.type == "ok":
            acquired = self._acquired[operation.index] = acquired_of(operation)
            self._unheard.add(operation, acquired.unanswered)
            for log, records in acquired.records.items():
                self._logs.add(log)
                for offset, value in records:
                    delivery = _Delivery(value, acquired)
                    self._deliveries.setdefault((log, offset), []).append(delivery)
        elif operation.f == ACQUIRE and operation.type == "info":
            self._unheard.add(operation)
        elif operation.f == SETTLE and operation.type == "ok":
            settlement = self._settlements[operation.index] = settlement_of(operation)
            for log, offsets in settlement.settled.items() if settlement.is_for_good else ():
                for offset in offsets:
                    self._settled.setdefault((log, offset), []).append(settlement)

    def _lack(self) -> str | None:
        unread = sorted(self._logs - self._whole.keys())
        if unread:
            return f"No final read came to the end of log {', '.join(unread)}."
        if self._drained is None:
            return "No final acquire found that there is no more."
        return None if self._deliveries else "Nothing was acquired."

    def _judge_sends(self) -> None:
        """A record that was acknowledged is there, and was given to somebody."""
        for send in self._operations:
            if send.f != SEND or send.type != "ok":
                continue
            self._findings.poll()
            for part in parts_of(send):
                if isinstance(part, Sent):
                    self._logs.add(part.key)
                    if part.offset is not None:
                        self._judge_record(send, (part.key, part.offset), part.value)

    def _judge_record(self, send: PairedOperation, place: Place, value: Hashable) -> None:
        log, offset = place
        whole, drained = self._whole.get(log), self._drained
        if whole is None:
            return
        acknowledged = f"{shown(value)} was acknowledged at {_at(place)}"
        if value_at(whole, offset) != value:
            # A read that began earlier may have seen less.
            if end_of(send) < whole.read.start:
                there = f"a final read shows {shown_at(whole, offset)} there"
                self._note(LOST, [send, whole.read], f"{acknowledged}, and {there}")
            return
        # An acquire that began earlier may have seen less, too.
        is_awaited = drained is not None and end_of(send) < drained.start
        if drained is None or not is_awaited or place in self._deliveries:
            return
        if self._unheard.count(log, send.start) >= DELIVERIES_MAX:
            self._maybe_exhausted += 1
            return
        self._note(
            LOST,
            [send, drained],
            f"{acknowledged}, and was delivered to no member, though the end of the log was seen",
        )

    def _judge_values(self, place: Place, deliveries: list[_Delivery]) -> None:
        log, offset = place
        whole, first = self._whole.get(log), deliveries[0]
        answers: set[int] = set()
        for delivery in deliveries:
            value, (operation, *_) = delivery
            if whole is not None and offset < whole.end:
                if value_at(whole, offset) != value:
                    there = f"and a final read shows {shown_at(whole, offset)} there"
                    operations = [operation, whole.read]
                    self._note(PHANTOM, operations, f"{_given(place, value)}, {there}")
            elif value != first.value:
                operations = [first.acquired.operation, operation]
                other = f"and {shown(first.value)} to another"
                self._note(PHANTOM, operations, f"{_given(place, value)}, {other}")
            if not operation.final and operation.index in answers:
                sentence = f"{_given(place, value)}, twice in one answer"
                self._note(PHANTOM, [operation], sentence)
            answers.add(operation.index)

    def _judge_redelivered(
        self, place: Place, deliveries: list[_Delivery], settlements: list[Settlement]
    ) -> None:
        known = _by_end(place[0], settlements)
        # Of those that ended by then, the one of the earliest epoch convicts first.
        earliest = list(accumulate(known, lambda one, other: min(one, other, key=_epoch)))
        ends = [each.end for each in known]
        for value, acquired in deliveries:
            before, _ = epochs_of(acquired, place[0])
            ended = bisect_left(ends, acquired.operation.start)
            if before is None or not ended:
                continue
            settled = earliest[ended - 1]
            done = "rejected" if settled.settlement.operation.argument == REJECT else "accepted"
            is_stale = before < settled.epoch
            self._note(
                STALE if is_stale else REDELIVERED,
                [settled.settlement.operation, acquired.operation],
                f"{shown(value)} at {_at(place)} was {done} by member "
                f"{settled.settlement.member} in epoch {settled.epoch} of the log's leader, and "
                f"after that member {acquired.member} was delivered it again in epoch {before}",
            )

    def _judge_holders(self, place: Place, deliveries: list[_Delivery], sessions: Sessions) -> None:
        acquired = [each.acquired for each in deliveries]
        for first, second in two_holders(place[0], acquired, sessions):
            self._note(
                TWO_HOLDERS,
                [first.operation, second.operation],
                f"the record at {_at(place)} was delivered to member {second.member}, and member "
                f"{first.member} held it, which had asked for it less than "
                f"{first.lock_ns // NS_PER_MS:,} ms before",
            )

    def _note(self, kind: str, operations: list[PairedOperation], sentence: str) -> None:
        text = f"{sentence[0].upper()}{sentence[1:]}."
        self._findings.note(kind, operations, lambda: text)


def _by_end(log: str, settlements: Iterable[Settlement]) -> list[_Settled]:
    """Return those whose leader is known, in the order of their ends."""
    found: list[_Settled] = []
    for settlement in settlements:
        _, after = epochs_of(settlement, log)
        if after is not None:
            found.append(_Settled(end_of(settlement.operation), after, settlement))
    return sorted(found, key=lambda each: each.end)


def _epoch(settled: _Settled) -> int:
    return settled.epoch


def _given(place: Place, value: Hashable) -> str:
    return f"{shown(value)} was delivered to a member as the record at {_at(place)}"


def _at(place: Place) -> str:
    return f"offset {place[1]} of log {place[0]}"
