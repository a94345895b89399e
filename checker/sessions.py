"""Checker of session guarantees by process: monotonic reads, and read your writes; n log n.

- *monotonic reads*: a process that has read a version never reads an older one.
- *read your writes*: a process reads its own acknowledged writes, or something newer.

Different processes are not compared, so a system that reads from followers can keep both. Kinds of
objects are told apart by the answers of their reads:

- Sets that only grow (``add``; reads answer lists): every element that is due must be shown.
- Registers (``write``, ``cas``) whose acknowledged changes all have a position (epoch and offset,
  revision): the order of versions is known, even if values repeat. A read with a position is held
  to it; one without may have seen any change that left its value, and goes back only if all of them
  lie before its process' last read or acknowledged write. A change without answer and position may
  stand anywhere, so a read of its value accuses nobody. Positions are believed: ``lost-commits``
  looks into the logs.
- Registers whose written values are all distinct: see ``checker.session_versions``.

Other keys cannot be judged; without a violation the verdict is then ``unknown``. Source: Terry et
al. 1994, "Session guarantees for weakly consistent replicated data".
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from splitbrain.checker.findings import Findings, by_key, of_key
from splitbrain.checker.models.model import freeze, text_of
from splitbrain.checker.session_versions import (
    MONOTONIC_READS,
    NOTHING,
    READ_YOUR_WRITES,
    judge_versions,
    written_by,
)
from splitbrain.checker.set_sightings import elements_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.names import NO_EPOCH
from splitbrain.history.records import PairedOperation

#: Epoch and offset; the reader gave a revision its epoch.
Position = tuple[int, int]

#: Position of the initial value.
_BEGINNING: Final[Position] = (-1, -1)


class _Known(NamedTuple):
    """Lower bound of a process' reads."""

    position: Position
    by: PairedOperation
    guarantee: str


class _Changes(NamedTuple):
    """Positions of the changes, by the value that they left."""

    positions: dict[Hashable, list[Position]]
    #: Values of changes without position.
    anywhere: set[Hashable]


def has_positions(members: Sequence[PairedOperation]) -> bool:
    """Return whether every acknowledged change of the register has a position, and there is one."""
    changes = [o for o in members if o.type == "ok" and written_by(o) is not NOTHING]
    return bool(changes) and all(change.position is not None for change in changes)


def judge_positions(members: Sequence[PairedOperation], findings: Findings) -> None:
    """Judge a register that ``has_positions``; ``members`` as in ``judge_versions``."""
    changes = _changes(members)
    known: dict[int, _Known] = {}
    for operation in members:
        findings.poll()
        if operation.type != "ok":
            continue
        before = known.get(operation.process)
        if operation.f == "read":
            position = operation.position or _seen(operation, before, changes)
            guarantee = MONOTONIC_READS
        else:
            changed = written_by(operation) is not NOTHING
            position, guarantee = operation.position if changed else None, READ_YOUR_WRITES
        if position is None:
            continue
        if before is None or position >= before.position:
            known[operation.process] = _Known(position, operation, guarantee)
        elif operation.f == "read":
            _note(before, operation, position, findings)
            # Noted once; from here on the process is held to this read.
            known[operation.process] = _Known(position, operation, guarantee)


def _changes(members: Sequence[PairedOperation]) -> _Changes:
    positions: dict[Hashable, list[Position]] = {None: [_BEGINNING]}
    anywhere: set[Hashable] = set()
    for operation in members:
        value = written_by(operation)
        if value is NOTHING:
            continue
        if operation.position is None:
            anywhere.add(value)
        else:
            positions.setdefault(value, []).append(operation.position)
    for found in positions.values():
        found.sort()
    return _Changes(positions, anywhere)


def _seen(read: PairedOperation, before: _Known | None, changes: _Changes) -> Position | None:
    """Return the first change that it can have seen without going back, else the last one at all.

    None if the value may come from a change of unknown position, or from none.
    """
    value = freeze(read.result)
    candidates = changes.positions.get(value, [])
    if value in changes.anywhere or not candidates:
        return None
    first = 0 if before is None else bisect_left(candidates, before.position)
    return candidates[min(first, len(candidates) - 1)]


