"""Histories of share groups, written down operation by operation, in milliseconds."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from splitbrain.history.records import PairedOperation

#: Values by offset, by log.
Records = Mapping[str, Mapping[int, Any]]
#: Epochs before and after, by log; None: nobody told any.
Epochs = Mapping[str, Sequence[int | None] | None] | None

NS_PER_MS = 1_000_000
LOGS = ("0", "1")
EPOCH_1: Epochs = dict.fromkeys(LOGS, (1, 1))
#: Process of the final acquire and reads.
LAST = 99


class Written:
    """A history in which each operation begins 10 ms after the one before it and takes 5 ms."""

    def __init__(self) -> None:
        self.operations: list[PairedOperation] = []
        self.now = 0

    def add(
        self,
        f: str,
        argument: Any,
        result: Any = None,
        *,
        type_: str = "ok",
        final: bool = False,
        process: int = 0,
        took: int = 5,
    ) -> "Written":
        start = self.now * NS_PER_MS
        self.operations.append(
            PairedOperation(
                index=len(self.operations),
                process=process,
                f=f,
                key=None,
                argument=argument,
                result=result if type_ == "ok" else None,
                type=type_,  # type: ignore[arg-type]
                start=start,
                end=None if type_ == "info" else start + took * NS_PER_MS,
                final=final,
            )
        )
        self.now += 10
        return self

    def until(self, now: int) -> "Written":
        """Let the next operation begin then."""
        self.now = now
        return self

    def send(
        self, log: str, offset: int | None, value: Any, type_: str = "ok", took: int = 5
    ) -> "Written":
        sent = ["send", log, [offset, value]]
        return self.add("send", [["send", log, value]], [sent], type_=type_, took=took)

    def acquire(
        self,
        process: int,
        records: Records,
        *,
        epochs: Epochs = EPOCH_1,
        unanswered: Collection[str] = (),
        final: bool = False,
        member: str | None = None,
        lock: int = 1000,
        type_: str = "ok",
        took: int = 5,
    ) -> "Written":
        """An answered acquire; a final one that is given nothing found that there is no more."""
        answer: dict[str, Any] = {
            "member": member or f"m{process}",
            "records": {
                log: [[offset, value, 1] for offset, value in given.items()]
                for log, given in records.items()
            },
            "epochs": None if epochs is None else {**epochs},
            "unanswered": [*unanswered],
            "lock-ms": lock,
        }
        result = None if final and not records and not unanswered else answer
        return self.add(
            "acquire", None, result, type_=type_, final=final, process=process, took=took
        )

    def twice(self) -> "Written":
        """Let the last acquire be told each of its records twice."""
        answer: Any = self.operations[-1].result
        for records in answer["records"].values():
            records += [[offset, value, 2] for offset, value, _ in records]
        return self

    def settle(
        self,
        process: int,
        settled: Mapping[str, Sequence[int]],
        how: str = "accept",
        *,
        epochs: Epochs = EPOCH_1,
        unclear: Mapping[str, Sequence[int]] | None = None,
        member: str | None = None,
        type_: str = "ok",
        took: int = 5,
    ) -> "Written":
        answer = {
            "member": member or f"m{process}",
            "settled": {log: [*offsets] for log, offsets in settled.items()},
            "unclear": {log: [*offsets] for log, offsets in (unclear or {}).items()},
            "epochs": None if epochs is None else {**epochs},
        }
        return self.add("settle", how, answer, type_=type_, process=process, took=took)

    def leave(self, process: int, type_: str = "ok") -> "Written":
        return self.add("leave", None, f"m{process}", type_=type_, process=process)

    def shown(
        self, log: str, records: Mapping[int, Any], end: int | None = None, beyond: Any = ()
    ) -> "Written":
        end = max(records, default=-1) + 1 if end is None else end
        pairs = [[offset, value] for offset, value in records.items()]
        answer = ["poll", {log: pairs}, {log: end}, *beyond]
        return self.add("poll", [["poll", {log: 0}]], [answer], final=True, process=LAST)

    def drained(self, records: Records | None = None) -> "Written":
        """A final acquire that finds no more, behind one that is given records, if any."""
        if records:
            self.acquire(LAST, records, final=True, epochs={"0": (9, 9), "1": (9, 9)})
        return self.acquire(LAST, {}, final=True)

    def ended(self, first: Mapping[int, Any], *, last: Records | None = None) -> "Written":
        """All that is final, of log 0 with records; ``last`` are delivered then."""
        return self.drained(last).shown("0", first).shown("1", {})
