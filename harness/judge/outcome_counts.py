"""Counts of operations by outcome, and epochs of acknowledged ones.

Computed from the run folder's own records, so that a verdict never waits for an analysis.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from splitbrain.contracts.names import NO_EPOCH
from splitbrain.harness.folder.results import OutcomeCounts
from splitbrain.history.functions import USUAL, Functions, was_refused
from splitbrain.history.records import PairedOperation

#: Error class of an operation that states none.
UNNAMED_ERROR = "unnamed-error"


def outcome_counts(
    operations: Iterable[PairedOperation], functions: Functions = USUAL
) -> dict[str, OutcomeCounts]:
    """Count outcomes by kind of operation, final reads included."""
    counted: dict[str, Counter[str]] = {}
    errors: dict[tuple[str, str], Counter[str]] = {}
    for operation in operations:
        counts = counted.setdefault(operation.f, Counter())
        counts[operation.type] += 1
        if operation.type != "ok":
            by_error = errors.setdefault((operation.f, operation.type), Counter())
            by_error[operation.error or UNNAMED_ERROR] += 1
        elif was_refused(functions, operation.f, operation.result):
            counts["refused"] += 1
    return counts_of(counted, errors)


def counts_of(
    counted: Mapping[str, Counter[str]], errors: Mapping[tuple[str, str], Counter[str]]
) -> dict[str, OutcomeCounts]:
    """Return the record of outcomes by kind, and of errors by kind and outcome."""
    return {
        kind: OutcomeCounts(
            ok=counts["ok"],
            fail=counts["fail"],
            info=counts["info"],
            refused=counts["refused"],
            fail_by_error=dict(errors.get((kind, "fail"), Counter()).most_common()),
            info_by_error=dict(errors.get((kind, "info"), Counter()).most_common()),
        )
        for kind, counts in sorted(counted.items())
    }


def acknowledged_epochs(operations: Iterable[PairedOperation]) -> set[int]:
    """Return the epochs of acknowledged operations, where the system states them."""
    return {
        operation.position[0]
        for operation in operations
        if operation.type == "ok"
        and operation.position is not None
        and operation.position[0] != NO_EPOCH
    }