def _place(position: Position) -> str:
    epoch, offset = position
    return f"position {offset if epoch == NO_EPOCH else list(position)}"


def _note(before: _Known, read: PairedOperation, position: Position, findings: Findings) -> None:
    first = before.by
    verb = "read" if first.f == "read" else "wrote"
    value = first.result if first.f == "read" else written_by(first)
    place = "as at the beginning" if position == _BEGINNING else f"of {_place(position)}"
    findings.note(
        before.guarantee,
        [first, read],
        lambda: (
            f"Process {read.process} {verb} {text_of(value)}{of_key(read.key)} of "
            f"{_place(before.position)} (index {first.index}) and later read "
            f"{text_of(read.result)} {place} (index {read.index})."
        ),
    )


def check(operations: Iterable[PairedOperation], budget: Budget) -> CheckResult:
    """Judge all processes of a history on every key."""
    findings = Findings("sessions", budget, (MONOTONIC_READS, READ_YOUR_WRITES))
    happened = [operation for operation in operations if operation.type != "fail"]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        not_judged: list[str] = []
        reads = 0
        keys = by_key(happened)
        for key, members in keys.items():
            in_order = sorted(members, key=lambda operation: operation.index)
            problem = _judge_key(in_order, findings)
            reads += sum(o.f == "read" and o.type == "ok" for o in members)
            if problem is not None:
                not_judged.append(f"{of_key(key).strip() or 'the history'}: {problem}")
        figures = {"keys": len(keys), "keys-not-judged": len(not_judged), "reads": reads}
        undecided = None
        if not_judged:
            undecided = (
                f"{len(not_judged):,} of {len(keys):,} keys cannot be judged, {not_judged[0]}."
            )
        elif not reads:
            undecided = "Nothing was ever read, so there is nothing to judge."
        return figures, f"None of {reads:,} reads goes back behind its own session.", undecided

    return findings.conclude(judge)


def _judge_key(members: Sequence[PairedOperation], findings: Findings) -> str | None:
    """Judge one key; return the reason why it cannot be judged, if so."""
    findings.poll()
    kinds = {operation.f for operation in members}
    answers = [o.result for o in members if o.f == "read" and o.type == "ok"]
    are_lists = all(
        isinstance(answer, (list, tuple, AbstractSet, type(None))) for answer in answers
    )
    if kinds <= {"read", "write", "cas"} and not (kinds == {"read"} and are_lists):
        return _judge_register(members, findings)
    if kinds <= {"read", "add"}:
        if not are_lists:
            return "its adds are to no set, for reads answer no lists"
        _judge_set(members, findings)
        return None
    return f"sessions cannot tell what {', '.join(sorted(kinds - {'read'}))} leaves behind"


def _judge_register(members: Sequence[PairedOperation], findings: Findings) -> str | None:
    """Judge by positions where there are any; by distinct values if these show nothing wrong."""
    if not has_positions(members):
        return judge_versions(members, findings)
    before = dict(findings.counts)
    judge_positions(members, findings)
    if findings.counts == before:
        judge_versions(members, findings)
    return None


def _judge_set(members: Sequence[PairedOperation], findings: Findings) -> None:
    """Go through each process with the elements that it must read from now on."""
    due_by_process: dict[int, dict[Hashable, PairedOperation]] = {}
    for operation in members:
        findings.poll()
        if operation.type != "ok":
            continue
        due = due_by_process.setdefault(operation.process, {})
        if operation.f == "add":
            due[freeze(operation.argument)] = operation
            continue
        shown = set(elements_of(operation))
        missing = due.keys() - shown
        for value in [value for value in due if value in missing] if missing else ():
            # Noted once; due again once the process has read it again.
            _note_missing(value, due.pop(value), operation, findings)
        due.update(dict.fromkeys(shown.difference(due), operation))


def _note_missing(
    value: Hashable, why: PairedOperation, read: PairedOperation, findings: Findings
) -> None:
    own = why.f == "add"
    findings.note(
        READ_YOUR_WRITES if own else MONOTONIC_READS,
        [why, read],
        lambda: (
            f"Process {read.process} {'added' if own else 'read'} element {text_of(value)}"
            f"{of_key(read.key)} (index {why.index}) and missed it later (index {read.index})."
        ),
    )
