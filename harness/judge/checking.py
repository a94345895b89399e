"""Dispatch of a run's evidence to the plan's checkers, part by part, in killable workers.

A part that hangs, eats memory or crashes makes its own checker ``unknown``, never ``valid``, and
touches no other. Source: design, section 3; issue 3, item 8.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from splitbrain.checker.allowing import with_allowed
from splitbrain.checker.evidence import Checker, Evidence
from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.part.parts import (
    Part,
    PartResult,
    combine,
    split,
    undecided_part,
)
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.names import linearizability_model
from splitbrain.checker.verdict import CheckResult, Verdict, merge
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.system import AllowedAnomaly
from splitbrain.harness.folder.own_models import make_known
from splitbrain.harness.pool import workers
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.limits import Limits, with_cost
from splitbrain.harness.pool.workers import PartOutcome
from splitbrain.history.records import PairedOperation

PART_FUNCTION = f"{__name__}:check_one_part"
_WHOLE_FUNCTION = f"{__name__}:check_whole"
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[PairedOperation, ...])


class Packed:
    """A record with a field ``operations``, on its way to a worker.

    It takes a fifth of the time of pickling each operation (``python -m bench.reading``).
    Operations hold JSON, so MessagePack keeps them; where one does not fit (an integer of more than
    64 bits), all of them are pickled.
    """

    def __init__(self, record: Any) -> None:
        self.record = record

    def __reduce__(self) -> tuple[Callable[..., "Packed"], tuple[Any, ...]]:
        fields = msgspec.structs.asdict(self.record)
        try:
            content = _ENCODER.encode(fields.pop("operations"))
        except (OverflowError, TypeError, ValueError, RecursionError):
            return Packed, (self.record,)
        return _unpacked, (self.record.__class__, fields, content)


def _unpacked(record_type: Callable[..., Any], fields: dict[str, Any], content: bytes) -> Packed:
    return Packed(record_type(**fields, operations=_DECODER.decode(content)))


class _Job(msgspec.Struct, frozen=True):
    name: str
    #: None unless the checker is one of linearizability.
    model: str | None
    #: Parts of the history, for checkers that split it.
    history_parts: tuple[Part, ...]
    parts: tuple[workers.Part, ...]
    refused: str | None = None


def check_one_part(payload: tuple[Packed, str], budget: Budget) -> PartResult:
    """Judge one part of a history for linearizability from its operations, in a worker."""
    packed, model = payload
    make_known(model)
    return check_part(packed.record, model, budget)


def check_whole(payload: tuple[str, Packed], budget: Budget) -> CheckResult:
    """Run one checker on everything, in a worker."""
    name, packed = payload
    return _checker(name)(packed.record, budget)


def check_all(
    names: Sequence[str],
    evidence: Evidence,
    limits: Limits,
    give_up: Callable[[], str | None] = lambda: None,
    warm: list[FramedChild] | None = None,
) -> list[CheckResult]:
    """Return one result per checker, in the order of their names.

    ``give_up`` returns a reason as soon as whatever is undecided is to stay so.
    """
    jobs = [_prepare(name, evidence) for name in names]
    parts = [part for job in jobs for part in job.parts]
    outcomes = iter(workers.run_parts(parts, limits, give_up=give_up, warm=warm))
    allowed = evidence.allowed
    return [_conclude(job, [next(outcomes) for _ in job.parts], allowed) for job in jobs]


def _prepare(name: str, evidence: Evidence) -> _Job:
    """Split the work; a checker that does not exist or does not fit is refused, not raised."""
    model = linearizability_model(name)
    try:
        if model is None:
            _checker(name)
            weight = len(evidence.operations)
            part = workers.Part(_WHOLE_FUNCTION, (name, Packed(evidence)), weight)
            return _Job(name, None, (), (part,))
        split_history = tuple(split(evidence.operations, model_named(model)))
    except UsageError as error:
        return _Job(name, model, (), (), str(error))
    # A defect in splitting is this checker's alone.
    except Exception as error:  # noqa: BLE001
        reason = f"The checker crashed: {type(error).__name__}: {error}."
        return _Job(name, model, (), (), reason)
    parts = tuple(
        workers.Part(PART_FUNCTION, (Packed(part), model), len(part.operations))
        for part in split_history
    )
    return _Job(name, model, split_history, parts)


def _conclude(
    job: _Job, outcomes: Sequence[PartOutcome], allowed: Sequence[AllowedAnomaly]
) -> CheckResult:
    if job.refused is not None:
        return _unknown(job.name, job.refused, outcomes)
    if job.model is not None:
        results = [
            outcome.value
            if outcome.failure is None
            else undecided_part(part.key, len(part.operations), outcome.failure, {})
            for part, outcome in zip(job.history_parts, outcomes, strict=True)
        ]
        try:
            combined = with_allowed(combine(results, job.model), allowed)
        # A defect in combining must not turn a violation into anything less.
        except Exception as error:  # noqa: BLE001
            combined = _uncombined(job.name, results, error)
        return with_cost(combined, outcomes)
    (outcome,) = outcomes
    if outcome.failure is not None:
        return _unknown(job.name, f"The checker {outcome.failure}.", outcomes)
    return with_cost(outcome.value, outcomes)


def _checker(name: str) -> Checker:
    # Loading all checkers takes as long as judging a history for linearizability.
    from splitbrain.checker.registry import checker_named

    return checker_named(name)


def _uncombined(name: str, results: Sequence[PartResult], error: Exception) -> CheckResult:
    worst = merge([Verdict.UNKNOWN, *(result.verdict for result in results)])
    violation = next((result.reason for result in results if result.verdict is Verdict.INVALID), "")
    crash = f"Its parts could not be summed up: {type(error).__name__}: {error}."
    return CheckResult(checker=name, verdict=worst, reason=f"{violation} {crash}".strip())


def _unknown(name: str, reason: str, outcomes: Sequence[PartOutcome]) -> CheckResult:
    return with_cost(CheckResult(checker=name, verdict=Verdict.UNKNOWN, reason=reason), outcomes)
