"""Judging of a columnar history, part by part, in killable workers.

Three rounds, each with the full budget for every piece:

1. Small parts in chunks, with the steps that are always quick; large parts alone, with all steps.
2. Parts left open by a chunk, and those of a chunk whose worker failed, each alone: a hard part
   never takes others along.
3. The smallest parts that have no order, from their operations, to be explained.

Workers get columns; operations are made for the last round alone. The result equals that of
``harness.judge.checking``. Source: issue 7, items 5 and 8.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from splitbrain.checker.linearizability.column_history import (
    COMPILED_FROM,
    ColumnParts,
    PartVerdict,
    judge_columns,
)
from splitbrain.checker.linearizability.part.parts import (
    PARTS_NAMED_MAX,
    PartResult,
    combine,
    of_key,
    undecided_part,
    valid_part,
)
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.harness.folder.own_models import make_known
from splitbrain.harness.judge.checking import PART_FUNCTION, Packed
from splitbrain.harness.pool import workers
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.limits import Limits, with_cost
from splitbrain.harness.pool.workers import PartOutcome

_CHUNK_FUNCTION: Final = f"{__name__}:judge_chunk"
#: Chunks for each worker, so that all workers end at about the same time.
_CHUNKS_PER_JOB: Final = 8
#: Least operations of a chunk: with fewer, handing over takes longer than judging.
_CHUNK_OPERATIONS_MIN: Final = 4_000


class Chunk(msgspec.Struct, frozen=True):
    """Parts that one worker judges in turn."""

    parts: ColumnParts
    model: str
    quick: bool
    compiled_first: bool


def judge_chunk(chunk: Chunk, budget: Budget) -> list[PartVerdict]:
    """Judge some parts, in a worker."""
    make_known(chunk.model)
    return list(
        judge_columns(
            chunk.parts,
            model_named(chunk.model),
            budget,
            quick=chunk.quick,
            compiled_first=chunk.compiled_first,
        )
    )


class ColumnCheck:
    """Check of one history for linearizability; ``run`` it once.

    ``limits`` hold for each piece of a round; ``give_up`` and ``warm`` are those of ``check_all``.
    """

    def __init__(
        self,
        parts: ColumnParts,
        model: str,
        limits: Limits,
        give_up: Callable[[], str | None],
        warm: list[FramedChild] | None,
    ) -> None:
        self._parts = parts
        self._model = model
        self._limits = limits
        self._give_up = give_up
        self._warm = warm
        self._results: dict[int, PartResult] = {}
        self._outcomes: list[PartOutcome] = []

    def run(self) -> CheckResult:
        """Return the verdict on the whole history."""
        parts = self._parts
        chunks = _chunks(parts, self._limits.jobs)
        left_open = self._judge([(chunk, len(chunk) > 1) for chunk in chunks])
        self._judge([([number], False) for number in left_open])
        self._explain()
        results = [self._results[number] for number in range(len(parts.keys))]
        return with_cost(combine(results, self._model), self._outcomes)

    def _judge(self, chunks: Sequence[tuple[Sequence[int], bool]]) -> list[int]:
        """Judge chunks of ``(parts, is_quick)``; return the parts that are still open."""
        compiled_first = len(self._parts.columns) >= COMPILED_FROM
        pieces = [
            workers.Part(
                _CHUNK_FUNCTION,
                Chunk(self._parts.some(numbers), self._model, quick, compiled_first),
                sum(map(self._parts.size, numbers)),
            )
            for numbers, quick in chunks
        ]
        left_open: list[int] = []
        for (numbers, quick), outcome in zip(chunks, self._run(pieces), strict=True):
            if outcome.failure is not None and quick:
                left_open += numbers
            elif outcome.failure is not None:
                number = numbers[0]
                key, size = self._parts.keys[number], self._parts.size(number)
                self._results[number] = undecided_part(key, size, outcome.failure, {})
            else:
                for number, verdict in zip(numbers, outcome.value, strict=True):
                    if verdict.verdict is Verdict.UNKNOWN and quick:
                        left_open.append(number)
                    else:
                        self._results[number] = self._result(number, verdict)
        return left_open

    def _explain(self) -> None:
        invalid = [n for n, r in sorted(self._results.items()) if r.verdict is Verdict.INVALID]
        named = sorted(invalid, key=lambda n: self._results[n].operations)[:PARTS_NAMED_MAX]
        parts = self._parts
        pieces = [
            workers.Part(PART_FUNCTION, (Packed(parts.part(n)), self._model), parts.size(n))
            for n in named
        ]
        for number, outcome in zip(named, self._run(pieces), strict=True):
            # A violation stands, explained or not.
            if outcome.failure is None and outcome.value.verdict is not Verdict.UNKNOWN:
                self._results[number] = self._agreed(number, outcome.value)

    def _agreed(self, number: int, explained: PartResult) -> PartResult:
        found = self._results[number]
        if explained.verdict is found.verdict:
            return explained
        reason = (
            f"{found.operations:,} operations{of_key(found.key)} are undecided: {found.algorithm} "
            f"found no order, and {explained.algorithm} found one. This is a defect of the checker."
        )
        return msgspec.structs.replace(found, verdict=Verdict.UNKNOWN, reason=reason)

    def _run(self, pieces: Sequence[workers.Part]) -> list[PartOutcome]:
        if not pieces:
            return []
        outcomes = workers.run_parts(pieces, self._limits, give_up=self._give_up, warm=self._warm)
        self._outcomes += outcomes
        return outcomes

    def _result(self, number: int, verdict: PartVerdict) -> PartResult:
        key, size = self._parts.keys[number], self._parts.size(number)
        figures = {"configurations": verdict.configurations}
        if verdict.verdict is Verdict.VALID:
            return valid_part(key, size, verdict.algorithm, figures)
        if verdict.verdict is Verdict.UNKNOWN:
            return undecided_part(key, size, verdict.reason, figures)
        return PartResult(
            key=key,
            verdict=Verdict.INVALID,
            algorithm=verdict.algorithm,
            reason=f"{size:,} operations{of_key(key)} have no order. "
            "There was no time left to tell more.",
            operations=size,
            figures=figures,
        )


def _chunks(parts: ColumnParts, jobs: int) -> list[list[int]]:
    """Group parts into chunks of similar size, large parts alone."""
    enough = max(len(parts.columns) // (jobs * _CHUNKS_PER_JOB), _CHUNK_OPERATIONS_MIN)
    chunks: list[list[int]] = []
    room = 0
    for number in range(len(parts.keys)):
        size = parts.size(number)
        if room < size:
            chunks.append([])
            room = enough
        chunks[-1].append(number)
        room -= size
    return chunks
