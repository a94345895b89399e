"""Checker of brokers' views of topics, against time and the committed log.

A ``view`` is answered by one broker from its own image and may be stale, so it is no part of the
linearizable history. Its answer is ``[number of partitions or None, offset]``, the offset one past
the last record of the image. Two promises: a view that began after another one at the same broker
had ended never shows an earlier offset, whatever restarts lie between; and each view shows its
topic as the committed log has it below that offset.

Views beyond the end of every dump, or before its beginning, are counted and blame nobody; where
there are no others the verdict is ``unknown``. Source: issue 9, item 10.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from splitbrain.checker.committed_logs import committed_records
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.findings import Findings, Undecided, end_of, of_key
from splitbrain.checker.models.model import is_list_of, text_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.committed import CommittedLog
from splitbrain.history.records import PairedOperation

NAME: Final = "broker-views"
_WENT_BACK: Final = "view-went-back"
_NOT_AS_COMMITTED: Final = "view-not-as-committed"


class _View(NamedTuple):
    operation: PairedOperation
    node: str
    #: None: the broker knows no such topic.
    shown: int | None
    offset: int


class _States:
    """States of each topic by offset, as far as the committed logs cover them."""

    def __init__(self, logs: Mapping[str, CommittedLog]) -> None:
        whole = [log for log in logs.values() if log.records]
        self.start = min((log.start_offset for log in whole), default=0)
        self.end = max((log.end_offset for log in whole), default=0)
        changes: dict[int, tuple[str | None, int | None]] = {}
        for log in whole:
            for record in committed_records(log):
                if record.f == "create":
                    changes.setdefault(record.offset, (record.key, record.value))
                elif record.f == "delete":
                    changes.setdefault(record.offset, (record.key, None))
        self._offsets: dict[str | None, list[int]] = {}
        self._states: dict[str | None, list[int | None]] = {}
        for offset, (key, state) in sorted(changes.items()):
            self._offsets.setdefault(key, []).append(offset)
            self._states.setdefault(key, []).append(state)

    def covers(self, key: str | None, offset: int) -> bool:
        """Return whether the topic's state below that offset is known."""
        if offset > self.end:
            return False
        return self.start == 0 or bool(bisect_left(self._offsets.get(key, []), offset))

    def state(self, key: str | None, offset: int) -> int | None:
        place = bisect_left(self._offsets.get(key, []), offset)
        return self._states[key][place - 1] if place else None


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge every answered view of a run."""
    findings = Findings(NAME, budget, (_WENT_BACK, _NOT_AS_COMMITTED))

    def judge() -> tuple[dict[str, Any], str, str | None]:
        views = list(_views(evidence.operations))
        by_node: dict[str, list[_View]] = {}
        for view in views:
            by_node.setdefault(view.node, []).append(view)
        for node_views in by_node.values():
            _judge_order(node_views, findings)
        states = _States(evidence.committed_logs)
        covered = [view for view in views if states.covers(view.operation.key, view.offset)]
        for view in covered:
            _judge_content(view, states, findings)
        figures = {
            "views": len(views),
            "brokers": len(by_node),
            "untold": len(views) - len(covered),
        }
        undecided = None
        if not views:
            undecided = "No broker answered a view."
        elif not covered:
            undecided = "No committed log reaches to where the brokers' views were taken."
        valid_reason = (
            f"{len(views):,} views at {len(by_node)} brokers never went back, and {len(covered):,} "
            "of them are as committed; the logs do not cover the others."
            if len(covered) < len(views)
            else f"{len(views):,} views at {len(by_node)} brokers never went back, and all are as "
            "committed."
        )
        return figures, valid_reason, undecided

    return findings.conclude(judge)


def _views(operations: Sequence[PairedOperation]) -> Iterator[_View]:
    for operation in operations:
        if operation.f != "view" or operation.type != "ok":
            continue
        if operation.node is None or not is_list_of(operation.result, 2):
            raise Undecided(f"the view of index {operation.index} names no broker or no offset")
        shown, offset = operation.result
        yield _View(operation, operation.node, shown, offset)


def _judge_order(views: Sequence[_View], findings: Findings) -> None:
    """Compare each view with the furthest one that had ended before it at the same broker."""
    by_end = sorted(views, key=lambda view: end_of(view.operation))
    ends = [end_of(view.operation) for view in by_end]
    furthest: list[_View] = []
    for view in by_end:
        ahead = furthest and furthest[-1].offset > view.offset
        furthest.append(furthest[-1] if ahead else view)
    for view in views:
        findings.poll()
        # Equal times are concurrent.
        place = bisect_left(ends, view.operation.start)
        if not place or furthest[place - 1].offset <= view.offset:
            continue
        before = furthest[place - 1]
        findings.note(
            _WENT_BACK,
            [before.operation, view.operation],
            lambda before=before, view=view: (
                f"{view.node} showed its image of offset {before.offset} (index "
                f"{before.operation.index}) and later that of offset {view.offset} (index "
                f"{view.operation.index})."
            ),
        )


def _judge_content(view: _View, states: _States, findings: Findings) -> None:
    findings.poll()
    operation = view.operation
    committed = states.state(operation.key, view.offset)
    if view.shown == committed:
        return
    findings.note(
        _NOT_AS_COMMITTED,
        [operation],
        lambda: (
            f"{view.node} showed {text_of(view.shown)} as the partitions{of_key(operation.key)} at "
            f"offset {view.offset} (index {operation.index}), but the committed log has "
            f"{text_of(committed)} there."
        ),
    )
