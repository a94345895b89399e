"""The figures of ``harness.judge.timeline`` for a history that is there as columns."""

from collections import Counter

import numpy as np

from splitbrain.harness.folder.results import OutcomeCounts
from splitbrain.harness.judge.timeline import UNNAMED_ERROR
from splitbrain.history.columns import OK, OUTCOMES, OperationColumns
from splitbrain.history.functions import USUAL, was_refused


def outcome_counts(columns: OperationColumns) -> dict[str, OutcomeCounts]:
    """Operation kind to how many ended how; see ``harness.judge.timeline.outcome_counts``."""
    counted: dict[str, Counter[str]] = {}
    errors: dict[tuple[str, str], Counter[str]] = {}
    packed = columns.kinds.astype(np.int64) * len(OUTCOMES) + columns.outcomes
    packed = packed * len(columns.error_names) + columns.errors
    codes, first, counts = np.unique(packed, return_index=True, return_counts=True)
    # In the order in which they were first met, which decides between equal counts.
    for at in np.argsort(first).tolist():
        rest, error = divmod(int(codes[at]), len(columns.error_names))
        kind, outcome = divmod(rest, len(OUTCOMES))
        f, count = columns.kind_names[kind], int(counts[at])
        counted.setdefault(f, Counter())[OUTCOMES[outcome]] += count
        if outcome != OK:
            by_error = errors.setdefault((f, OUTCOMES[outcome]), Counter())
            by_error[columns.error_names[error] or UNNAMED_ERROR] += count
    for f in counted.keys() & USUAL.keys():
        if USUAL[f].refused is not None:
            counted[f]["refused"] = _refused(columns, f)
    return {
        kind: OutcomeCounts(
            ok=outcomes["ok"],
            fail=outcomes["fail"],
            info=outcomes["info"],
            refused=outcomes["refused"],
            fail_by_error=dict(errors.get((kind, "fail"), Counter()).most_common()),
            info_by_error=dict(errors.get((kind, "info"), Counter()).most_common()),
        )
        for kind, outcomes in sorted(counted.items())
    }


def acknowledged_epochs(columns: OperationColumns) -> tuple[int, ...]:
    """Epochs in which the system placed acknowledged operations, where it says so, ascending."""
    positions = columns.positions
    if positions is None:
        return ()
    epochs: list[int] = np.unique(
        positions.epochs[positions.known & (columns.outcomes == OK)]
    ).tolist()
    return tuple(epochs)


def _refused(columns: OperationColumns, f: str) -> int:
    """Operations of a kind whose answer says that it was not done."""
    asked = columns.kinds == columns.kind_names.index(f)
    results = np.bincount(columns.results[asked & (columns.outcomes == OK)])
    met: list[int] = np.flatnonzero(results).tolist()
    return sum(int(results[code]) for code in met if was_refused(USUAL, f, columns.values[code]))
