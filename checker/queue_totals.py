"""Checker of a queue: nothing lost, nothing given out twice, nothing else given out; linear.

- *lost*: acknowledged, never dequeued, although a dequeue invoked after that found the queue empty.
  Each unanswered dequeue may have taken one of these.
- *duplicated*: dequeued more often than it was asked to be enqueued.
- *phantom*: dequeued before any request to enqueue it.

A ``dequeue`` answers an element, or null where it found nothing; a ``drain`` answers a list of all
that it took until it found nothing. Elements that were never dequeued, and after which nobody found
the queue empty, are ``unknown``. So are missing ones while a member that may hold them did not
answer at the end that it has none: see ``checker.evidence``. No order is looked at: that is for the
models ``fifo-queue`` and ``unordered-queue``. Source: Jepsen's total-queue.

Where the workload drains its queues at the end, only what was found empty there counts, several
times in a row at the member that answered: before that another consumer may have been given an
element that it never acknowledges, and that comes back.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

import msgspec

from splitbrain.checker.evidence import unread, unread_reason
from splitbrain.checker.findings import (
    NAMED_MAX,
    Findings,
    Undecided,
    by_key,
    end_of,
    of_key,
)
from splitbrain.checker.models.model import freeze, text_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.operations import EMPTIES_IN_A_ROW
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation

_TAKES = frozenset({"dequeue", "drain"})
_FIGURES: tuple[str, ...] = (
    "acknowledged",
    "dequeued",
    "taken-unanswered",
    "never-looked-for",
    "perhaps-elsewhere",
    "not-drained",
)


class _Queue(msgspec.Struct):
    #: Enqueues that may have happened.
    attempted: Counter[Hashable]
    #: First enqueue to be invoked, by element.
    first_enqueue: dict[Hashable, PairedOperation]
    acknowledged: list[tuple[Hashable, PairedOperation]]
    #: Enqueues that certainly did not happen.
    failed: dict[Hashable, PairedOperation]
    taken: Counter[Hashable]
    #: First dequeue to return, by element.
    first_taken: dict[Hashable, PairedOperation]
    #: Last invoked operation that found the queue empty, and counts.
    empty: PairedOperation | None
    #: The same among final operations, by the member that answered.
    empty_at: dict[str | None, PairedOperation]
    #: Final answers in a row that found nothing, by member, so far.
    empties_in_a_row: Counter[str | None]
    #: Dequeues without answer; None if a drain has none, which may have taken any number.
    unanswered: int | None


def check(
    operations: Iterable[PairedOperation],
    budget: Budget,
    *,
    members: frozenset[str] = frozenset(),
    drained: bool = False,
) -> CheckResult:
    """Judge all queues of a history.

    ``members`` as in ``Evidence``. ``drained``: the workload takes its queues empty at the end.
    """
    findings = Findings("queue-totals", budget, ("lost", "phantom", "duplicated"))
    relevant = [o for o in operations if o.f in _TAKES or o.f == "enqueue"]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        figures: dict[str, int] = dict.fromkeys(_FIGURES, 0)
        unread_members: set[str] = set()
        for of_queue in by_key(relevant).values():
            queue = _gather(of_queue, findings, drained=drained)
            figures["acknowledged"] += len(queue.acknowledged)
            figures["dequeued"] += queue.taken.total()
            figures["not-drained"] += drained and queue.empty is None
            _judge_taken(queue, findings)
            _judge_lost(queue, members, unread_members, findings, figures)
        undecided = None
        if not relevant:
            undecided = "Nothing was enqueued or dequeued, so there is nothing to judge."
        elif figures["never-looked-for"]:
            how = " at the end, several times in a row" if drained else ""
            undecided = (
                f"{figures['never-looked-for']:,} of {figures['acknowledged']:,} acknowledged "
                f"elements were not dequeued, and nobody found the queue empty{how} after they "
                "were acknowledged."
            )
        elif unread_members:
            missing = counted(
                figures["perhaps-elsewhere"], "acknowledged element is", "acknowledged elements are"
            )
            undecided = unread_reason(
                f"{missing} gone where the queue was found empty", unread_members
            )
        elif figures["not-drained"]:
            queues = counted(figures["not-drained"], "queue was", "queues were")
            undecided = (
                f"{queues} not drained: not found empty at the end, several times in a row, so "
                "that more may come of them."
            )
        valid_reason = (
            f"{figures['dequeued']:,} elements were dequeued, each as often as it was enqueued."
        )
        return figures, valid_reason, undecided

    return findings.conclude(judge)


def _gather(members: Sequence[PairedOperation], findings: Findings, *, drained: bool) -> _Queue:
    queue = _Queue(Counter(), {}, [], {}, Counter(), {}, None, {}, Counter(), 0)
    for operation in members:
        findings.poll()
        if operation.f == "enqueue":
            _add_enqueue(queue, operation)
        elif operation.type == "info":
            open_drain = operation.f == "drain" or queue.unanswered is None
            queue.unanswered = None if open_drain else (queue.unanswered or 0) + 1
        elif operation.type == "ok":
            for value in _elements(operation):
                findings.poll()
                queue.taken[value] += 1
                known = queue.first_taken.setdefault(value, operation)
                if end_of(operation) < end_of(known):
                    queue.first_taken[value] = operation
            _look_for_emptiness(queue, operation, drained=drained)
    return queue


def _look_for_emptiness(queue: _Queue, operation: PairedOperation, *, drained: bool) -> None:
    found_nothing = operation.f == "drain" or operation.result is None
    node, in_a_row = operation.node, queue.empties_in_a_row
    if operation.final:
        in_a_row[node] = in_a_row[node] + 1 if found_nothing else 0
    is_over = operation.f == "drain" or in_a_row[node] >= EMPTIES_IN_A_ROW
    if not found_nothing or (drained and not (operation.final and is_over)):
        return
    if queue.empty is None or operation.start > queue.empty.start:
        queue.empty = operation
    if operation.final:
        known = queue.empty_at.setdefault(node, operation)
        if operation.start > known.start:
            queue.empty_at[node] = operation


def _add_enqueue(queue: _Queue, operation: PairedOperation) -> None:
    value = freeze(operation.argument)
    # A full queue refused it.
    refused = operation.type == "ok" and operation.result is False and value is not False
    if operation.type == "fail" or refused:
        queue.failed.setdefault(value, operation)
        return
    queue.attempted[value] += 1
    known = queue.first_enqueue.setdefault(value, operation)
    if operation.start < known.start:
        queue.first_enqueue[value] = operation
    if operation.type == "ok":
        queue.acknowledged.append((value, operation))


def _elements(operation: PairedOperation) -> Iterator[Hashable]:
    result: object = operation.result
    if operation.f == "dequeue":
        if result is not None:
            yield freeze(result)
        return
    if not isinstance(result, (list, tuple, AbstractSet, type(None))):
        raise Undecided(f"the drain of index {operation.index} answered no list")
    for element in cast("Sequence[object]", result or ()):
        yield freeze(element)


def _judge_taken(queue: _Queue, findings: Findings) -> None:
    for value, times in queue.taken.items():
        taken = queue.first_taken[value]
        requested = queue.attempted[value]
        enqueue = queue.first_enqueue.get(value)
        if enqueue is None:
            failed = queue.failed.get(value)
            why = "although nobody ever asked to enqueue it"
            if failed is not None:
                why = f"although its enqueue certainly did not happen (index {failed.index})"
            _note(findings, "phantom", value, [taken], f"was dequeued {why}")
        elif end_of(taken) < enqueue.start:
            why = f"was dequeued before its enqueue was invoked (index {enqueue.index})"
            _note(findings, "phantom", value, [taken, enqueue], why)
        if requested and times > requested:
            why = f"was dequeued {times:,} times and enqueued {requested:,} times at most"
            _note(findings, "duplicated", value, [enqueue or taken, taken], why)


def _judge_lost(
    queue: _Queue,
    members: frozenset[str],
    unread_members: set[str],
    findings: Findings,
    figures: dict[str, int],
) -> None:
    """Note lost elements; add members that may hold them instead to ``unread_members``."""
    left = Counter(queue.taken)
    missing: list[tuple[Hashable, PairedOperation]] = []
    never_looked_for = 0
    # Of equal elements a dequeue is held to have taken the one acknowledged first, so that no more
    # are called lost than certainly are.
    for value, enqueue in sorted(queue.acknowledged, key=lambda pair: end_of(pair[1])):
        if left[value]:
            left[value] -= 1
        elif queue.empty is None or end_of(enqueue) >= queue.empty.start:
            never_looked_for += 1
        else:
            missing.append((value, enqueue))
    figures["never-looked-for"] += never_looked_for
    unanswered = len(missing) if queue.unanswered is None else queue.unanswered
    figures["taken-unanswered"] += min(unanswered, len(missing))
    lost = len(missing) - unanswered
    if lost > 0 and queue.empty is not None:
        last = max(end_of(enqueue) for _, enqueue in missing)
        may_hold = unread(members, (o for o in queue.empty_at.values() if o.start > last))
        if may_hold:
            figures["perhaps-elsewhere"] += lost
            unread_members.update(may_hold)
            return
        value, enqueue = missing[0]
        subject = f"Element {text_of(value)}{of_key(enqueue.key)} was acknowledged"
        if len(missing) > 1:
            subject = f"{len(missing):,} elements{of_key(enqueue.key)} were acknowledged"
            subject += f" ({text_of(value)} and others)"
        but = f", and the {unanswered:,} dequeues without answer can have taken no more than that"
        sentence = (
            f"{subject}, never dequeued, and the queue was found empty after that "
            f"(index {queue.empty.index}){but if unanswered else ''}: {lost:,} lost."
        )
        named = [enqueue for _, enqueue in missing[:NAMED_MAX]]
        findings.note("lost", [*named, queue.empty], lambda: sentence, lost)


def _note(
    findings: Findings,
    kind: str,
    value: Hashable,
    operations: Sequence[PairedOperation],
    what: str,
) -> None:
    taken = operations[-1] if kind == "duplicated" else operations[0]
    findings.note(
        kind,
        operations,
        lambda: f"Element {text_of(value)}{of_key(taken.key)} {what} (index {taken.index}).",
    )
