"""Limits of a judgement, and what it used."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from splitbrain.checker.verdict import CheckResult

if TYPE_CHECKING:
    from splitbrain.harness.pool.workers import PartOutcome

#: Seconds of a processor that one part of one checker may take, and mebibytes of memory.
TIME_BUDGET_S = 60.0
MEMORY_BUDGET_MIB = 2048
#: More workers than any machine has use for.
JOBS_MAX = 256


class Limits(msgspec.Struct, frozen=True):
    """Time, memory and processes that a judgement, or other work in parts, may use."""

    #: Seconds of a processor that one part may take.
    time_budget_s: float
    #: Mebibytes of memory that one part may take.
    memory_budget_mib: int
    #: Parts at work at the same time.
    jobs: int
    #: Told the weight of the parts that are done, and that of all, as a round goes on.
    took: Callable[[int, int], None] | None = None
    #: Told how many bytes of a history's file are read, and its size.
    read: Callable[[int, int], None] | None = None


def with_cost(result: CheckResult, outcomes: "Sequence[PartOutcome]") -> CheckResult:
    """Return the result with what it took, so that people see where the time goes."""
    cost: dict[str, Any] = {
        "seconds": round(sum(outcome.seconds for outcome in outcomes), 3),
        "memory-mib-max": round(max((outcome.memory_mib_max for outcome in outcomes), default=0)),
    }
    return msgspec.structs.replace(result, figures={**result.figures, **cost})
