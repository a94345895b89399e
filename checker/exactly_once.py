"""Checker of records that are read from inputs, transformed and written to outputs in transactions.

Judged is what final reads show, once nothing can be open any more: every input below the offset
that was committed last has one output, every input from there on has none, and each output is that
of an input that is there. An acknowledged transaction has all of its outputs, and its offset is
committed; and none is acknowledged that began after another client had taken its input. Where a
final read did not come to the end of an output, or nobody told the committed offsets at the end,
what would follow from it is ``unknown``. Source: KIP-98, KIP-447.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from splitbrain.checker.findings import Findings
from splitbrain.checker.logs.parts import Sent, parts_of
from splitbrain.checker.logs.whole import Whole, shown_at, value_at, whole_logs
from splitbrain.checker.models.model import is_list_of
from splitbrain.checker.transactions.micro_operations import hashable
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.groups import FETCH_OFFSETS
from splitbrain.contracts.log import POLL, SEND
from splitbrain.contracts.transforms import (
    ABANDON,
    BEGAN_AT,
    ENDED_AT,
    INPUTS,
    LOG_OF,
    OUTPUTS,
    READ_INPUTS,
    TAKEN_AS,
    TRANSFORM,
)
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

NAME: Final = "exactly-once"
LOST_INPUT: Final = "lost-input"
LOST_OUTPUT: Final = "lost-output"
DUPLICATED: Final = "duplicated-output"
EARLY: Final = "output-without-offset"
PHANTOM: Final = "phantom-output"
WENT_BACK: Final = "offset-went-back"
NOT_FENCED: Final = "zombie-not-fenced"
#: Most telling first.
KINDS: Final = (LOST_INPUT, LOST_OUTPUT, DUPLICATED, EARLY, PHANTOM, WENT_BACK, NOT_FENCED)
_OF_OUTPUTS: Final = 3


class _Output(NamedTuple):
    log: str
    offset: int
    read: PairedOperation


class _Ended(NamedTuple):
    """An acknowledged transaction, and the epoch with which its client took the input."""

    end: int
    epoch: int
    operation: PairedOperation


#: Log and offset of an input.
_Input = tuple[str, int]


def check(operations: Sequence[PairedOperation], budget: Budget) -> CheckResult:
    """Judge a whole history."""
    return _Judgement(operations, budget).conclude()


def problem_with(operation: PairedOperation) -> str | None:
    """Return why an operation makes no sense here, a clause; None where it does.

    Those of logs are others' to look at (``logs.parts.Sense``).
    """
    is_ok, answer = operation.type == "ok", operation.result
    if operation.f == FETCH_OFFSETS:
        is_told = not is_ok or _is_map_of_offsets(answer)
        return None if is_told else f"it answers offsets by log, and not {shown(answer)}"
    if operation.f not in (TRANSFORM, ABANDON):
        known = f"{SEND}, {TRANSFORM}, {ABANDON}, {FETCH_OFFSETS}"
        return f"operations are {known} and {POLL}, and not {operation.f}"
    if is_ok and not _is_answer(answer):
        words = f"{LOG_OF}, {BEGAN_AT}, {ENDED_AT}, {READ_INPUTS}"
        return f"the answer of a {operation.f} tells {words}: {shown(answer)} does not"
    return None


class _Judgement:
    def __init__(self, operations: Sequence[PairedOperation], budget: Budget) -> None:
        self._operations = operations
        self._findings = Findings(NAME, budget, KINDS)
        self._whole = whole_logs(operations)
        self._committed = _committed_at_the_end(operations)
        #: Outputs of each input, of those that look like one.
        self._outputs: dict[_Input, list[tuple[_Output, Hashable]]] = {}
        self._strangers: list[tuple[_Output, Any]] = []
        #: Acknowledged transactions that read each input.
        self._readers: dict[_Input, list[PairedOperation]] = {}
        for log in OUTPUTS:
            if log in self._whole:
                self._sort(log, self._whole[log])

    def conclude(self) -> CheckResult:
        return self._findings.conclude(self._judge)

    def _sort(self, log: str, whole: Whole) -> None:
        for offset, value in whole.records.items():
            output = _Output(log, offset, whole.read)
            if _is_output(value):
                source = str(value[0]), int(value[1])
                self._outputs.setdefault(source, []).append((output, hashable(value[2])))
            else:
                self._strangers.append((output, value))

    def _judge(self) -> tuple[dict[str, Any], str, str | None]:
        done = [each for each in self._operations if each.f == TRANSFORM and each.type == "ok"]
        for transform in done:
            answer = cast("Mapping[str, Any]", transform.result)
            for offset, _ in answer[READ_INPUTS]:
                source = str(answer[LOG_OF]), offset
                self._readers.setdefault(source, []).append(transform)
        self._judge_sends()
        self._judge_outputs()
        self._judge_fencing()
        for transform in done:
            self._findings.poll()
            self._judge_transform(transform)
        inputs = sum(self._judge_inputs(log) for log in INPUTS)
        outputs = sum(map(len, self._outputs.values()))
        figures = {"transactions": len(done), "inputs-done": inputs, "outputs": outputs}
        reason = (
            f"{counted(inputs, 'input')} below the committed offsets have one output each, and "
            "none behind them has any."
        )
        return figures, reason, self._lack(inputs)

    def _lack(self, inputs: int) -> str | None:
        unread = [log for log in (*INPUTS, *OUTPUTS) if log not in self._whole]
        if unread:
            return f"No final read came to the end of log {', '.join(unread)}."
        if self._committed is None:
            return "Nobody told the committed offsets at the end."
        return None if inputs else "Nothing was transformed."

    def _judge_sends(self) -> None:
        """An input that was acknowledged is there."""
        for send in self._operations:
            if send.f != SEND or send.type != "ok":
                continue
            self._findings.poll()
            for part in parts_of(send):
                whole = self._whole.get(part.key)
                if not isinstance(part, Sent) or part.offset is None or whole is None:
                    continue
                # A read that began earlier may have seen less.
                was_there = send.end is not None and send.end < whole.read.start
                if was_there and value_at(whole, part.offset) != part.value:
                    self._note(
                        LOST_INPUT,
                        [send, whole.read],
                        f"{shown(part.value)} was acknowledged at offset {part.offset} of log "
                        f"{part.key}, and a final read shows {shown_at(whole, part.offset)} there",
                    )

    def _judge_outputs(self) -> None:
        for output, value in self._strangers:
            sentence = f"{_place(output)} is {shown(value)}, which is no output"
            self._note(PHANTOM, [output.read], sentence)
        for source, outputs in self._outputs.items():
            self._findings.poll()
            log, offset = source
            whole = self._whole.get(log)
            for output, value in outputs:
                if whole is not None and value_at(whole, offset) != value:
                    self._note(
                        PHANTOM,
                        [output.read, whole.read],
                        f"{_place(output)} is the output of {shown(value)} at {_input(source)}, "
                        f"and a final read shows {shown_at(whole, offset)} there",
                    )
            if len(outputs) > 1:
                places = " and ".join(_place(output) for output, _ in outputs)
                reads = {output.read.index: output.read for output, _ in outputs}
                told = [*self._readers.get(source, ()), *reads.values()]
                self._note(DUPLICATED, told, f"{_input(source)} has two outputs: {places}")
            committed = self._committed_of(log)
            if committed is not None and offset >= committed:
                self._note(
                    EARLY,
                    [*self._readers.get(source, ()), outputs[0][0].read],
                    f"{_input(source)} has an output, {_place(outputs[0][0])}, and the offset "
                    f"committed at the end is {committed}",
                )

    def _judge_transform(self, transform: PairedOperation) -> None:
        """An acknowledged transaction is there as a whole."""
        answer = cast("Mapping[str, Any]", transform.result)
        log, end = str(answer[LOG_OF]), int(answer[ENDED_AT])
        committed = self._committed_of(log)
        if committed is not None and end > committed:
            self._note(
                WENT_BACK,
                [transform],
                f"offset {end} of log {log} was committed and acknowledged, and at the end it is "
                f"{committed}",
            )
        if self._are_outputs_whole():
            for offset, value in answer[READ_INPUTS]:
                if (log, offset) not in self._outputs:
                    self._note(
                        LOST_OUTPUT,
                        [transform],
                        f"the output of {shown(value)}, {_input((log, offset))}, was committed and "
                        "acknowledged, and no final read shows it",
                    )

    def _judge_fencing(self) -> None:
        """Whoever lost its input has nothing acknowledged that it begins from then on."""
        by_owner: dict[tuple[str, int], list[_Ended]] = {}
        for operation in self._operations:
            if operation.f not in (TRANSFORM, ABANDON) or operation.type != "ok":
                continue
            answer = cast("Mapping[str, Any]", operation.result)
            # Where there was nothing to do, nobody was asked for leave.
            if answer[READ_INPUTS] and TAKEN_AS in answer and operation.end is not None:
                producer, epoch = answer[TAKEN_AS]
                # Ids are given out in no order.
                owned = by_owner.setdefault((str(answer[LOG_OF]), producer), [])
                owned.append(_Ended(operation.end, epoch, operation))
        for (log, _), ended in by_owner.items():
            self._judge_owners(log, ended)

    def _judge_owners(self, log: str, ended: list[_Ended]) -> None:
        by_end = iter(sorted(ended, key=lambda each: each.end))
        latest, following = None, next(by_end, None)
        for one in sorted(ended, key=lambda each: each.operation.start):
            self._findings.poll()
            while following is not None and following.end < one.operation.start:
                if latest is None or following.epoch > latest.epoch:
                    latest = following
                following = next(by_end, None)
            if latest is not None and one.epoch < latest.epoch:
                self._note(
                    NOT_FENCED,
                    [latest.operation, one.operation],
                    f"a transaction on log {log} was acknowledged to whoever had taken the log "
                    f"with epoch {one.epoch}, and began after one of epoch {latest.epoch} had "
                    "ended",
                )

    def _judge_inputs(self, log: str) -> int:
        """Every input that is done has an output; returns how many are."""
        whole, committed = self._whole.get(log), self._committed_of(log)
        if whole is None or committed is None or not self._are_outputs_whole():
            return 0
        done = [offset for offset in whole.records if offset < committed]
        for offset in done:
            self._findings.poll()
            if (log, offset) not in self._outputs:
                self._note(
                    LOST_OUTPUT,
                    [whole.read],
                    f"{shown(whole.records[offset])}, {_input((log, offset))}, has no output, and "
                    f"the offset committed at the end is {committed}",
                )
        return len(done)

    def _are_outputs_whole(self) -> bool:
        return all(log in self._whole for log in OUTPUTS)

    def _committed_of(self, log: str) -> int | None:
        """Offset at the end, 0 where nothing was ever committed; None: nobody told it."""
        return None if self._committed is None else self._committed.get(log, 0)

    def _note(self, kind: str, operations: Sequence[PairedOperation], sentence: str) -> None:
        text = f"{sentence[0].upper()}{sentence[1:]}."
        self._findings.note(kind, operations, lambda: text)


def _committed_at_the_end(operations: Iterable[PairedOperation]) -> dict[str, int] | None:
    """Return the largest offset that a final question was answered with, by log."""
    found: dict[str, int] | None = None
    for operation in operations:
        if operation.f == FETCH_OFFSETS and operation.final and operation.type == "ok":
            told = cast("Mapping[str, int | None]", operation.result)
            known: dict[str, int] = found or {}
            found = {log: max(known.get(log, 0), told.get(log) or 0) for log in {**known, **told}}
    return found


def _place(output: _Output) -> str:
    return f"the record at offset {output.offset} of log {output.log}"


def _input(source: _Input) -> str:
    return f"the input at offset {source[1]} of log {source[0]}"


def _is_output(value: Any) -> bool:
    if isinstance(value, tuple):
        value = list(cast("tuple[Any, ...]", value))
    if not isinstance(value, list):
        return False
    parts = cast("list[Any]", value)
    return len(parts) == _OF_OUTPUTS and isinstance(parts[0], str) and type(parts[1]) is int


def _is_map_of_offsets(told: Any) -> bool:
    if not isinstance(told, dict):
        return False
    offsets = cast("dict[Any, Any]", told).values()
    return all(offset is None or type(offset) is int for offset in offsets)


def _is_answer(answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    given = cast("dict[str, Any]", answer)
    inputs = given.get(READ_INPUTS)
    return (
        isinstance(given.get(LOG_OF), str)
        and type(given.get(BEGAN_AT)) is int
        and type(given.get(ENDED_AT)) is int
        and isinstance(inputs, list)
        and all(is_list_of(pair, 2) for pair in cast("list[Any]", inputs))
        and (TAKEN_AS not in given or _is_pair_of_numbers(given[TAKEN_AS]))
    )


def _is_pair_of_numbers(told: Any) -> bool:
    return is_list_of(told, 2) and all(type(number) is int for number in told)
