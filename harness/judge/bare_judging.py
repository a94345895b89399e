"""Judging of a bare history's operations; large ones go through ``bare_columns``.

Operations of a shape that a checker of outcomes cannot read are refused, with their line.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import MODELS, model_named
from splitbrain.checker.names import linearizability_model, transactions_level
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.results import OutcomeCounts
from splitbrain.harness.judge.checking import check_all
from splitbrain.harness.judge.outcome_counts import acknowledged_epochs, outcome_counts
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.warm_workers import WarmWorkers
from splitbrain.history.formats import Format
from splitbrain.history.identity import operations_apart
from splitbrain.history.importers import LoadedHistory
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown, wrong_echo

#: Size of a file from which it is read into columns, bytes.
COLUMNS_FROM_BYTES = 4 << 20


class JudgedHistory(msgspec.Struct, frozen=True):
    """A history, read and judged."""

    format: Format
    operations: int
    check: CheckResult
    counts: dict[str, OutcomeCounts]
    epochs: tuple[int, ...]
    #: None where it was read into columns: its file was faultless then.
    loaded: LoadedHistory | None = None
    #: The verdict with 1 and 1.0 told apart, see ``history.identity``; None where the history does
    #: not mix them.
    strict_verdict: Verdict | None = None

    @property
    def proves_violations(self) -> bool:
        """Return whether an invalid verdict stands whatever the file lacks at its end."""
        nothing_within = self.loaded is None or not self.loaded.broken_count
        return nothing_within and linearizability_model(self.check.checker) is not None


def judge_as_operations(
    loaded: LoadedHistory,
    checker: str,
    limits: Limits,
    give_up: Callable[[], str | None],
    warm: WarmWorkers | None,
) -> JudgedHistory:
    """Judge operations by any checker."""
    operations = tuple(loaded.operations)
    judging = None if warm is None else warm.judging

    def judge(judged: tuple[PairedOperation, ...]) -> CheckResult:
        evidence = Evidence(operations=judged, members=members_of(judged))
        (check,) = check_all([checker], evidence, limits, give_up, judging)
        if check.verdict is Verdict.INVALID:
            # A valid history is judged before this would be loaded.
            from splitbrain.harness.judge.doubted_failures import with_doubts

            (check,) = with_doubts([check], evidence, limits, give_up)
        return check

    check = judge(operations)
    strict_verdict = None
    if loaded.mixes_numbers:
        apart, _ = operations_apart(operations, one_kind_of_number=False)
        strict_verdict = judge(tuple(apart)).verdict
    return JudgedHistory(
        format=loaded.format,
        operations=len(operations),
        check=check,
        counts=outcome_counts(operations),
        epochs=tuple(sorted(acknowledged_epochs(operations))),
        loaded=loaded,
        strict_verdict=strict_verdict,
    )


def members_of(operations: Iterable[PairedOperation]) -> frozenset[str]:
    """Return nodes that may hold records which final reads of other nodes do not show.

    A bare history does not say for whom its reads speak, so each node that acknowledged something
    counts; without operations marked as final the last reads are unknown, and none counts.
    """
    nodes: set[str] = set()
    has_final = False
    for operation in operations:
        has_final = has_final or operation.final
        if operation.type == "ok" and operation.node is not None:
            nodes.add(operation.node)
    return frozenset(nodes) if has_final else frozenset()


def is_large(path: Path) -> bool:
    """Return whether columns pay off for a history."""
    return path.is_dir() or path.stat().st_size >= COLUMNS_FROM_BYTES


#: Problem of an operation, as a clause; None for none.
Problem = Callable[[PairedOperation], str | None]


def sense_of(checker: str) -> Problem:
    """Return a function that finds operations which make no sense to this model or checker.

    Checkers of runs refuse none.
    """
    name = linearizability_model(checker)
    if name is not None:
        return _as_models(model_named(name))
    transactions = transactions_level(checker)
    if transactions is not None:
        # Of use to transactions alone, which few files have.
        from splitbrain.checker.transactions.micro_operations import Sense
        from splitbrain.checker.transactions.row_operations import RowSense

        kind, _ = transactions
        return RowSense() if kind == "rows" else Sense(kind)
    if checker.partition(":")[0] == "log":
        from splitbrain.checker.logs.parts import Sense as SenseOfLogs

        return SenseOfLogs()
    if checker == "exactly-once":
        from splitbrain.checker.exactly_once import problem_with as problem_with_transform

        return _with_logs(problem_with_transform)
    if checker == "share-groups":
        from splitbrain.checker.share_groups.readings import problem_with as problem_with_share

        return _with_logs(problem_with_share)
    if checker == "groups":
        from splitbrain.checker.groups.readings import problem_with

        return _with_logs(problem_with)
    return _PROBLEMS.get(checker.partition(":")[0], lambda _operation: None)


def asks_failed(checker: str) -> bool:
    """Return whether failed operations have to make sense, too."""
    # A value that was tried twice tells nobody which of the two wrote it.
    return transactions_level(checker) is not None or checker.partition(":")[0] == "log"


def _with_logs(others: Problem) -> Problem:
    """Return the problem of an operation on logs, or of one of the others."""
    from splitbrain.checker.logs.parts import Sense as SenseOfLogs
    from splitbrain.contracts.log import POLL, SEND

    of_logs = SenseOfLogs()
    return lambda operation: (of_logs if operation.f in (SEND, POLL) else others)(operation)


def _as_models(*models: Model) -> Problem:
    def problem(operation: PairedOperation) -> str | None:
        # Operations unknown to a model are refused elsewhere, with the name of a fitting model.
        for model in models:
            if operation.f in model.functions:
                return model.problem_with(operation)
        return None

    return problem


def _bank(operation: PairedOperation) -> str | None:
    if operation.f != "read" or operation.type != "ok" or isinstance(operation.result, Mapping):
        return None
    return f"the answer of a read is balances by account, and not {shown(operation.result)}"


def _queue(operation: PairedOperation) -> str | None:
    if operation.f == "enqueue" and operation.result is not False:
        return wrong_echo(operation)
    if operation.f == "drain" and not isinstance(
        operation.result, (list, tuple, AbstractSet, type(None))
    ):
        return f"the answer of a drain is a list of elements, and not {shown(operation.result)}"
    return None


def _sessions(operation: PairedOperation) -> str | None:
    return wrong_echo(operation) if operation.f in ("write", "add") else None


def _unique_ids(operation: PairedOperation) -> str | None:
    if operation.f != "generate" or operation.type != "ok" or operation.result is not None:
        return None
    return "it answers no id"


_PROBLEMS: Final[dict[str, Problem]] = {
    "set-full": _as_models(MODELS["set"]),
    "counter-bounds": _as_models(MODELS["counter"]),
    "bank": _bank,
    "queue-totals": _queue,
    "unique-ids": _unique_ids,
    "sessions": _sessions,
    "fencing": _as_models(MODELS["fenced-register"], MODELS["mutex"]),
}
