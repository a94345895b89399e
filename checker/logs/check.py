"""Checker of partitioned logs: nothing lost, nothing twice, one record an offset, reads in order.

By the promises of such logs under ``acks=all``, idempotent producers, clean elections, and
consumers that read what is committed; what lies beside them is allowed by those who know
(``log:...``, and a system's settings). Each rule asks for its evidence:

- *lost*: an acknowledged record that nobody ever read, and a consumer passed over its offset, or a
  final read that began later found the end of the log before it. *Vanished*: it was read before
  that, and never again; *skipped*: others read it later.
- *offsets*: two records at one offset, one at two; an offset below one that had been acknowledged,
  or read, before the send was invoked.
- *reads* of what nobody sent, of what certainly failed, of what was not asked for yet, of a
  transaction's own records before its commit; of half a transaction, once the rest was passed over.
- *hanging*: a final read cannot come to the end, for a transaction stays open.
- *G1c*: transactions that read each other's records.

Writes are not isolated, and a producer may skip offsets: nobody promises otherwise. Equal times are
concurrent. n log n. Sources: Jepsen's workload of logs; KIP-98 (transactions), KIP-207 (ends).
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from splitbrain.checker.findings import Findings, end_of
from splitbrain.checker.logs.commits import Commits
from splitbrain.checker.logs.readings import Log, Pass, Send, Sighting, logs_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.log import ABORT, TXN
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

LOST: Final = "lost"
VANISHED: Final = "vanished"
TORN: Final = "torn-transaction"
INCONSISTENT: Final = "inconsistent-offsets"
DUPLICATE: Final = "duplicated"
HANGING: Final = "hanging-transaction"
PHANTOM: Final = "phantom"
ABORTED_READ: Final = "aborted-read"
PRECOMMITTED_READ: Final = "precommitted-read"
FUTURE_READ: Final = "future-read"
CYCLE: Final = "G1c"
END_BACK: Final = "end-went-back"
SENT_BACK: Final = "nonmonotonic-send"
READ_BACK: Final = "nonmonotonic-poll"
SKIPPED: Final = "skipped-poll"
#: Most telling first.
KINDS: Final = (
    *(LOST, VANISHED, TORN, INCONSISTENT, DUPLICATE, PHANTOM, ABORTED_READ, PRECOMMITTED_READ),
    *(HANGING, FUTURE_READ, CYCLE, END_BACK, SENT_BACK, READ_BACK, SKIPPED),
)


def check(operations: Iterable[PairedOperation], budget: Budget) -> CheckResult:
    """Judge all logs of a history."""
    return _Judgement(operations, budget).conclude()


class _Judgement:
    def __init__(self, operations: Iterable[PairedOperation], budget: Budget) -> None:
        self._operations = sorted(operations, key=lambda operation: operation.index)
        self._findings = Findings("log", budget, KINDS)
        self._unread = 0

    def conclude(self) -> CheckResult:
        return self._findings.conclude(self._judge)

    def _judge(self) -> tuple[dict[str, Any], str, str | None]:
        logs, held = logs_of(self._operations, self._findings.poll)
        self._commits = Commits({operation.index: operation for operation in held})
        records = reads = acknowledged = 0
        missing: dict[int, list[tuple[Log, Send, list[Pass]]]] = {}
        for log in logs:
            self._judge_values(log)
        self._commits.bound()
        for log in logs:
            self._judge_offsets(log)
            self._judge_order(log)
            self._judge_stops(log)
            for send, whole in self._judge_passes(log):
                if send.operation.f == TXN and send.operation.type == "info":
                    missing.setdefault(send.operation.index, []).append((log, send, whole))
            acknowledged += sum(send.is_acknowledged for send in log.sends.values())
            reads += sum(len(send.sightings) for send in log.sends.values())
            records += len(log.sends)
        self._judge_torn(missing, logs)
        for operations, sentence in self._commits.contradictions():
            self._note(CYCLE, operations, sentence)
        figures = {
            "logs": len(logs),
            "sent": records,
            "acknowledged": acknowledged,
            "read": reads,
            "acknowledged-and-never-reached": self._unread,
        }
        undecided = None
        if not reads:
            undecided = "Nothing was ever read, so there is nothing to judge."
        elif self._unread:
            what = counted(self._unread, "acknowledged record lies", "acknowledged records lie")
            undecided = (
                f"{what} where no read came to; a final poll that tells its position would, from a "
                "consumer that was assigned its logs."
            )
        valid = f"{counted(acknowledged, 'acknowledged record')}: none is lost, and reads agree."
        return figures, valid, undecided

    # --- records --------------------------------------------------------------------------------

    def _judge_values(self, log: Log) -> None:
        """Judge each record by itself: who sent it, when, and where it was seen."""
        for stranger in log.strangers:
            self._note(
                PHANTOM,
                [stranger.operation],
                f"{_seen(stranger)} of log {log.key}, and nobody sent it.",
            )
        for send in log.sends.values():
            self._findings.poll()
            places, sender = send.places, send.operation
            if send.offset is not None:
                places[send.offset] = sender
            # Most records are plain ones: whoever reads them once they were asked for is right.
            is_plain = sender.f != TXN and not send.is_void
            for sighting in send.sightings:
                offset, _, reader = sighting
                end = end_of(reader)
                is_early = end < sender.start
                if is_early or not is_plain or reader is sender:
                    self._judge_sighting(log, send, sighting, is_early=is_early)
                known = places.setdefault(offset, reader)
                if known is not reader and end < end_of(known):
                    places[offset] = reader
            if len(places) > 1:
                (first, one), (second, other) = sorted(places.items(), key=_place)[:2]
                self._note(
                    DUPLICATE,
                    [send.operation, one, other],
                    f"{shown(send.value)} was sent to log {log.key} once (index "
                    f"{send.operation.index}), and is at offset {first} (index {one.index}) and at "
                    f"offset {second} (index {other.index}).",
                )

    def _judge_sighting(self, log: Log, send: Send, sighting: Sighting, *, is_early: bool) -> None:
        sender, reader = send.operation, sighting.operation
        if sender is reader:
            # A poll may follow the send in an operation that is no transaction.
            if sender.f in (TXN, ABORT):
                self._note(
                    PRECOMMITTED_READ,
                    [reader],
                    f"{_seen(sighting)} of log {log.key}, which it had not committed by then.",
                )
        elif send.is_void:
            how = "certainly failed" if sender.type == "fail" else "was never to be committed"
            self._note(
                ABORTED_READ,
                [sender, reader],
                f"{_seen(sighting)} of log {log.key}, and the {sender.f} of index {sender.index} "
                f"{how}.",
            )
        elif is_early:
            self._note(
                FUTURE_READ,
                [sender, reader],
                f"{_seen(sighting)} of log {log.key} before anybody asked to send it (index "
                f"{sender.index}).",
            )
        else:
            self._commits.note_read(sender, reader)

    def _judge_offsets(self, log: Log) -> None:
        """Judge whether one record stands at each offset."""
        at: dict[int, Send | Sighting] = {}
        for record in (*log.sends.values(), *log.strangers):
            value = record.value
            for offset, teller in _places_of(record).items():
                known = at.setdefault(offset, record)
                if known is not record and known.value != value:
                    other, first = known.value, _places_of(known)[offset]
                    self._note(
                        INCONSISTENT,
                        [first, teller],
                        f"At offset {offset} of log {log.key} stands {shown(other)} (index "
                        f"{first.index}) and {shown(value)} (index {teller.index}).",
                    )

    def _judge_order(self, log: Log) -> None:
        """Judge whether a record, or the end, came to an offset below one that was settled."""
        # All offsets below these were settled by then, and who told it.
        are_bound = bool(self._commits)
        settled = [
            (offset, self._known_by(send, teller) if are_bound else teller)
            for send in log.sends.values()
            for offset, teller in send.places.items()
        ]
        settled += [(each.end, each.operation) for each in (*log.passes, *log.ends)]
        bounds = np.array([offset for offset, _ in settled], dtype=np.int64)
        latest = np.array([teller.end for _, teller in settled], dtype=np.int64)
        order = np.argsort(bounds, kind="stable")
        # By when one of these and those behind it was settled.
        times = np.minimum.accumulate(latest[order][::-1])[::-1]
        bounds = bounds[order]

        def judge(kind: str, rows: list[tuple[int, PairedOperation]], what: str) -> None:
            offsets = np.array([offset for offset, _ in rows], dtype=np.int64)
            starts = np.array([operation.start for _, operation in rows], dtype=np.int64)
            places = np.searchsorted(bounds, offsets, side="right")
            is_known = np.append(times, np.iinfo(np.int64).max)[places] < starts
            for row in np.flatnonzero(is_known).tolist():
                offset, operation = rows[row]
                behind = order[places[row] :]
                bound, teller = settled[int(behind[np.argmin(latest[behind])])]
                self._note(
                    kind,
                    [teller, operation],
                    f"{what} offset {offset} of log {log.key} (index {operation.index}), and "
                    f"before that was invoked the log was known to reach offset {bound} (index "
                    f"{teller.index}).",
                )

        sent = [(offset, send.operation) for send in log.sends.values() for offset in send.places]
        judge(SENT_BACK, sent, "A record was sent to")
        judge(END_BACK, [(e.end, e.operation) for e in log.ends], "A final read found the end at")

    def _known_by(self, send: Send, teller: PairedOperation) -> PairedOperation:
        """Return by whose end a record stood where it is told to."""
        committed = self._commits.committed_by(send.operation)
        return teller if committed is None else min(teller, committed, key=end_of)

    def _was_there(self, send: Send, reader: PairedOperation) -> bool:
        """Return whether a record was known to be there before this read was invoked."""
        tellers = [send.operation] if send.is_acknowledged else []
        tellers += [sighting.operation for sighting in send.sightings]
        if (committed := self._commits.committed_by(send.operation)) is not None:
            tellers.append(committed)
        return any(teller.end is not None and teller.end < reader.start for teller in tellers)

    # --- consumers ------------------------------------------------------------------------------

    def _judge_stops(self, log: Log) -> None:
        for operation, offset, end in log.stopped:
            self._note(
                HANGING,
                [operation],
                f"A final read of log {log.key} (index {operation.index}) came to offset {offset}, "
                f"and the log ends at {end}: a transaction is open there longer than it may be.",
            )

    def _judge_passes(self, log: Log) -> list[tuple[Send, list[Pass]]]:
        """Judge what consumers did not read.

        Returns sends that nobody read or passed over, each with the reads of the whole log.
        """
        for operation, offset, before in log.steps_back:
            self._note(
                READ_BACK,
                [operation],
                f"Process {operation.process} was at offset {offset} of log {log.key} (index "
                f"{operation.index}), and the same consumer had come to offset {before} before.",
            )
        placed = sorted(
            ((offset, send) for send in log.sends.values() for offset in send.places), key=_place
        )
        offsets = [offset for offset, _ in placed]
        # Of each record the first one that passed over it.
        passed: dict[int, tuple[Send, Pass]] = {}
        for each in log.passes:
            low, high = bisect_left(offsets, each.first), bisect_left(offsets, each.end)
            for _, send in placed[low:high]:
                self._findings.poll()
                passed.setdefault(id(send), (send, each))
        for end in log.ends:
            for _, send in placed[bisect_left(offsets, end.end) :]:
                if self._was_there(send, end.operation):
                    passed.setdefault(id(send), (send, end))
        for send, each in passed.values():
            self._note_passed(log, send, each)
        lacking: list[tuple[Send, list[Pass]]] = []
        for send in log.sends.values():
            if send.sightings or id(send) in passed:
                continue
            whole = [end for end in log.ends if end.first == 0 and send.offset is None]
            lacking.append((send, whole))
            if not send.is_acknowledged:
                continue
            if any(self._was_there(send, end.operation) for end in whole):
                self._note(
                    LOST,
                    [send.operation],
                    f"{shown(send.value)} was acknowledged to log {log.key} (index "
                    f"{send.operation.index}), and a later read of the whole log lacks it.",
                )
            else:
                self._unread += 1
        return lacking

    def _note_passed(self, log: Log, send: Send, each: Pass) -> None:
        reader = each.operation
        if not send.sightings:
            self._note(
                LOST,
                [send.operation, reader],
                f"{shown(send.value)} was acknowledged at offset {send.offset} of log {log.key} "
                f"(index {send.operation.index}), {_over(send, each)}, and nobody ever read it.",
            )
            return
        later = [one for one in send.sightings if one.operation.start > reader.start]
        first = send.sightings[0]
        self._note(
            SKIPPED if later else VANISHED,
            [send.operation, first.operation, reader],
            f"{_seen(first)} of log {log.key}, and {_over(send, each)}"
            f"{'.' if later else '; nobody read it again.'}",
        )

    # --- transactions ---------------------------------------------------------------------------

    def _judge_torn(
        self,
        missing: Mapping[int, Sequence[tuple[Log, Send, list[Pass]]]],
        logs: Sequence[Log],
    ) -> None:
        """Judge transactions of unknown outcome of which some records were read."""
        #: The first sighting of each by its end: by then it was committed.
        seen: dict[int, tuple[int, Log, Sighting]] = {}
        for log in logs:
            for send in log.sends.values():
                index = send.operation.index
                for sighting in send.sightings if index in missing else ():
                    end = end_of(sighting.operation)
                    if index not in seen or end < seen[index][0]:
                        seen[index] = end, log, sighting
        for index, (committed, of, sighting) in seen.items():
            for log, send, whole in missing[index]:
                reads = [end.operation for end in whole if end.operation.start > committed]
                if reads:
                    self._note(
                        TORN,
                        [send.operation, sighting.operation, reads[0]],
                        f"{_seen(sighting)} of log {of.key}, so txn {index} was committed, and "
                        f"a later read of all of log {log.key} (index {reads[0].index}) lacks "
                        f"{shown(send.value)}, which it sent there.",
                    )

    def _note(self, kind: str, operations: Sequence[PairedOperation], sentence: str) -> None:
        self._findings.note(kind, operations, lambda: sentence)


def _seen(sighting: Sighting) -> str:
    reader = sighting.operation
    return (
        f"Process {reader.process} read {shown(sighting.value)} (index {reader.index}) at offset "
        f"{sighting.offset}"
    )


def _over(send: Send, each: Pass) -> str:
    reader = each.operation
    who = f"process {reader.process}"
    if min(send.places) >= each.end:
        return f"{who} later found the end at offset {each.end} (index {reader.index})"
    last = each.end - 1
    over = f"offset {last}" if each.first == last else f"offsets {each.first} to {last}"
    return f"{who} passed over {over} (index {reader.index})"


def _places_of(record: Send | Sighting) -> Mapping[int, PairedOperation]:
    return record.places if isinstance(record, Send) else {record.offset: record.operation}


def _place(item: tuple[int, Any]) -> int:
    return item[0]
