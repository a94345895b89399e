"""Judging of a large bare history as columns, with the same results as judging objects.

Columns handle faultless files only; anything odd is left to the path that reads objects and can
name the line. A large file of JSON lines is read by several workers; where one fails, for whatever
reason, which is no fault of the file, this process reads it.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.linearizability.column_history import split_columns
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.names import linearizability_model, transactions_level
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.names import NO_EPOCH
from splitbrain.harness.folder.results import OutcomeCounts
from splitbrain.harness.judge.bare_judging import JudgedHistory
from splitbrain.harness.judge.checking import check_all
from splitbrain.harness.judge.column_checking import ColumnCheck
from splitbrain.harness.judge.outcome_counts import UNNAMED_ERROR, counts_of
from splitbrain.harness.pool import workers
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.warm_workers import SHARED_FROM_BYTES, WarmWorkers
from splitbrain.history.column_reader import columns_apart, read_columns
from splitbrain.history.columns import FAIL, OK, OUTCOMES, ColumnOperations, OperationColumns
from splitbrain.history.event_columns import EventColumns, paired_columns
from splitbrain.history.formats import guess_format, known_format
from splitbrain.history.functions import USUAL, was_refused
from splitbrain.history.line_columns import LineRange, joined, line_ranges, read_range
from splitbrain.history.value_shapes import wrong_shape

#: Ranges of a file are about so large, that readers can tell how far they are.
_RANGE_BYTES: Final = 16 << 20
_RANGE_FUNCTION: Final = f"{__name__}:read_one"


def judge_as_columns(
    path: Path,
    checker: str,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: WarmWorkers | None,
) -> JudgedHistory | None:
    """Judge a large history without an object per operation; None where objects are needed."""
    if transactions_level(checker) is not None:
        return _judge_transactions(path, checker, history_format, limits, give_up, warm)
    model = linearizability_model(checker)
    if model is None:
        return None
    reading, judging = warm or WarmWorkers([], [])
    columns = read_shared(path, history_format, limits, give_up, reading)
    if columns is None:
        return None
    check = _check_columns(columns, model, limits, give_up, judging)
    if check is None:
        return None
    strict_verdict = None
    if columns.mixes_numbers:
        apart = columns_apart(columns, one_kind_of_number=False)
        again = _check_columns(apart, model, limits, give_up, judging)
        strict_verdict = None if again is None else again.verdict
    return JudgedHistory(
        format=known_format(history_format) if history_format else guess_format(path),
        operations=len(columns),
        check=check,
        counts=outcome_counts(columns),
        epochs=acknowledged_epochs(columns),
        strict_verdict=strict_verdict,
    )


def _judge_transactions(
    path: Path,
    checker: str,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: WarmWorkers | None,
) -> JudgedHistory | None:
    # Few files are of transactions.
    from splitbrain.checker.transactions.column_parts import answered

    kind, _ = transactions_level(checker) or ("rows", "")
    if kind == "rows":
        return None
    reading, judging = warm or WarmWorkers([], [])
    columns = read_shared(path, history_format, limits, give_up, reading, are_transactions=True)
    if columns is None or answered(columns, kind) is None:
        return None
    evidence = Evidence(operations=ColumnOperations(columns))
    checks = check_all([checker], evidence, limits, give_up, judging)
    if checks[0].verdict is Verdict.INVALID and (columns.outcomes == FAIL).any():
        # A valid history is judged before this would be loaded.
        from splitbrain.harness.judge.doubted_failures import with_doubts

        checks = with_doubts(checks, evidence, limits, give_up)
    return JudgedHistory(
        format=known_format(history_format) if history_format else guess_format(path),
        operations=len(columns),
        check=checks[0],
        counts=outcome_counts(columns),
        epochs=acknowledged_epochs(columns),
    )


def read_one(lines: LineRange, _budget: Budget) -> EventColumns | None:
    """Read the events of one range, in a worker."""
    return read_range(lines)


def read_shared(
    path: Path,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: list[FramedChild],
    *,
    are_transactions: bool = False,
) -> OperationColumns | None:
    """Read, and raise, as ``read_columns`` does; by several workers if that pays off."""
    found = known_format(history_format) if history_format else guess_format(path)
    ranges: list[LineRange] = []
    if found == "jsonl" and path.is_file() and path.stat().st_size >= SHARED_FROM_BYTES:
        count = max(limits.jobs, path.stat().st_size // _RANGE_BYTES)
        ranges = line_ranges(path, count, are_transactions=are_transactions)
    if len(ranges) < 2:
        return read_columns(path, history_format, are_transactions=are_transactions)
    pieces = [workers.Part(_RANGE_FUNCTION, lines, lines.end - lines.start) for lines in ranges]
    reading = msgspec.structs.replace(limits, took=limits.read)
    outcomes = workers.run_parts(pieces, reading, give_up=give_up, warm=warm)
    if any(outcome.failure is not None for outcome in outcomes):
        return read_columns(path, history_format, are_transactions=are_transactions)
    parts = [outcome.value for outcome in outcomes]
    columns = None if None in parts else paired_columns(joined(parts))
    return None if columns is None else columns_apart(columns)


def _check_columns(
    columns: OperationColumns,
    model: str,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: list[FramedChild] | None,
) -> CheckResult | None:
    parts = split_columns(columns, model_named(model), wrong_shape)
    return None if parts is None else ColumnCheck(parts, model, limits, give_up, warm).run()


def outcome_counts(columns: OperationColumns) -> dict[str, OutcomeCounts]:
    """Count outcomes by kind of operation; see ``harness.judge.outcome_counts``."""
    counted: dict[str, Counter[str]] = {}
    errors: dict[tuple[str, str], Counter[str]] = {}
    packed = columns.kinds.astype(np.int64) * len(OUTCOMES) + columns.outcomes
    packed = packed * len(columns.error_names) + columns.errors
    codes, first, counts = np.unique(packed, return_index=True, return_counts=True)
    # In the order of their first appearance, which decides between equal counts.
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
    return counts_of(counted, errors)


def acknowledged_epochs(columns: OperationColumns) -> tuple[int, ...]:
    """Return the epochs of acknowledged operations, where the system states them, ascending."""
    positions = columns.positions
    if positions is None:
        return ()
    epochs: list[int] = np.unique(
        positions.epochs[positions.known & (columns.outcomes == OK)]
    ).tolist()
    return tuple(epoch for epoch in epochs if epoch != NO_EPOCH)


def _refused(columns: OperationColumns, f: str) -> int:
    of_kind = columns.kinds == columns.kind_names.index(f)
    results = np.bincount(columns.results[of_kind & (columns.outcomes == OK)])
    met: list[int] = np.flatnonzero(results).tolist()
    return sum(int(results[code]) for code in met if was_refused(USUAL, f, columns.values[code]))
