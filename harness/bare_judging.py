"""Judges the operations of a bare history: as columns where it is large, else as objects.

Both ways have the same results. Columns know the way of a file without fault only; whatever is
odd about a file or an operation is left to who reads objects, and can say where it stands.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from checker.evidence import Evidence
from checker.linearizability.column_history import split_columns
from checker.models.registry import model_named
from checker.outcome_shapes import outcome_problem
from checker.registry import linearizability_model
from checker.verdict import CheckResult
from harness import column_counts
from harness.checking import check_all
from harness.column_checking import ColumnCheck
from harness.limits import Limits
from harness.results import (
    OutcomeCounts,
)
from harness.shared_reading import read_shared
from harness.timeline import acknowledged_epochs, outcome_counts
from harness.warm_workers import WarmWorkers
from history.formats import Format, guess_format, known_format
from history.importers import LoadedHistory
from history.records import PairedOperation
from history.value_shapes import wrong_shape

#: Size of a file from which it is read into columns.
COLUMNS_FROM_BYTES = 4 << 20


class JudgedHistory(msgspec.Struct, frozen=True):
    """A history that was read and judged, one way or the other."""

    format: Format
    #: All that it holds, failed ones included.
    operations: int
    check: CheckResult
    counts: dict[str, OutcomeCounts]
    epochs: tuple[int, ...]
    #: None where it was read into columns: then there was nothing wrong with its file.
    loaded: LoadedHistory | None = None

    @property
    def proves_violations(self) -> bool:
        """Whether what is invalid stays so, whatever the file lacks at its end."""
        nothing_within = self.loaded is None or not self.loaded.broken_count
        return nothing_within and linearizability_model(self.check.checker) is not None


def judge_as_columns(
    path: Path,
    checker: str,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: WarmWorkers | None,
) -> JudgedHistory | None:
    """Judge a large history without an object per operation; None where that cannot be.

    Whoever reads objects then tells why, or judges it.
    """
    model = linearizability_model(checker)
    if model is None or not _is_large(path):
        return None
    reading, judging = warm or WarmWorkers([], [])
    columns = read_shared(path, history_format, limits, give_up, reading)
    if columns is None:
        return None
    parts = split_columns(columns, model_named(model), wrong_shape)
    if parts is None:
        return None
    return JudgedHistory(
        format=known_format(history_format) if history_format else guess_format(path),
        operations=len(columns),
        check=ColumnCheck(parts, model, limits, give_up, judging).run(),
        counts=column_counts.outcome_counts(columns),
        epochs=column_counts.acknowledged_epochs(columns),
    )


def judge_as_operations(
    loaded: LoadedHistory,
    checker: str,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: WarmWorkers | None,
) -> JudgedHistory:
    """Judge operations, by whatever checker."""
    operations = tuple(loaded.operations)
    judging = None if warm is None else warm.judging
    (check,) = check_all([checker], Evidence(operations=operations), limits, give_up, judging)
    return JudgedHistory(
        format=loaded.format,
        operations=len(operations),
        check=check,
        counts=outcome_counts(operations),
        epochs=tuple(sorted(acknowledged_epochs(operations))),
        loaded=loaded,
    )


def _is_large(path: Path) -> bool:
    """Whether columns pay off; an object per operation of a small history is quickly made."""
    return path.is_dir() or path.stat().st_size >= COLUMNS_FROM_BYTES


def sense_of(checker: str) -> Callable[[PairedOperation], str | None]:
    """What makes no sense to the model or the checker of outcomes that judges."""
    name = linearizability_model(checker)
    if name is None:
        return outcome_problem(checker)
    model = model_named(name)

    def problem_with(operation: PairedOperation) -> str | None:
        # Operations that the model does not know are refused as such, with one that fits.
        return model.problem_with(operation) if operation.f in model.functions else None

    return problem_with
